//! Parsing and validation of a request's body, by the media type that the client sends.
//!
//! ```text
//! Content-Type ── parser() ──► BodyParser ─┬─ BuiltinObject: JSON object of the built-in document, with its rules for blank values
//!                                          ├─ Json: any other JSON
//!                                          ├─ JsonInRange: JSON, where a range such as `*/*` is declared
//!                                          ├─ Form: URL-encoded form
//!                                          ├─ Multipart: form with files
//!                                          ├─ Text: a text, or a number or boolean as text
//!                                          └─ Opaque: not validated
//! ```

use std::collections::HashSet;
use std::sync::Arc;

use anyhow::Context;
use http::{HeaderMap, HeaderName, header};
use jsonschema::ValidationError;
use jsonschema::error::ValidationErrorKind;
use serde_json::{Map, Value};

use crate::builtin_object::ObjectValidator;
use crate::composition::required_in_requests;
use crate::error::{FieldError, RequestError, Result};
use crate::json;
use crate::multipart::Multipart;
use crate::parameter::{Parameter, ParameterLocation};
use crate::resolver::{References, unescape};
use crate::response::{BodyContent, essence, find_content, is_json, matches_range};
use crate::schema::{Direction, Schema, client_message, format_description};
use crate::urlencoded_form::{FORM, Form};

/// Maximum size of a body of the built-in document, in bytes.
const BODY_LIMIT: usize = 64 * 1024;
/// Maximum size of a body with images, of a media type other than JSON, or of another document, in bytes.
const IMAGES_LIMIT: usize = 8 * 1024 * 1024;

/// Compressing codings (IANA's registry and common aliases). The server doesn't decompress any of them.
const CONTENT_ENCODINGS: [&str; 7] = ["gzip", "x-gzip", "deflate", "compress", "x-compress", "br", "zstd"];

/// Error message for a number that is too large to be parsed.
pub(crate) const OUT_OF_RANGE: &str = "is a number out of range";

/// The field name in errors about the whole body.
const BODY: &str = "body";

/// The request body of an operation.
#[derive(Debug)]
pub struct RequestBody {
    /// The maximum size in bytes.
    pub limit: usize,
    /// True if a request must have a body.
    pub required: bool,
    /// The accepted media types.
    pub contents: Vec<BodyContent>,
    /// The parsers of `contents`, in the same order.
    parsers: Vec<BodyParser>,
}

/// Parser of a body of one media type.
#[derive(Debug)]
enum BodyParser {
    /// A JSON object of the built-in document.
    BuiltinObject(ObjectValidator),
    /// Any other JSON, with the declared property names in the document's order.
    Json(Schema, Vec<String>),
    /// JSON or another body, by the sent media type, with the declared property names.
    JsonInRange(Schema, Vec<String>),
    /// A URL-encoded form.
    Form(Form),
    /// A multipart form.
    Multipart(Box<Multipart>),
    /// A text, which is parsed like a parameter.
    Text(Parameter),
    /// A body that isn't validated.
    Opaque,
}

