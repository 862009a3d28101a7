//! Schemas that hold together (`allOf`) as one.

use serde_json::{Map, Value, json};

/// Puts the keywords of a second schema beside those of a first, so that what the result allows, both do. Where two can't be
/// written as one (two patterns), the first stands: whoever makes a value has it checked at the end.
pub fn merge(schema: &mut Map<String, Value>, other: Map<String, Value>) {
    for (keyword, value) in other {
        match schema.get_mut(&keyword) {
            Some(present) => *present = both(&keyword, present.take(), value),
            None => drop(schema.insert(keyword, value)),
        }
    }
}

fn both(keyword: &str, first: Value, second: Value) -> Value {
    if first == second {
        return first;
    }
    match (keyword, first, second) {
        ("minimum" | "exclusiveMinimum" | "minLength" | "minItems" | "minProperties" | "multipleOf", first, second) => {
            if first.as_f64() < second.as_f64() { second } else { first }
        }
        ("maximum" | "exclusiveMaximum" | "maxLength" | "maxItems" | "maxProperties", first, second) => {
            if first.as_f64() > second.as_f64() { second } else { first }
        }
        ("enum", Value::Array(first), Value::Array(second)) => first.into_iter().filter(|value| second.contains(value)).collect(),
        ("required", Value::Array(mut names), Value::Array(more)) => {
            names.extend(more);
            names.into()
        }
        ("properties", Value::Object(mut properties), Value::Object(more)) => {
            for (name, property) in more {
                let whole = match properties.remove(&name) {
                    Some(present) if present != property => json!({ "allOf": [present, property] }),
                    _ => property,
                };
                properties.insert(name, whole);
            }
            properties.into()
        }
        ("items" | "additionalProperties", Value::Bool(first), second) => {
            if first {
                second
            } else {
                json!(false)
            }
        }
        ("items" | "additionalProperties", first, Value::Bool(second)) => {
            if second {
                first
            } else {
                json!(false)
            }
        }
        ("items" | "additionalProperties", first, second) => json!({ "allOf": [first, second] }),
        ("not", first, second) => json!({ "anyOf": [first, second] }),
        ("type", first, second) => {
            if second == "integer" {
                second
            } else {
                first
            }
        }
        ("uniqueItems", first, second) => json!(first == true || second == true),
        (_, first, _) => first,
    }
}
