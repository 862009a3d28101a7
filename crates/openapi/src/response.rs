//! Declared responses, and validation of a response: status, media type, headers and body.

use std::ops::RangeInclusive;
use std::sync::Arc;

use anyhow::Context;
use http::{HeaderMap, header};
use jsonschema::ValidationError;
use jsonschema::error::ValidationErrorKind;
use serde_json::{Map, Value};

use crate::json;
use crate::multipart::{Multipart, Parts, boundary};
use crate::parameter::{Parameter, ParameterLocation};
use crate::resolver::{References, escape};
use crate::schema::{Direction, Schema, counted, error_message};
use crate::schema_registry::WRITE_ONLY;
use crate::urlencoded_form::{FORM, Form};
use crate::value_kind::{ValueKind, kinds};

/// A declared response of an operation.
#[derive(Debug)]
pub struct ResponseSpec {
    /// The statuses: a single one, a hundred (`4XX`), or all (`default`).
    pub statuses: RangeInclusive<u16>,
    /// Location in the document, as a JSON pointer (RFC 6901).
    pub pointer: String,
    /// The declared bodies. Empty if the response has no body.
    pub contents: Vec<BodyContent>,
    /// The declared headers, except `Content-Type`.
    pub headers: Vec<Parameter>,
}

/// A declared body of a request or response: a Media Type Object.
#[derive(Debug)]
pub struct BodyContent {
    /// The media type or range, as written in the document: `application/json`, `image/*`.
    pub media_type: String,
    /// The examples, by name. An unnamed one is called `example`.
    pub examples: Map<String, Value>,
    /// The schema, if one is declared.
    pub schema: Option<Arc<Schema>>,
    /// The Encoding Objects of a form, by the names of its properties.
    encoding: Value,
}

/// A difference between a response and the document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// The violated part of the declaration.
    pub kind: ViolationKind,
    /// Location of the declaration in the document, as a JSON pointer.
    pub pointer: String,
    /// The description. It completes a sentence that begins with the response.
    pub text: String,
    /// The description without values and item numbers, so that it is the same for every response with this violation.
    pub normalized: String,
}

/// The kind of a [`Violation`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ViolationKind {
    /// The status isn't declared.
    Status,
    /// The media type isn't declared, or a body is missing or unexpected.
    MediaType,
    /// A header is missing or invalid.
    Header,
    /// The body doesn't match its schema.
    Body,
    /// The body has an undeclared property.
    Undeclared,
}

impl ResponseSpec {
    /// Returns whether it is `default`, which covers every status.
    pub fn is_default(&self) -> bool {
        self.statuses == (100..=599)
    }

    /// Parses the Response Object at `pointer`. `status` is its key in the document.
    pub(super) fn new<'a>(references: &References<'a>, pointer: String, status: &str, node: &'a Value) -> anyhow::Result<Self> {
        let node = references.follow(node);
        let contents = node["content"].as_object().into_iter().flatten();
        let content =
            |(media_type, node): (&String, &'a Value)| BodyContent::new(references, media_type, node, Direction::Response);
        let headers = node["headers"].as_object().into_iter().flatten();
        Ok(Self {
            statuses: statuses(status)?,
            pointer,
            contents: contents.map(content).collect(),
            headers: headers
                // OpenAPI ignores this header: `content` declares the media types (OpenAPI 3.0, Response Object).
                .filter(|(name, _)| !name.eq_ignore_ascii_case(header::CONTENT_TYPE.as_str()))
                .map(|(name, header)| Parameter::header(references, name, references.follow(header)))
                .collect::<anyhow::Result<_>>()?,
        })
    }

    /// Returns the status, if it is a single one.
    pub(super) fn status(&self) -> Option<u16> {
        (self.statuses.start() == self.statuses.end()).then_some(*self.statuses.start())
    }

