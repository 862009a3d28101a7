//! Arguments of requests: where they are declared, which values are valid, and how a request is sent with another value.

use std::sync::Arc;

use boxoffice_openapi::response::BodyContent;
use boxoffice_openapi::{
    Direction, ExampleUse, Operation, Parameter, ParameterLocation, PathTemplate, Sampler, Schema, escape, resolve,
    to_plain_string,
};
use chrono::Utc;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use serde_json::{Value, json};

use super::form::{self, FormField};
use super::http_client::{API_KEY_HEADER, CLIENT_VERSION_HEADER, Request};

/// Characters to percent-encode in a path: all but the unreserved characters (RFC 3986).
pub const PATH_ESCAPES: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Characters to percent-encode in a text whose parts are encoded, and whose delimiters are not encoded (RFC 6570, section 3.2.7).
const DELIMITED_ESCAPES: &AsciiSet = &PATH_ESCAPES.remove(b'%').remove(b',').remove(b';').remove(b'=');

const COOKIE: &str = "Cookie";

/// An argument of a request: a parameter, or a property of the body.
#[derive(Debug)]
pub struct Argument {
    /// The name.
    pub name: String,
    /// Part of the request that contains it.
    pub location: ArgumentLocation,
    /// True if every request must have it.
    pub required: bool,
    /// True if it must not be blank (`x-not-blank`), although it may be absent.
    pub not_blank: bool,
    /// The schema, with references resolved.
    pub schema: Value,
    /// True if a discriminator says by this property which subtype the body is.
    pub is_discriminator: bool,
    /// A valid value from the document.
    pub example: Option<Value>,
    /// JSON pointer of its definition in the document.
    pub pointer: String,
    /// The schema as the document declares it, for validation.
    pub declared: Arc<Schema>,
    /// The property of the form, if it is one.
    field: Option<FormField>,
}

/// Part of a request that contains an argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArgumentLocation {
    /// The path.
    Path,
    /// The query.
    Query,
    /// A header.
    Header,
    /// A cookie.
    Cookie,
    /// A property of the JSON body.
    Body,
    /// A property of a form.
    Form,
}

impl From<ParameterLocation> for ArgumentLocation {
    fn from(location: ParameterLocation) -> Self {
        match location {
            ParameterLocation::Path => Self::Path,
            ParameterLocation::Query => Self::Query,
            ParameterLocation::Header => Self::Header,
            ParameterLocation::Cookie => Self::Cookie,
        }
    }
}

impl Argument {
    /// Returns `None` for credentials and the client version. Other code sets them.
    pub fn from_parameter(document: &Value, operation: &Operation, parameter: &Parameter) -> Option<Self> {
        let is_named = |name: &&str| parameter.name.eq_ignore_ascii_case(name);
        let location = ArgumentLocation::from(parameter.location);
        if location == ArgumentLocation::Header && [API_KEY_HEADER, CLIENT_VERSION_HEADER].iter().any(is_named) {
            return None;
        }
        let schema = resolve(document, &parameter.schema.raw);
        let example = parameter.examples.values().next();
        let example = example.or_else(|| ["example", "default"].iter().find_map(|keyword| schema.get(keyword)));
        Some(Self {
            name: parameter.name.clone(),
            location,
            required: parameter.required || location == ArgumentLocation::Path,
            not_blank: false,
            is_discriminator: false,
            example: example.or_else(|| schema["enum"].get(0)).cloned(),
            pointer: parameter_pointer(document, operation, parameter),
            schema,
            declared: Arc::clone(&parameter.schema),
            field: None,
        })
    }

    /// Collects the properties of a form, of its alternatives those that a value satisfies. Empty if the media type is no form, or has no
    /// schema.
    pub fn from_form(document: &Value, operation: &Operation, content: &BodyContent, value: &Value) -> Vec<Self> {
        let Some(declared) = &content.schema else { return Vec::new() };
        let encoding = form::encoding(document, operation, content);
        let pointer = format!("{}/requestBody/content/{}", operation.pointer, escape(&content.media_type));
        let properties = Self::from_properties(document, declared, value, &pointer).into_iter().filter_map(|argument| {
            let Self { name, required, declared, .. } = &argument;
            let field = FormField::new(&content.media_type, name, *required, Arc::clone(declared), &encoding[name])?;
            Some(Self { location: ArgumentLocation::Form, field: Some(field), ..argument })
        });
        properties.collect()
    }

