//! A request held against the contract: everything that is missing or invalid, at once, in the document's order.

use std::borrow::Cow;
use std::collections::BTreeMap;

use anyhow::Context;
use jsonschema::Validator;
use percent_encoding::percent_decode_str;
use serde_json::{Map, Value};

use super::Operation;
use super::schema::{compile, detail};
use crate::error::{Code, Error, Problem, Result};

/// Largest body of an operation, in bytes (decisions).
const BODY_LIMIT: usize = 64 * 1024;
/// Largest body of an operation whose body carries images.
const IMAGES_LIMIT: usize = 8 * 1024 * 1024;

/// What a request that fits the contract says, in the types that the contract gives it.
#[derive(Debug, Default)]
pub struct Arguments {
    /// The query's parameters; those that were absent or blank are not there.
    pub query: Map<String, Value>,
    /// The body, without the optional properties that were null.
    pub body: Value,
}

/// A parameter of the path or the query.
#[derive(Debug)]
pub struct Parameter {
    name: String,
    required: bool,
    kind: Kind,
    validator: Validator,
}

/// What a parameter's text is read as.
#[derive(Debug, Clone, Copy)]
enum Kind {
    Text,
    Integer,
    Number,
    Boolean,
}

/// A JSON body.
#[derive(Debug)]
pub struct Body {
    /// Its largest size in bytes.
    pub limit: usize,
    required: bool,
    /// Arguments in the document's order, and what is asked of each.
    arguments: Vec<(String, Presence)>,
    /// The schema without its own `required`, which is checked here.
    validator: Validator,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Presence {
    Required,
    /// May be left out, but not blanked: what a resource cannot be without (`x-not-blank`).
    NotBlank,
    Optional,
}

impl Operation {
    /// Holds a request against the contract. `path` is the requested one, without `/v3`.
    pub fn check(&self, path: &str, query: Option<&str>, body: &[u8]) -> Result<Arguments> {
        let mut problems = Vec::new();
        self.check_path(path, &mut problems);
        let query = self.check_query(query.unwrap_or_default(), &mut problems);
        let body = match &self.body {
            Some(schema) => schema.check(body, &mut problems)?,
            None => Value::Null,
        };
        if problems.is_empty() { Ok(Arguments { query, body }) } else { Err(Error::Invalid(problems)) }
    }

    fn check_path(&self, path: &str, problems: &mut Vec<Problem>) {
        let decoded = |(name, given)| (name, percent_decode_str(given).decode_utf8_lossy());
        let given: BTreeMap<&str, Cow<'_, str>> = self.template.variables(path).map(decoded).collect();
        for parameter in &self.path_parameters {
            if let Some(text) = given.get(parameter.name.as_str()) {
                parameter.read(text, problems);
            }
        }
    }

    fn check_query(&self, query: &str, problems: &mut Vec<Problem>) -> Map<String, Value> {
        let mut given: BTreeMap<Cow<'_, str>, Vec<Cow<'_, str>>> = BTreeMap::new();
        for (name, text) in form_urlencoded::parse(query.as_bytes()) {
            if !text.trim().is_empty() {
                given.entry(name).or_default().push(text);
            }
        }
        let mut arguments = Map::new();
        for parameter in &self.query_parameters {
            let name = &parameter.name;
            match given.get(name.as_str()).map(Vec::as_slice) {
                None if parameter.required => problems.push(Problem::missing(name)),
                None => {}
                Some([text]) => {
                    if let Some(value) = parameter.read(text, problems) {
                        arguments.insert(name.clone(), value);
                    }
                }
                Some(_) => problems.push(Problem::invalid(name, "is given more than once")),
            }
        }
        arguments
    }
}

impl Parameter {
    pub fn new(parameter: &Value) -> anyhow::Result<Self> {
        let schema = &parameter["schema"];
        Ok(Self {
            name: parameter["name"].as_str().context("a parameter has no name")?.to_owned(),
            required: parameter["required"] == true,
            kind: match schema["type"].as_str() {
                Some("integer") => Kind::Integer,
                Some("number") => Kind::Number,
                Some("boolean") => Kind::Boolean,
                _ => Kind::Text,
            },
            validator: compile(schema)?,
        })
    }