    /// Returns all violations in the headers and the body of a response.
    pub fn violations(&self, headers: &HeaderMap, body: &[u8]) -> Vec<Violation> {
        // Several lines of one header are equivalent to one line with commas, except those of `Set-Cookie` (RFC 9110, section 5.3).
        let text_of = |name: &str| {
            let lines = headers.get_all(name).iter().map(|line| String::from_utf8_lossy(line.as_bytes()));
            let lines: Vec<_> = lines.take(if header::SET_COOKIE == name { 1 } else { usize::MAX }).collect();
            (!lines.is_empty()).then(|| lines.join(", "))
        };
        let mut violations = self.body_violations(&text_of(header::CONTENT_TYPE.as_str()).unwrap_or_default(), body);
        for header in &self.headers {
            let pointer = format!("{}/headers/{}", self.pointer, escape(&header.name));
            let name = &header.name;
            let violation =
                |text, normalized| Violation { kind: ViolationKind::Header, pointer: pointer.clone(), text, normalized };
            match text_of(name) {
                None if header.required => {
                    let text = format!("lacks the header {name}");
                    violations.push(violation(text.clone(), text));
                }
                None => {}
                Some(text) => {
                    violations.extend(header.schema.schema_violations(&header.value_of(&text)).into_iter().map(|found| {
                        violation(format!("{name}{}", found.text), format!("has a header {name} that {}", found.normalized))
                    }))
                }
            }
        }
        violations
    }

    fn body_violations(&self, media_type: &str, body: &[u8]) -> Vec<Violation> {
        // These have no body, even if the document declares one (RFC 9110, sections 15.3.5, 15.3.6 and 15.4.5).
        if matches!(self.status(), Some(204 | 205 | 304)) && body.is_empty() && media_type.is_empty() {
            return Vec::new();
        }
        if self.contents.is_empty() {
            return self.undeclared_body(media_type, body).into_iter().collect();
        }
        let Some(content) = find_content(&self.contents, media_type).map(|index| &self.contents[index]) else {
            return vec![self.undeclared_media_type(media_type, body)];
        };
        let essence = essence(media_type);
        if let Some(charset) = media_type_parameter(media_type, "charset")
            .filter(|charset| is_json(essence) && !charset.eq_ignore_ascii_case("utf-8"))
        {
            let text = format!("is `{media_type}`, and JSON is UTF-8 (RFC 8259)");
            return vec![self.media_type_violation(text, format!("is JSON with the charset {charset}"))];
        }
        let pointer = format!("{}/content/{}/schema", self.pointer, escape(&content.media_type));
        let of_body =
            |text, normalized| vec![Violation { kind: ViolationKind::Body, pointer: pointer.clone(), text, normalized }];
        if essence.to_lowercase().starts_with("multipart/") {
            let Some(boundary) = boundary(media_type) else {
                let text = format!("is `{media_type}`, which lacks the boundary of its parts (RFC 2046)");
                return vec![self.media_type_violation(text, "has no boundary in its media type".to_owned())];
            };
            let parts = Parts::new(body, boundary);
            if !parts.is_complete {
                let text = format!("body doesn't end with `--{boundary}--`: {}", String::from_utf8_lossy(body));
                return of_body(text, "has a body that doesn't end with its boundary".to_owned());
            }
            return content.multipart_violations(&pointer, &parts);
        }
        match content.parse(essence, body) {
            Ok(Some(value)) => content.violations(&pointer, &value),
            Ok(None) => {
                let Some(message) = content.length_violation(body.len()) else { return Vec::new() };
                of_body(format!("body {message}, and it has {}", body.len()), format!("has a body that {message}"))
            }
            Err(error) => {
                let problem = if json::is_unreadable(&error) { "can't be read" } else { "is no JSON" };
                let text = format!("body {problem}: {error}: {}", String::from_utf8_lossy(body));
                of_body(text, format!("has a body that {problem}"))
            }
        }
    }

    /// Returns the violation of a body or a media type where none is declared.
    fn undeclared_body(&self, media_type: &str, body: &[u8]) -> Option<Violation> {
        let (text, normalized) = match (body.is_empty(), media_type) {
            (true, "") => return None,
            (true, _) => (format!("is `{media_type}`, where nothing is declared"), "has a media type and no body"),
            (false, _) => (format!("has a body: {}", String::from_utf8_lossy(body)), "has a body"),
        };
        let (pointer, normalized) = (self.pointer.clone(), normalized.to_owned());
        Some(Violation { kind: ViolationKind::MediaType, pointer, text, normalized })
    }