    /// Collects the properties of a body, including those of its `allOf`, and of the alternatives that a value satisfies.
    /// `media_type` is the pointer of its Media Type Object.
    pub fn from_properties(document: &Value, declared: &Schema, value: &Value, media_type: &str) -> Vec<Self> {
        let parts = declared.parts_for(value);
        // `required` may be in another part than the property.
        let is_listed = |keyword: &str, name: &str| {
            parts.iter().flat_map(|(_, part)| part[keyword].as_array()).flatten().any(|each| each.as_str() == Some(name))
        };
        let properties = parts.iter().flat_map(|(pointer, part)| {
            let properties = part["properties"].as_object().into_iter().flatten();
            properties.filter(|(_, property)| property["readOnly"] != true).map(move |property| (pointer, property))
        });
        let arguments = properties.map(|(pointer, (name, property))| Self {
            name: name.clone(),
            location: ArgumentLocation::Body,
            required: is_listed("required", name),
            not_blank: is_listed("x-not-blank", name),
            is_discriminator: parts.iter().any(|(_, part)| part["discriminator"]["propertyName"] == *name),
            schema: resolve(document, property),
            example: property.get("example").cloned(),
            pointer: format!("{media_type}/schema{pointer}/properties/{}", escape(name)),
            declared: Arc::new(declared.part(property)),
            field: None,
        });
        arguments.collect()
    }

    /// Returns the parameter of the operation or the form, or `None` for a property of the JSON body.
    pub fn parameter<'o>(&'o self, operation: &'o Operation) -> Option<&'o Parameter> {
        if let Some(field) = &self.field {
            return Some(&field.parameter);
        }
        let is_it = |parameter: &&Parameter| parameter.name == self.name && self.location == parameter.location.into();
        operation.parameters.iter().find(is_it)
    }

    /// Returns the example, unless the schema forbids it: a request with it would not be valid.
    pub fn valid_example(&self, operation: &Operation) -> Option<&Value> {
        let is_accepted = |example: &&Value| {
            self.parameter(operation).is_some_and(|parameter| parameter.accepts(&parameter.serialize(example)))
        };
        self.example.as_ref().filter(|example| self.is_valid(example) || is_accepted(example))
    }

    /// Returns if it is a property of the JSON body.
    pub fn is_in_body(&self) -> bool {
        self.location == ArgumentLocation::Body
    }

    /// Returns if it is a property of a JSON body or of a form.
    pub fn is_property(&self) -> bool {
        self.is_in_body() || self.location == ArgumentLocation::Form
    }

    /// Returns if it is a header with this name.
    pub fn is_header(&self, name: &str) -> bool {
        self.location == ArgumentLocation::Header && self.name.eq_ignore_ascii_case(name)
    }

    /// Returns valid texts that no request has had, the most similar to this one first. None if the text may have a meaning, like a
    /// date or a reference.
    pub fn other_texts(&self, document: &Value, text: &str) -> Vec<String> {
        let has_meaning = ["enum", "const"].iter().any(|keyword| self.schema.get(keyword).is_some())
            || self.schema["format"].as_str().is_some_and(|format| !["email", "idn-email", "password"].contains(&format))
            || text.starts_with('/')
            || text.contains("://");
        if has_meaning {
            return Vec::new();
        }
        let number = unique_number();
        let sampler = Sampler::new(document, &self.schema, Direction::Request).ok();
        let generated = sampler.and_then(|sampler| sampler.sample_with(number, ExampleUse::Never).ok());
        let similar = if text.contains('@') { format!("{number:x}{text}") } else { format!("{text}-{number:x}") };
        let texts =
            [similar, format!("{number:x}")].into_iter().chain(generated.as_ref().and_then(Value::as_str).map(str::to_owned));
        texts.filter(|other| other != text && self.is_valid(&other.as_str().into())).collect()
    }

    /// Returns a valid `Idempotency-Key` that no request has had: a UUID, or else another text that contains the time.
    pub fn fresh_key(&self, document: &Value) -> Option<String> {
        let time = unique_number();
        let uuid = format!("{:08x}-{:04x}-4000-8000-{:012x}", time >> 32, time >> 16 & 0xffff, time & 0xffff);
        let generate = || {
            let sampler = Sampler::new(document, &self.schema, Direction::Request).ok()?;
            Some(to_plain_string(&sampler.sample_with(time, ExampleUse::Never).ok()?))
        };
        [uuid, format!("compare-{time}")].into_iter().find(|key| self.allows(key)).or_else(generate)
    }

