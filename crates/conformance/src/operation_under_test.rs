//! An operation to check: its arguments, and requests made of the document's examples.

use std::ops::RangeInclusive;
use std::sync::Arc;

use anyhow::Context;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use boxoffice_openapi::response::{BodyContent, matches_range};
use boxoffice_openapi::{Contract, Direction, Operation, ParameterLocation, Sampler, Schema, SecurityScheme, escape, resolve};
use http::header::CONTENT_TYPE;
use serde_json::{Map, Value, json};

use super::argument::{Argument, with_cookies};
use super::form;
use super::http_client::{CLIENT_VERSION_HEADER, ReceivedResponse, Request, SUPPORTED_CLIENT_VERSION};

/// Header that makes a change conditional on the tag of a resource.
pub const IF_MATCH: &str = "If-Match";
/// Header that identifies a request, so that a repeated one has no second effect.
pub const IDEMPOTENCY_KEY: &str = "Idempotency-Key";

/// Number of generated bodies among which other alternatives are looked for.
const ALTERNATIVE_ATTEMPTS: u64 = 12;

const AUTHORIZATION: &str = "Authorization";

/// An operation to check.
#[derive(Debug)]
pub struct OperationUnderTest<'a> {
    /// The operation of the document.
    pub spec: &'a Operation,
    /// Every argument but credentials and the client version, in the document's order.
    pub arguments: Vec<Argument>,
    /// The JSON body, if the operation takes one.
    pub json_body: Option<JsonBody>,
    /// The body, if the operation takes none in JSON.
    pub form: Option<&'a BodyContent>,
}

/// The JSON body of an operation.
#[derive(Debug)]
pub struct JsonBody {
    /// The schema, with references resolved.
    pub schema: Value,
    /// The document's valid examples, by name.
    pub examples: Map<String, Value>,
    /// JSON pointer of its Media Type Object in the document.
    pub pointer: String,
    /// The declared media type, or `application/json` if a range is declared.
    pub media_type: String,
    /// The schema as the document declares it, for validation.
    declared: Option<Arc<Schema>>,
}

/// A body that is another alternative (`oneOf`, `anyOf`) than the one of the operation's arguments.
#[derive(Debug)]
pub struct Alternative {
    /// The properties that it has.
    pub arguments: Vec<Argument>,
    media_type: String,
    body: Vec<u8>,
}

impl Alternative {
    /// Returns a request with this body instead of its own.
    pub fn replace(&self, request: &Request) -> Request {
        request.clone().with_body(&self.media_type, self.body.clone())
    }
}

/// Returns the schema of a body, with references resolved.
fn schema_of(document: &Value, content: &BodyContent) -> Value {
    content.schema.as_deref().map_or_else(|| json!({}), |schema| resolve(document, &schema.raw))
}

/// Returns the examples of a body that its schema allows, with generated values instead of properties that it forbids. The schema of
/// another body than JSON or a form may describe something else.
fn valid_examples(document: &Value, content: &BodyContent) -> Map<String, Value> {
    let valid = |example: &Value| match &content.schema {
        Some(schema) if content.is_json() || example.is_object() => valid_example(document, schema, example),
        _ => Some(example.clone()),
    };
    content.examples.iter().filter_map(|(name, example)| Some((name.clone(), valid(example)?))).collect()
}

/// Returns an example with generated values instead of missing and invalid properties. `None` if it is invalid in another way.
fn valid_example(document: &Value, schema: &Schema, example: &Value) -> Option<Value> {
    let mut valid = example.clone();
    if !schema.is_valid(example) {
        let object = valid.as_object_mut()?;
        for argument in Argument::from_properties(document, schema, example, "") {
            let is_valid = object.get(&argument.name).map_or(!argument.required, |value| argument.is_valid(value));
            if !is_valid {
                let sampler = Sampler::new(document, &argument.schema, Direction::Request).ok()?;
                object.insert(argument.name, sampler.sample(0).ok()?);
            }
        }
    }
    schema.is_valid(&valid).then_some(valid)
}

/// Returns if a schema has alternatives, apart from those of its properties.
fn has_alternatives(schema: &Value) -> bool {
    let parts = schema["allOf"].as_array().into_iter().flatten();
    schema["oneOf"].is_array() || schema["anyOf"].is_array() || parts.into_iter().any(has_alternatives)
}

/// Returns the first tag of an operation, or an empty string.
pub fn first_tag(operation: &Operation) -> &str {
    operation.tags.first().map_or("", String::as_str)
}