    /// Returns the violation of a missing media type, or of one that is not declared.
    fn undeclared_media_type(&self, media_type: &str, body: &[u8]) -> Violation {
        let declared: Vec<_> = self.contents.iter().map(|content| &content.media_type).collect();
        let essence = essence(media_type);
        let sent = format!("is `{essence}`");
        let missing = if body.is_empty() { "has no body" } else { "has no Content-Type" };
        let text = match essence {
            "" => format!("{missing}, and is declared as one of {declared:?}"),
            _ => format!("{sent} and not one of {declared:?}"),
        };
        let normalized = if essence.is_empty() || body.is_empty() { missing.to_owned() } else { sent };
        self.media_type_violation(text, normalized)
    }

    fn media_type_violation(&self, text: String, normalized: String) -> Violation {
        Violation { kind: ViolationKind::MediaType, pointer: format!("{}/content", self.pointer), text, normalized }
    }
}

/// Returns the index of the content that declares a media type: the most specific one that includes it, and the first among equals.
pub(crate) fn find_content(contents: &[BodyContent], media_type: &str) -> Option<usize> {
    if let Some(index) = contents.iter().position(|content| content.media_type == media_type) {
        return Some(index);
    }
    let ranks = contents.iter().map(|content| range_rank(&content.media_type, media_type)).enumerate();
    let (index, _) = ranks.rev().filter_map(|(index, rank)| Some((index, rank?))).max_by_key(|(_, rank)| *rank)?;
    Some(index)
}

impl BodyContent {
    /// Parses a Media Type Object.
    pub(super) fn new<'a>(references: &References<'a>, media_type: &str, node: &'a Value, direction: Direction) -> Self {
        Self {
            media_type: media_type.to_owned(),
            examples: examples(references, node),
            schema: node.get("schema").map(|schema| references.schema(schema, direction)),
            encoding: node["encoding"].clone(),
        }
    }

    /// Parses the body of a response. Returns `None` if it is not parsed: a binary one, or one without a schema.
    ///
    /// # Errors
    /// If it should be JSON and is not.
    fn parse(&self, essence: &str, body: &[u8]) -> serde_json::Result<Option<Value>> {
        if is_json(essence) {
            let is_absent = self.schema.is_none() && body.is_empty();
            return if is_absent { Ok(None) } else { serde_json::from_slice(body).map(Some) };
        }
        let Some(schema) = &self.schema else { return Ok(None) };
        if essence.eq_ignore_ascii_case(FORM) {
            return Ok(Form::new(Arc::clone(schema), &self.encoding).ok().map(|form| form.value(body)));
        }
        let text = std::str::from_utf8(body).ok().filter(|_| essence.to_lowercase().starts_with("text/"));
        let parameter = Parameter::from_parts("body", ParameterLocation::Query, true, Arc::clone(schema), &Value::Null);
        let parameter = parameter.ok().filter(Parameter::is_scalar);
        Ok(text.zip(parameter).map(|(text, parameter)| parameter.value_of(text)))
    }

    /// Returns the violations of a parsed body by the schema, which is at `pointer` in the document.
    fn violations(&self, pointer: &str, body: &Value) -> Vec<Violation> {
        let found = self.schema.iter().flat_map(|schema| schema.schema_violations(body));
        found.map(|found| found.of_body(pointer, body)).collect()
    }

    /// Returns the violations of a multipart body whose parts are the properties of an object.
    fn multipart_violations(&self, pointer: &str, parts: &Parts<'_>) -> Vec<Violation> {
        let schema = self.schema.as_ref().filter(|schema| kinds(&schema.resolved).contains(&ValueKind::Object));
        let Some(form) = schema.and_then(|schema| Multipart::new(Arc::clone(schema), &self.encoding).ok()) else {
            return Vec::new();
        };
        match form.response_errors(parts) {
            Ok((errors, body)) => {
                let found = errors.iter().map(|(at, error)| SchemaViolation::new(at, error));
                found.map(|found| found.of_body(pointer, &body)).collect()
            }
            Err(error) => vec![SchemaViolation::of_unusable_schema(&error).of_body(pointer, &Value::Null)],
        }
    }

    /// Returns an error message if a binary body is too short or too long. The length of text in Base64 isn't that of its bytes.
    fn length_violation(&self, length: usize) -> Option<String> {
        let schema = &self.schema.as_ref()?.resolved;
        let limit = |keyword: &str| schema[keyword].as_u64().filter(|_| schema["type"] == "string" && schema["format"] != "byte");
        let length = u64::try_from(length).ok()?;
        let bytes = |limit| counted(limit, "byte", "bytes");
        let too_short =
            limit("minLength").filter(|limit| length < *limit).map(|limit| format!("must have at least {}", bytes(limit)));
        too_short.or_else(|| {
            limit("maxLength").filter(|limit| length > *limit).map(|limit| format!("must have at most {}", bytes(limit)))
        })
    }

    /// Returns whether the body is XML without an example as text. Sample data can't be generated for it.
    pub fn is_xml_unseen(&self) -> bool {
        let is_xml = essence(&self.media_type).to_lowercase().ends_with("xml");
        is_xml && !self.examples.values().next().is_some_and(Value::is_string)
    }

    /// Returns whether the body is JSON.
    pub fn is_json(&self) -> bool {
        is_json(essence(&self.media_type))
    }
}