    fn read(&self, text: &str, problems: &mut Vec<Problem>) -> Option<Value> {
        let (value, wanted) = match self.kind {
            Kind::Text => (Some(Value::from(text)), "must be a string"),
            Kind::Integer => (text.parse::<i64>().ok().map(Value::from), "must be an integer"),
            Kind::Number => (text.parse::<f64>().ok().map(Value::from), "must be a number"),
            Kind::Boolean => (text.parse::<bool>().ok().map(Value::from), "must be true or false"),
        };
        let found = match &value {
            None => Some(wanted.to_owned()),
            Some(_) if text.contains('\0') => Some(NUL.to_owned()),
            Some(value) => self.validator.validate(value).err().map(|error| detail(&error)),
        };
        if let Some(found) = found {
            problems.push(Problem::invalid(&self.name, found));
            return None;
        }
        value
    }
}

impl Body {
    pub fn new(body: &Value) -> anyhow::Result<Self> {
        let mut schema = body["content"]["application/json"]["schema"].clone();
        let names = |value: &Value| -> Vec<String> {
            value.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
        };
        let object = schema.as_object_mut().context("a body has no schema")?;
        let required = names(&object.remove("required").unwrap_or_default());
        let not_blank = names(&object.remove("x-not-blank").unwrap_or_default());
        let properties =
            object.get_mut("properties").and_then(Value::as_object_mut).context("a body's schema has no properties")?;
        for property in properties.values_mut().filter_map(Value::as_object_mut) {
            // A null is taken out before; without it the other errors come out plainly.
            property.remove("nullable");
        }
        let images = properties.values().any(|property| property["format"] == "image");
        let optional = properties.keys().filter(|name| !required.contains(name)).map(|name| {
            let presence = if not_blank.contains(name) { Presence::NotBlank } else { Presence::Optional };
            (name.clone(), presence)
        });
        let arguments = required.iter().map(|name| (name.clone(), Presence::Required)).chain(optional).collect();
        let limit = if images { IMAGES_LIMIT } else { BODY_LIMIT };
        Ok(Self { limit, required: body["required"] == true, arguments, validator: compile(&schema)? })
    }

    /// Reads the body. No body at all is one without any argument, and refused for itself only where no argument is required.
    fn check(&self, bytes: &[u8], problems: &mut Vec<Problem>) -> Result<Value> {
        let empty = bytes.iter().all(u8::is_ascii_whitespace);
        if empty && self.required && !self.arguments.iter().any(|(_, presence)| *presence == Presence::Required) {
            return Err(
                Code::BodyMalformed.because("The request lacks a body. It must be a JSON object, which may be empty: {}.")
            );
        }
        let value = if empty { Value::Object(Map::new()) } else { serde_json::from_slice(bytes).map_err(malformed)? };
        let Value::Object(mut object) = value else {
            return Err(Code::BodyMalformed.because("The request's body must be a JSON object."));
        };
        let mut found = BTreeMap::new();
        for (name, presence) in &self.arguments {
            let given = object.get(name);
            let absent = given.is_none_or(is_blank);
            let missing = match presence {
                Presence::Required => absent,
                Presence::NotBlank => given.is_some() && absent,
                Presence::Optional => false,
            };
            if missing {
                found.insert(name.as_str(), Problem::missing(name));
            } else if given.is_some_and(Value::is_null) {
                object.shift_remove(name);
            } else if given.is_some_and(has_nul) {
                found.insert(name.as_str(), Problem::invalid(name, NUL));
            }
        }
        let mut value = Value::Object(object);
        let mut blank = Vec::new();
        for error in self.validator.iter_errors(&value) {
            let path = error.instance_path().to_string();
            let mut steps = path.trim_start_matches('/').splitn(2, '/');
            let name = unescape(steps.next().unwrap_or_default());
            let Some((name, presence)) = self.arguments.iter().find(|(argument, _)| *argument == name) else { continue };
            if *presence == Presence::Optional && is_blank(&value[name]) {
                blank.push(name);
                continue;
            }
            let detail = match steps.next() {
                Some(inside) => format!("{} (at {})", detail(&error), unescape(inside)),
                None => detail(&error),
            };
            found.entry(name).or_insert_with(|| Problem::invalid(name, detail));
        }
        if let Some(object) = value.as_object_mut() {
            // What has no place for a blank is not set by one: a client may send back a resource as it was read.
            object.retain(|name, _| !blank.contains(&name));
        }
        problems.extend(self.arguments.iter().filter_map(|(name, _)| found.remove(name.as_str())));
        Ok(value)
    }
}

const NUL: &str = "must not contain the character NUL";

/// Whether a required argument of this value counts as missing, whatever its type (wire facts).
fn is_blank(value: &Value) -> bool {
    value.is_null() || value.as_str().is_some_and(|text| text.trim().is_empty())
}

/// PostgreSQL cannot keep a NUL in a text.
fn has_nul(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains('\0'),
        Value::Array(items) => items.iter().any(has_nul),
        Value::Object(object) => object.iter().any(|(key, value)| key.contains('\0') || has_nul(value)),
        _ => false,
    }
}

/// A step of a JSON pointer as it was written in the document.
fn unescape(step: &str) -> String {
    step.replace("~1", "/").replace("~0", "~")
}

fn malformed(error: serde_json::Error) -> Error {
    Code::BodyMalformed.because(format!(
        "The request's body is not valid JSON: line {}, column {}.",
        error.line(),
        error.column()
    ))
}
