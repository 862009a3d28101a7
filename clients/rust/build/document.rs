//! The contract: simplified for progenitor, and the parts of it that progenitor ignores.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

/// Simplifies the contract for progenitor.
pub fn simplify(document: &mut Value) {
    for item in document["paths"].as_object_mut().into_iter().flat_map(|paths| paths.values_mut()) {
        for operation in item.as_object_mut().into_iter().flat_map(|item| item.values_mut()) {
            simplify_operation(operation);
        }
    }
    remove_constraints(document);
    enumerate_known_values(document);
    share_lists(document);
    remove_nullable(document);
}

/// Reduces the responses to one success type and one error type, because progenitor supports only one of each per operation.
/// Removes the version parameter, because the client sends it with every request.
fn simplify_operation(operation: &mut Value) {
    if let Some(parameters) = operation.get_mut("parameters").and_then(Value::as_array_mut) {
        parameters.retain(|parameter| parameter["$ref"] != "#/components/parameters/ClientVersion");
    }
    let Some(responses) = operation.get_mut("responses").and_then(Value::as_object_mut) else { return };
    responses.retain(|status, _| status.starts_with('2'));
    for response in responses.values_mut() {
        let content = response.get_mut("content").and_then(Value::as_object_mut);
        if let Some(content) = content.filter(|content| !content.contains_key("application/json")) {
            // Images in several formats: the caller reads `Content-Type`.
            content.clear();
            content.insert("*/*".to_owned(), json!({ "schema": { "type": "string", "format": "binary" } }));
        }
    }
    let error = json!({
        "description": "The error.",
        "content": { "application/json": { "schema": { "$ref": "#/components/schemas/Error" } } },
    });
    for statuses in ["4XX", "5XX"] {
        responses.insert(statuses.to_owned(), error.clone());
    }
}

/// Removes bounds, lengths and patterns, so that values are plain strings and numbers. Otherwise each would get its own type,
/// which callers would have to construct; the server validates them anyway.
fn remove_constraints(value: &mut Value) {
    match value {
        Value::Object(object) => {
            if object.get("type").is_some_and(Value::is_string) {
                for constraint in ["pattern", "minLength", "maxLength", "minimum", "maximum", "multipleOf"] {
                    object.remove(constraint);
                }
            }
            object.values_mut().for_each(remove_constraints);
        }
        Value::Array(items) => items.iter_mut().for_each(remove_constraints),
        _ => {}
    }
}

/// Turns lists of known values into enumerations. `accept_unknown_values` in `code` makes them accept other values.
fn enumerate_known_values(value: &mut Value) {
    if let Some(values) = value.as_object_mut().and_then(|schema| schema.remove("x-extensible-enum")) {
        value["enum"] = values;
    }
    match value {
        Value::Object(object) => object.values_mut().for_each(enumerate_known_values),
        Value::Array(items) => items.iter_mut().for_each(enumerate_known_values),
        _ => {}
    }
}

/// Replaces each list for requests (`OrderStatusInput`) by the equal list for responses (`OrderStatus`), so that a caller can send a
/// value that it has received.
fn share_lists(document: &mut Value) {
    let schemas = document["components"]["schemas"].as_object().expect("the contract has schemas");
    let is_shared = |(input, schema): &(&String, &Value)| {
        let name = input.strip_suffix("Input").and_then(|name| schemas.get(name));
        name.is_some_and(|received| received.get("enum").is_some() && received["enum"] == schema["enum"])
    };
    let shared: BTreeSet<_> = schemas.iter().filter(is_shared).map(|(name, _)| name.clone()).collect();
    document["components"]["schemas"]
        .as_object_mut()
        .into_iter()
        .for_each(|schemas| schemas.retain(|name, _| !shared.contains(name)));
    replace_references(document, &shared);
}

fn replace_references(value: &mut Value, shared: &BTreeSet<String>) {
    match value {
        Value::Object(object) => object.values_mut().for_each(|value| replace_references(value, shared)),
        Value::Array(items) => items.iter_mut().for_each(|value| replace_references(value, shared)),
        Value::String(text) => {
            let name = text.strip_prefix("#/components/schemas/").filter(|name| shared.contains(*name));
            if let Some(name) = name.and_then(|_| text.strip_suffix("Input")) {
                *value = name.into();
            }
        }
        _ => {}
    }
}