    /// Returns if a text is a valid value in a path.
    pub fn allows(&self, text: &str) -> bool {
        let is_number = matches!(self.schema["type"].as_str(), Some("integer" | "number"));
        let is_boolean = self.schema["type"] == "boolean";
        self.is_valid(&if is_number || is_boolean { serde_json::from_str(text).unwrap_or_default() } else { Value::from(text) })
    }

    /// Returns if a value is valid.
    pub fn is_valid(&self, value: &Value) -> bool {
        self.declared.is_valid(value)
    }

    /// Returns a valid value that most probably identifies nothing: the value in a path, or the example, with other digits and
    /// letters.
    pub fn unknown_value(&self, request: &Request, operation: &Operation) -> Option<Value> {
        let in_path = || {
            let mut variables = operation.template.variables(&request.path);
            variables
                .find(|(name, _)| *name == self.name)
                .map(|(_, text)| percent_decode_str(text).decode_utf8_lossy().into_owned())
        };
        let current = match self.location {
            ArgumentLocation::Path => in_path()?,
            _ => to_plain_string(self.example.as_ref()?),
        };
        if self.schema.get("enum").is_some() {
            return None;
        }
        if self.schema["type"] == "integer" {
            let numbers = [987_654_321, 98_765, 987, 97];
            return numbers
                .into_iter()
                .map(Value::from)
                .find(|number| self.is_valid(number) && to_plain_string(number) != current);
        }
        // A neighbor of a short identifier may exist.
        let is_number = current.bytes().all(|byte| byte.is_ascii_digit());
        let unlikely = if is_number { "987654321" } else { "no-such-resource-987654321" };
        let unlikely =
            Some(unlikely.to_owned()).filter(|_| self.location == ArgumentLocation::Path && current.len() < unlikely.len());
        let other: String = current
            .chars()
            .map(|c| match c {
                '0'..='8' | 'a'..='y' | 'A'..='Y' => char::from_u32(u32::from(c) + 1).unwrap_or(c),
                '9' => '0',
                'z' => 'a',
                'Z' => 'A',
                _ => c,
            })
            .collect();
        // The version of a UUID, and the like, must stay.
        let reversed: String =
            current.chars().map(|c| if c.is_ascii_digit() { char::from(b'9' - (c as u8 - b'0')) } else { c }).collect();
        unlikely.into_iter().chain([other, reversed]).find(|text| *text != current && self.allows(text)).map(Value::from)
    }

    /// Returns a copy of a request with another value of the argument, or without the argument.
    pub fn set(&self, request: &Request, operation: &Operation, value: Option<&Value>) -> Request {
        if let Some(field) = &self.field {
            return field.set(request, value);
        }
        let mut request = request.clone();
        let Some(parameter) = self.parameter(operation) else {
            let mut body = request.json().unwrap_or_else(|| json!({}));
            if let Some(object) = body.as_object_mut() {
                match value {
                    Some(value) => object.insert(self.name.clone(), value.clone()),
                    None => object.shift_remove(&self.name),
                };
            }
            return request.with_json(&body);
        };
        let texts = |value: Option<&Value>| value.map(|value| parameter.serialize(value)).unwrap_or_default();
        match parameter.location {
            ParameterLocation::Query => {
                request.query.retain(|(name, _)| !parameter.is_sent_as(name));
                request.query.extend(texts(value));
            }
            ParameterLocation::Header => {
                request = request.without_header(&self.name);
                request.headers.extend(texts(value));
            }
            ParameterLocation::Cookie => request = with_cookies(request, |name| parameter.is_sent_as(name), &texts(value)),
            ParameterLocation::Path => {
                let variable = format!("{{{}}}", self.name);
                let text: String = texts(value.map(with_encoded_texts).as_ref()).into_iter().map(|(_, text)| text).collect();
                let encoded = utf8_percent_encode(&text, DELIMITED_ESCAPES).to_string();
                let replace = |name: &str, value: &str| if name == self.name { encoded.clone() } else { value.to_owned() };
                let segments = operation.path.split('/').zip(request.path.split('/')).map(|(template, segment)| match template {
                    _ if template == variable => encoded.clone(),
                    // Other variables of the segment keep their values.
                    _ if template.contains(&variable) => {
                        PathTemplate::new(template).with(segment, replace).trim_start_matches('/').to_owned()
                    }
                    _ => segment.to_owned(),
                });
                request.path = segments.collect::<Vec<_>>().join("/");
            }
        }
        request
    }
}

/// Returns a value with its texts and the names in it percent-encoded.
fn with_encoded_texts(value: &Value) -> Value {
    let encode = |text: &str| utf8_percent_encode(text, PATH_ESCAPES).to_string();
    match value {
        Value::String(text) => encode(text).into(),
        Value::Array(items) => items.iter().map(with_encoded_texts).collect(),
        Value::Object(members) => members.iter().map(|(name, value)| (encode(name), with_encoded_texts(value))).collect(),
        other => other.clone(),
    }
}

