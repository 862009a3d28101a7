//! What stands in a request beside its body: in the path, the query, the headers and the cookies.

use std::borrow::Cow;

use anyhow::{Context, bail};
use serde_json::{Map, Value};

use super::response::examples;
use super::charset_policy::{AllowedCharacters, NUL};
use super::resolver::{References, reference};
use super::schema::{Direction, Schema, error_message};
use crate::error::FieldError;

/// Where a parameter stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParameterLocation {
    /// In the path.
    Path,
    /// In the query.
    Query,
    /// Among the headers.
    Header,
    /// Among the cookies.
    Cookie,
}

/// How a value of several parts is written (OpenAPI 3.0, Style Values).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// `a,b` in a path or a header.
    Simple,
    /// `name=a,b`, or exploded `name=a&name=b`.
    Form,
    /// `name=a b`.
    SpaceDelimited,
    /// `name=a|b`.
    PipeDelimited,
    /// `name[part]=a`.
    DeepObject,
    /// `.a,b` in a path, or exploded `.a.b`.
    Label,
    /// `;name=a,b` in a path, or exploded `;name=a;name=b`.
    Matrix,
}

/// A parameter of an operation.
#[derive(Debug)]
pub struct Parameter {
    /// Its name, as the document writes it.
    pub name: String,
    /// Where it stands.
    pub place: ParameterLocation,
    /// Whether a request must have it.
    pub required: bool,
    /// What its value may be.
    pub schema: Schema,
    /// Its examples, by name; one that has none is called `example`.
    pub examples: Map<String, Value>,
    /// How a value of several parts is written.
    pub style: Style,
    /// Whether each part of a value stands for itself.
    pub explode: bool,
    /// Whether who knows its value may do something by that alone (`x-secret`), so that it is written down nowhere.
    pub is_secret: bool,
    /// Which characters its texts may have on the platform.
    pub characters: AllowedCharacters,
    allows_empty: bool,
    kinds: Vec<ValueKind>,
}

/// What is given in one place of a request: names and texts, decoded, in their order. Headers have the names that the document
/// gives them.
pub type RawValues<'a> = Vec<(Cow<'a, str>, Cow<'a, str>)>;

/// What a text can be read as. Those that take less are tried before the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum ValueKind {
    /// JSON, whatever the style.
    Json,
    Boolean,
    Integer,
    Number,
    Text,
    Array,
    Object,
}

impl ParameterLocation {
    /// A place by its name in the document.
    ///
    /// # Errors
    /// When OpenAPI has none of this name.
    pub fn new(name: &Value) -> anyhow::Result<Self> {
        Ok(match name.as_str() {
            Some("path") => Self::Path,
            Some("query") => Self::Query,
            Some("header") => Self::Header,
            Some("cookie") => Self::Cookie,
            _ => bail!("`in` is {name}, and not path, query, header or cookie"),
        })
    }
}

