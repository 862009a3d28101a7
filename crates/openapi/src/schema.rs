//! Schemas of OpenAPI 3.0 as JSON Schema, and what is wrong with a value in words.

use std::sync::{Arc, OnceLock, Weak};

use anyhow::anyhow;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use jsonschema::error::ValidationErrorKind;
use jsonschema::{Draft, EmailOptions, ValidationError, Validator};
use serde_json::{Map, Value, json};

use super::schema_registry::{KEYWORD, SchemaRegistry, ValidationMode, ref_keyword};
use super::resolver::References;
use super::formats::{parse_birth_date, parse_date_time};

/// Which way a value goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// To the server: what is `readOnly` is neither required nor looked at (OpenAPI 3.0, Schema Object).
    Request,
    /// From the server: what is `writeOnly` is not required, and what isn't described is forbidden.
    Response,
}

/// A schema of the document. It is compiled when it is first needed.
#[derive(Debug)]
pub struct Schema {
    /// As the document has it, with its references followed. Those that lead into a circle or to something large stay, and lead
    /// into the document.
    pub resolved: Value,
    /// As the document has it: a discriminator's mapping names what its references say.
    pub raw: Value,
    kept: Arc<SchemaRegistry>,
    direction: Direction,
    validator: OnceLock<Result<Validator, String>>,
}

impl Schema {
    /// A schema of a document. One that isn't there allows everything.
    pub fn new<'a>(references: &References<'a>, node: &'a Value, direction: Direction) -> Self {
        let resolved = if node.is_null() { json!({}) } else { references.inline(node) };
        let raw = if node.is_null() { json!({}) } else { node.clone() };
        Self { resolved, raw, kept: references.kept.clone(), direction, validator: OnceLock::new() }
    }

    /// The same schema, changed.
    pub fn with(mut self, change: impl FnOnce(&mut Value)) -> Self {
        change(&mut self.resolved);
        self
    }

    /// All that is wrong with a value, each with its place in the value as a JSON pointer.
    ///
    /// # Errors
    /// When the schema can't be used, with the reason.
    pub fn errors(&self, value: &Value) -> anyhow::Result<Vec<(String, ValidationError<'static>)>> {
        let form = if self.direction == Direction::Request { ValidationMode::Request } else { ValidationMode::Closed };
        let compile = || self.kept.compile(&self.resolved, form).map_err(|error| format!("{error:#}"));
        let validator = self.validator.get_or_init(compile).as_ref().map_err(|text| anyhow!("{text}"))?;
        Ok(self.kept.errors(validator, value))
    }

    /// The properties that it describes, with those of all that it is put together from, each by its name.
    pub fn properties(&self) -> Vec<(&str, &Value)> {
        let follow = |schema| self.kept.target(schema).unwrap_or(schema);
        let (mut properties, mut seen, mut next): (_, Vec<&Value>, _) = (Vec::new(), Vec::new(), vec![&self.resolved]);
        while let Some(schema) = next.pop().map(follow) {
            // What is put together from itself has no end.
            if seen.iter().any(|known| std::ptr::eq(*known, schema)) {
                continue;
            }
            seen.push(schema);
            let own = schema["properties"].as_object().into_iter().flatten();
            properties.extend(own.map(|(name, property)| (name.as_str(), follow(property))));
            let arms = ["allOf", "anyOf", "oneOf"].into_iter().filter_map(|keyword| schema[keyword].as_array());
            next.extend(arms.flatten());
        }
        properties
    }

    /// A schema that stands in this one.
    pub fn part(&self, part: &Value) -> Self {
        let open = self.kept.target(part).unwrap_or(part).clone();
        Self { raw: part.clone(), resolved: open, kept: self.kept.clone(), direction: self.direction, validator: OnceLock::new() }
    }
}

/// The schemas that stand in a schema, each with the keyword that it stands under.
pub fn subschemas_mut(schema: &mut Map<String, Value>) -> Vec<(&str, &mut Value)> {
    let mut parts = Vec::new();
    for (keyword, value) in schema {
        let keyword = keyword.as_str();
        match (keyword, value) {
            ("properties" | "$defs", Value::Object(named)) => parts.extend(named.values_mut().map(|part| (keyword, part))),
            ("allOf" | "anyOf" | "oneOf", Value::Array(several)) => parts.extend(several.iter_mut().map(|part| (keyword, part))),
            ("items" | "additionalProperties" | "not", part @ Value::Object(_)) => parts.push((keyword, part)),
            // Where `resolve` puts what stays a reference.
            ("components", Value::Object(components)) => {
                let schemas = components.get_mut("schemas").and_then(Value::as_object_mut).into_iter().flatten();
                parts.extend(schemas.map(|(_, part)| (keyword, part)));
            }
            _ => {}
        }
    }
    parts
}

