//! Multipart forms (RFC 7578): validation of the parts of a request.

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::{Map, Value};

use crate::composition::{self, combined_properties, is_read_only, items, names_only, property, required_in_requests};
use crate::error::{FieldError, RequestError, Result};
use crate::parameter::{Parameter, ParameterLocation};
use crate::request_body::field_errors;
use crate::response::{essence, is_json, matches_range, media_type_parameter, parameters};
use crate::schema::Schema;
use crate::value_kind::{ValueKind, coerce, kinds};

/// A declared multipart form.
#[derive(Debug)]
pub(crate) struct Multipart {
    /// The names of the required parts.
    pub required: Vec<String>,
    parts: Vec<DeclaredPart>,
    /// The schema of a form whose parts are all parsed.
    schema: Schema,
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

/// A part of a request.
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
    pub(crate) fn new(schema: Schema, encoding: &Value) -> anyhow::Result<Self> {
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
        let Some(boundary) = media_type_parameter(media_type, "boundary").filter(|boundary| !boundary.is_empty()) else {
            let text = "The media type of the request's body must have a boundary, which separates the parts.";
            return Err(RequestError::MalformedBody(text.to_owned()));
        };
        let sent = parts(bytes, boundary);
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
            let schema = if is_parsed { &self.schema } else { &self.names };
            errors.extend(field_errors(schema, &[], &form.into())?);
        }
        Ok(())
    }
}

impl DeclaredPart {
    /// Validates the parts of its name. Returns the value; `None` if it is not parsed, such as a file.
    fn check(&self, sent: &[&Part<'_>], errors: &mut Vec<FieldError>) -> Result<Option<Value>> {
        if sent.iter().any(|part| !self.accepts_media_type(part)) {
            errors.push(FieldError::invalid(&self.parameter.name, format!("must be {}", self.media_types.join(" or "))));
        } else if !self.is_binary && sent.iter().all(|part| part.is_text() || part.is_json() && !self.parameter.is_scalar()) {
            let texts: Vec<&str> = sent.iter().map(|part| part.content.as_ref()).collect();
            return Ok(self.parse(&texts, errors)?);
        }
        Ok(None)
    }

    /// Parses and validates the value of text parts: an array as one part for each item or as JSON, any other value as one part. An
    /// object is JSON. Appends errors to `errors`. Returns `None` if the value is invalid.
    ///
    /// # Errors
    /// If the schema can't be compiled.
    fn parse(&self, texts: &[&str], errors: &mut Vec<FieldError>) -> anyhow::Result<Option<Value>> {
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
        self.parameter.first_valid(candidates.into_iter(), errors)
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

/// Splits a form into its parts. A delimiter begins a line. The text before the first one is ignored, and the text after the last one,
/// which two hyphens follow.
fn parts<'a>(bytes: &'a [u8], boundary: &str) -> Vec<Part<'a>> {
    let delimiter = format!("--{boundary}");
    let (mut parts, mut start, mut from) = (Vec::new(), None, 0);
    while let Some(at) = find(&bytes[from..], delimiter.as_bytes()).map(|at| from + at) {
        from = at + delimiter.len();
        let begins_line = at == 0 || bytes[at - 1] == b'\n';
        let is_last = bytes[from..].starts_with(b"--");
        let is_complete = is_last || bytes.get(from).is_some_and(u8::is_ascii_whitespace);
        if !begins_line || !is_complete {
            continue;
        }
        parts.extend(start.and_then(|start| Part::new(&bytes[start..at])));
        if is_last {
            break;
        }
        start = Some(from);
    }
    parts
}

/// Returns the index of the first occurrence of a text.
fn find(bytes: &[u8], text: &[u8]) -> Option<usize> {
    bytes.windows(text.len()).position(|window| window == text)
}
