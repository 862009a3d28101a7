//! Paths of the document, and which of them a requested path is.

use percent_encoding::percent_decode_str;

/// A path of the document. A literal goes before a variable (OpenAPI 3.0, Paths Object): hence the order of the shapes.
#[derive(Debug, Clone)]
pub struct PathTemplate {
    /// What it looks like, whatever its variables are called.
    pub shape: Vec<Segment>,
    /// The names of each segment's variables.
    names: Vec<Vec<String>>,
}

/// What stands between two slashes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Segment {
    /// This text.
    Literal(String),
    /// Variables, and the texts around them: `{id}`, `{name}.json`, `{from}..{to}`.
    Variables(Vec<String>),
}

impl PathTemplate {
    /// Reads a path as the document writes it.
    pub fn new(path: &str) -> Self {
        let (shape, names) = segments(path).map(Segment::read).unzip();
        Self { shape, names }
    }

    /// Whether a path of these segments is one of it.
    pub fn matches(&self, path: &[&str]) -> bool {
        self.shape.len() == path.len() && self.shape.iter().zip(path).all(|(segment, text)| segment.values(text).is_some())
    }

    /// Its variables with what a path has in their place, as it was sent.
    pub fn variables<'a>(&'a self, path: &'a str) -> impl Iterator<Item = (&'a str, &'a str)> {
        let values = self.shape.iter().zip(segments(path)).map(|(segment, text)| segment.values(text).unwrap_or_default());
        let names = self.names.iter().map(|names| names.iter().map(String::as_str));
        names.zip(values).flat_map(|(names, values)| names.zip(values))
    }

    /// A path of it with other texts in its variables' places: what `told` gives for a variable's name and its text, as it was sent.
    pub fn with(&self, path: &str, told: impl Fn(&str, &str) -> String) -> String {
        let mut shown = String::new();
        for ((segment, names), text) in self.shape.iter().zip(&self.names).zip(segments(path)) {
            shown.push('/');
            match segment {
                Segment::Literal(literal) => shown.push_str(literal),
                Segment::Variables(texts) => {
                    shown.push_str(&texts[0]);
                    let values = segment.values(text).unwrap_or_default();
                    for ((name, value), after) in names.iter().zip(values).zip(&texts[1..]) {
                        shown.push_str(&told(name, value));
                        shown.push_str(after);
                    }
                }
            }
        }
        shown
    }
}

impl Segment {
    /// A segment as the document writes it, and the names of its variables.
    fn read(text: &str) -> (Self, Vec<String>) {
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

    /// The values of its variables in a text; `None` when the text is none of this segment.
    fn values<'a>(&self, text: &'a str) -> Option<Vec<&'a str>> {
        let texts = match self {
            Self::Literal(literal) => return is_literal(literal, text).then(Vec::new),
            Self::Variables(texts) => texts,
        };
        let (first, after) = texts.split_first()?;
        let mut rest = text.strip_prefix(first.as_str())?;
        let mut values = Vec::with_capacity(after.len());
        for (number, after) in (1..).zip(after) {
            let is_last = number == texts.len() - 1;
            let (value, remaining) =
                if is_last { (rest.strip_suffix(after.as_str())?, "") } else { rest.split_once(after.as_str())? };
            if value.is_empty() {
                return None;
            }
            values.push(value);
            rest = remaining;
        }
        Some(values)
    }
}

/// Whether a text is this literal, some of whose characters may be percent-encoded (RFC 3986, section 6.2.2.2).
fn is_literal(literal: &str, text: &str) -> bool {
    literal == text || text.contains('%') && percent_decode_str(text).eq(literal.bytes())
}

/// What stands between a path's slashes. Nothing between two of them doesn't count, as dropshot has it.
pub fn segments(path: &str) -> impl Iterator<Item = &str> {
    path.split('/').filter(|segment| !segment.is_empty())
}
