//! Generation of numbers within the bounds of a schema.

use rand::RngExt;
use rand::rngs::Xoshiro256PlusPlus;
use serde_json::{Map, Value, json};

/// The numbers that a schema allows: the multiples of a step between a minimum and a maximum.
#[derive(Debug)]
pub struct NumberRange {
    /// Minimum and maximum, as multiples of `step`.
    steps: (i128, i128),
    step: f64,
    /// True if the minimum or the maximum is the schema's.
    is_bounded: (bool, bool),
}

/// Size of the range in steps, for a schema without a minimum or maximum.
const SPAN: i128 = 1000;

impl NumberRange {
    /// Returns the range of a schema whose exclusive bounds are numbers. `None` if it is empty.
    pub fn new(schema: &Map<String, Value>) -> Option<Self> {
        let bound = |keyword: &str| schema.get(keyword).and_then(Value::as_f64);
        let integer = schema.get("type").is_some_and(|kind| kind == "integer");
        let low = bound("minimum").into_iter().chain(bound("exclusiveMinimum")).reduce(f64::max);
        let high = bound("maximum").into_iter().chain(bound("exclusiveMaximum")).reduce(f64::min);
        let step = match bound("multipleOf").filter(|step| *step > 0.0) {
            // The smallest multiple of the step that is a whole number: 1 for a step of 1/3, 5 for a step of 5.
            Some(step) if integer => (1..=1000).map(|times| step * f64::from(times)).find(|whole| whole.fract().abs() < 1e-9)?,
            Some(step) => step,
            None if integer => 1.0,
            None => match (low, high) {
                // That of all numbers, or of all from zero, is no range of values that are used.
                (Some(low), Some(high)) if high - low >= 1e30 && low <= 0.0 && high >= 0.0 => 0.01,
                // Hundredths are too coarse for a small range, and too fine for a large one.
                (Some(low), Some(high)) if high > low && !(1.0..1e12).contains(&(high - low)) => (high - low) / 1024.0,
                (Some(bound), None) | (None, Some(bound)) if bound.abs() >= 1e12 => bound.abs() / 1024.0,
                _ => 0.01,
            },
        };
        let steps = |keyword: &str| schema.get(keyword).and_then(|bound| divide(bound, step));
        let minimum = steps("minimum").map(|(steps, is_exact)| if is_exact { steps } else { steps + 1 });
        let above = steps("exclusiveMinimum").map(|(steps, _)| steps + 1);
        let maximum = steps("maximum").map(|(steps, _)| steps);
        let below = steps("exclusiveMaximum").map(|(steps, is_exact)| if is_exact { steps - 1 } else { steps });
        let first = minimum.into_iter().chain(above).max();
        let last = maximum.into_iter().chain(below).min();
        let is_bounded = (first.is_some(), last.is_some());
        let mut steps = match (first, last) {
            (Some(first), Some(last)) => (first, last),
            (Some(first), None) => (first, first.max(0) + SPAN),
            (None, Some(last)) => (last.min(0) - if last < 0 { SPAN } else { 0 }, last),
            (None, None) => (0, SPAN),
        };
        if integer {
            let is_small = schema.get("format").is_some_and(|format| format == "int32");
            let (least, largest) = if is_small { (i32::MIN.into(), i32::MAX.into()) } else { (i64::MIN, i64::MAX) };
            let within = |limit: i64| i128::from(limit) / step as i128;
            steps = (steps.0.max(within(least)), steps.1.min(within(largest)));
        }
        (steps.0 <= steps.1).then_some(Self { steps, step, is_bounded })
    }

    /// Returns a random number of the range. Nine of ten are close to zero, as in practice.
    pub fn pick(&self, rng: &mut Xoshiro256PlusPlus) -> Value {
        let (first, last) = self.steps;
        let near = 0.clamp(first, last);
        let steps = if rng.random_bool(0.9) { near..=last.min(near + SPAN) } else { first..=last };
        self.value(rng.random_range(steps))
    }

    /// Returns the numbers at and next to the schema's minimum and maximum, and zero.
    pub fn boundaries(&self) -> Vec<Value> {
        let (first, last) = self.steps;
        let mut steps = Vec::new();
        if self.is_bounded.0 {
            steps.extend([first, first + 1]);
        }
        if self.is_bounded.1 {
            steps.extend([last - 1, last]);
        }
        steps.push(0);
        steps.retain(|step| (first..=last).contains(step));
        steps.sort_unstable();
        steps.dedup();
        steps.into_iter().map(|steps| self.value(steps)).collect()
    }

    /// Returns the number at a multiple of the step.
    fn value(&self, steps: i128) -> Value {
        if self.step.fract() == 0.0 && self.step < 1e15 {
            // Integer arithmetic is exact, while floating-point numbers have only 15 digits.
            return json!((steps * self.step as i128).clamp(i64::MIN.into(), i64::MAX.into()) as i64);
        }
        let value = multiply(steps, self.step);
        if value.fract() == 0.0 && value.abs() < 1e15 { json!(value as i64) } else { json!(value) }
    }
}

/// Divides a bound by a step. Returns the quotient, rounded down, and whether it is exact.
fn divide(bound: &Value, step: f64) -> Option<(i128, bool)> {
    if let (Some(bound), true) = (bound.as_i64(), step.fract() == 0.0 && step < 1e15) {
        let (bound, step) = (i128::from(bound), step as i128);
        return Some((bound.div_euclid(step), bound.rem_euclid(step) == 0));
    }
    // Limits the quotient to the range of integers.
    let steps = (bound.as_f64()? / step).clamp(-1e30, 1e30);
    // Rounds away the error of floating-point division.
    let is_exact = (steps - steps.round()).abs() < 1e-6;
    Some((if is_exact { steps.round() } else { steps.floor() } as i128, is_exact))
}

/// Multiplies a step without the error of floating-point multiplication: 3 steps of 0.1 are 0.3 instead of 0.30000000000000004.
fn multiply(steps: i128, step: f64) -> f64 {
    let parts = (1.0 / step).round();
    if step < 1.0 && (parts * step - 1.0).abs() < 1e-9 { steps as f64 / parts } else { steps as f64 * step }
}
