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

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use anyhow::Context;
use http::{HeaderMap, HeaderName, header};
use jsonschema::ValidationError;
use jsonschema::error::ValidationErrorKind;
use serde_json::{Map, Value, json};

use crate::charset_policy::{AllowedCharacters, is_invisible};
use crate::composition::{combined_properties, is_read_only, property, required_in_requests};
use crate::error::{FieldError, RequestError, Result};
use crate::json;
use crate::multipart::Multipart;
use crate::parameter::{Parameter, ParameterLocation, RawValues};
use crate::resolver::{References, unescape};
use crate::response::{Content, essence, find_content, is_json, matches_range};
use crate::schema::{Direction, Schema, client_message, counted};
use crate::value_kind::coerce;

/// Maximum size of a body of the built-in document, in bytes.
const BODY_LIMIT: usize = 64 * 1024;
/// Maximum size of a body with images, of a media type other than JSON, or of another document, in bytes.
const IMAGES_LIMIT: usize = 8 * 1024 * 1024;

/// Compressing codings (IANA's registry and common aliases). The server doesn't decompress any of them.
const CONTENT_ENCODINGS: [&str; 7] = ["gzip", "x-gzip", "deflate", "compress", "x-compress", "br", "zstd"];

/// Error message for a number that is too large to be parsed.
const OUT_OF_RANGE: &str = "is a number out of range";

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
    pub contents: Vec<Content>,
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

/// The media type of a URL-encoded form.
pub(crate) const FORM: &str = "application/x-www-form-urlencoded";

/// A URL-encoded form, whose properties are serialized like query parameters.
#[derive(Debug)]
pub(crate) struct Form {
    properties: Vec<Parameter>,
    /// The objects without a declared serialization, as JSON: their members are in the form since OpenAPI 3.0.0, and JSON since 3.0.4.
    json_objects: Vec<Parameter>,
    schema: Arc<Schema>,
}

/// Maximum number of places in one property, such as the items of an array, whose errors are reported.
const MAX_DETAILS: usize = 10;

/// Validator of a JSON object of the built-in document. A blank value counts as missing if the property is required. Otherwise it
/// counts as absent unless the schema allows it.
#[derive(Debug)]
struct ObjectValidator {
    /// Required properties first, then the others in the document's order.
    properties: Vec<Property>,
    /// The schema without its top-level `required`, which is checked here.
    schema: Schema,
}

