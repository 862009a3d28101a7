//! Path templates such as `/events/{id}`, and matching a request's path against them.

use std::cmp::Ordering;

use percent_encoding::percent_decode_str;

/// Maximum number of ways to divide a path into the values of variables that are tried.
const MAX_DIVISIONS: usize = 16;

/// A path of the document. Shapes sort literals before variables, because a literal path takes precedence (OpenAPI 3.0, Paths
/// Object), and `{id}.json` before `{id}`.
#[derive(Debug, Clone)]
pub struct PathTemplate {
    /// The segments, without the names of the variables.
    pub shape: Vec<Segment>,
    /// The names of the variables in each segment.
    names: Vec<Vec<String>>,
    /// True if it ends with a slash: `/events/` is another path than `/events`.
    pub ends_with_slash: bool,
}

/// A path segment: the text between two slashes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Segment {
    /// A fixed text.
    Literal(String),
    /// Variables, with the texts around them: `{id}`, `{name}.json`, `{from}..{to}`.
    Variables(Vec<String>),
}

impl PathTemplate {
    /// Parses a path of the document.
    pub fn new(path: &str) -> Self {
        let (shape, names) = segments(path).map(Segment::parse).unzip();
        Self { shape, names, ends_with_slash: ends_with_slash(path) }
    }

    /// Returns whether a path with these segments matches. The literals come first, because most paths differ in one of them, and
    /// comparing them allocates nothing.
    pub fn matches(&self, path: &[&str]) -> bool {
        let are_matches = |literal: bool| {
            let mut segments =
                self.shape.iter().zip(path).filter(|(segment, _)| matches!(segment, Segment::Literal(_)) == literal);
            segments.all(|(segment, text)| segment.values(text).is_some())
        };
        self.shape.len() == path.len() && are_matches(true) && are_matches(false)
    }

    /// Returns whether a path with the same segments has its slashes where this one has them.
    pub fn has_slashes_of(&self, path: &str) -> bool {
        self.ends_with_slash == ends_with_slash(path) && !path.contains("//")
    }

    /// Returns the variables with their values in a path, still percent-encoded.
    pub fn variables<'a>(&'a self, path: &'a str) -> impl Iterator<Item = (&'a str, &'a str)> {
        let values = self.shape.iter().zip(segments(path)).map(|(segment, text)| segment.values(text).unwrap_or_default());
        let names = self.names.iter().map(|names| names.iter().map(String::as_str));
        names.zip(values).flat_map(|(names, values)| names.zip(values))
    }

    /// Returns whether the path has a variable with this name.
    pub fn has_variable(&self, name: &str) -> bool {
        self.names.iter().flatten().any(|variable| variable == name)
    }

    /// Returns whether a path may have several [`divisions`](Self::divisions).
    pub(crate) fn is_ambiguous(&self) -> bool {
        self.names.iter().any(|names| names.len() > 1)
    }

    /// Returns the ways to divide a path into the variables with their values, still percent-encoded: `a.b.json` is `a` and `b.json`, or
    /// `a.b` and `json`, for `{name}.{type}`. The first one is that of [`variables`](Self::variables).
    pub(crate) fn divisions<'a>(&'a self, path: &'a str) -> Vec<Vec<(&'a str, &'a str)>> {
        let mut divisions = vec![Vec::new()];
        for ((segment, names), text) in self.shape.iter().zip(&self.names).zip(segments(path)) {
            let of_segment = segment.divisions(text);
            let with = |before: &Vec<(&'a str, &'a str)>, values: &Vec<&'a str>| {
                let named = names.iter().map(String::as_str).zip(values.iter().copied());
                before.iter().copied().chain(named).collect()
            };
            let all = divisions.iter().flat_map(|before| of_segment.iter().map(move |values| with(before, values)));
            divisions = all.take(MAX_DIVISIONS).collect();
        }
        divisions
    }

    /// Returns a matching path with new variable values: `replace` gets each variable's name and its percent-encoded value.
    pub fn with(&self, path: &str, replace: impl Fn(&str, &str) -> String) -> String {
        let mut replaced = String::new();
        for ((segment, names), text) in self.shape.iter().zip(&self.names).zip(segments(path)) {
            replaced.push('/');
            match segment {
                Segment::Literal(literal) => replaced.push_str(literal),
                Segment::Variables(texts) => {
                    replaced.push_str(&texts[0]);
                    let values = segment.values(text).unwrap_or_default();
                    for ((name, value), after) in names.iter().zip(values).zip(&texts[1..]) {
                        replaced.push_str(&replace(name, value));
                        replaced.push_str(after);
                    }
                }
            }
        }
        replaced
    }
}

