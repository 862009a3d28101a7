//! Generates the client from the contract, after simplifying the document for progenitor.

use std::path::Path;
use std::{env, fs};

use progenitor_impl::{GenerationSettings, Generator, InterfaceStyle, TagStyle};
use serde_json::{Value, json};

fn main() {
    let source = "../../spec/openapi.yaml";
    println!("cargo::rerun-if-changed={source}");
    let text = fs::read_to_string(source).expect("spec/openapi.yaml can be read");
    let mut document: Value = serde_yaml_ng::from_str(&text).expect("spec/openapi.yaml is YAML");
    for item in document["paths"].as_object_mut().into_iter().flat_map(|paths| paths.values_mut()) {
        for operation in item.as_object_mut().into_iter().flat_map(|item| item.values_mut()) {
            simplify(operation);
        }
    }
    remove_constraints(&mut document);
    let document = serde_json::from_value(document).expect("spec/openapi.yaml is OpenAPI 3.0");
    let mut settings = GenerationSettings::default();
    settings.with_interface(InterfaceStyle::Builder).with_tag(TagStyle::Merged).with_derive("PartialEq");
    // Every client contains a retry policy.
    settings.with_inner_type(syn::parse_quote!(crate::RetryPolicy));
    let tokens = Generator::new(&settings).generate_tokens(&document).expect("the contract can be generated from");
    let code = prettyplease::unparse(&syn::parse2(tokens).expect("what is generated is Rust"));
    let folder = env::var("OUT_DIR").expect("cargo names a folder for what is built");
    fs::write(Path::new(&folder).join("generated.rs"), code).expect("the build folder can be written");
}

/// Reduces the responses to one success type and one error type, because progenitor supports only one of each per operation.
/// Removes the version parameter, because the client sends it with every request.
fn simplify(operation: &mut Value) {
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
/// which callers would have to construct; the server validates them anyway. Amounts with two decimals need 64 bits.
fn remove_constraints(value: &mut Value) {
    match value {
        Value::Object(object) => {
            if object.get("type").is_some_and(Value::is_string) {
                for constraint in ["pattern", "minLength", "maxLength", "minimum", "maximum", "multipleOf"] {
                    object.remove(constraint);
                }
                if object.get("format") == Some(&json!("float")) {
                    object.insert("format".to_owned(), json!("double"));
                }
            }
            object.values_mut().for_each(remove_constraints);
        }
        Value::Array(items) => items.iter_mut().for_each(remove_constraints),
        _ => {}
    }
}
