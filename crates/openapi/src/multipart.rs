//! Multipart bodies (RFC 2046, and RFC 7578 for forms): validation of the parts of a request or a response.

use std::borrow::Cow;
use std::sync::Arc;

use jsonschema::ValidationError;
use serde_json::{Map, Value};

use crate::composition::{self, combined_properties, is_read_only, items, names_only, property, required_in_requests};
use crate::error::{FieldError, RequestError, Result};
use crate::parameter::{Parameter, ParameterLocation};
use crate::request_body::field_errors;
use crate::resolver::escape;
use crate::response::{essence, is_json, matches_range, media_type_parameter, parameters};
use crate::schema::{Schema, is_undeclared};
use crate::value_kind::{ValueKind, coerce, kinds};

/// A declared multipart form.
#[derive(Debug)]
pub(crate) struct Multipart {
    /// The names of the required parts.
    pub required: Vec<String>,
    parts: Vec<DeclaredPart>,
    /// The schema of a form whose parts are all parsed.
    schema: Arc<Schema>,
    /// The schema of the names of the parts, for any other form.
    names: Schema,
}

/// A property of a multipart form.
#[derive(Debug)]
struct DeclaredPart {
    parameter: Parameter,
    /// The media types and ranges of its Encoding Object. Empty if it has none.
    media_types: Vec<String>,
    is_binary: bool,
}

/// A part of a body.
struct Part<'a> {
    name: String,
    media_type: Option<String>,
    is_file: bool,
    content: Cow<'a, str>,
}

impl Multipart {
    /// Creates a form with the Encoding Objects of its parts.
    ///
    /// # Errors
    /// If a part has a style that is not one of OpenAPI.
    pub(crate) fn new(schema: Arc<Schema>, encoding: &Value) -> anyhow::Result<Self> {
        let part = |(name, property): (String, Value)| {
            let media_types = encoding[&name]["contentType"].as_str().into_iter().flat_map(|types| types.split(','));
            let part = Arc::new(schema.part(&property));
            Ok(DeclaredPart {
                parameter: Parameter::from_parts(&name, ParameterLocation::Query, false, part, &Value::Null)?,
                media_types: media_types.map(|media_type| media_type.trim().to_owned()).collect(),
                is_binary: composition::parts(&property).iter().any(|part| part["format"] == "binary"),
            })
        };
        let parts = combined_properties(&schema.resolved).into_iter().map(part).collect::<anyhow::Result<_>>()?;
        let names = schema.part(&names_only(&schema.resolved));
        Ok(Self { required: required_in_requests(&schema.resolved), parts, schema, names })
    }

    /// Validates a form: first the media type and the value of each part, as far as they are declared, and then the form as a whole if
    /// each is valid. Parts that are declared for responses are ignored.
    ///
    /// # Errors
    /// If the media type has no boundary, or a schema can't be compiled.
    pub(crate) fn check(&self, media_type: &str, bytes: &[u8], errors: &mut Vec<FieldError>) -> Result<()> {
        let Some(boundary) = boundary(media_type) else {
            let text = "The media type of the request's body must have a boundary, which separates the parts.";
            return Err(RequestError::MalformedBody(text.to_owned()));
        };
        let sent: Vec<_> = Parts::new(bytes, boundary).contents.into_iter().filter_map(Part::new).collect();
        let is_missing = |name: &&String| !sent.iter().any(|part| part.name == **name);
        let count = errors.len();
        errors.extend(self.required.iter().filter(is_missing).map(|name| FieldError::missing(name)));
        let (mut form, mut is_parsed) = (Map::new(), true);
        for declared in self.parts.iter().filter(|part| !is_read_only(&part.parameter.schema.resolved)) {
            let sent: Vec<_> = sent.iter().filter(|part| part.name == declared.parameter.name).collect();
            if !sent.is_empty() {
                let value = declared.check(&sent, errors)?;
                is_parsed &= value.is_some();
                form.insert(declared.parameter.name.clone(), value.unwrap_or_default());
            }
        }
        let is_declared = |name: &str| self.parts.iter().any(|part| part.parameter.name == name);
        for part in sent.iter().filter(|part| !is_declared(&part.name)) {
            is_parsed &= part.is_text();
            form.insert(part.name.clone(), coerce(property(&self.schema.resolved, &part.name), &part.content));
        }
        if errors.len() == count {
            let schema = if is_parsed { self.schema.as_ref() } else { &self.names };
            errors.extend(field_errors(schema, &[], &form.into())?);
        }
        Ok(())
    }

