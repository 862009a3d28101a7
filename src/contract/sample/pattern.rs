//! Texts made from a pattern, a regular expression of ECMAScript.

use std::ops::RangeInclusive;

use anyhow::anyhow;
use jsonschema_regex::to_rust_regex;
use rand::RngExt;
use rand::rngs::Xoshiro256PlusPlus;
use rand::seq::IndexedRandom;
use regex::Regex;
use regex_syntax::hir::{Class, Hir, HirKind};

/// A pattern that texts can be made from.
pub struct Pattern {
    hir: Hir,
    regex: Regex,
}

impl Pattern {
    /// Reads a pattern. Its classes are ECMAScript's: `\d` is a digit of ASCII.
    ///
    /// # Errors
    /// When it is no pattern, or one that looks around or back: no text can be made from those.
    pub fn new(pattern: &str) -> anyhow::Result<Self> {
        let unusable = || anyhow!("no text can be made from the pattern {pattern}");
        let translated = to_rust_regex(pattern).map_err(|()| unusable())?;
        let hir = regex_syntax::parse(&translated).map_err(|_| unusable())?;
        Ok(Self { hir, regex: Regex::new(&translated).map_err(|_| unusable())? })
    }

    /// Whether it matches a text, anywhere in it unless it is anchored.
    pub fn matches(&self, text: &str) -> bool {
        self.regex.is_match(text)
    }

    /// A text that is likely to match: anchors and word boundaries inside are not heeded, so ask [`Pattern::matches`]. What may
    /// be repeated is repeated so many times more than it must be, if it may be as often.
    pub fn text(&self, rng: &mut Xoshiro256PlusPlus, extra: &RangeInclusive<usize>) -> String {
        let mut text = String::new();
        write(&self.hir, rng, extra, &mut text);
        text
    }
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