impl<'a> OperationUnderTest<'a> {
    /// Collects the arguments of an operation. Those of a body with alternatives (`oneOf`, `anyOf`) belong to its first example, or else
    /// to the body that the seed generates.
    pub fn new(contract: &Contract, spec: &'a Operation, seed: u64) -> Self {
        let document = &contract.document;
        let contents = spec.body.as_ref().map_or(&[][..], |body| &body.contents);
        let is_json_content =
            |content: &&BodyContent| content.is_json() || matches_range(&content.media_type, "application/json");
        let json_body = contents.iter().find(is_json_content).map(|content| JsonBody::new(document, spec, content));
        let form = contents.first().filter(|_| json_body.is_none());
        let parameters = spec.parameters.iter().filter_map(|parameter| Argument::from_parameter(document, spec, parameter));
        let fields = |content: &BodyContent| {
            let generate = || Sampler::new(document, &schema_of(document, content), Direction::Request).ok()?.sample(seed).ok();
            let value = valid_examples(document, content).values().next().cloned().or_else(generate)?;
            Some(Argument::from_form(document, spec, content, &value))
        };
        let properties = match &json_body {
            Some(body) => body.properties(document, seed),
            None => form.and_then(fields).unwrap_or_default(),
        };
        Self { spec, arguments: parameters.chain(properties).collect(), json_body, form }
    }

    /// Builds a request from the document's examples or, where it has none, from generated values.
    ///
    /// `body_example` names an example of the body; the default is the first.
    ///
    /// # Errors
    /// Fails if a value has no example and can't be generated, or the body is not JSON.
    pub fn example_request(
        &self,
        contract: &Contract,
        key: &str,
        body_example: Option<&str>,
        seed: u64,
    ) -> anyhow::Result<Request> {
        let generate = |schema: &Value| Sampler::new(&contract.document, schema, Direction::Request)?.sample(seed);
        let mut request = Request::new(&self.spec.method, self.spec.path.clone());
        if self.spec.needs_version {
            request = request.with_header(CLIENT_VERSION_HEADER, SUPPORTED_CLIENT_VERSION);
        }
        let is_required_parameter = |argument: &&Argument| argument.required && !argument.is_property();
        for argument in self.arguments.iter().filter(is_required_parameter) {
            let value = match argument.valid_example(self.spec) {
                Some(example) => example.clone(),
                None => generate(&argument.schema).with_context(|| format!("no value of {} can be generated", argument.name))?,
            };
            request = argument.set(&request, self.spec, Some(&value));
        }
        request = self.with_key(&request, Some(key));
        request = self.with_fresh_key(&contract.document, &request);
        if let Some(body) = &self.json_body {
            let value = match body_example.and_then(|name| body.examples.get(name)) {
                Some(example) => example.clone(),
                None => body.first_value(&contract.document, seed)?,
            };
            request = request.with_header("Content-Type", &body.media_type).with_json(&value);
        }
        if let Some(content) = self.form {
            let value = match valid_examples(&contract.document, content).values().next() {
                Some(example) => example.clone(),
                None => generate(&schema_of(&contract.document, content)).context("no body can be generated")?,
            };
            let encoding = form::encoding(&contract.document, self.spec, content);
            let (media_type, body) = form::encode(content, &encoding, &value)?;
            request = request.with_body(&media_type, body);
        }
        Ok(request)
    }

    /// Returns other bodies, each with those properties that neither [`OperationUnderTest::arguments`] nor the bodies before it have. They
    /// are the alternatives (`oneOf`, `anyOf`) of the further examples, and of generated values.
    pub fn alternatives(&self, document: &Value, seed: u64) -> Vec<Alternative> {
        let json = self.json_body.as_ref().map(|body| (&body.schema, &body.examples, body.declared.as_ref()));
        let form_schema = self.form.map(|content| schema_of(document, content));
        let form_examples = self.form.map(|content| valid_examples(document, content));
        let form = || {
            let (form, (schema, examples)) = self.form.zip(form_schema.as_ref().zip(form_examples.as_ref()))?;
            Some((schema, examples, form.schema.as_ref()))
        };
        let Some((schema, examples, Some(declared))) = json.or_else(form) else { return Vec::new() };
        if !has_alternatives(schema) {
            return Vec::new();
        }
        let sampler = Sampler::new(document, schema, Direction::Request).ok();
        let generated = (0..ALTERNATIVE_ATTEMPTS).filter_map(|attempt| sampler.as_ref()?.sample(seed.wrapping_add(attempt)).ok());
        let mut known: Vec<(String, Value)> =
            self.arguments.iter().map(|argument| (argument.name.clone(), argument.schema.clone())).collect();
        let mut alternatives = Vec::new();
        for value in examples.values().skip(1).cloned().chain(generated).filter(|value| declared.is_valid(value)) {
            let Some(mut alternative) = self.alternative(document, declared, &value) else { continue };
            alternative.arguments.retain(|argument| {
                let declaration = (argument.name.clone(), argument.schema.clone());
                let is_new = !known.contains(&declaration);
                known.extend(is_new.then_some(declaration));
                is_new
            });
            if !alternative.arguments.is_empty() {
                alternatives.push(alternative);
            }
        }
        alternatives
    }

