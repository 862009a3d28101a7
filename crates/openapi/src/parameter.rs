//! Parameters in the path, query, headers and cookies of a request, and headers of a response: converting between JSON values and the
//! serialization styles of OpenAPI.
//!
//! A parameter's raw text doesn't show its type: `7` may be a number or a string. So [`Parameter::parse`] converts the text to each
//! type that the schema allows, the most specific type first, and takes the first value that is valid.

use std::borrow::Cow;
use std::sync::Arc;

use anyhow::{Context, bail};
use serde_json::{Map, Value};

use crate::charset_policy::AllowedCharacters;
use crate::composition::{additional, items, properties, property};
use crate::error::FieldError;
use crate::request_body::message_at;
use crate::resolver::References;
use crate::response::{essence, examples, is_json};
use crate::schema::{Direction, Schema, client_message, to_plain_string};
use crate::value_kind::{ValueKind, coerce, kinds};

/// The part of a request that contains a parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParameterLocation {
    /// A path variable.
    Path,
    /// A query parameter.
    Query,
    /// A header.
    Header,
    /// A cookie.
    Cookie,
}

/// The serialization of arrays and objects (OpenAPI 3.0, Style Values).
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

/// A parameter of an operation, or a header of a response, which OpenAPI declares in the same way.
#[derive(Debug)]
pub struct Parameter {
    /// The name, as written in the document.
    pub name: String,
    /// The location in the request.
    pub location: ParameterLocation,
    /// True if every request, or response, must have it.
    pub required: bool,
    /// The schema of the value.
    pub schema: Arc<Schema>,
    /// The examples, by name. An unnamed one is called `example`.
    pub examples: Map<String, Value>,
    /// The serialization of arrays and objects.
    pub style: Style,
    /// True if each item of an array or property of an object is a separate parameter.
    pub explode: bool,
    /// True if the value is a secret, such as a token code (`x-secret`). Secrets must not be logged.
    pub is_secret: bool,
    /// The characters that strings may contain, if this is the built-in document.
    pub characters: AllowedCharacters,
    allows_empty: bool,
    /// The types that the schema allows, the most specific first.
    pub(crate) kinds: Vec<ValueKind>,
}

/// The names and decoded texts in one location of a request, in the order sent. Headers have the names of the document.
pub type RawValues<'a> = Vec<(Cow<'a, str>, Cow<'a, str>)>;

