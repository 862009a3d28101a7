//! Generates the client from the contract, after bringing the document into the form that progenitor takes.

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
    plain(&mut document);
    let document = serde_json::from_value(document).expect("spec/openapi.yaml is OpenAPI 3.0");
    let mut settings = GenerationSettings::default();
    settings.with_interface(InterfaceStyle::Builder).with_tag(TagStyle::Merged).with_derive("PartialEq");
    // What a client carries with it, and reads when it sends.
    settings.with_inner_type(syn::parse_quote!(crate::RetryPolicy));
    let tokens = Generator::new(&settings).generate_tokens(&document).expect("the contract can be generated from");
    let code = prettyplease::unparse(&syn::parse2(tokens).expect("what is generated is Rust"));
    let folder = env::var("OUT_DIR").expect("cargo names a folder for what is built");
    fs::write(Path::new(&folder).join("generated.rs"), code).expect("the build folder can be written");
}

/// progenitor knows one type of success and one of error for each operation. The client sends the version itself.
fn simplify(operation: &mut Value) {
    if let Some(parameters) = operation.get_mut("parameters").and_then(Value::as_array_mut) {
        parameters.retain(|parameter| parameter["$ref"] != "#/components/parameters/ClientVersion");
    }
    let Some(responses) = operation.get_mut("responses").and_then(Value::as_object_mut) else { return };
    responses.retain(|status, _| status.starts_with('2'));
    for response in responses.values_mut() {
        let content = response.get_mut("content").and_then(Value::as_object_mut);
        if let Some(content) = content.filter(|content| !content.contains_key("application/json")) {
            // Images of several kinds: the caller reads Content-Type.
            content.clear();
            content.insert("*/*".to_owned(), json!({ "schema": { "type": "string", "format": "binary" } }));
        }
    }
    let error = json!({
        "description": "What went wrong.",
        "content": { "application/json": { "schema": { "$ref": "#/components/schemas/Error" } } },
    });
    for statuses in ["4XX", "5XX"] {
        responses.insert(statuses.to_owned(), error.clone());
    }
}

/// What a caller passes and gets are plain texts and numbers. Bounds, lengths and patterns would give each its own type, to be
/// parsed at every call; the server names everything that it refuses anyway. An amount with two decimals needs 64 bits.
fn plain(value: &mut Value) {
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
            object.values_mut().for_each(plain);
        }
        Value::Array(items) => items.iter_mut().for_each(plain),
        _ => {}
    }
}