    /// Encodes a value as the body. `None` if the media type can't be sent.
    fn alternative(&self, document: &Value, declared: &Schema, value: &Value) -> Option<Alternative> {
        if let Some(JsonBody { media_type, pointer, .. }) = &self.json_body {
            let arguments = Argument::from_properties(document, declared, value, pointer);
            return Some(Alternative { media_type: media_type.clone(), body: value.to_string().into_bytes(), arguments });
        }
        let (form, encoding) = (self.form?, form::encoding(document, self.spec, self.form?));
        let (media_type, body) = form::encode(form, &encoding, value).ok()?;
        Some(Alternative { media_type, body, arguments: Argument::from_form(document, self.spec, form, value) })
    }

    /// Replaces a valid `Idempotency-Key` by one that no request has had.
    pub fn with_fresh_key(&self, document: &Value, request: &Request) -> Request {
        let sent = request.headers.iter().find(|(name, _)| name.eq_ignore_ascii_case(IDEMPOTENCY_KEY));
        let argument = self.arguments.iter().find(|argument| argument.is_header(IDEMPOTENCY_KEY));
        let argument = argument.filter(|argument| sent.is_some_and(|(_, key)| argument.allows(key)));
        let key = argument.and_then(|argument| argument.fresh_key(document));
        key.map_or_else(|| request.clone(), |key| request.clone().with_header(IDEMPOTENCY_KEY, &key))
    }

    /// Changes the texts in the body of a request that the schema leaves open, because they may have to be unique.
    pub fn with_other_texts(&self, document: &Value, request: &Request) -> Request {
        let is_valid = self.has_valid_body(request);
        let mut request = request.clone();
        for argument in self.arguments.iter().filter(|argument| argument.is_in_body()) {
            let body = request.json().unwrap_or_default();
            let Some(text) = body[&argument.name].as_str() else { continue };
            let requests = argument
                .other_texts(document, text)
                .into_iter()
                .map(|text| argument.set(&request, self.spec, Some(&text.into())));
            if let Some(changed) = requests.into_iter().find(|changed| !is_valid || self.has_valid_body(changed)) {
                request = changed;
            }
        }
        request
    }

    /// Returns if a request has a valid JSON body.
    pub fn has_valid_body(&self, request: &Request) -> bool {
        self.json_body.as_ref().zip(request.json()).is_some_and(|(body, value)| body.is_valid(&value))
    }