impl ParameterLocation {
    /// Parses the value of `in`.
    ///
    /// # Errors
    /// If it is not a location of OpenAPI.
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
    /// Parses a Parameter Object.
    ///
    /// # Errors
    /// If the name is missing, or the location or style is not one of OpenAPI.
    pub fn new<'a>(references: &References<'a>, node: &'a Value) -> anyhow::Result<Self> {
        let name = node["name"].as_str().context("a parameter has no name")?;
        let location = ParameterLocation::new(&node["in"]).with_context(|| format!("parameter {name}"))?;
        Self::declared(references, name, location, node, Direction::Request)
    }

    /// Parses a Header Object of a response.
    ///
    /// # Errors
    /// If the style is not one of OpenAPI.
    pub(crate) fn header<'a>(references: &References<'a>, name: &str, node: &'a Value) -> anyhow::Result<Self> {
        Self::declared(references, name, ParameterLocation::Header, node, Direction::Response)
    }

    fn declared<'a>(
        references: &References<'a>,
        name: &str,
        location: ParameterLocation,
        node: &'a Value,
        direction: Direction,
    ) -> anyhow::Result<Self> {
        let content = node["content"].as_object().and_then(|content| content.iter().next());
        let content_node = content.map_or(node, |(_, content)| content);
        let schema = references.schema(&content_node["schema"], direction);
        let parameter = Self::from_parts(name, location, node["required"] == true, schema, node);
        let parameter = parameter.with_context(|| format!("parameter {name}"))?;
        let is_secret = node["x-secret"] == true;
        let examples = examples(references, content_node);
        let is_json = content.is_some_and(|(media_type, _)| is_json(essence(media_type)));
        let kinds = if is_json { vec![ValueKind::Json] } else { parameter.kinds };
        Ok(Self { kinds, is_secret, examples, ..parameter })
    }

    /// Creates a parameter. `node` has its style: a Parameter Object or an Encoding Object.
    ///
    /// # Errors
    /// If the style is not one of OpenAPI.
    pub fn from_parts(
        name: &str,
        location: ParameterLocation,
        required: bool,
        schema: Arc<Schema>,
        node: &Value,
    ) -> anyhow::Result<Self> {
        let style = match (node["style"].as_str(), location) {
            (Some("simple"), _) | (None, ParameterLocation::Path) | (_, ParameterLocation::Header) => Style::Simple,
            (Some("form"), _) | (None, ParameterLocation::Query | ParameterLocation::Cookie) => Style::Form,
            (Some("spaceDelimited"), _) => Style::SpaceDelimited,
            (Some("pipeDelimited"), _) => Style::PipeDelimited,
            (Some("deepObject"), _) => Style::DeepObject,
            (Some("label"), _) => Style::Label,
            (Some("matrix"), _) => Style::Matrix,
            (Some(style), _) => bail!("OpenAPI 3.0 has no style `{style}`"),
        };
        // Only an Encoding Object has a content type, which a style overrides.
        let content_type = node["contentType"].as_str().filter(|_| node["style"].is_null());
        let is_json = content_type.is_some_and(|content_type| is_json(essence(content_type)));
        Ok(Self {
            name: name.to_owned(),
            location,
            required,
            characters: AllowedCharacters::of(&schema.resolved),
            kinds: if is_json { vec![ValueKind::Json] } else { kinds(&schema.resolved) },
            schema,
            examples: Map::new(),
            style,
            explode: node["explode"].as_bool().unwrap_or(style == Style::Form),
            is_secret: false,
            allows_empty: node["allowEmptyValue"] == true,
        })
    }

    /// Parses and validates the value in `raw`. Appends errors to `errors`. Returns `None` if the value is absent or invalid.
    ///
    /// # Errors
    /// If the schema can't be compiled.
    pub fn parse(&self, raw: &RawValues, errors: &mut Vec<FieldError>) -> anyhow::Result<Option<Value>> {
        if (self.allows_empty && self.texts(raw).eq([""])) || self.is_nested(raw) {
            return Ok(None);
        }
        self.first_valid(self.candidates(raw), errors)
    }

    /// Returns the first valid value, or else appends the error of the first one. Without any value, the parameter is absent.
    pub(crate) fn first_valid(
        &self,
        candidates: impl Iterator<Item = Result<Value, String>>,
        errors: &mut Vec<FieldError>,
    ) -> anyhow::Result<Option<Value>> {
        let mut first_error = None;
        for candidate in candidates {
            let message = match candidate {
                Ok(value) => match self.schema.errors(&value)?.first() {
                    None => return Ok(Some(value)),
                    Some((pointer, error)) if value.is_object() && !pointer.is_empty() => {
                        message_at(error, pointer.trim_start_matches('/'), None)
                    }
                    Some((pointer, error)) => client_message(error, self.example().filter(|_| pointer.is_empty())),
                },
                Err(message) => message,
            };
            first_error.get_or_insert(message);
        }
        match first_error {
            Some(message) => errors.push(FieldError::invalid(&self.name, message)),
            // A matching path has a value for every variable.
            None if self.required && self.location != ParameterLocation::Path => errors.push(FieldError::missing(&self.name)),
            None => {}
        }
        Ok(None)
    }

    /// Returns the value that a text has: the first valid one of the types that the schema allows, or else the first one. A text that
    /// is no value of these types is returned as a string.
    pub(crate) fn value_of(&self, text: &str) -> Value {
        let raw = vec![(self.name.as_str().into(), text.into())];
        self.value(&raw).unwrap_or_else(|| text.into())
    }

    /// Returns the value in `raw`, chosen as by [`value_of`](Self::value_of). `None` if there is none.
    pub(crate) fn value(&self, raw: &RawValues) -> Option<Value> {
        let mut values: Vec<Value> = self.candidates(raw).filter_map(Result::ok).collect();
        let valid = values.iter().position(|value| self.schema.violations(value).is_empty()).unwrap_or_default();
        if values.is_empty() { self.texts(raw).next().map(Value::from) } else { Some(values.swap_remove(valid)) }
    }

    /// Returns whether every value is a text, a number or a boolean.
    pub(crate) fn is_scalar(&self) -> bool {
        !self.kinds.iter().any(|kind| matches!(kind, ValueKind::Json | ValueKind::Array | ValueKind::Object))
    }

    /// Returns the names and texts with which a value is sent, before they are percent-encoded: the inverse of [`parse`](Self::parse).
    /// A path variable and a header have one text. A query parameter or a cookie has several if each item or property is a parameter of
    /// its own, and none if there is no item.
    pub fn serialize(&self, value: &Value) -> Vec<(String, String)> {
        let named = |text: String| vec![(self.name.clone(), text)];
        let is_separate = self.is_separate();
        if self.kinds == [ValueKind::Json] {
            return named(value.to_string());
        }
        let texts: Vec<String> = match value {
            value if self.style == Style::DeepObject => return bracketed_texts(&self.name, value),
            Value::Array(items) if is_separate => {
                return items.iter().map(|item| (self.name.clone(), to_plain_string(item))).collect();
            }
            Value::Object(members) if is_separate => {
                return members.iter().map(|(name, value)| (name.clone(), to_plain_string(value))).collect();
            }
            Value::Array(items) => items.iter().map(to_plain_string).collect(),
            Value::Object(members) if self.explode => {
                members.iter().map(|(name, value)| format!("{name}={}", to_plain_string(value))).collect()
            }
            Value::Object(members) => members.iter().flat_map(|(name, value)| [name.clone(), to_plain_string(value)]).collect(),
            scalar => vec![to_plain_string(scalar)],
        };
        let texts = match (self.style, value) {
            (Style::Matrix, Value::Array(_)) if self.explode => {
                texts.into_iter().map(|text| format!("{}={text}", self.name)).collect()
            }
            _ => texts,
        };
        let text = texts.join(self.separator().encode_utf8(&mut [0; 4]));
        named(match (self.style, value) {
            (Style::Label, _) => format!(".{text}"),
            (Style::Matrix, Value::Array(_) | Value::Object(_)) if self.explode => format!(";{text}"),
            (Style::Matrix, _) => format!(";{}={text}", self.name),
            _ => text,
        })
    }

    /// Returns whether names and texts, as [`serialize`](Self::serialize) returns them, are a valid value.
    pub fn accepts(&self, texts: &[(String, String)]) -> bool {
        let raw: RawValues = texts.iter().map(|(name, text)| (name.as_str().into(), text.as_str().into())).collect();
        let mut errors = Vec::new();
        let value = self.parse(&raw, &mut errors).unwrap_or_default();
        errors.is_empty() && value.is_some_and(|value| self.characters.violation(&value).is_none())
    }

    /// Returns whether a value of this parameter is sent under a name.
    pub fn is_sent_as(&self, name: &str) -> bool {
        let bracketed = || name.strip_prefix(&self.name).is_some_and(|rest| rest.starts_with('['));
        match self.style {
            Style::DeepObject => name == self.name || bracketed(),
            _ => {
                name == self.name || self.is_separate() && properties(&self.schema.resolved).any(|(property, _)| property == name)
            }
        }
    }

    /// Returns the values that may belong to this parameter. If it takes any name, these are not the ones of the others in `all`.
    pub(crate) fn own_values<'r, 'a>(&self, all: &[Self], raw: &'r RawValues<'a>) -> Cow<'r, RawValues<'a>> {
        if !self.takes_any_name() {
            return Cow::Borrowed(raw);
        }
        let is_other = |other: &&Self| other.location == self.location && other.name != self.name;
        let others: Vec<_> = all.iter().filter(is_other).collect();
        let is_own = |name: &str| !others.iter().any(|other| other.is_sent_as(name));
        Cow::Owned(raw.iter().filter(|(name, _)| is_own(name)).cloned().collect())
    }

    /// Returns whether each property of the value is a parameter of its own, and the schema doesn't declare all of their names.
    pub(crate) fn takes_any_name(&self) -> bool {
        let is_exploded = self.kinds.contains(&ValueKind::Object) && self.style != Style::DeepObject && self.is_separate();
        let schema = &self.schema.resolved;
        is_exploded && additional(schema).map_or_else(|| properties(schema).next().is_none(), |additional| additional != false)
    }

    /// Returns whether each item of an array or property of an object is a parameter of its own.
    fn is_separate(&self) -> bool {
        match self.style {
            Style::DeepObject => true,
            Style::Form | Style::SpaceDelimited | Style::PipeDelimited => self.explode,
            Style::Simple | Style::Label | Style::Matrix => false,
        }
    }

    /// Returns the character between the items of an array or the properties of an object in one text.
    fn separator(&self) -> char {
        match (self.style, self.explode) {
            (Style::SpaceDelimited, _) => ' ',
            (Style::PipeDelimited, _) => '|',
            (Style::Label, true) => '.',
            (Style::Matrix, true) => ';',
            _ => ',',
        }
    }

    fn example(&self) -> Option<&Value> {
        self.examples.values().next().or_else(|| self.schema.resolved.get("example"))
    }

    /// Returns whether the name has several levels of brackets. OpenAPI doesn't define them, so such a value isn't validated.
    fn is_nested(&self, raw: &RawValues) -> bool {
        let is_nested =
            |name: &Cow<str>| name.strip_prefix(&self.name).is_some_and(|rest| rest.starts_with('[') && rest.contains("]["));
        self.style == Style::DeepObject && raw.iter().any(|(name, _)| is_nested(name))
    }

    /// Returns the texts sent under the parameter's name.
    fn texts<'a>(&'a self, raw: &'a RawValues) -> impl Iterator<Item = &'a str> {
        raw.iter().filter(|(name, _)| *name == self.name).map(|(_, text)| text.as_ref())
    }

    /// Converts the texts to a value of each type that the schema allows, the most specific first. Returns nothing if the parameter is
    /// absent.
    fn candidates(&self, raw: &RawValues) -> impl Iterator<Item = Result<Value, String>> {
        self.kinds.iter().filter_map(|kind| self.candidate(*kind, raw))
    }

    /// Converts the texts to a value of one type. Returns `None` if the parameter is absent.
    fn candidate(&self, kind: ValueKind, raw: &RawValues) -> Option<Result<Value, String>> {
        if let Some(prefix) = self.style_prefix(kind)
            && self.texts(raw).any(|text| !text.starts_with(&prefix))
        {
            return Some(Err(format!("must begin with {prefix}")));
        }
        match kind {
            ValueKind::Array => self.array(raw).map(Ok),
            ValueKind::Object => self.object(raw).map(Ok),
            scalar => {
                let mut texts = self.texts(raw);
                let text = texts.next()?;
                Some(match texts.next() {
                    None => self.scalar(scalar, self.strip_style_prefix(text)),
                    Some(_) => Err("is given more than once".to_owned()),
                })
            }
        }
    }

    /// Converts a text. Rejects other spellings of an integer in the path, such as `07` and `7.0`, because a resource has one path.
    fn scalar(&self, kind: ValueKind, text: &str) -> Result<Value, String> {
        let value = kind.parse(text)?;
        if kind == ValueKind::Integer && self.location == ParameterLocation::Path {
            if value.is_f64() {
                return Err("has too many digits".to_owned());
            }
            let canonical = value.to_string();
            if canonical != text {
                return Err(format!("must be written as {canonical}"));
            }
        }
        Ok(value)
    }

    fn array(&self, raw: &RawValues) -> Option<Value> {
        let schema = items(&self.schema.resolved);
        if self.style == Style::DeepObject {
            // OpenAPI doesn't define this style for arrays. Clients send `name[]=text`, `name[0]=text` or `name=text`.
            let texts = self.bracketed(raw).map(|(_, text)| text).chain(self.texts(raw));
            let items: Vec<Value> = texts.map(|text| coerce(schema, text)).collect();
            return (!items.is_empty()).then(|| items.into());
        }
        self.texts(raw).next()?;
        Some(self.split_values(raw).into_iter().map(|text| coerce(schema, text)).collect())
    }

    fn object(&self, raw: &RawValues) -> Option<Value> {
        let schema = &self.schema.resolved;
        let entry = |(name, text): (&str, &str)| (name.to_owned(), coerce(property(schema, name), text));
        let object: Map<String, Value> = match (self.style, self.explode) {
            (Style::DeepObject, _) => self.bracketed(raw).map(entry).collect(),
            (Style::Form | Style::SpaceDelimited | Style::PipeDelimited, true) => {
                let first = |name: &str| raw.iter().find(|(sent, _)| sent == name).map(|(_, text)| text.as_ref());
                let declared = properties(schema).map(|(name, _)| name.as_str());
                let others = raw.iter().map(|(name, _)| name.as_ref()).filter(|name| *name != self.name && self.takes_any_name());
                declared.chain(others).filter_map(|name| Some((name, first(name)?))).map(entry).collect()
            }
            (_, true) => self.split_values(raw).into_iter().filter_map(|pair| pair.split_once('=')).map(entry).collect(),
            (_, false) => {
                let values = self.split_values(raw);
                values.chunks(2).map(|pair| entry((pair[0], pair.get(1).copied().unwrap_or_default()))).collect()
            }
        };
        (!object.is_empty() || self.texts(raw).next().is_some()).then(|| object.into())
    }

    /// Returns the keys and texts of `name[key]=text`.
    fn bracketed<'a>(&'a self, raw: &'a RawValues) -> impl Iterator<Item = (&'a str, &'a str)> {
        raw.iter().filter_map(|(name, text)| {
            let key = name.strip_prefix(&self.name)?.strip_prefix('[')?.strip_suffix(']')?;
            Some((key, text.as_ref()))
        })
    }

    /// Splits the texts at the separator of the style. Percent-encoded separators count too, because many clients encode them.
    fn split_values<'a>(&'a self, raw: &'a RawValues) -> Vec<&'a str> {
        if self.is_separate() {
            return self.texts(raw).collect();
        }
        let texts = self.texts(raw).map(|text| match self.style {
            Style::Label | Style::Matrix => text.trim_start_matches(['.', ';']),
            _ => text,
        });
        let values = texts.filter(|text| !text.is_empty()).flat_map(|text| text.split(self.separator()));
        values.map(|value| if self.style == Style::Matrix { self.strip_style_prefix(value) } else { value.trim() }).collect()
    }

    /// Returns the text with which a value of the styles `label` and `matrix` begins. `None` for the other styles.
    fn style_prefix(&self, kind: ValueKind) -> Option<String> {
        match (self.style, kind) {
            (Style::Label, _) => Some(".".to_owned()),
            (Style::Matrix, ValueKind::Object) if self.explode => Some(";".to_owned()),
            (Style::Matrix, _) => Some(format!(";{}", self.name)),
            _ => None,
        }
    }

    /// Removes the prefix of the styles `label` and `matrix` from a text.
    fn strip_style_prefix<'a>(&self, text: &'a str) -> &'a str {
        match self.style {
            Style::Label => text.strip_prefix('.').unwrap_or(text),
            Style::Matrix => {
                let text = text.trim_start_matches(';');
                text.strip_prefix(&self.name).and_then(|text| text.strip_prefix('=')).unwrap_or(text)
            }
            _ => text,
        }
    }
}

/// Returns the names and texts of a value in the style `deepObject`. OpenAPI defines one level of brackets. More levels and the numbers
/// of items are as PHP, Rails, Stripe and the library qs read them.
fn bracketed_texts(name: &str, value: &Value) -> Vec<(String, String)> {
    match value {
        Value::Object(members) => {
            members.iter().flat_map(|(member, value)| bracketed_texts(&format!("{name}[{member}]"), value)).collect()
        }
        Value::Array(items) => {
            (0..).zip(items).flat_map(|(index, item)| bracketed_texts(&format!("{name}[{index}]"), item)).collect()
        }
        Value::Null => Vec::new(),
        scalar => vec![(name.to_owned(), to_plain_string(scalar))],
    }
}
