//! An operation as a comparison asks it: its arguments, and a request made of the document's own examples.

use std::sync::OnceLock;

use anyhow::{Context, bail};
use jsonschema::Validator;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Map, Value, json};

use super::http_client::{KEY, Request, SERVED, VERSION};
use boxoffice_openapi::response::{is_json, matches_range};
use boxoffice_openapi::{self, Contract, Direction, Operation, Sampler, SecurityScheme, compile, escape, resolve, to_plain_string};

/// What is encoded in a path: all but the unreserved characters (RFC 3986).
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

const AUTHORIZATION: &str = "Authorization";
const COOKIE: &str = "Cookie";

/// An operation that is asked.
#[derive(Debug)]
pub struct Subject<'a> {
    /// What the document says of it.
    pub operation: &'a Operation,
    /// Its first tag; empty when it has none.
    pub tag: String,
    /// Every argument but the key and the client's version, in the document's order.
    pub arguments: Vec<Argument>,
    /// Its JSON body, if it takes one.
    pub body: Option<Body>,
    /// The media type of its body where that is none that a comparison writes.
    pub unwritten: Option<String>,
}

/// Something that a request says.
#[derive(Debug)]
pub struct Argument {
    /// Its name.
    pub name: String,
    /// Where it is said.
    pub place: Place,
    /// Whether a request can't be without it.
    pub required: bool,
    /// Whether it may not be blank where it is there (`x-not-blank`); so may none that is required.
    pub filled: bool,
    /// What it may be, with references followed.
    pub schema: Value,
    /// A value that the document shows.
    pub example: Option<Value>,
    /// Its place in the document, as a JSON pointer.
    pub pointer: String,
    /// Made of the schema when it is first needed; nothing when the schema can't be used.
    validator: OnceLock<Option<Validator>>,
}

/// Where an argument is said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// In the path.
    Path,
    /// In the query.
    Query,
    /// In a header.
    Header,
    /// In the body, as a property of it.
    Body,
}

/// A body in JSON.
#[derive(Debug)]
pub struct Body {
    /// The schema, with references followed.
    pub schema: Value,
    /// The document's examples, by name.
    pub examples: Map<String, Value>,
    /// Its place in the document, as a JSON pointer.
    pub pointer: String,
}

impl<'a> Subject<'a> {
    /// Reads what is asked of an operation.
    pub fn new(contract: &Contract, operation: &'a Operation) -> Self {
        let document = &contract.document;
        let item = &document["paths"][&operation.path];
        let item = item["$ref"].as_str().and_then(|place| document.pointer(place.trim_start_matches('#'))).unwrap_or(item);
        let node = &item[operation.method.to_lowercase()];
        let mut arguments: Vec<Argument> = Vec::new();
        let path_pointer = format!("/paths/{}", escape(&operation.path));
        for (owner, pointer) in [(item, path_pointer.as_str()), (node, operation.pointer.as_str())] {
            for (index, parameter) in owner["parameters"].as_array().into_iter().flatten().enumerate() {
                let argument =
                    Argument::of_parameter(document, &resolve(document, parameter), format!("{pointer}/parameters/{index}"));
                let Some(argument) = argument else { continue };
                arguments.retain(|other| (&other.name, other.place) != (&argument.name, argument.place));
                arguments.push(argument);
            }
        }
        let request_body = resolve(document, &node["requestBody"]);
        let contents = || request_body["content"].as_object().into_iter().flatten();
        let body = contents().find(|(media_type, _)| is_json(media_type) || matches_range(media_type, "application/json"));
        let body = body.map(|(media_type, content)| {
            Body::new(document, content, format!("{}/requestBody/content/{}", operation.pointer, escape(media_type)))
        });
        arguments.extend(body.iter().flat_map(|body| Argument::of_body(document, &body.schema, &body.pointer)));
        let unwritten = if body.is_none() { contents().next().map(|(media_type, _)| media_type.clone()) } else { None };
        let tag = operation.tags.first().cloned().unwrap_or_default();
        Self { operation, tag, arguments, body, unwritten }
    }

