//! Generation of texts that match a pattern, a regular expression of ECMAScript.

use std::ops::RangeInclusive;

use jsonschema::Validator;
use jsonschema_regex::to_rust_regex;
use rand::RngExt;
use rand::rngs::Xoshiro256PlusPlus;
use rand::seq::IndexedRandom;
use regex_syntax::hir::{Class, Hir, HirKind};
use serde_json::{Value, json};

use crate::compile;

/// A pattern for generating texts.
#[derive(Debug)]
pub struct Pattern {
    hir: Hir,
    validator: Validator,
}

impl Pattern {
    /// Parses a pattern with ECMAScript's classes: `\d` is an ASCII digit. `None` if it is invalid or has backreferences.
    pub fn new(pattern: &str) -> Option<Self> {
        let hir = regex_syntax::parse(&to_rust_regex(&without_lookaround(pattern)).ok()?).ok()?;
        Some(Self { hir, validator: compile(&json!({ "pattern": pattern })).ok()? })
    }

    /// Returns whether a text matches, anywhere in it unless the pattern is anchored.
    pub fn matches(&self, text: &str) -> bool {
        self.validator.is_valid(&Value::from(text))
    }

    /// Generates a text that is likely to match. Anchors, word boundaries and lookarounds are ignored, so check it with
    /// [`Pattern::matches`]. Each repetition exceeds its minimum by a number in `extra`, within its maximum.
    ///
    /// Generation stops once the text is more than twice as long as `length` characters and as the shortest match: nested repetitions
    /// multiply their numbers.
    pub fn text(&self, rng: &mut Xoshiro256PlusPlus, extra: &RangeInclusive<usize>, length: usize) -> String {
        let shortest = self.hir.properties().minimum_len().unwrap_or(0);
        let limit = length.saturating_mul(char::MAX_LEN_UTF8).max(shortest).saturating_mul(2);
        let mut text = String::new();
        write(&self.hir, rng, extra, limit, &mut text);
        text
    }
}

/// Removes lookarounds such as `(?!no)` from a pattern. Most texts that match the rest match the pattern.
fn without_lookaround(pattern: &str) -> String {
    let mut rest = String::new();
    // Number of open groups within the current lookaround.
    let mut depth = 0;
    let (mut escaped, mut in_class) = (false, false);
    for (at, character) in pattern.char_indices() {
        let is_plain = !escaped && !in_class;
        let is_lookaround = ["(?=", "(?!", "(?<=", "(?<!"].iter().any(|start| pattern[at..].starts_with(start));
        if is_plain && character == '(' && (depth > 0 || is_lookaround) {
            depth += 1;
        }
        if depth == 0 {
            rest.push(character);
        } else if is_plain && character == ')' {
            depth -= 1;
        }
        in_class = !escaped && (character == '[' || in_class && character != ']') || escaped && in_class;
        escaped = !escaped && character == '\\';
    }
    rest
}

/// Appends a text for a part of the pattern, unless the text has more than `limit` bytes already.
fn write(hir: &Hir, rng: &mut Xoshiro256PlusPlus, extra: &RangeInclusive<usize>, limit: usize, text: &mut String) {
    if text.len() > limit {
        return;
    }
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => {}
        HirKind::Literal(literal) => text.push_str(&String::from_utf8_lossy(&literal.0)),
        HirKind::Class(class) => text.push(random_character(&preferred_ranges(class), rng)),
        HirKind::Repetition(repetition) => {
            let max = repetition.max.map_or(usize::MAX, |max| max as usize);
            let times = |extra: &usize| max.min(repetition.min as usize + extra);
            let times = rng.random_range(times(extra.start())..=times(extra.end())).min(limit.saturating_add(1));
            match repetition.sub.kind() {
                // The text may have thousands of characters.
                HirKind::Class(class) => {
                    let ranges = preferred_ranges(class);
                    text.extend((0..times).map(|_| random_character(&ranges, rng)));
                }
                _ => (0..times).for_each(|_| write(&repetition.sub, rng, extra, limit, text)),
            }
        }
        HirKind::Capture(capture) => write(&capture.sub, rng, extra, limit, text),
        HirKind::Concat(parts) => parts.iter().for_each(|part| write(part, rng, extra, limit, text)),
        HirKind::Alternation(branches) => {
            branches.choose(rng).into_iter().for_each(|branch| write(branch, rng, extra, limit, text))
        }
    }
}

/// Returns the ASCII letters and digits of a class, or else its printable ASCII characters, or else all of its characters.
fn preferred_ranges(class: &Class) -> Vec<(char, char)> {
    let ranges: Vec<(char, char)> = match class {
        Class::Unicode(class) => class.iter().map(|range| (range.start(), range.end())).collect(),
        Class::Bytes(class) => class.iter().map(|range| (range.start().into(), range.end().into())).collect(),
    };
    let within = |(low, high): (char, char)| {
        let common = ranges.iter().map(move |(start, end)| (*start.max(&low), *end.min(&high)));
        common.filter(|(start, end)| start <= end).collect::<Vec<_>>()
    };
    let alphanumeric: Vec<_> = [('0', '9'), ('A', 'Z'), ('a', 'z')].into_iter().flat_map(within).collect();
    let printable = within((' ', '~'));
    if !alphanumeric.is_empty() {
        alphanumeric
    } else if !printable.is_empty() {
        printable
    } else {
        ranges
    }
}

fn random_character(ranges: &[(char, char)], rng: &mut Xoshiro256PlusPlus) -> char {
    // An empty class matches no text, so any character will do.
    let Some((start, end)) = ranges.choose(rng) else { return '?' };
    rng.random_range(*start..=*end)
}
