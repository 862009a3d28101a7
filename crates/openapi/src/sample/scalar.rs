//! Generation of the texts and numbers of a flat schema.

use anyhow::{anyhow, bail};
use serde_json::{Map, Value, json};

use super::bundle::is_simple;
use super::generator::{CHARACTERS_PER_COST, Generator, MAX_LENGTH, count_limit};
use super::merge::pattern_list;
use super::number::NumberRange;
use super::text;
use crate::compile;

/// Number of characters for which the generation of a text from a pattern leaves room, if no minimum length requires more.
const PATTERN_LENGTH: usize = 1_000;
/// Maximum number of attempts to generate a single string or number.
const VALUE_ATTEMPTS: u32 = 50;

impl Generator<'_> {
    /// Generates a number of a flat schema.
    pub fn number(&mut self, flat: &Map<String, Value>, pointer: &str) -> anyhow::Result<Value> {
        let numbers = NumberRange::new(flat).ok_or_else(|| anyhow!("`{pointer}` has no number within its bounds"))?;
        self.retry_until_valid(flat, pointer, |generator, _| Some(numbers.pick(generator.rng)))
    }

    /// Generates a text of a flat schema.
    pub fn text(&mut self, flat: &Map<String, Value>, pointer: &str) -> anyhow::Result<Value> {
        let minimum = count_limit(flat, "minLength").unwrap_or(0);
        let maximum = count_limit(flat, "maxLength").unwrap_or(usize::MAX);
        if minimum > maximum || minimum > MAX_LENGTH {
            bail!("`{pointer}` has contradictory numbers of characters");
        }
        self.spend(minimum / CHARACTERS_PER_COST, pointer)?;
        let format = flat.get("format").and_then(Value::as_str);
        let mut patterns = Vec::new();
        for pattern in flat.get("pattern").map(pattern_list).into_iter().flatten().filter_map(Value::as_str) {
            match self.bundle.patterns.get(pattern) {
                Some(Some(pattern)) => patterns.push(pattern),
                _ => bail!("no text for `{pointer}` can be generated from its pattern, {pattern}"),
            }
        }
        let matches = |text: &str| patterns.iter().all(|pattern| pattern.matches(text));
        self.retry_until_valid(flat, pointer, |generator, attempt| {
            let rng = &mut *generator.rng;
            // The format has characters of its own, so less and less is added.
            let padding = if attempt == 0 { 0 } else { minimum.saturating_sub(attempt as usize / 2) };
            let formatted = format.and_then(|format| {
                let text = text::formatted(rng, format, padding)?;
                Some(text::shortest(format).filter(|_| text.len() > maximum).map_or(text, str::to_owned))
            });
            let candidate = match formatted {
                Some(formatted) if patterns.is_empty() || attempt % 2 == 0 => formatted,
                formatted if !patterns.is_empty() => {
                    let repeats = [0..=4, minimum..=minimum, minimum / 2..=minimum / 2 + 2, 0..=minimum, 0..=0, 0..=12];
                    let date_time = text::date_times(rng).find(|text| matches(text));
                    let mut text = date_time.unwrap_or_else(|| {
                        let repeats = &repeats[attempt as usize % repeats.len()];
                        let mut parts = patterns.iter().map(|pattern| pattern.text(rng, repeats, minimum.max(PATTERN_LENGTH)));
                        // A pattern without an anchor also matches if other characters stand before or behind.
                        let (count, choice) = (patterns.len(), attempt as usize / 2 % (patterns.len() + 2));
                        match choice.checked_sub(count) {
                            None => parts.nth(choice).unwrap_or_default(),
                            Some(0) => parts.collect(),
                            Some(_) => parts.rev().collect(),
                        }
                    });
                    // A pattern without an anchor at its end allows more characters.
                    text.extend(std::iter::repeat_n('x', minimum.saturating_sub(text.chars().count())));
                    let rest = formatted.as_deref().and_then(|formatted| formatted.get(text.len()..));
                    text.push_str(rest.filter(|_| attempt % 4 == 1).unwrap_or_default());
                    text
                }
                _ => text::words(rng, minimum, maximum.min(minimum.max(10) + 14)),
            };
            let fits = (minimum..=maximum).contains(&candidate.chars().count()) && matches(&candidate);
            fits.then_some(Value::String(candidate))
        })
    }

    /// Calls `make` with the number of the attempt until it returns a value that satisfies `not`, and the format if there is a pattern
    /// too, which `make` satisfies.
    fn retry_until_valid(
        &mut self,
        flat: &Map<String, Value>,
        pointer: &str,
        make: impl Fn(&mut Self, u32) -> Option<Value>,
    ) -> anyhow::Result<Value> {
        // A text that matches the pattern may violate the format.
        let has_both = flat.contains_key("format") && flat.contains_key("pattern");
        let validator = if has_both && is_simple(flat) || flat.contains_key("not") {
            let mut rest = flat.clone();
            let not = rest.remove("not");
            rest.remove("nullable");
            // Compiling a pattern takes longer than all else.
            rest.remove("pattern");
            let schema = match not {
                Some(not) => json!({ "allOf": [rest], "not": not, "$defs": self.bundle.root["$defs"] }),
                None => Value::Object(rest),
            };
            Some(compile(&schema)?)
        } else {
            None
        };
        (0..VALUE_ATTEMPTS)
            .filter_map(|attempt| make(self, attempt))
            .find(|value| validator.as_ref().is_none_or(|validator| validator.is_valid(value)))
            .ok_or_else(|| anyhow!("`{pointer}` had no valid value in {VALUE_ATTEMPTS} attempts"))
    }

    /// Generates the name of a property that matches a pattern.
    pub fn matching_name(&mut self, pattern: &str, pointer: &str) -> anyhow::Result<String> {
        let found = self.bundle.patterns.get(pattern).and_then(Option::as_ref).and_then(|pattern| {
            (0..VALUE_ATTEMPTS).map(|_| pattern.text(self.rng, &(0..=4), PATTERN_LENGTH)).find(|name| pattern.matches(name))
        });
        found.ok_or_else(|| anyhow!("no name for a property of `{pointer}` can be generated from its pattern, {pattern}"))
    }
}