/// A property of the body, with the checks that precede the schema's.
#[derive(Debug)]
struct Property {
    name: String,
    presence: Presence,
    /// Maximum number of items or entries. A longer value isn't validated further, so that invalid items don't cause an error each.
    count_limit: Option<u64>,
    characters: AllowedCharacters,
    /// Number of steps in 1, if the values are multiples of a decimal fraction: 100 for amounts with two decimals.
    steps_in_one: Option<f64>,
    /// Error message for an amount that is not whole; `None` if decimals are allowed.
    whole_message: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Presence {
    Required,
    /// May be absent, but not blank, because the resource can't exist without it (`x-not-blank`).
    NotBlank,
    /// May be absent. A null or a blank value clears it, and reaches the endpoint as a null (`x-cleared-by-null`).
    Clearable,
    Optional,
}

impl Presence {
    /// Returns whether a blank value counts as absent if the schema rejects it.
    fn may_be_blank(self) -> bool {
        self == Self::Optional
    }
}

impl RequestBody {
    /// Parses a Request Body Object. `is_builtin` applies the built-in document's rules for blank values.
    ///
    /// # Errors
    /// If `content` is missing, or a form property has a style that is not one of OpenAPI.
    pub fn new<'a>(references: &References<'a>, node: &'a Value, is_builtin: bool) -> anyhow::Result<Self> {
        let declared = node["content"].as_object().context("a body has no content")?;
        let content = |(media_type, node): (&String, &'a Value)| Content::new(references, media_type, node, Direction::Request);
        let contents: Vec<_> = declared.iter().map(content).collect();
        let parser = |(media_type, node): (&String, &'a Value)| BodyParser::new(references, media_type, node, is_builtin);
        let parsers = declared.iter().map(parser).collect::<anyhow::Result<Vec<_>>>()?;
        let is_large = |content: &Content| {
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
                let amounts = validator.properties.iter_mut().filter(|property| property.steps_in_one.is_some());
                amounts.for_each(|amount| amount.whole_message = Some(message.to_owned()));
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
            let json = self.contents.iter().position(Content::is_json);
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

fn is_empty(bytes: &[u8]) -> bool {
    bytes.iter().all(u8::is_ascii_whitespace)
}

/// Returns whether a header names a compressing coding. Other values, such as `utf-8`, are mistakes of the client and are ignored.
fn is_compressed(headers: &HeaderMap, name: &HeaderName) -> bool {
    let codings = headers.get_all(name).iter().filter_map(|value| value.to_str().ok()).flat_map(|value| value.split(','));
    codings.map(str::trim).any(|coding| CONTENT_ENCODINGS.iter().any(|known| coding.eq_ignore_ascii_case(known)))
}

impl BodyParser {
    fn new<'a>(references: &References<'a>, media_type: &str, node: &'a Value, is_builtin: bool) -> anyhow::Result<Self> {
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
            true => Self::BuiltinObject(ObjectValidator::new(schema)),
            false if is_range => Self::JsonInRange(schema, names),
            false => Self::Json(schema, names),
        })
    }

    /// Returns the errors for a request without a body.
    fn missing_fields(&self) -> Vec<FieldError> {
        let names = match self {
            Self::Json(schema, _) | Self::JsonInRange(schema, _) => required_in_requests(&schema.resolved),
            Self::Multipart(form) => form.required.clone(),
            Self::Form(form) => {
                form.properties.iter().filter(|property| property.required).map(|property| property.name.clone()).collect()
            }
            Self::BuiltinObject(_) | Self::Text(_) | Self::Opaque => Vec::new(),
        };
        if names.is_empty() {
            vec![FieldError::missing(BODY)]
        } else {
            names.iter().map(|name| FieldError::missing(name)).collect()
        }
    }
}

impl ObjectValidator {
    fn new(mut schema: Schema) -> Self {
        let required = string_list(&schema.resolved["required"]);
        let not_blank = string_list(&schema.resolved["x-not-blank"]);
        let cleared_by_null = string_list(&schema.resolved["x-cleared-by-null"]);
        let names = schema.resolved["properties"].as_object().into_iter().flat_map(Map::keys);
        let optional = names.filter(|name| !required.contains(name)).map(|name| {
            let presence = if not_blank.contains(name) {
                Presence::NotBlank
            } else if cleared_by_null.contains(name) {
                Presence::Clearable
            } else {
                Presence::Optional
            };
            (name, presence)
        });
        let properties = required.iter().map(|name| (name, Presence::Required)).chain(optional).map(|(name, presence)| {
            let property = &schema.resolved["properties"][name];
            let count_limit = property["maxItems"].as_u64().or_else(|| property["maxProperties"].as_u64());
            let characters = AllowedCharacters::of(property);
            let steps_in_one = property["multipleOf"].as_f64().filter(|step| *step < 1.0).map(|step| (1.0 / step).round());
            Property { name: name.clone(), presence, count_limit, characters, steps_in_one, whole_message: None }
        });
        let properties = properties.collect();
        if let Some(resolved) = schema.resolved.as_object_mut() {
            resolved.remove("required");
            let properties = resolved.get_mut("properties").and_then(Value::as_object_mut);
            for property in properties.into_iter().flat_map(Map::values_mut).filter_map(Value::as_object_mut) {
                // `parse` handles nulls itself. A schema that isn't nullable yields simpler error messages.
                property.remove("nullable");
                if let Some(values) = property.get_mut("enum").and_then(Value::as_array_mut) {
                    values.retain(|value| !value.is_null());
                }
            }
        }
        Self { properties, schema }
    }