impl Schema {
    /// Returns all violations in a value, with location and description: `/name: 7 is not of type "string"`.
    pub fn violations(&self, value: &Value) -> Vec<(ViolationKind, String)> {
        self.schema_violations(value).into_iter().map(|violation| (violation.kind, violation.text)).collect()
    }

    fn schema_violations(&self, value: &Value) -> Vec<SchemaViolation> {
        match self.errors(value) {
            Ok(errors) => errors.into_iter().map(|(pointer, error)| SchemaViolation::new(&pointer, &error)).collect(),
            Err(error) => vec![SchemaViolation::of_unusable_schema(&error)],
        }
    }
}

/// A difference between a value and its schema. The fields are those of [`Violation`].
struct SchemaViolation {
    kind: ViolationKind,
    text: String,
    normalized: String,
}

impl SchemaViolation {
    /// Describes an error at a location in the value. Item numbers are normalized to `*`: `at /entries/*/name must be a string`.
    fn new(pointer: &str, error: &ValidationError<'_>) -> Self {
        let (kind, message) = match error.kind() {
            ValidationErrorKind::AdditionalProperties { unexpected }
            | ValidationErrorKind::UnevaluatedProperties { unexpected } => {
                (ViolationKind::Undeclared, format!("has the undeclared {}", unexpected.join(", ")))
            }
            kind if kind.keyword() == WRITE_ONLY => (ViolationKind::Undeclared, error_message(error)),
            _ => (ViolationKind::Body, error_message(error)),
        };
        let steps = pointer.split('/').map(|step| if step.parse::<usize>().is_ok() { "*" } else { step });
        let normalized =
            if pointer.is_empty() { message } else { format!("at {} {message}", steps.collect::<Vec<_>>().join("/")) };
        Self { kind, text: format!("{pointer}: {error}"), normalized }
    }

    /// Describes a schema that can't be compiled.
    fn of_unusable_schema(error: &anyhow::Error) -> Self {
        Self {
            kind: ViolationKind::Body,
            text: format!(" can't be validated against its schema: {error:#}"),
            normalized: "can't be validated against its schema".to_owned(),
        }
    }

    /// Converts it to a violation in the body of a response. `pointer` is the schema's location in the document.
    fn of_body(self, pointer: &str, body: &Value) -> Violation {
        Violation {
            kind: self.kind,
            pointer: pointer.to_owned(),
            text: format!("body{} in {body}", self.text),
            normalized: format!("has a body that {}", self.normalized),
        }
    }
}

