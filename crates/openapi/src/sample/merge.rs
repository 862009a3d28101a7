//! Merging of the schemas in an `allOf`.

use serde_json::{Map, Value, json};

/// Merges a schema into another, so that the result allows only values that both allow. Two patterns become a list. If two keywords
/// can't be merged, such as two formats, the first remains, because generated values are validated afterwards.
pub fn merge(schema: &mut Map<String, Value>, other: Map<String, Value>) {
    for (keyword, value) in other {
        match schema.get_mut(&keyword) {
            Some(present) => *present = merge_keyword(&keyword, present.take(), value),
            None => drop(schema.insert(keyword, value)),
        }
    }
}

/// Returns the patterns of a flat schema: one, or a list.
pub fn pattern_list(pattern: &Value) -> &[Value] {
    pattern.as_array().map_or(std::slice::from_ref(pattern), Vec::as_slice)
}

fn merge_keyword(keyword: &str, first: Value, second: Value) -> Value {
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
                let merged = match properties.remove(&name) {
                    Some(present) if present != property => json!({ "allOf": [present, property] }),
                    _ => property,
                };
                properties.insert(name, merged);
            }
            properties.into()
        }
        ("items" | "additionalProperties", Value::Bool(true), schema) => schema,
        ("items" | "additionalProperties", schema, Value::Bool(true)) => schema,
        ("items" | "additionalProperties", Value::Bool(false), _) | ("items" | "additionalProperties", _, Value::Bool(false)) => {
            json!(false)
        }
        ("items" | "additionalProperties", first, second) => json!({ "allOf": [first, second] }),
        ("example", Value::Object(mut first), Value::Object(second)) => {
            first.extend(second);
            first.into()
        }
        ("pattern", first, second) => [first, second].iter().flat_map(pattern_list).cloned().collect(),
        ("not", first, second) => json!({ "anyOf": [first, second] }),
        // An integer is also a number.
        ("type", _, second) if second == "integer" => second,
        ("uniqueItems", first, second) => json!(first == true || second == true),
        (_, first, _) => first,
    }
}