    /// A request made of the document's examples and, where it has none, of its schemas. `body` names the example of the body;
    /// otherwise it is the first.
    ///
    /// # Errors
    /// When there is no example and nothing can be made from the schema, or the body is none that a comparison writes.
    pub fn example(&self, contract: &Contract, key: &str, body: Option<&str>, seed: u64) -> anyhow::Result<Request> {
        if let Some(media_type) = &self.unwritten {
            bail!("its body is {media_type}, which is not written from a document");
        }
        let mut request = Request::new(&self.operation.method, self.operation.path.clone());
        request = self.with_key(&request, Some(key));
        if self.operation.needs_version {
            request = request.with_header(VERSION, SERVED);
        }
        for argument in self.arguments.iter().filter(|argument| argument.required && argument.place != Place::Body) {
            let value = match &argument.example {
                Some(example) => example.clone(),
                None => Sampler::new(&contract.document, &argument.schema, Direction::Request)?
                    .sample(seed)
                    .with_context(|| format!("no value of {} can be made", argument.name))?,
            };
            request = argument.set(&request, self.operation, Some(&value));
        }
        if let Some(shape) = &self.body {
            let named = body.map_or_else(|| shape.examples.values().next(), |name| shape.examples.get(name));
            let example = match named {
                Some(example) => example.clone(),
                None => Sampler::new(&contract.document, &shape.schema, Direction::Request)?
                    .sample(seed)
                    .context("no body can be made")?,
            };
            request = request.with_json(&example);
        }
        Ok(request)
    }

    /// A request with another key, or without one, wherever the operation asks for it.
    pub fn with_key(&self, request: &Request, key: Option<&str>) -> Request {
        let mut request = request.clone();
        for scheme in self.operation.security.iter().flatten() {
            match scheme {
                SecurityScheme::Key(boxoffice_openapi::ParameterLocation::Query, name) => request.query.retain(|(given, _)| given != name),
                SecurityScheme::Key(boxoffice_openapi::ParameterLocation::Cookie, _) => request = request.without_header(COOKIE),
                SecurityScheme::Key(_, name) => request = request.without_header(name),
                SecurityScheme::Authorization(_) => request = request.without_header(AUTHORIZATION),
            }
        }
        let first = self.operation.security.iter().find(|all| !all.is_empty());
        for (scheme, key) in first.into_iter().flatten().filter_map(|scheme| Some((scheme, key?))) {
            match scheme {
                SecurityScheme::Key(boxoffice_openapi::ParameterLocation::Query, name) => {
                    request.query.push((name.clone(), key.to_owned()))
                }
                SecurityScheme::Key(boxoffice_openapi::ParameterLocation::Cookie, name) => {
                    request = request.with_header(COOKIE, &format!("{name}={key}"))
                }
                SecurityScheme::Key(_, name) => request = request.with_header(name, key),
                SecurityScheme::Authorization(kind) => request = request.with_header(AUTHORIZATION, &format!("{kind} {key}")),
            }
        }
        request
    }
}

impl Argument {
    fn of_parameter(document: &Value, parameter: &Value, pointer: String) -> Option<Self> {
        let name = parameter["name"].as_str()?;
        let place = match parameter["in"].as_str()? {
            "path" => Place::Path,
            "query" => Place::Query,
            "header"
                if ![KEY, VERSION, "Accept", "Content-Type", AUTHORIZATION].iter().any(|own| name.eq_ignore_ascii_case(own)) =>
            {
                Place::Header
            }
            _ => return None,
        };
        let schema = standing_alone(document, parameter.get("schema"));
        let shown = parameter["examples"].as_object().and_then(|examples| examples.values().next()?.get("value"));
        let shown = parameter.get("example").or(shown).or_else(|| schema.get("example"));
        let example = shown.or_else(|| schema.get("default")).or_else(|| schema["enum"].get(0)).cloned();
        let required = parameter["required"] == true || place == Place::Path;
        Some(Self { name: name.to_owned(), place, required, filled: false, schema, example, pointer, validator: OnceLock::new() })
    }