/// Removes `nullable` from the schemas that are only optional properties, whose `Option` accepts a null anyway. progenitor would add
/// another `Option`.
fn remove_nullable(document: &mut Value) {
    let schemas = document["components"]["schemas"].as_object_mut().expect("the contract has schemas");
    let required = schemas.values().flat_map(|schema| {
        let names = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
        names.filter_map(|name| schema["properties"][name]["$ref"].as_str()?.rsplit('/').next())
    });
    let required: BTreeSet<String> = required.map(str::to_owned).collect();
    for (_, schema) in schemas.iter_mut().filter(|(name, _)| !required.contains(*name)) {
        schema.as_object_mut().and_then(|schema| schema.remove("nullable"));
    }
}

/// Returns the names that the contract gives to the value `""`, by list of values.
pub fn blank_values(document: &Value) -> BTreeMap<String, String> {
    let schemas = document["components"]["schemas"].as_object().into_iter().flatten();
    let blank = schemas.filter_map(|(name, schema)| {
        let position = schema["enum"].as_array()?.iter().position(|value| value == "")?;
        Some((name.clone(), schema["x-enum-varnames"][position].as_str().expect("the value \"\" has a name").to_owned()))
    });
    blank.collect()
}

/// Returns the properties that a null clears, by schema.
pub fn clearable_properties(document: &Value) -> BTreeMap<String, Vec<String>> {
    let schemas = document["components"]["schemas"].as_object().into_iter().flatten();
    let clearable = schemas.filter_map(|(name, schema)| {
        let properties = schema.get("x-cleared-by-null")?.as_array()?;
        Some((name.clone(), properties.iter().filter_map(Value::as_str).map(str::to_owned).collect()))
    });
    clearable.collect()
}

/// Returns the fields whose values must not be logged, each with its type: passwords, and what the operations that are `x-secret` send
/// and return, which are keys, codes, and the identifiers of mailed codes.
pub fn secrets(document: &Value) -> BTreeSet<(String, String)> {
    let mut secrets = BTreeSet::new();
    let mut add = |of: &str, field: &str| _ = secrets.insert((of.to_owned(), field.to_owned()));
    let schemas = &document["components"]["schemas"];
    for (name, schema) in schemas.as_object().into_iter().flatten() {
        properties(schema).filter(|(_, property)| property["format"] == "password").for_each(|(property, _)| add(name, property));
    }
    let paths = document["paths"].as_object().into_iter().flat_map(|paths| paths.values());
    let operations = paths.flat_map(|item| item.as_object().into_iter().flat_map(|item| item.values()));
    for operation in operations.filter(|operation| operation["x-secret"] == true) {
        let parameters = operation["parameters"].as_array().into_iter().flatten().map(|parameter| resolve(document, parameter));
        let names =
            parameters.filter(|parameter| parameter["x-secret"] == true).filter_map(|parameter| parameter["name"].as_str());
        let names: Vec<_> = names.collect();
        let id = operation["operationId"].as_str().expect("an operationId is a text");
        names.iter().for_each(|name| add(&type_name(id), name));
        let mut exchanged = BTreeSet::new();
        add_schemas(document, &operation["requestBody"], &mut exchanged);
        let responses = operation["responses"].as_object().into_iter().flatten();
        for (_, response) in responses.filter(|(status, _)| status.starts_with('2')) {
            add_schemas(document, response, &mut exchanged);
        }
        for name in exchanged {
            for (property, schema) in properties(&schemas[&name]) {
                match property.as_str() {
                    "key" | "code" if schema["type"] == "string" => add(&name, property),
                    // It ends with the identifier.
                    "self" if !names.is_empty() => add(&name, "self_"),
                    _ => {}
                }
            }
        }
    }
    secrets
}

fn properties(schema: &Value) -> impl Iterator<Item = (&String, &Value)> {
    schema["properties"].as_object().into_iter().flatten()
}

/// Returns the name of an operation's type: `OrderCreate` for `order_create`.
fn type_name(operation: &str) -> String {
    operation.split('_').map(|word| word[..1].to_uppercase() + &word[1..]).collect()
}

/// Returns what a reference points to, or the node itself.
fn resolve<'a>(document: &'a Value, node: &'a Value) -> &'a Value {
    let target = node["$ref"].as_str().and_then(|reference| reference.strip_prefix('#'));
    target.map_or(node, |target| document.pointer(target).expect("references lead to something"))
}

/// Adds the names of the schemas that a node refers to.
fn add_schemas(document: &Value, node: &Value, names: &mut BTreeSet<String>) {
    let schema = node["$ref"].as_str().and_then(|reference| reference.strip_prefix("#/components/schemas/"));
    if schema.is_some_and(|name| !names.insert(name.to_owned())) {
        return;
    }
    match resolve(document, node) {
        Value::Object(object) => object.values().for_each(|value| add_schemas(document, value, names)),
        Value::Array(items) => items.iter().for_each(|value| add_schemas(document, value, names)),
        _ => {}
    }
}