impl RequestBody {
    /// Parses a Request Body Object. `is_builtin` applies the built-in document's rules for blank values.
    ///
    /// # Errors
    /// If `content` is missing, or a form property has a style that is not one of OpenAPI.
    pub fn new<'a>(references: &References<'a>, node: &'a Value, is_builtin: bool) -> anyhow::Result<Self> {
        let declared = node["content"].as_object().context("a body has no content")?;
        let content =
            |(media_type, node): (&String, &'a Value)| BodyContent::new(references, media_type, node, Direction::Request);
        let contents: Vec<_> = declared.iter().map(content).collect();
        let parser = |((media_type, node), content): ((&String, &'a Value), &BodyContent)| {
            BodyParser::new(references, media_type, node, content.examples.values().next(), is_builtin)
        };
        let parsers = declared.iter().zip(&contents).map(parser).collect::<anyhow::Result<Vec<_>>>()?;
        let is_large = |content: &BodyContent| {
            let properties = content.schema.as_deref().and_then(|schema| schema.resolved["properties"].as_object());
            !content.is_json() || properties.is_some_and(|all| all.values().any(|property| property["format"] == "image"))
        };
        let default = if !is_builtin || contents.iter().any(is_large) { IMAGES_LIMIT } else { BODY_LIMIT };
        let declared = node["x-maximum-bytes"].as_u64().and_then(|limit| usize::try_from(limit).ok());
        let limit = declared.unwrap_or(default);
        Ok(Self { limit, required: node["required"] == true, contents, parsers })
    }

    /// See [`Contract::require_whole_amounts`](crate::Contract::require_whole_amounts).
    pub(crate) fn require_whole_amounts(&mut self, message: &str) {
        for parser in &mut self.parsers {
            if let BodyParser::BuiltinObject(validator) = parser {
                validator.require_whole_amounts(message);
            }
        }
    }

    /// Selects the parser by the headers. An empty body or one without a media type counts as JSON. `None` if no media type is
    /// declared.
    ///
    /// # Errors
    /// If the media type isn't declared, or the body is compressed.
    fn parser(&self, headers: &HeaderMap, bytes: &[u8]) -> Result<Option<&BodyParser>> {
        if [header::CONTENT_ENCODING, header::TRANSFER_ENCODING].iter().any(|name| is_compressed(headers, name)) {
            let text = "The request's body must not be compressed: it is taken as it is, without Content-Encoding.";
            return Err(RequestError::UnsupportedMediaType(text.to_owned()));
        }
        let Some(media_type) = headers.get(header::CONTENT_TYPE).filter(|_| !bytes.is_empty()) else {
            let json = self.contents.iter().position(BodyContent::is_json);
            let json = json.or_else(|| find_content(&self.contents, "application/json"));
            return Ok(self.parsers.get(json.unwrap_or_default()));
        };
        let index = find_content(&self.contents, media_type.to_str().unwrap_or_default()).ok_or_else(|| {
            let declared: Vec<_> = self.contents.iter().map(|content| content.media_type.as_str()).collect();
            RequestError::UnsupportedMediaType(format!("The request's body must be {}.", declared.join(" or ")))
        })?;
        Ok(self.parsers.get(index))
    }

    /// Parses and validates a body. Appends invalid and missing properties to `errors`.
    ///
    /// # Errors
    /// If the body is malformed or of another media type, or the schema can't be compiled.
    pub fn parse(&self, headers: &HeaderMap, bytes: &[u8], errors: &mut Vec<FieldError>) -> Result<Value> {
        let Some(parser) = self.parser(headers, bytes)? else { return Ok(Value::Null) };
        let is_empty = is_empty(bytes);
        match parser {
            BodyParser::BuiltinObject(validator) if self.required || !is_empty => validator.parse(bytes, errors),
            _ if is_empty => {
                if self.required {
                    errors.extend(parser.missing_fields());
                }
                Ok(Value::Null)
            }
            BodyParser::Json(schema, names) => parse_json(schema, names, bytes, errors),
            BodyParser::JsonInRange(schema, names) if is_sent_as_json(headers) => parse_json(schema, names, bytes, errors),
            BodyParser::Form(form) => form.parse(bytes, errors),
            BodyParser::Multipart(form) => {
                let media_type = headers.get(header::CONTENT_TYPE).and_then(|media_type| media_type.to_str().ok());
                form.check(media_type.unwrap_or_default(), bytes, errors)?;
                Ok(Value::Null)
            }
            BodyParser::Text(parameter) => {
                if let Ok(text) = std::str::from_utf8(bytes) {
                    parameter.parse(&vec![(BODY.into(), text.into())], errors)?;
                }
                Ok(Value::Null)
            }
            BodyParser::BuiltinObject(_) | BodyParser::JsonInRange(..) | BodyParser::Opaque => Ok(Value::Null),
        }
    }
}

/// Returns whether a body has the media type of JSON, or none, which counts as JSON.
fn is_sent_as_json(headers: &HeaderMap) -> bool {
    let media_type = headers.get(header::CONTENT_TYPE);
    media_type.is_none_or(|media_type| media_type.to_str().is_ok_and(|media_type| is_json(essence(media_type))))
}

pub(crate) fn is_empty(bytes: &[u8]) -> bool {
    bytes.iter().all(u8::is_ascii_whitespace)
}

/// Returns whether a header names a compressing coding. Other values, such as `utf-8`, are mistakes of the client and are ignored.
fn is_compressed(headers: &HeaderMap, name: &HeaderName) -> bool {
    let codings = headers.get_all(name).iter().filter_map(|value| value.to_str().ok()).flat_map(|value| value.split(','));
    codings.map(str::trim).any(|coding| CONTENT_ENCODINGS.iter().any(|known| coding.eq_ignore_ascii_case(known)))
}

impl BodyParser {
    fn new<'a>(
        references: &References<'a>,
        media_type: &str,
        node: &'a Value,
        example: Option<&Value>,
        is_builtin: bool,
    ) -> anyhow::Result<Self> {
        let media_type = essence(media_type);
        let schema = Schema::new(references, &node["schema"], Direction::Request);
        if media_type.eq_ignore_ascii_case(FORM) {
            return Ok(Self::Form(Form::new(Arc::new(schema), &node["encoding"])?));
        }
        if media_type.eq_ignore_ascii_case("multipart/form-data") {
            return Ok(Self::Multipart(Box::new(Multipart::new(Arc::new(schema), &node["encoding"])?)));
        }
        if !is_builtin && media_type.to_lowercase().starts_with("text/") && node["schema"].is_object() {
            let text = Parameter::from_parts(BODY, ParameterLocation::Query, true, Arc::new(schema), &Value::Null)?;
            return Ok(if text.is_scalar() { Self::Text(text) } else { Self::Opaque });
        }
        let is_range = !is_json(media_type) && matches_range(media_type, "application/json");
        if !is_json(media_type) && !is_range {
            return Ok(Self::Opaque);
        }
        let names = schema.resolved["properties"].as_object().into_iter().flat_map(Map::keys).cloned().collect::<Vec<_>>();
        Ok(match is_builtin && !names.is_empty() {
            true => Self::BuiltinObject(ObjectValidator::new(schema, example)),
            false if is_range => Self::JsonInRange(schema, names),
            false => Self::Json(schema, names),
        })
    }

