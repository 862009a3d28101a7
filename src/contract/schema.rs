//! Schemas of OpenAPI 3.0 as JSON Schema, and what is wrong with a value in words.

use anyhow::anyhow;
use jsonschema::error::ValidationErrorKind;
use jsonschema::{Draft, EmailOptions, ValidationError, Validator};
use serde_json::{Map, Value, json};

use crate::base::clock::{Timestamp, parse_birth_date};

/// References are followed this deep; a schema that refers to itself is unchecked below.
const DEPTH: usize = 16;

/// `value` with every reference replaced by what it refers to.
pub fn resolve(document: &Value, value: &Value) -> Value {
    inline(document, value, 0)
}

fn inline(document: &Value, value: &Value, depth: usize) -> Value {
    match value {
        _ if depth > DEPTH => json!({}),
        Value::Object(object) => {
            if let Some(pointer) = object.get("$ref").and_then(Value::as_str) {
                let target = document.pointer(pointer.trim_start_matches('#'));
                return target.map_or_else(|| json!({}), |target| inline(document, target, depth + 1));
            }
            object.iter().map(|(key, value)| (key.clone(), inline(document, value, depth))).collect::<Map<_, _>>().into()
        }
        Value::Array(items) => items.iter().map(|item| inline(document, item, depth)).collect(),
        _ => value.clone(),
    }
}

/// A validator of an inlined schema. Formats are checked, with the two that the contract adds to the common ones.
pub fn compile(schema: &Value) -> anyhow::Result<Validator> {
    let mut schema = schema.clone();
    to_json_schema(&mut schema);
    jsonschema::options()
        .with_draft(Draft::Draft202012)
        .should_validate_formats(true)
        // An address alone, as somebody signs up with it: no name before it, which would make one address many.
        .with_email_options(EmailOptions::default().without_display_text().without_domain_literal())
        .with_format("event-time", |text: &str| Timestamp::parse(text).is_some())
        .with_format("birth-date", |text: &str| parse_birth_date(text).is_some())
        .build(&schema)
        .map_err(|error| anyhow!("a schema cannot be used: {error}"))
}

/// OpenAPI 3.0 writes `nullable` and boolean exclusive bounds where JSON Schema has a type and numbers.
fn to_json_schema(schema: &mut Value) {
    match schema {
        Value::Object(object) => {
            for (exclusive, bound) in [("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")] {
                if object.get(exclusive) == Some(&Value::Bool(true))
                    && let Some(limit) = object.remove(bound)
                {
                    object.insert(exclusive.to_owned(), limit);
                }
            }
            object.values_mut().for_each(to_json_schema);
            if object.remove("nullable") == Some(Value::Bool(true)) {
                let inner = Value::Object(std::mem::take(object));
                object.insert("anyOf".to_owned(), json!([{ "type": "null" }, inner]));
            }
        }
        Value::Array(items) => items.iter_mut().for_each(to_json_schema),
        _ => {}
    }
}

/// What is wrong with a value, as the end of a sentence that its name begins. Never repeats the value.
pub fn detail(error: &ValidationError<'_>) -> String {
    use ValidationErrorKind as Kind;
    match error.kind() {
        Kind::Type { kind } => match kind {
            jsonschema::error::TypeKind::Single(kind) => format!("must be {}", with_article(&kind.to_string())),
            jsonschema::error::TypeKind::Multiple(_) => "has the wrong type".to_owned(),
        },
        Kind::Enum { options } => {
            let options: Vec<_> = options.as_array().into_iter().flatten().map(plain).collect();
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
        Kind::Required { property } => format!("lacks {}", plain(property)),
        _ => "is invalid".to_owned(),
    }
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn with_article(name: &str) -> String {
    let article = if name.starts_with(['a', 'i', 'o']) { "an" } else { "a" };
    format!("{article} {name}")
}