    /// The properties of a body, also where several schemas are put together (`allOf`).
    fn of_body(document: &Value, schema: &Value, pointer: &str) -> Vec<Self> {
        let names =
            |keyword: &str, name: &str| schema[keyword].as_array().into_iter().flatten().any(|each| each.as_str() == Some(name));
        let properties = schema["properties"].as_object().into_iter().flatten();
        let own = properties.filter(|(_, property)| property["readOnly"] != true).map(|(name, property)| Self {
            name: name.clone(),
            place: Place::Body,
            required: names("required", name),
            filled: names("x-not-blank", name),
            schema: standing_alone(document, Some(property)),
            example: property.get("example").cloned(),
            pointer: format!("{pointer}/schema/properties/{}", escape(name)),
            validator: OnceLock::new(),
        });
        let parts = schema["allOf"].as_array().into_iter().flatten();
        own.chain(parts.flat_map(|part| Self::of_body(document, part, pointer))).collect()
    }

    /// Whether it may be this text, as it stands in a path.
    pub fn allows(&self, text: &str) -> bool {
        let is_number = matches!(self.schema["type"].as_str(), Some("integer" | "number"));
        let value = if is_number { serde_json::from_str(text).unwrap_or_default() } else { Value::from(text) };
        let validator = self.validator.get_or_init(|| compile(&self.schema).ok());
        validator.as_ref().is_none_or(|validator| validator.is_valid(&value))
    }

    /// A request with another value of it, or without it.
    pub fn set(&self, request: &Request, operation: &Operation, value: Option<&Value>) -> Request {
        let mut request = request.clone();
        match self.place {
            Place::Body => {
                let mut body: Value =
                    request.body.as_deref().and_then(|body| serde_json::from_slice(body).ok()).unwrap_or_else(|| json!({}));
                if let Some(object) = body.as_object_mut() {
                    match value {
                        Some(value) => object.insert(self.name.clone(), value.clone()),
                        None => object.shift_remove(&self.name),
                    };
                }
                return request.with_json(&body);
            }
            Place::Query => {
                request.query.retain(|(name, _)| *name != self.name);
                let texts = match value {
                    Some(Value::Array(items)) => items.iter().map(to_plain_string).collect(),
                    Some(value) => vec![to_plain_string(value)],
                    None => Vec::new(),
                };
                request.query.extend(texts.into_iter().map(|text| (self.name.clone(), text)));
            }
            Place::Header => {
                request = request.without_header(&self.name);
                request.headers.extend(value.map(|value| (self.name.clone(), to_plain_string(value))));
            }
            Place::Path => {
                let variable = format!("{{{}}}", self.name);
                let encoded = utf8_percent_encode(&value.map(to_plain_string).unwrap_or_default(), RESERVED).to_string();
                let replaced = operation.path.split('/').zip(request.path.split('/')).map(|(template, segment)| {
                    if template.contains(&variable) { template.replace(&variable, &encoded) } else { segment.to_owned() }
                });
                request.path = replaced.collect::<Vec<_>>().join("/");
            }
        }
        request
    }
}

impl Body {
    fn new(document: &Value, content: &Value, pointer: String) -> Self {
        let named = content["examples"].as_object().into_iter().flatten();
        let named = named.filter_map(|(name, example)| Some((name.clone(), example.get("value")?.clone())));
        let alone = content.get("example").map(|example| ("example".to_owned(), example.clone()));
        let schema = standing_alone(document, content.get("schema"));
        Self { schema, examples: alone.into_iter().chain(named).collect(), pointer }
    }
}

/// A schema of the document that can be used without it; what isn't there allows everything.
fn standing_alone(document: &Value, schema: Option<&Value>) -> Value {
    schema.map_or_else(|| json!({}), |schema| resolve(document, schema))
}