impl Ord for Segment {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Literal(one), Self::Literal(other)) => one.cmp(other),
            (Self::Literal(_), Self::Variables(_)) => Ordering::Less,
            (Self::Variables(_), Self::Literal(_)) => Ordering::Greater,
            (Self::Variables(one), Self::Variables(other)) => {
                let fixed = |texts: &[String]| texts.iter().map(String::len).sum::<usize>();
                fixed(other).cmp(&fixed(one)).then_with(|| one.cmp(other))
            }
        }
    }
}

impl PartialOrd for Segment {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Segment {
    /// Parses a segment of the document. Also returns the names of its variables.
    fn parse(text: &str) -> (Self, Vec<String>) {
        let (mut texts, mut names, mut rest) = (Vec::new(), Vec::new(), text);
        while let Some((before, name, after)) =
            rest.split_once('{').and_then(|(before, rest)| rest.split_once('}').map(|(name, after)| (before, name, after)))
        {
            texts.push(before.to_owned());
            names.push(name.to_owned());
            rest = after;
        }
        if names.is_empty() {
            return (Self::Literal(text.to_owned()), names);
        }
        texts.push(rest.to_owned());
        (Self::Variables(texts), names)
    }

    /// Returns the values of the variables in a text, or `None` if the text doesn't match.
    fn values<'a>(&self, text: &'a str) -> Option<Vec<&'a str>> {
        let texts = match self {
            Self::Literal(literal) => return is_literal(literal, text).then(Vec::new),
            Self::Variables(texts) => texts,
        };
        let (first, after) = texts.split_first()?;
        first_division(text.strip_prefix(first.as_str())?, after)
    }

    /// Returns the ways to divide a text into the values of the variables; a single one without values for an equal literal.
    fn divisions<'a>(&self, text: &'a str) -> Vec<Vec<&'a str>> {
        match self {
            Self::Literal(literal) => is_literal(literal, text).then(Vec::new).into_iter().collect(),
            Self::Variables(texts) => {
                let (first, after) = texts.split_first().map_or(("", &[][..]), |(first, after)| (first.as_str(), after));
                text.strip_prefix(first).map(|rest| divide(rest, after)).unwrap_or_default()
            }
        }
    }
}

/// Returns the values of a text that have these texts after them, each as short as possible; `None` if the text doesn't match.
fn first_division<'a>(text: &'a str, after: &[String]) -> Option<Vec<&'a str>> {
    let (mut rest, mut values) = (text, Vec::with_capacity(after.len()));
    let (last, separators) = after.split_last()?;
    for separator in separators {
        let end = value_ends(rest, separator).next()?;
        values.push(&rest[..end]);
        rest = &rest[end + separator.len()..];
    }
    values.push(rest.strip_suffix(last.as_str()).filter(|value| !value.is_empty())?);
    Some(values)
}

/// Returns the ways to divide a text into values with these texts after them, at most [`MAX_DIVISIONS`].
fn divide<'a>(text: &'a str, after: &[String]) -> Vec<Vec<&'a str>> {
    let Some((separator, others)) = after.split_first().filter(|(_, others)| !others.is_empty()) else {
        return first_division(text, after).into_iter().collect();
    };
    let rest = |end: usize| &text[end + separator.len()..];
    // If the rest after an end doesn't match, a shorter one doesn't either.
    let ends = value_ends(text, separator).take_while(|end| first_division(rest(*end), others).is_some());
    let divided =
        ends.flat_map(|end| divide(rest(end), others).into_iter().map(move |values| [vec![&text[..end]], values].concat()));
    divided.take(MAX_DIVISIONS).collect()
}

/// Returns the ends of the values before a separator. A value is not empty.
fn value_ends(text: &str, separator: &str) -> impl Iterator<Item = usize> {
    text.match_indices(separator).map(|(end, _)| end).filter(|end| *end > 0)
}

/// Returns whether a text equals a literal. Characters of the text may be percent-encoded (RFC 3986, section 6.2.2.2).
fn is_literal(literal: &str, text: &str) -> bool {
    literal == text || text.contains('%') && percent_decode_str(text).eq(literal.bytes())
}

fn ends_with_slash(path: &str) -> bool {
    path.len() > 1 && path.ends_with('/')
}

/// Returns the segments of a path. Empty segments are skipped, as in dropshot's router.
pub fn segments(path: &str) -> impl Iterator<Item = &str> {
    path.split('/').filter(|segment| !segment.is_empty())
}