impl Parameter {
    /// Reads a parameter of the document.
    ///
    /// # Errors
    /// When it has no name, or a place or a style that OpenAPI doesn't have.
    pub fn new<'a>(references: &References<'a>, node: &'a Value) -> anyhow::Result<Self> {
        let name = node["name"].as_str().context("a parameter has no name")?;
        let content = node["content"].as_object().and_then(|content| content.values().next());
        let schema = Schema::new(references, &content.unwrap_or(node)["schema"], Direction::Request);
        let parameter = ParameterLocation::new(&node["in"])
            .and_then(|place| Self::from_parts(name, place, node["required"] == true, schema, node));
        let parameter = parameter.with_context(|| format!("parameter {name}"))?;
        let is_secret = node["x-secret"] == true;
        let examples = examples(references, content.unwrap_or(node));
        let kinds = if content.is_some() { vec![ValueKind::Json] } else { parameter.kinds };
        Ok(Self { kinds, is_secret, examples, ..parameter })
    }

    /// A parameter that is written as `node` says: a Parameter Object or an Encoding Object.
    ///
    /// # Errors
    /// When OpenAPI doesn't have its style.
    pub fn from_parts(
        name: &str,
        place: ParameterLocation,
        required: bool,
        schema: Schema,
        node: &Value,
    ) -> anyhow::Result<Self> {
        let style = match (node["style"].as_str(), place) {
            (Some("simple"), _) | (None, ParameterLocation::Path | ParameterLocation::Header) => Style::Simple,
            (Some("form"), _) | (None, ParameterLocation::Query | ParameterLocation::Cookie) => Style::Form,
            (Some("spaceDelimited"), _) => Style::SpaceDelimited,
            (Some("pipeDelimited"), _) => Style::PipeDelimited,
            (Some("deepObject"), _) => Style::DeepObject,
            (Some("label"), _) => Style::Label,
            (Some("matrix"), _) => Style::Matrix,
            (Some(style), _) => bail!("OpenAPI 3.0 has no style `{style}`"),
        };
        Ok(Self {
            name: name.to_owned(),
            place,
            required,
            characters: AllowedCharacters::of(&schema.resolved),
            kinds: kinds(&schema.resolved),
            schema,
            examples: Map::new(),
            style,
            explode: node["explode"].as_bool().unwrap_or(style == Style::Form),
            is_secret: false,
            allows_empty: node["allowEmptyValue"] == true,
        })
    }

    /// Reads its value, and adds what is wrong with it to the problems. `None` when it isn't there, or isn't as it should be.
    ///
    /// # Errors
    /// When its schema can't be used.
    pub fn read(&self, given: &RawValues, problems: &mut Vec<FieldError>) -> anyhow::Result<Option<Value>> {
        if (self.allows_empty && self.texts(given).eq([""])) || self.is_nested(given) {
            return Ok(None);
        }
        let mut refusal = None;
        for candidate in self.kinds.iter().filter_map(|kind| self.candidate(*kind, given)) {
            let found = match candidate {
                Ok(value) => match self.schema.errors(&value)?.first() {
                    None => return Ok(Some(value)),
                    Some((_, error)) => error_message(error),
                },
                Err(text) => text,
            };
            refusal.get_or_insert(found);
        }
        match refusal {
            Some(refusal) => problems.push(FieldError::invalid(&self.name, refusal)),
            // A path has every variable that it has a place for.
            None if self.required && self.place != ParameterLocation::Path => problems.push(FieldError::missing(&self.name)),
            None => {}
        }
        Ok(None)
    }

    /// Whether it is given with more than one level of brackets, of which OpenAPI doesn't say what they mean: it is not checked.
    fn is_nested(&self, given: &RawValues) -> bool {
        let is_nested =
            |name: &Cow<str>| name.strip_prefix(&self.name).is_some_and(|rest| rest.starts_with('[') && rest.contains("]["));
        self.style == Style::DeepObject && given.iter().any(|(name, _)| is_nested(name))
    }

    /// The texts that are given for it.
    fn texts<'a>(&'a self, given: &'a RawValues) -> impl Iterator<Item = &'a str> {
        given.iter().filter(|(name, _)| *name == self.name).map(|(_, text)| text.as_ref())
    }

    /// What its texts mean as a value of a kind; nothing where it isn't given.
    fn candidate(&self, kind: ValueKind, given: &RawValues) -> Option<Result<Value, String>> {
        match kind {
            ValueKind::Array => self.items(given).map(Ok),
            ValueKind::Object => self.object(given).map(Ok),
            scalar => {
                let mut texts = self.texts(given);
                let text = texts.next()?;
                let is_alone = texts.next().is_none();
                Some(if is_alone {
                    scalar.read(self.strip_style_prefix(text))
                } else {
                    Err("is given more than once".to_owned())
                })
            }
        }
    }

    fn items(&self, given: &RawValues) -> Option<Value> {
        let schema = &self.schema.resolved["items"];
        let read = |text: &str| coerce(schema, text);
        if self.style == Style::DeepObject {
            let parts: Vec<Value> = self.bracketed(given).map(|(_, text)| read(text)).collect();
            return (!parts.is_empty()).then(|| parts.into());
        }
        self.texts(given).next()?;
        Some(self.split_values(given).into_iter().map(read).collect())
    }

    fn object(&self, given: &RawValues) -> Option<Value> {
        let properties = &self.schema.resolved["properties"];
        let read = |(name, text): (&str, &str)| (name.to_owned(), coerce(&properties[name], text));
        let object: Map<String, Value> = match (self.style, self.explode) {
            (Style::DeepObject, _) => self.bracketed(given).map(read).collect(),
            (Style::Form | Style::SpaceDelimited | Style::PipeDelimited, true) => {
                let names = properties.as_object().into_iter().flat_map(Map::keys);
                let first = |name: &String| given.iter().find(|(given, _)| given == name).map(|(_, text)| text.as_ref());
                names.filter_map(|name| Some((name.as_str(), first(name)?))).map(read).collect()
            }
            (_, true) => self.split_values(given).into_iter().filter_map(|piece| piece.split_once('=')).map(read).collect(),
            (_, false) => {
                let pairs = self.split_values(given);
                pairs.chunks(2).map(|pair| read((pair[0], pair.get(1).copied().unwrap_or_default()))).collect()
            }
        };
        (!object.is_empty() || self.texts(given).next().is_some()).then(|| object.into())
    }

    /// What is given as `name[part]=text`.
    fn bracketed<'a>(&'a self, given: &'a RawValues) -> impl Iterator<Item = (&'a str, &'a str)> {
        given.iter().filter_map(|(name, text)| {
            let part = name.strip_prefix(&self.name)?.strip_prefix('[')?.strip_suffix(']')?;
            Some((part, text.as_ref()))
        })
    }

    /// The parts of a value of several. A separator that was percent-encoded separates as well, because many clients encode it.
    fn split_values<'a>(&'a self, given: &'a RawValues) -> Vec<&'a str> {
        let separator = match (self.style, self.explode) {
            (Style::Form | Style::SpaceDelimited | Style::PipeDelimited, true) => {
                return self.texts(given).collect();
            }
            (Style::SpaceDelimited, false) => ' ',
            (Style::PipeDelimited, false) => '|',
            (Style::Label, true) => '.',
            (Style::Matrix, true) => ';',
            _ => ',',
        };
        let texts = self.texts(given).map(|text| match self.style {
            Style::Label | Style::Matrix => text.trim_start_matches(['.', ';']),
            _ => text,
        });
        let pieces = texts.filter(|text| !text.is_empty()).flat_map(|text| text.split(separator));
        pieces.map(|piece| if self.style == Style::Matrix { self.strip_style_prefix(piece) } else { piece.trim() }).collect()
    }

    /// A text without what its style writes before it.
    fn strip_style_prefix<'a>(&self, text: &'a str) -> &'a str {
        match self.style {
            Style::Label => text.trim_start_matches('.'),
            Style::Matrix => {
                let text = text.trim_start_matches(';');
                text.strip_prefix(&self.name).and_then(|text| text.strip_prefix('=')).unwrap_or(text)
            }
            _ => text,
        }
    }
}