    /// Returns if a request has a valid body that is not JSON, such as a form.
    pub fn has_valid_form(&self, request: &Request) -> bool {
        let Some(declared) = self.spec.body.as_ref().filter(|_| self.form.is_some()) else { return false };
        let media_type = request.headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("content-type"));
        let media_type = media_type.and_then(|(_, text)| text.parse().ok());
        let headers = media_type.map(|media_type| (CONTENT_TYPE, media_type)).into_iter().collect();
        let mut errors = Vec::new();
        let parsed = declared.parse(&headers, request.body.as_deref().unwrap_or_default(), &mut errors);
        parsed.is_ok() && errors.is_empty()
    }

    /// Returns if a response is a success: 2xx, or a declared redirect if the document declares no success of its own.
    pub fn is_success(&self, response: &ReceivedResponse) -> bool {
        let declares_2xx = self.declared_statuses().any(|statuses| (200..300).contains(statuses.start()));
        let is_redirect = (300..400).contains(&response.status) && response.status != 304;
        let is_declared = self.declared_statuses().any(|statuses| statuses.contains(&response.status));
        response.is_success() || is_redirect && is_declared && !declares_2xx
    }

    /// Returns if the document declares a success or a redirect by its status. 304 is only for conditional requests.
    pub fn declares_success(&self) -> bool {
        self.declared_statuses().any(|statuses| (200..400).contains(statuses.start()) && *statuses.start() != 304)
    }

    /// Returns the statuses of each declared response but `default`.
    fn declared_statuses(&self) -> impl Iterator<Item = &RangeInclusive<u16>> {
        self.spec.responses.iter().filter(|declared| !declared.is_default()).map(|declared| &declared.statuses)
    }

    /// Replaces the credentials of a request by this key, or removes them.
    pub fn with_key(&self, request: &Request, key: Option<&str>) -> Request {
        let mut request = request.clone();
        for scheme in self.spec.security.iter().flatten() {
            match scheme {
                SecurityScheme::Key(ParameterLocation::Query, name) => request.query.retain(|(other, _)| other != name),
                SecurityScheme::Key(ParameterLocation::Cookie, name) => {
                    request = with_cookies(request, |other| other == name, &[])
                }
                SecurityScheme::Key(_, name) => request = request.without_header(name),
                SecurityScheme::Authorization(_) => request = request.without_header(AUTHORIZATION),
            }
        }
        let Some(key) = key else { return request };
        for scheme in self.spec.security.iter().find(|schemes| !schemes.is_empty()).into_iter().flatten() {
            match scheme {
                SecurityScheme::Key(ParameterLocation::Query, name) => request.query.push((name.clone(), key.to_owned())),
                SecurityScheme::Key(ParameterLocation::Cookie, name) => {
                    request = with_cookies(request, |other| other == name, &[(name.clone(), key.to_owned())]);
                }
                SecurityScheme::Key(_, name) => request = request.with_header(name, key),
                SecurityScheme::Authorization(kind) => {
                    // Basic credentials may be given as they are, or encoded already.
                    let is_plain = kind.eq_ignore_ascii_case("basic") && key.contains(':');
                    let credential = if is_plain { BASE64_STANDARD.encode(key) } else { key.to_owned() };
                    // Case has no meaning, but many servers expect the usual one.
                    let usual = ["Basic", "Bearer", "Digest"].into_iter().find(|usual| usual.eq_ignore_ascii_case(kind));
                    request = request.with_header(AUTHORIZATION, &format!("{} {credential}", usual.unwrap_or(kind)));
                }
            }
        }
        request
    }
}

impl JsonBody {
    fn new(document: &Value, operation: &Operation, content: &BodyContent) -> Self {
        // `application/*+json` is JSON, but can't be sent.
        let is_declared = content.is_json() && !content.media_type.contains('*');
        Self {
            schema: schema_of(document, content),
            examples: valid_examples(document, content),
            pointer: format!("{}/requestBody/content/{}", operation.pointer, escape(&content.media_type)),
            media_type: if is_declared { content.media_type.clone() } else { "application/json".to_owned() },
            declared: content.schema.clone(),
        }
    }

    /// Collects its properties. Of alternatives, the first example, or else the value that the seed generates, decides which apply.
    fn properties(&self, document: &Value, seed: u64) -> Vec<Argument> {
        let Some(declared) = &self.declared else { return Vec::new() };
        let value = self.first_value(document, seed).unwrap_or_default();
        Argument::from_properties(document, declared, &value, &self.pointer)
    }

    /// Returns the first example, or else a generated value.
    fn first_value(&self, document: &Value, seed: u64) -> anyhow::Result<Value> {
        match self.examples.values().next() {
            Some(example) => Ok(example.clone()),
            None => Sampler::new(document, &self.schema, Direction::Request)?.sample(seed).context("no body can be generated"),
        }
    }

    /// Returns if a body is valid.
    pub fn is_valid(&self, body: &Value) -> bool {
        self.declared.as_ref().is_none_or(|schema| schema.is_valid(body))
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use super::*;

    #[test]
    fn sends_declared_media_type_of_json() {
        for (declared, expected) in [
            ("application/json", "application/json"),
            ("application/merge-patch+json", "application/merge-patch+json"),
            ("application/merge-patch+json; charset=utf-8", "application/merge-patch+json; charset=utf-8"),
            ("application/*+json", "application/json"),
            ("application/*", "application/json"),
            ("*/*", "application/json"),
        ] {
            let body = json!({ "content": { declared: { "schema": { "type": "object" } } } });
            let operation = json!({ "requestBody": body, "responses": { "204": {} } });
            let contract = Contract::new(json!({ "openapi": "3.0.3", "paths": { "/a": { "patch": operation } } })).unwrap();
            let operation = OperationUnderTest::new(&contract, contract.operations().next().unwrap(), 0);
            assert_eq!(operation.json_body.unwrap().media_type, expected, "{declared}");
        }
    }
}