    /// Parses and validates the body. An empty body counts as `{}`.
    fn parse(&self, bytes: &[u8], errors: &mut Vec<FieldError>) -> Result<Value> {
        let value = if is_empty(bytes) { Value::Object(Map::new()) } else { json::parse(bytes)? };
        let Value::Object(mut object) = value else {
            return Err(RequestError::MalformedBody("The request's body must be a JSON object.".to_owned()));
        };
        let (mut field_errors, mut ignored, mut cleared) = (BTreeMap::new(), Vec::new(), Vec::new());
        for Property { name, presence, count_limit, characters, steps_in_one, whole_message } in &self.properties {
            if let Some((steps_in_one, value)) = steps_in_one.zip(object.get_mut(name)) {
                remove_noise(value, steps_in_one);
            }
            let value = object.get(name);
            if value.is_some_and(json::is_out_of_range) {
                field_errors.insert(name.as_str(), FieldError::invalid(name, OUT_OF_RANGE));
                continue;
            }
            if let Some(message) = whole_message
                && value.and_then(Value::as_f64).is_some_and(|amount| amount.fract() != 0.0)
            {
                field_errors.insert(name.as_str(), FieldError::invalid(name, message.clone()));
                continue;
            }
            let is_absent = value.is_none_or(is_blank);
            let is_missing = match presence {
                Presence::Required => is_absent,
                Presence::NotBlank => value.is_some() && is_absent,
                Presence::Clearable | Presence::Optional => false,
            };
            if is_missing {
                field_errors.insert(name.as_str(), FieldError::missing(name));
            } else if *presence == Presence::Clearable && value.is_some() && is_absent {
                object.shift_remove(name);
                cleared.push(name.clone());
            } else if value.is_some_and(Value::is_null) {
                object.shift_remove(name);
            } else if let Some(detail) = count_limit.zip(value).and_then(|(limit, value)| count_violation(value, limit)) {
                field_errors.insert(name.as_str(), FieldError::invalid(name, detail));
                object.shift_remove(name);
            } else if let Some(detail) = value.and_then(|value| characters.violation(value)) {
                if is_absent && presence.may_be_blank() {
                    ignored.push(name.as_str());
                } else {
                    field_errors.insert(name.as_str(), FieldError::invalid(name, detail));
                }
            }
        }
        let mut value = Value::Object(object);
        // The details of each property, with the places in it.
        let mut details: BTreeMap<&str, Vec<(String, String)>> = BTreeMap::new();
        for (pointer, error) in self.schema.errors(&value)? {
            let (name, inner) = split_pointer(&pointer);
            let Some(Property { name, presence, .. }) = self.properties.iter().find(|property| property.name == name) else {
                continue;
            };
            if presence.may_be_blank() && is_blank(&value[name]) {
                ignored.push(name.as_str());
                continue;
            }
            let found = details.entry(name).or_default();
            if found.len() < MAX_DETAILS && !found.iter().any(|(place, _)| place == inner) {
                found.push((inner.to_owned(), detail(&self.schema, name, inner, &error)));
            }
        }
        for (name, found) in details {
            let texts: Vec<String> = found.into_iter().map(|(_, text)| text).collect();
            field_errors.entry(name).or_insert_with(|| FieldError::invalid(name, texts.join("; ")));
        }
        if let Some(object) = value.as_object_mut() {
            // An invalid blank leaves an optional property unset, so that a client may send a resource back as it was read.
            object.retain(|name, _| !ignored.contains(&name.as_str()));
            object.extend(cleared.into_iter().map(|name| (name, Value::Null)));
        }
        errors.extend(self.properties.iter().filter_map(|property| field_errors.remove(property.name.as_str())));
        Ok(value)
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

impl Form {
    /// Creates a form with the Encoding Objects of its properties.
    ///
    /// # Errors
    /// If a property has a style that is not one of OpenAPI.
    pub(crate) fn new(schema: Arc<Schema>, encoding: &Value) -> anyhow::Result<Self> {
        let required = required_in_requests(&schema.resolved);
        let (mut properties, mut json_objects) = (Vec::new(), Vec::new());
        let as_json = json!({ "contentType": "application/json" });
        for (name, property) in combined_properties(&schema.resolved) {
            let (required, property) = (required.contains(&name), Arc::new(schema.part(&property)));
            let parameter = |schema: &Arc<Schema>, encoding: &Value| {
                Parameter::from_parts(&name, ParameterLocation::Query, required, Arc::clone(schema), encoding)
            };
            if property.resolved["type"] == "object" && encoding[&name].is_null() {
                json_objects.push(parameter(&property, &as_json)?);
            }
            properties.push(parameter(&property, &encoding[&name])?);
        }
        Ok(Self { properties, json_objects, schema })
    }

    /// Returns the property in the serialization in which it was sent.
    fn as_sent<'f>(&'f self, property: &'f Parameter, raw: &RawValues) -> &'f Parameter {
        let is_json = |json: &&Parameter| raw.iter().any(|(name, text)| *name == json.name && text.starts_with('{'));
        self.json_objects.iter().find(|json| json.name == property.name).filter(is_json).unwrap_or(property)
    }

    /// Parses and validates a request's form: first each property, and then all of them if each is valid. Properties of responses are
    /// ignored.
    fn parse(&self, bytes: &[u8], errors: &mut Vec<FieldError>) -> Result<Value> {
        let raw: RawValues = form_urlencoded::parse(bytes).collect();
        let (mut object, count, mut is_parsed) = (Map::new(), errors.len(), true);
        for property in self.properties.iter().filter(|property| !is_read_only(&property.schema.resolved)) {
            let property = self.as_sent(property, &raw);
            match property.parse(&property.own_values(&self.properties, &raw), errors)? {
                Some(value) => _ = object.insert(property.name.clone(), value),
                // Some values are not parsed, such as one with several levels of brackets.
                None => is_parsed &= !raw.iter().any(|(name, _)| property.is_sent_as(name)),
            }
        }
        object.extend(self.undeclared(&raw));
        let value = Value::Object(object);
        if is_parsed && errors.len() == count {
            errors.extend(field_errors(&self.schema, &[], &value)?);
        }
        Ok(value)
    }

    /// Parses a response's form without validating it.
    pub(crate) fn value(&self, bytes: &[u8]) -> Value {
        let raw: RawValues = form_urlencoded::parse(bytes).collect();
        let value = |property: &Parameter| property.value(&property.own_values(&self.properties, &raw));
        let properties = self.properties.iter().map(|property| self.as_sent(property, &raw));
        let declared = properties.filter_map(|property| Some((property.name.clone(), value(property)?)));
        declared.chain(self.undeclared(&raw)).collect::<Map<_, _>>().into()
    }

    /// Returns the values that belong to no declared property.
    fn undeclared(&self, raw: &RawValues) -> impl Iterator<Item = (String, Value)> {
        let is_declared =
            |name: &str| self.properties.iter().any(|property| property.takes_any_name() || property.is_sent_as(name));
        let others = raw.iter().filter(move |(name, _)| !is_declared(name));
        others.map(|(name, text)| (name.to_string(), coerce(property(&self.schema.resolved, name), text)))
    }
}

/// Splits a JSON pointer into the top-level property, empty for the whole body, and the path within the property.
fn split_pointer(pointer: &str) -> (String, &str) {
    let pointer = pointer.trim_start_matches('/');
    let (name, inner) = pointer.split_once('/').unwrap_or((pointer, ""));
    (unescape(name), inner)
}

/// Describes an error in a property to the client. `inner` is the path within the property.
fn detail(schema: &Schema, name: &str, inner: &str, error: &ValidationError<'_>) -> String {
    match inner {
        "" => client_message(error, schema.resolved["properties"][name].get("example")),
        _ => message_at(error, inner),
    }
}

/// Describes an error in a part of a value to the client. `inner` is the path of the part.
pub(crate) fn message_at(error: &ValidationError<'_>, inner: &str) -> String {
    format!("{} (at {})", client_message(error, None), unescape(inner))
}

fn string_list(names: &Value) -> Vec<String> {
    names.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// Returns whether a value is blank: null, or a string of white space and invisible characters alone. A required argument with such a
/// value is missing.
pub fn is_blank(value: &Value) -> bool {
    value.is_null() || value.as_str().is_some_and(is_blank_text)
}

/// Returns whether a text has only white space and invisible characters.
pub fn is_blank_text(text: &str) -> bool {
    text.chars().all(is_invisible)
}

/// Replaces a number that is a multiple of the step with a rounding error. Many clients compute amounts with floating-point numbers, or
/// have them in single precision: 43.98 may arrive as 43.97999999999999 or 43.97999954223633.
fn remove_noise(value: &mut Value, steps_in_one: f64) {
    let Some(number) = value.as_f64().filter(|_| value.is_f64()) else { return };
    let multiple = (number * steps_in_one).round() / steps_in_one;
    // More than the error of sums in double precision.
    let rounding_error = 1e-4 / steps_in_one;
    let is_multiple = (number - multiple).abs() <= rounding_error || is_equal_in_single_precision(number, multiple, steps_in_one);
    if multiple.is_finite() && is_multiple {
        *value = multiple.into();
    }
}

/// Returns whether a number is this multiple of the step in single precision. Large numbers are not: their single precision is not finer
/// than half a step, so numbers between two multiples would be equal to one of them.
#[expect(clippy::cast_possible_truncation, reason = "rounds to single precision")]
fn is_equal_in_single_precision(number: f64, multiple: f64, steps_in_one: f64) -> bool {
    let single = multiple.abs() as f32;
    let distance = f64::from(single.next_up()) - f64::from(single);
    number.abs() as f32 == single && distance * steps_in_one < 0.5
}

/// Returns an error message if an array or object has more items or entries than the limit.
fn count_violation(value: &Value, limit: u64) -> Option<String> {
    let (count, singular, plural) = match value {
        Value::Array(items) => (items.len(), "item", "items"),
        Value::Object(entries) => (entries.len(), "entry", "entries"),
        _ => return None,
    };
    u64::try_from(count)
        .is_ok_and(|count| count > limit)
        .then(|| format!("must have at most {}", counted(limit, singular, plural)))
}