/// A validator of a schema without references but those into itself. Formats are checked, with the two that the contract adds to
/// the common ones; a format that nobody knows is not.
pub fn compile(schema: &Value) -> anyhow::Result<Validator> {
    compile_with(schema, Weak::new())
}

/// A validator of a schema, some parts of which are kept elsewhere.
pub fn compile_with(schema: &Value, kept: Weak<SchemaRegistry>) -> anyhow::Result<Validator> {
    let mut schema = schema.clone();
    to_json_schema(&mut schema);
    jsonschema::options()
        .with_draft(Draft::Draft202012)
        .should_validate_formats(true)
        // An address alone, as somebody signs up with it: no name before it, which would make one address many.
        .with_email_options(EmailOptions::default().without_display_text().without_domain_literal())
        .with_format("byte", |text: &str| BASE64_STANDARD.decode(text).is_ok())
        .with_format("event-time", |text: &str| parse_date_time(text).is_some())
        .with_format("birth-date", |text: &str| parse_birth_date(text).is_some())
        .with_keyword(KEYWORD, ref_keyword(kept))
        .build(&schema)
        .map_err(|error| anyhow!("a schema cannot be used: {error}"))
}

/// OpenAPI 3.0 writes `nullable` and boolean exclusive bounds where JSON Schema has a type and numbers, and a whole number's size
/// as its format.
fn to_json_schema(schema: &mut Value) {
    let Value::Object(object) = schema else { return };
    for (exclusive, bound) in [("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")] {
        if let Some(Value::Bool(is_exclusive)) = object.get(exclusive) {
            let limit = if *is_exclusive { object.remove(bound) } else { None };
            match limit {
                Some(limit) => object.insert(exclusive.to_owned(), limit),
                None => object.remove(exclusive),
            };
        }
    }
    // Written for a property by mistake, where it means nothing.
    if object.get("required").is_some_and(Value::is_boolean) {
        object.remove("required");
    }
    if object.get("format").is_some_and(|format| format == "int32") {
        object.entry("minimum").or_insert(json!(i32::MIN));
        object.entry("maximum").or_insert(json!(i32::MAX));
    }
    subschemas_mut(object).into_iter().for_each(|(_, part)| to_json_schema(part));
    if object.remove("nullable") == Some(Value::Bool(true)) {
        let definitions = ["$defs", "components"].map(|key| (key, object.remove(key)));
        let inner = Value::Object(std::mem::take(object));
        object.insert("anyOf".to_owned(), json!([{ "type": "null" }, inner]));
        object.extend(definitions.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))));
    }
}

/// What is wrong with a value, as the end of a sentence that its name begins. Never repeats the value.
pub fn error_message(error: &ValidationError<'_>) -> String {
    use ValidationErrorKind as Kind;
    match error.kind() {
        Kind::Type { kind } => match kind {
            jsonschema::error::TypeKind::Single(kind) => format!("must be {}", with_article(&kind.to_string())),
            jsonschema::error::TypeKind::Multiple(_) => "has the wrong type".to_owned(),
        },
        Kind::Enum { options } => {
            let options: Vec<_> = options.as_array().into_iter().flatten().map(to_plain_string).collect();
            format!("must be one of: {}", options.join(", "))
        }
        Kind::Minimum { limit } => format!("must be at least {limit}"),
        Kind::Maximum { limit } => format!("must be at most {limit}"),
        Kind::ExclusiveMinimum { limit } => format!("must be more than {limit}"),
        Kind::ExclusiveMaximum { limit } => format!("must be less than {limit}"),
        Kind::MinLength { limit } => format!("must have at least {limit} characters"),
        Kind::MaxLength { limit } => format!("must have at most {limit} characters"),
        Kind::MinItems { limit } => format!("must have at least {limit} items"),
        Kind::MaxItems { limit } => format!("must have at most {limit} items"),
        Kind::MinProperties { limit } => format!("must have at least {limit} entries"),
        Kind::MaxProperties { limit } => format!("must have at most {limit} entries"),
        Kind::MultipleOf { multiple_of } => format!("must be a multiple of {multiple_of}"),
        Kind::UniqueItems => "must not repeat an item".to_owned(),
        Kind::Pattern { pattern } => format!("must match {pattern}"),
        Kind::Format { format } => format!("must be a valid {format}"),
        Kind::OneOfMultipleValid { .. } => "must match only one of several schemas".to_owned(),
        Kind::OneOfNotValid { .. } | Kind::AnyOf { .. } => "must match one of several schemas".to_owned(),
        Kind::Not { .. } => "must not match what is excluded".to_owned(),
        Kind::Required { property } => format!("lacks {}", to_plain_string(property)),
        _ => "is invalid".to_owned(),
    }
}

/// A value as it stands in a path, a query, a header or a sentence: a text is itself, anything else as JSON has it.
pub fn to_plain_string(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn with_article(name: &str) -> String {
    let article = if name.starts_with(['a', 'i', 'o']) { "an" } else { "a" };
    format!("{article} {name}")
}