/// Returns the time in nanoseconds, which no earlier request or comparison has used.
fn unique_number() -> u64 {
    Utc::now().timestamp_nanos_opt().unwrap_or_default().unsigned_abs()
}

/// Replaces the cookies of a request whose names match by others.
pub fn with_cookies(request: Request, is_replaced: impl Fn(&str) -> bool, cookies: &[(String, String)]) -> Request {
    let sent = request.headers.iter().find(|(name, _)| name.eq_ignore_ascii_case(COOKIE)).map(|(_, text)| text.clone());
    let kept = sent.iter().flat_map(|text| text.split("; ")).filter(|pair| !is_replaced(pair.split('=').next().unwrap_or(pair)));
    let pairs = kept.map(str::to_owned).chain(cookies.iter().map(|(name, text)| format!("{name}={text}")));
    let pairs: Vec<String> = pairs.collect();
    if pairs.is_empty() { request.without_header(COOKIE) } else { request.with_header(COOKIE, &pairs.join("; ")) }
}

/// Returns the JSON pointer of a parameter, which belongs to the operation or to its path.
fn parameter_pointer(document: &Value, operation: &Operation, parameter: &Parameter) -> String {
    let is_it = |node: &Value| {
        let reference = node["$ref"].as_str().map(|reference| reference.trim_start_matches('#'));
        let node = reference.and_then(|pointer| document.pointer(pointer)).unwrap_or(node);
        node["name"] == parameter.name && ParameterLocation::new(&node["in"]).is_ok_and(|place| place == parameter.location)
    };
    let path_pointer = operation.pointer.rsplit_once('/').map_or("", |(path, _)| path);
    let owners = [operation.pointer.as_str(), path_pointer].into_iter();
    let found = owners.filter_map(|owner| {
        let index = document.pointer(&format!("{owner}/parameters"))?.as_array()?.iter().position(is_it)?;
        Some(format!("{owner}/parameters/{index}"))
    });
    found.into_iter().next().unwrap_or_else(|| operation.pointer.clone())
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use boxoffice_openapi::Contract;

    use super::*;
    use crate::operation_under_test::OperationUnderTest;

    #[test]
    fn sets_each_variable_of_a_segment() {
        let variable = |name: &str, example: u8| json!({ "name": name, "in": "path", "required": true, "schema": { "type": "integer", "example": example } });
        let operation = json!({ "parameters": [variable("from", 3), variable("to", 9)], "responses": { "200": {} } });
        let contract = json!({ "openapi": "3.0.3", "paths": { "/ranges/{from}..{to}/": { "get": operation } } });
        let contract = Contract::new(contract).unwrap();
        let operation = OperationUnderTest::new(&contract, contract.operations().next().unwrap(), 0);
        let request = operation.example_request(&contract, "", None, 0).unwrap();
        assert_eq!(request.path, "/ranges/3..9/");
        assert_eq!(operation.arguments[0].set(&request, operation.spec, Some(&json!(7))).path, "/ranges/7..9/");
    }

    #[test]
    fn delimiters_in_paths_are_not_encoded() {
        for (style, example, expected) in [
            ("matrix", json!({ "x": 1, "y": 2 }), "/things/;x=1;y=2"),
            ("label", json!(["a/b", "c"]), "/things/.a%2Fb.c"),
            ("simple", json!([1, 2]), "/things/1,2"),
            ("simple", json!(["a,b", "c"]), "/things/a%2Cb,c"),
            ("matrix", json!("a;b=c"), "/things/;p=a%3Bb%3Dc"),
            ("simple", json!("a;b,c"), "/things/a%3Bb%2Cc"),
        ] {
            let schema =
                json!({ "type": if example.is_object() { "object" } else if example.is_array() { "array" } else { "string" } });
            let parameter = json!({
                "name": "p", "in": "path", "required": true, "style": style, "explode": true, "schema": schema, "example": example,
            });
            let operation = json!({ "parameters": [parameter], "responses": { "200": {} } });
            let contract = json!({ "openapi": "3.0.3", "paths": { "/things/{p}": { "get": operation } } });
            let contract = Contract::new(contract).unwrap();
            let operation = OperationUnderTest::new(&contract, contract.operations().next().unwrap(), 0);
            assert_eq!(operation.example_request(&contract, "", None, 0).unwrap().path, expected);
        }
    }
}