    /// Validates the parts of a response. Returns each error with its location, as a JSON pointer, and the value of the body, in which a
    /// part that is not parsed, such as a file, is null. The value of such a part is not validated. Without errors, and null, if a part
    /// has no name.
    ///
    /// # Errors
    /// If a schema can't be compiled.
    pub(crate) fn response_errors(&self, parts: &Parts<'_>) -> anyhow::Result<(Vec<(String, ValidationError<'static>)>, Value)> {
        let sent: Option<Vec<_>> = parts.contents.iter().map(|content| Part::new(content)).collect();
        let Some(sent) = sent else { return Ok((Vec::new(), Value::Null)) };
        let (mut form, mut unparsed) = (Map::new(), Vec::new());
        for part in &sent {
            let same: Vec<_> = sent.iter().filter(|other| other.name == part.name).collect();
            let declared = self.parts.iter().find(|declared| declared.parameter.name == part.name);
            let value = match declared {
                Some(declared) => declared.texts(&same).and_then(|texts| declared.value(&texts)),
                None => part.is_text().then(|| coerce(property(&self.schema.resolved, &part.name), &part.content)),
            };
            unparsed.extend(value.is_none().then(|| format!("/{}", escape(&part.name))));
            form.insert(part.name.clone(), value.unwrap_or_default());
        }
        let form = Value::Object(form);
        let mut errors = self.schema.errors(&form)?;
        if !unparsed.is_empty() {
            let is_in = |pointer: &str, part: &String| {
                pointer.strip_prefix(part.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
            };
            errors.retain(|(pointer, _)| !pointer.is_empty() && !unparsed.iter().any(|part| is_in(pointer, part)));
            // Which properties are declared may depend on the values of others.
            let of_names = self.names.errors(&form)?.into_iter().filter(|(_, error)| !is_undeclared(error));
            errors.extend(of_names.filter(|(pointer, _)| pointer.is_empty()));
        }
        Ok((errors, form))
    }
}