impl ValueKind {
    /// A text as a value of this kind.
    fn read(self, text: &str) -> Result<Value, String> {
        let (value, wanted) = match self {
            Self::Json => return serde_json::from_str(text).map_err(|error| format!("must be JSON ({error})")),
            Self::Integer => (text.parse::<i64>().ok().map(Value::from), "must be an integer"),
            Self::Number => (text.parse::<f64>().ok().map(Value::from), "must be a number"),
            Self::Boolean => (text.parse::<bool>().ok().map(Value::from), "must be true or false"),
            _ => (Some(Value::from(text)), "must be a string"),
        };
        match value {
            None => Err(wanted.to_owned()),
            Some(_) if text.contains('\0') => Err(NUL.to_owned()),
            Some(value) => Ok(value),
        }
    }
}

/// A text as the likeliest value of a schema; as a text where it can be nothing else.
fn coerce(schema: &Value, text: &str) -> Value {
    let values = kinds(schema).into_iter().filter_map(|kind| kind.read(text).ok());
    values.into_iter().next().unwrap_or_else(|| Value::from(text))
}

/// What values of a schema can be written as.
fn kinds(schema: &Value) -> Vec<ValueKind> {
    let mut kinds = Vec::new();
    collect_kinds(schema, &mut kinds);
    kinds.sort();
    kinds.dedup();
    if kinds.is_empty() { vec![ValueKind::Text] } else { kinds }
}

fn collect_kinds(schema: &Value, kinds: &mut Vec<ValueKind>) {
    match schema["type"].as_str() {
        Some("boolean") => kinds.push(ValueKind::Boolean),
        Some("integer") => kinds.push(ValueKind::Integer),
        Some("number") => kinds.push(ValueKind::Number),
        Some("array") => kinds.push(ValueKind::Array),
        Some("object") => kinds.push(ValueKind::Object),
        Some(_) => kinds.push(ValueKind::Text),
        // What leads into a circle has parts.
        None if schema["properties"].is_object() || reference(schema).is_some() => kinds.push(ValueKind::Object),
        None if schema["items"].is_object() => kinds.push(ValueKind::Array),
        None => {
            let arms = ["allOf", "oneOf", "anyOf"].into_iter().filter_map(|arms| schema[arms].as_array());
            arms.flatten().for_each(|arm| collect_kinds(arm, kinds));
        }
    }
}