    /// Returns the errors for a request without a body.
    fn missing_fields(&self) -> Vec<FieldError> {
        let names = match self {
            Self::Json(schema, _) | Self::JsonInRange(schema, _) => required_in_requests(&schema.resolved),
            Self::Multipart(form) => form.required.clone(),
            Self::Form(form) => form.required().map(str::to_owned).collect(),
            Self::BuiltinObject(_) | Self::Text(_) | Self::Opaque => Vec::new(),
        };
        if names.is_empty() {
            vec![FieldError::missing(BODY)]
        } else {
            names.iter().map(|name| FieldError::missing(name)).collect()
        }
    }
}

/// Parses and validates any JSON. Reports one error for each property, in the document's order, undeclared properties last.
fn parse_json(schema: &Schema, names: &[String], bytes: &[u8], errors: &mut Vec<FieldError>) -> Result<Value> {
    let value = json::parse(bytes)?;
    errors.extend(field_errors(schema, names, &value)?);
    Ok(value)
}

/// Returns one error for each invalid property, those with `names` first, in this order.
pub(crate) fn field_errors(schema: &Schema, names: &[String], value: &Value) -> Result<Vec<FieldError>> {
    let (mut field_errors, mut reported) = (Vec::new(), HashSet::new());
    for (name, _) in value.as_object().into_iter().flatten().filter(|(_, value)| json::is_out_of_range(value)) {
        field_errors.push(FieldError::invalid(name, OUT_OF_RANGE));
        reported.insert(name.clone());
    }
    for (pointer, error) in schema.errors(value)? {
        let (name, inner) = if value.is_object() {
            split_pointer(&pointer)
        } else {
            (String::new(), pointer.strip_prefix('/').unwrap_or_default())
        };
        let described = match error.kind() {
            ValidationErrorKind::Required { property } if pointer.is_empty() => {
                vec![FieldError::missing(property.as_str().unwrap_or(BODY))]
            }
            ValidationErrorKind::AdditionalProperties { unexpected }
            | ValidationErrorKind::UnevaluatedProperties { unexpected }
                if pointer.is_empty() =>
            {
                unexpected.iter().map(|name| FieldError::invalid(name, "is not among the properties of the body")).collect()
            }
            _ => {
                let field = if name.is_empty() { BODY } else { &name };
                vec![FieldError::invalid(field, detail(schema, &name, inner, &error))]
            }
        };
        field_errors.extend(described.into_iter().filter(|error| reported.insert(error.name.clone())));
    }
    field_errors.sort_by_cached_key(|error| names.iter().position(|name| *name == error.name).unwrap_or(names.len()));
    Ok(field_errors)
}

/// Splits a JSON pointer into the top-level property, empty for the whole body, and the path within the property.
pub(crate) fn split_pointer(pointer: &str) -> (String, &str) {
    let pointer = pointer.trim_start_matches('/');
    let (name, inner) = pointer.split_once('/').unwrap_or((pointer, ""));
    (unescape(name), inner)
}

/// Describes an error in a property to the client. `inner` is the path within the property.
pub(crate) fn detail(schema: &Schema, name: &str, inner: &str, error: &ValidationError<'_>) -> String {
    let property = &schema.resolved["properties"][name];
    match inner {
        "" => match (error.kind(), property["format"].as_str().and_then(format_description)) {
            // A value with another form violates the pattern first.
            (ValidationErrorKind::Pattern { .. }, Some(description)) => format!("must be {description}"),
            _ => client_message(error, property.get("example")),
        },
        _ => {
            // The example has fewer items than the value.
            let in_example =
                inner.split('/').map(|part| if part.parse::<usize>().is_ok() { "/0".to_owned() } else { format!("/{part}") });
            message_at(error, inner, property["example"].pointer(&in_example.collect::<String>()))
        }
    }
}

/// Describes an error in a part of a value to the client. `inner` is the path of the part, and `example` an example of it.
pub(crate) fn message_at(error: &ValidationError<'_>, inner: &str, example: Option<&Value>) -> String {
    format!("{} (at {})", client_message(error, example), unescape(inner))
}
