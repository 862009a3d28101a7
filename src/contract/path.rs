//! Paths of the document, and which of them a requested path is.

/// A path of the document.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Template(Vec<Segment>);

/// What stands between two slashes. A literal goes before a variable (OpenAPI 3.0, Paths Object): hence the order.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Segment {
    Literal(String),
    /// A variable alone, or with texts around it: `{id}`, `{name}.json`, `{from}..{to}`.
    Variables {
        texts: Vec<String>,
        names: Vec<String>,
    },
}

impl Template {
    /// Reads a path as the document writes it.
    pub fn new(path: &str) -> Self {
        Self(segments(path).map(Segment::new).collect())
    }

    /// How many segments it has.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether a path of these segments is one of it.
    pub fn matches(&self, path: &[&str]) -> bool {
        self.0.len() == path.len() && self.0.iter().zip(path).all(|(segment, text)| segment.read(text).is_some())
    }

    /// Its variables with what a path has in their place, as it was sent.
    pub fn variables<'a>(&'a self, path: &'a str) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.0.iter().zip(segments(path)).filter_map(|(segment, text)| segment.read(text)).flatten()
    }
}

impl Segment {
    fn new(text: &str) -> Self {
        let (mut texts, mut names, mut rest) = (Vec::new(), Vec::new(), text);
        while let Some((before, name, after)) =
            rest.split_once('{').and_then(|(before, rest)| rest.split_once('}').map(|(name, after)| (before, name, after)))
        {
            texts.push(before.to_owned());
            names.push(name.to_owned());
            rest = after;
        }
        if names.is_empty() {
            return Self::Literal(text.to_owned());
        }
        texts.push(rest.to_owned());
        Self::Variables { texts, names }
    }

    /// The variables with their values; `None` when the text is none of this segment.
    fn read<'a>(&'a self, text: &'a str) -> Option<Vec<(&'a str, &'a str)>> {
        let Self::Variables { texts, names } = self else {
            return matches!(self, Self::Literal(literal) if literal == text).then(Vec::new);
        };
        let mut rest = text.strip_prefix(texts.first()?.as_str())?;
        let mut values = Vec::with_capacity(names.len());
        for (number, (name, after)) in names.iter().zip(texts.iter().skip(1)).enumerate() {
            let is_last = number + 1 == names.len();
            let (value, remaining) =
                if is_last { (rest.strip_suffix(after.as_str())?, "") } else { rest.split_once(after.as_str())? };
            if value.is_empty() {
                return None;
            }
            values.push((name.as_str(), value));
            rest = remaining;
        }
        Some(values)
    }
}

/// What stands between a path's slashes. As the server's own router has it, nothing between two slashes doesn't count.
pub fn segments(path: &str) -> impl Iterator<Item = &str> {
    path.split('/').filter(|segment| !segment.is_empty())
}