/// Returns the examples of a Media Type Object or a Parameter Object, by name. An unnamed one is called `example`.
pub(super) fn examples<'a>(references: &References<'a>, node: &'a Value) -> Map<String, Value> {
    let named = node["examples"].as_object().into_iter().flatten();
    let named = named.filter_map(|(name, example)| Some((name.clone(), references.follow(example).get("value")?.clone())));
    let unnamed = node.get("example").map(|example| ("example".to_owned(), example.clone()));
    unnamed.into_iter().chain(named).collect()
}

/// Parses the key of a response: a status, `4XX` or `default`.
fn statuses(key: &str) -> anyhow::Result<RangeInclusive<u16>> {
    if key == "default" {
        return Ok(100..=599);
    }
    if let Some(hundred) = key.strip_suffix("XX").or_else(|| key.strip_suffix("xx")).and_then(|digit| digit.parse::<u16>().ok()) {
        return Ok(hundred * 100..=hundred * 100 + 99);
    }
    let status = key.parse::<u16>().ok().filter(|status| (100..600).contains(status));
    let status = status.with_context(|| format!("{key} is not a status"))?;
    Ok(status..=status)
}

/// Returns a media type without its parameters.
pub fn essence(media_type: &str) -> &str {
    media_type.split(';').next().unwrap_or_default().trim()
}

/// Returns a parameter of a media type, or of another header of the same form.
pub fn media_type_parameter<'a>(media_type: &'a str, name: &str) -> Option<&'a str> {
    parameters(media_type).find(|(parameter, _)| parameter.eq_ignore_ascii_case(name)).map(|(_, value)| value)
}

/// Returns the names and values of the parameters of a media type. A quoted value may contain semicolons.
pub(crate) fn parameters(media_type: &str) -> impl Iterator<Item = (&str, &str)> {
    let mut is_quoted = false;
    let parameters = media_type.split(move |character| {
        is_quoted ^= character == '"';
        character == ';' && !is_quoted
    });
    let parameters = parameters.skip(1).filter_map(|parameter| parameter.split_once('='));
    parameters.map(|(name, value)| (name.trim(), value.trim().trim_matches('"')))
}

/// Normalizes a media type with its parameters: spaces, quotes and case are not significant (RFC 9110, section 8.3.1).
pub(crate) fn normalize(media_type: &str) -> String {
    media_type.chars().filter(|character| !" \t\"".contains(*character)).flat_map(char::to_lowercase).collect()
}

/// Returns whether a declared media type or range includes a media type. Parameters are ignored.
pub fn matches_range(declared: &str, media_type: &str) -> bool {
    range_rank(declared, media_type).is_some()
}

/// Returns how specific a declared media type or range is for a media type that it includes, and otherwise `None`. The larger one is
/// more specific.
fn range_rank(declared: &str, media_type: &str) -> Option<usize> {
    let (declared, media_type) = (normalize(declared), normalize(media_type));
    let (range, sent) = (essence(&declared), essence(&media_type));
    if range == sent {
        let mut parameters = declared.split(';').skip(1);
        let is_sent = |parameter: &str| media_type.split(';').skip(1).any(|sent| sent == parameter);
        let count = parameters.clone().count();
        return Some(if parameters.all(is_sent) { 4 + count } else { 3 });
    }
    let (kind, subtype) = sent.split_once('/').unwrap_or_default();
    match range.split_once('/')? {
        ("*", "*") => Some(0),
        (range_kind, "*") if range_kind == kind => Some(1),
        // `application/*+json`, which some tools declare.
        (range_kind, suffix) if range_kind == kind => {
            let suffix = suffix.strip_prefix("*+")?;
            (subtype.rsplit('+').next() == Some(suffix)).then_some(2)
        }
        _ => None,
    }
}

/// Returns whether a media type without parameters, in lower case, is a text apart from JSON.
pub fn is_text(essence: &str) -> bool {
    essence.starts_with("text/") || ["xml", "yaml", "x-www-form-urlencoded"].iter().any(|end| essence.ends_with(end))
}

/// Returns whether a media type without parameters is JSON (RFC 6839 for the suffix). `text/json` is an old name of it.
pub fn is_json(essence: &str) -> bool {
    let is = |name: &str| essence.eq_ignore_ascii_case(name);
    is("application/json") || is("text/json") || essence.to_lowercase().ends_with("+json")
}
