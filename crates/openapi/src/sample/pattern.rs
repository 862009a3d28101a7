//! Texts made from a pattern, a regular expression of ECMAScript.

use std::ops::RangeInclusive;

use jsonschema::Validator;
use jsonschema_regex::to_rust_regex;
use rand::RngExt;
use rand::rngs::Xoshiro256PlusPlus;
use rand::seq::IndexedRandom;
use regex_syntax::hir::{Class, Hir, HirKind};
use serde_json::{Value, json};

use crate::compile;

/// A pattern that texts can be made from.
#[derive(Debug)]
pub struct Pattern {
    hir: Hir,
    validator: Validator,
}

impl Pattern {
    /// Reads a pattern, whose classes are ECMAScript's: `\d` is a digit of ASCII. `None` when it is no pattern, or one that refers
    /// back to what it matched: no text can be made from those.
    pub fn new(pattern: &str) -> Option<Self> {
        let hir = regex_syntax::parse(&to_rust_regex(&without_looks(pattern)).ok()?).ok()?;
        Some(Self { hir, validator: compile(&json!({ "pattern": pattern })).ok()? })
    }

    /// Whether it matches a text, anywhere in it unless it is anchored.
    pub fn matches(&self, text: &str) -> bool {
        self.validator.is_valid(&Value::from(text))
    }

    /// A text that is likely to match: anchors, word boundaries and what it looks ahead or back for are
    /// not heeded, so ask [`Pattern::matches`]. What may
    /// be repeated is repeated so many times more than it must be, if it may be as often.
    pub fn text(&self, rng: &mut Xoshiro256PlusPlus, extra: &RangeInclusive<usize>) -> String {
        let mut text = String::new();
        write(&self.hir, rng, extra, &mut text);
        text
    }
}

/// A pattern without what it looks ahead or back for, `(?!no)` and the like: most texts of the rest match the whole.
fn without_looks(pattern: &str) -> String {
    let mut kept = String::new();
    // How many groups are open in what is left out.
    let mut depth = 0;
    let (mut escaped, mut in_class) = (false, false);
    for (at, character) in pattern.char_indices() {
        let is_plain = !escaped && !in_class;
        let looks = ["(?=", "(?!", "(?<=", "(?<!"].iter().any(|look| pattern[at..].starts_with(look));
        if is_plain && character == '(' && (depth > 0 || looks) {
            depth += 1;
        }
        if depth == 0 {
            kept.push(character);
        } else if is_plain && character == ')' {
            depth -= 1;
        }
        in_class = !escaped && (character == '[' || in_class && character != ']') || escaped && in_class;
        escaped = !escaped && character == '\\';
    }
    kept
}

fn write(hir: &Hir, rng: &mut Xoshiro256PlusPlus, extra: &RangeInclusive<usize>, text: &mut String) {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => {}
        HirKind::Literal(literal) => text.push_str(&String::from_utf8_lossy(&literal.0)),
        HirKind::Class(class) => text.push(character(class, rng)),
        HirKind::Repetition(repetition) => {
            let most = repetition.max.map_or(usize::MAX, |max| max as usize);
            let times = |extra: &usize| most.min(repetition.min as usize + extra);
            for _ in 0..rng.random_range(times(extra.start())..=times(extra.end())) {
                write(&repetition.sub, rng, extra, text);
            }
        }
        HirKind::Capture(capture) => write(&capture.sub, rng, extra, text),
        HirKind::Concat(parts) => parts.iter().for_each(|part| write(part, rng, extra, text)),
        HirKind::Alternation(arms) => arms.choose(rng).into_iter().for_each(|arm| write(arm, rng, extra, text)),
    }
}

/// One of a class: a letter or digit where it has some, else what is printable in ASCII, else any.
fn character(class: &Class, rng: &mut Xoshiro256PlusPlus) -> char {
    let ranges: Vec<(char, char)> = match class {
        Class::Unicode(class) => class.iter().map(|range| (range.start(), range.end())).collect(),
        Class::Bytes(class) => class.iter().map(|range| (range.start().into(), range.end().into())).collect(),
    };
    let within = |(low, high): (char, char)| {
        let common = ranges.iter().map(move |(start, end)| (*start.max(&low), *end.min(&high)));
        common.filter(|(start, end)| start <= end).collect::<Vec<_>>()
    };
    let known: Vec<_> = [('0', '9'), ('A', 'Z'), ('a', 'z')].into_iter().flat_map(within).collect();
    let printable = within((' ', '~'));
    let from = if !known.is_empty() {
        known
    } else if !printable.is_empty() {
        printable
    } else {
        ranges
    };
    // A class of nothing matches nothing, whatever stands here.
    let Some((start, end)) = from.choose(rng) else { return '?' };
    rng.random_range(*start..=*end)
}