impl DeclaredPart {
    /// Validates the parts of its name. Returns the value; `None` if it is not parsed, such as a file.
    fn check(&self, sent: &[&Part<'_>], errors: &mut Vec<FieldError>) -> Result<Option<Value>> {
        if sent.iter().any(|part| !self.accepts_media_type(part)) {
            errors.push(FieldError::invalid(&self.parameter.name, format!("must be {}", self.media_types.join(" or "))));
        } else if let Some(texts) = self.texts(sent) {
            return Ok(self.parameter.first_valid(self.candidates(&texts), errors)?);
        }
        Ok(None)
    }

    /// Returns the contents of the parts of its name, if they are parsed: as texts, or JSON where it is declared.
    fn texts<'p>(&self, sent: &[&'p Part<'_>]) -> Option<Vec<&'p str>> {
        let is_parsed = |part: &&Part<'_>| part.is_text() || part.is_json() && !self.parameter.is_scalar();
        let is_parsed = !self.is_binary && sent.iter().all(is_parsed);
        is_parsed.then(|| sent.iter().map(|part| part.content.as_ref()).collect())
    }

    /// Returns the value of text parts: the first valid one, or else the first one. `None` if they can't be parsed.
    fn value(&self, texts: &[&str]) -> Option<Value> {
        let mut values: Vec<Value> = self.candidates(texts).filter_map(Result::ok).collect();
        let valid = values.iter().position(|value| self.parameter.schema.is_valid(value)).unwrap_or_default();
        if values.is_empty() { texts.first().map(|text| Value::from(*text)) } else { Some(values.swap_remove(valid)) }
    }

    /// Returns the values that text parts may have, or an error message for each type that they are not: an array as one part for each item
    /// or as JSON, any other value as one part. An object is JSON.
    fn candidates(&self, texts: &[&str]) -> impl Iterator<Item = Result<Value, String>> + use<> {
        let mut candidates = Vec::new();
        for kind in &self.parameter.kinds {
            let whole = match texts {
                [text] => parse_part(*kind, text),
                _ => Err("is given more than once".to_owned()),
            };
            if *kind == ValueKind::Array {
                let schema = items(&self.parameter.schema.resolved);
                candidates.push(Ok(texts.iter().map(|text| item_of_part(schema, text)).collect()));
                candidates.extend(whole.ok().map(Ok));
            } else {
                candidates.push(whole);
            }
        }
        candidates.into_iter()
    }

    /// Returns whether a part has a declared media type. The one for any bytes is sent if the right one is not known.
    fn accepts_media_type(&self, part: &Part<'_>) -> bool {
        let sent = part.media_type.as_deref().map(essence).filter(|sent| *sent != "application/octet-stream");
        let is_declared = |sent: &str| self.media_types.iter().any(|declared| matches_range(declared, sent));
        self.media_types.is_empty() || sent.is_none_or(is_declared)
    }
}

impl<'a> Part<'a> {
    /// Parses a part. Returns `None` if it has no name.
    fn new(bytes: &'a [u8]) -> Option<Self> {
        let end = [&b"\r\n\r\n"[..], b"\n\n"].into_iter().filter_map(|end| Some((find(bytes, end)?, end.len())));
        let (at, length) = end.min()?;
        let headers = String::from_utf8_lossy(&bytes[..at]);
        let header = |name: &str| {
            let mut headers = headers.lines().filter_map(|line| line.split_once(':'));
            headers.find(|(header, _)| header.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
        };
        let disposition = header("content-disposition")?;
        let content = &bytes[at + length..];
        let content = content.strip_suffix(b"\n").map_or(content, |content| content.strip_suffix(b"\r").unwrap_or(content));
        Some(Self {
            name: media_type_parameter(disposition, "name")?.to_owned(),
            media_type: header("content-type").map(str::to_owned),
            is_file: parameters(disposition).any(|(name, _)| name.eq_ignore_ascii_case("filename")),
            content: String::from_utf8_lossy(content),
        })
    }

    fn is_text(&self) -> bool {
        !self.is_file
            && self.media_type.as_deref().is_none_or(|media_type| essence(media_type).eq_ignore_ascii_case("text/plain"))
    }

    fn is_json(&self) -> bool {
        self.media_type.as_deref().is_some_and(|media_type| is_json(essence(media_type)))
    }
}

/// Converts the text of a part, in which arrays and objects are JSON, to a value of a type. The error is a message for the client.
fn parse_part(kind: ValueKind, text: &str) -> Result<Value, String> {
    let kind = if matches!(kind, ValueKind::Array | ValueKind::Object) { ValueKind::Json } else { kind };
    kind.parse(text)
}

/// Returns the item of an array that a part has: a value of the most specific type that the schema allows, or else a string.
fn item_of_part(schema: &Value, text: &str) -> Value {
    kinds(schema).into_iter().find_map(|kind| parse_part(kind, text).ok()).unwrap_or_else(|| Value::from(text))
}

/// Returns the text that separates the parts of a body with this media type.
pub(crate) fn boundary(media_type: &str) -> Option<&str> {
    media_type_parameter(media_type, "boundary").filter(|boundary| !boundary.is_empty())
}

/// The parts of a multipart body.
pub(crate) struct Parts<'a> {
    /// Each with its headers.
    contents: Vec<&'a [u8]>,
    /// True if a last delimiter, which two hyphens follow, ends the body.
    pub is_complete: bool,
}

impl<'a> Parts<'a> {
    /// Splits a body into its parts. A delimiter begins a line. The text before the first one is ignored, and the text after the last one.
    pub(crate) fn new(bytes: &'a [u8], boundary: &str) -> Self {
        let delimiter = format!("--{boundary}");
        let (mut contents, mut start, mut from, mut is_complete) = (Vec::new(), None, 0, false);
        while let Some(at) = find(&bytes[from..], delimiter.as_bytes()).map(|at| from + at).filter(|_| !is_complete) {
            from = at + delimiter.len();
            let begins_line = at == 0 || bytes[at - 1] == b'\n';
            let is_last = bytes[from..].starts_with(b"--");
            let ends_line = is_last || bytes.get(from).is_some_and(u8::is_ascii_whitespace);
            if !begins_line || !ends_line {
                continue;
            }
            contents.extend(start.map(|start| &bytes[start..at]));
            is_complete = is_last;
            start = Some(from);
        }
        Self { contents, is_complete }
    }
}

/// Returns the index of the first occurrence of a text.
fn find(bytes: &[u8], text: &[u8]) -> Option<usize> {
    bytes.windows(text.len()).position(|window| window == text)
}
