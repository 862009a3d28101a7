//! Numbers within bounds.

use rand::RngExt;
use rand::rngs::Xoshiro256PlusPlus;
use serde_json::{Map, Value, json};

/// The numbers that a schema allows: the multiples of a step from one to another.
#[derive(Debug)]
pub struct NumberRange {
    /// The least and the greatest, in steps.
    steps: (i128, i128),
    step: f64,
    /// Whether the schema says how small and how great they may be.
    bounded: (bool, bool),
}

/// So many steps a number without a bound goes at most from the other bound, or from zero.
const SPAN: i128 = 1000;

impl NumberRange {
    /// Those of a schema whose exclusive bounds are numbers; `None` where there is none.
    pub fn new(schema: &Map<String, Value>) -> Option<Self> {
        let bound = |keyword: &str| schema.get(keyword).and_then(Value::as_f64);
        let integer = schema.get("type").is_some_and(|kind| kind == "integer");
        let (minimum, maximum) = (bound("minimum"), bound("maximum"));
        let (above, below) = (bound("exclusiveMinimum"), bound("exclusiveMaximum"));
        let low = minimum.into_iter().chain(above).reduce(f64::max);
        let high = maximum.into_iter().chain(below).reduce(f64::min);
        let step = match bound("multipleOf").filter(|step| *step > 0.0) {
            // The least that is a whole number: every third multiple of 1/3, every multiple of 5.
            Some(step) if integer => (1..=1000).map(|times| step * f64::from(times)).find(|whole| whole.fract().abs() < 1e-9)?,
            Some(step) => step,
            None if integer => 1.0,
            None => match low.zip(high).map(|(low, high)| high - low) {
                // A range without a hundredth in it, or one so far out that hundredths don't count.
                Some(range) if range > 0.0 && !(1.0..1e12).contains(&range) => range / 1024.0,
                _ => 0.01,
            },
        };
        // A quotient that is whole but for its last digits, and no greater than what can be counted with.
        let steps = |bound: f64| {
            let steps = (bound / step).clamp(-1e30, 1e30);
            if (steps - steps.round()).abs() < 1e-6 { steps.round() } else { steps }
        };
        let mut first = low.map(|low| steps(low).ceil() as i128);
        let mut last = high.map(|high| steps(high).floor() as i128);
        if let (Some(first), Some(above)) = (&mut first, above)
            && at(*first, step) <= above
        {
            *first += 1;
        }
        if let (Some(last), Some(below)) = (&mut last, below)
            && at(*last, step) >= below
        {
            *last -= 1;
        }
        let bounded = (first.is_some(), last.is_some());
        let steps = match (first, last) {
            (Some(first), Some(last)) => (first, last),
            (Some(first), None) => (first, first.max(0) + SPAN),
            (None, Some(last)) => (last.min(0) - if last < 0 { SPAN } else { 0 }, last),
            (None, None) => (0, SPAN),
        };
        (steps.0 <= steps.1).then_some(Self { steps, step, bounded })
    }

    /// One of them: mostly one near zero, as those in use are.
    pub fn pick(&self, rng: &mut Xoshiro256PlusPlus) -> Value {
        let (first, last) = self.steps;
        let near = 0.clamp(first, last);
        let steps = if rng.random_bool(0.9) { near..=last.min(near + SPAN) } else { first..=last };
        self.value(rng.random_range(steps))
    }

    /// The least, the one after it, the one before the greatest, the greatest, and zero, as far as the bounds are the schema's.
    pub fn edges(&self) -> Vec<Value> {
        let (first, last) = self.steps;
        let mut steps = Vec::new();
        if self.bounded.0 {
            steps.extend([first, first + 1]);
        }
        if self.bounded.1 {
            steps.extend([last - 1, last]);
        }
        steps.push(0);
        steps.retain(|step| (first..=last).contains(step));
        steps.sort_unstable();
        steps.dedup();
        steps.into_iter().map(|steps| self.value(steps)).collect()
    }

    fn value(&self, steps: i128) -> Value {
        if self.step.fract() == 0.0 && self.step < 1e15 {
            // Exactly, as far as integers go: numbers with a fraction have 15 digits.
            return json!((steps * self.step as i128).clamp(i64::MIN.into(), i64::MAX.into()) as i64);
        }
        let value = at(steps, self.step);
        if value.fract() == 0.0 && value.abs() < 1e15 { json!(value as i64) } else { json!(value) }
    }
}

/// So many steps, as the nearest number: 3 steps of 0.1 are 0.3, while 3 times 0.1 is 0.30000000000000004.
fn at(steps: i128, step: f64) -> f64 {
    let parts = (1.0 / step).round();
    if step < 1.0 && (parts * step - 1.0).abs() < 1e-9 { steps as f64 / parts } else { steps as f64 * step }
}
