//! Schemas that are composed of others by `allOf`, `oneOf` and `anyOf`: their properties as if they were one schema.

use serde_json::map::Entry;
use serde_json::{Map, Value, json};

/// Returns the parts of a schema: itself, and those that it combines by `allOf`, `oneOf` and `anyOf`.
pub(crate) fn parts(schema: &Value) -> Vec<&Value> {
    let combined = ["allOf", "oneOf", "anyOf"].into_iter().filter_map(|keyword| schema[keyword].as_array()).flatten();
    [schema].into_iter().chain(combined.flat_map(parts)).collect()
}

/// Returns the properties of a schema and its parts.
pub(crate) fn properties(schema: &Value) -> impl Iterator<Item = (&String, &Value)> {
    parts(schema).into_iter().filter_map(|part| part["properties"].as_object()).flatten()
}

/// Returns the properties of a schema and its parts by name. One that several parts declare has a combined schema: a value may be that of
/// any branch of a `oneOf` or `anyOf`.
pub(crate) fn combined_properties(schema: &Value) -> Map<String, Value> {
    let mut all = schema["properties"].as_object().cloned().unwrap_or_default();
    for part in schema["allOf"].as_array().into_iter().flatten() {
        combine(&mut all, combined_properties(part));
    }
    for keyword in ["oneOf", "anyOf"] {
        let branches = schema[keyword].as_array().map(Vec::as_slice).unwrap_or_default();
        combine(&mut all, alternatives(branches));
    }
    all
}

/// Returns the properties of alternative branches. A branch that doesn't declare one may have it as an additional property.
fn alternatives(branches: &[Value]) -> Map<String, Value> {
    let of_branches: Vec<_> = branches.iter().map(combined_properties).collect();
    let in_branch = |(branch, declared): (&Value, &Map<String, Value>), name: &str| match declared.get(name) {
        Some(property) => Some(property.clone()),
        None => additional(branch).map_or(Some(json!({})), |additional| (*additional != false).then(|| additional.clone())),
    };
    let mut alternatives = Map::new();
    for name in of_branches.iter().flat_map(Map::keys) {
        let mut schemas: Vec<Value> = Vec::new();
        for schema in branches.iter().zip(&of_branches).filter_map(|branch| in_branch(branch, name)) {
            if !schemas.contains(&schema) {
                schemas.push(schema);
            }
        }
        let property = if schemas.len() == 1 { schemas.remove(0) } else { json!({ "anyOf": schemas }) };
        alternatives.insert(name.clone(), property);
    }
    alternatives
}

/// Adds properties to others. A value must be valid by both of two with the same name.
fn combine(all: &mut Map<String, Value>, properties: Map<String, Value>) {
    for (name, property) in properties {
        match all.entry(name) {
            Entry::Vacant(entry) => _ = entry.insert(property),
            Entry::Occupied(entry) if *entry.get() == property => {}
            Entry::Occupied(mut entry) => {
                let first = entry.get_mut().take();
                entry.insert(json!({ "allOf": [first, property] }));
            }
        }
    }
}

/// Returns the names of the properties that a request must have by a schema or its `allOf`. Those that are `readOnly` are in responses
/// only.
pub(crate) fn required_in_requests(schema: &Value) -> Vec<String> {
    let (mut names, properties) = (required(schema), combined_properties(schema));
    names.retain(|name| !properties.get(name).is_some_and(is_read_only));
    names
}

/// Returns whether a property is in responses only.
pub(crate) fn is_read_only(property: &Value) -> bool {
    parts(property).iter().any(|part| part["readOnly"] == true)
}

/// Returns a schema that restricts the names of an object's properties as this one does, but not their values. It lacks what depends on
/// both, such as a `oneOf` whose branches have properties.
pub(crate) fn names_only(schema: &Value) -> Value {
    let mut schema = schema.clone();
    let Value::Object(object) = &mut schema else { return schema };
    object.retain(|keyword, value| match keyword.as_str() {
        "$ref" | "enum" | "unevaluatedProperties" => false,
        "anyOf" | "oneOf" | "not" | "if" | "then" | "else" | "dependentSchemas" => !restricts_values(value),
        _ => true,
    });
    for (keyword, value) in object {
        match (keyword.as_str(), value) {
            ("properties" | "patternProperties", Value::Object(properties)) => {
                properties.values_mut().for_each(|property| *property = json!({ "readOnly": is_read_only(property) }));
            }
            ("additionalProperties", value @ Value::Object(_)) => *value = json!(true),
            ("allOf", Value::Array(branches)) => branches.iter_mut().for_each(|branch| *branch = names_only(branch)),
            _ => {}
        }
    }
    schema
}

/// Returns whether a schema, or one of a list, may depend on the values of an object's properties.
fn restricts_values(schema: &Value) -> bool {
    let keywords = ["$ref", "enum", "properties", "patternProperties", "additionalProperties", "unevaluatedProperties"];
    match schema {
        Value::Object(object) => {
            object.keys().any(|keyword| keywords.contains(&keyword.as_str())) || object.values().any(restricts_values)
        }
        Value::Array(schemas) => schemas.iter().any(restricts_values),
        _ => false,
    }
}

fn required(schema: &Value) -> Vec<String> {
    let own = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned);
    let parts = schema["allOf"].as_array().into_iter().flatten();
    own.chain(parts.flat_map(required)).collect()
}

/// Returns the schema of a property, or null.
pub(crate) fn property<'a>(schema: &'a Value, name: &str) -> &'a Value {
    let declared = properties(schema).find(|(property, _)| *property == name).map(|(_, property)| property);
    declared.or_else(|| additional(schema)).unwrap_or(&Value::Null)
}

/// Returns the schema of the properties that a schema and its parts don't declare by name.
pub(crate) fn additional(schema: &Value) -> Option<&Value> {
    parts(schema).into_iter().find_map(|part| part.get("additionalProperties"))
}

/// Returns the schema of the items of an array, or null.
pub(crate) fn items(schema: &Value) -> &Value {
    parts(schema).into_iter().find_map(|part| part.get("items")).unwrap_or(&Value::Null)
}
