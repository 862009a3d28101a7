//! Rules that keep the contract usable for code generators and other tools: lists of values, names, and examples.

use std::collections::{BTreeMap, BTreeSet};

use boxoffice_openapi::{EXTENSIBLE_ENUM, resolve};
use serde_json::Value;

use crate::support::CONTRACT;

/// Calls `visit` with each node and its location, except in examples.
fn walk(node: &Value, location: &str, visit: &mut impl FnMut(&str, &Value)) {
    visit(location, node);
    match node {
        Value::Object(members) => {
            let members = members.iter().filter(|(name, _)| !["example", "examples"].contains(&name.as_str()));
            members.for_each(|(name, member)| walk(member, &format!("{location}/{name}"), visit));
        }
        Value::Array(items) => items.iter().for_each(|item| walk(item, location, visit)),
        _ => {}
    }
}

/// Returns the places in these parts of all operations that have a keyword.
fn places(parts: &[&str], keyword: &str) -> BTreeSet<String> {
    let mut places = BTreeSet::new();
    for operation in CONTRACT.operations() {
        let node = &CONTRACT.document["paths"][&operation.path][operation.method.to_lowercase()];
        for part in parts {
            walk(&resolve(&CONTRACT.document, &node[part]), &operation.id, &mut |location, node| {
                // The list of a schema; a property may have the keyword's name.
                if node.get(keyword).is_some_and(Value::is_array) {
                    places.insert(location.to_owned());
                }
            });
        }
    }
    places
}

fn components(kind: &str) -> BTreeSet<&'static str> {
    CONTRACT.document["components"][kind].as_object().unwrap().keys().map(String::as_str).collect()
}

#[test]
fn lists_in_responses_are_extensible() {
    assert_eq!(places(&["responses"], "enum"), BTreeSet::new());
    assert!(places(&["responses"], EXTENSIBLE_ENUM).len() > 100);
}

#[test]
fn lists_in_requests_are_closed() {
    assert_eq!(places(&["parameters", "requestBody"], EXTENSIBLE_ENUM), BTreeSet::new());
    assert!(places(&["parameters", "requestBody"], "enum").len() > 10);
}

/// Generators name inline schemas by their place or by number.
#[test]
fn objects_and_closed_lists_are_named() {
    let mut inline = Vec::new();
    walk(&CONTRACT.document, "", &mut |location, node| {
        let is_component = location.strip_prefix("/components/schemas/").is_some_and(|name| !name.contains('/'));
        if !is_component && (node.get("enum").is_some_and(Value::is_array) || node["properties"].is_object()) {
            inline.push(location.to_owned());
        }
    });
    assert_eq!(inline, [""; 0]);
}

/// Generators create types of one namespace from schemas, parameters, responses and headers.
#[test]
fn component_names_are_unique() {
    let mut kinds: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for kind in ["schemas", "parameters", "responses"] {
        components(kind).into_iter().for_each(|name| kinds.entry(name).or_default().push(kind));
    }
    kinds.retain(|_, kinds| kinds.len() > 1);
    assert_eq!(kinds, BTreeMap::new());
}

/// Some generators declare the values of all closed lists as constants of one namespace.
#[test]
fn values_of_closed_lists_have_unique_names() {
    let mut lists: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for name in components("schemas") {
        let schema = &CONTRACT.document["components"]["schemas"][name];
        let values = schema["enum"].as_array().into_iter().flatten();
        let names = schema["x-enum-varnames"].as_array();
        if let Some(names) = names {
            assert_eq!(names.len(), values.clone().count(), "{name}");
        }
        for value in names.map_or(values.collect(), |names| names.iter().collect::<Vec<_>>()) {
            let constant = value.as_str().unwrap().to_lowercase().replace([' ', '-', '_'], "");
            lists.entry(constant).or_default().push(name);
        }
    }
    lists.retain(|_, lists| lists.len() > 1);
    assert_eq!(lists, BTreeMap::new());
}

/// Tools such as Postman send the example of an optional header with every request: the second order would be a repetition of the
/// first.
#[test]
fn optional_headers_have_no_examples() {
    for parameter in CONTRACT.document["components"]["parameters"].as_object().unwrap().values() {
        if parameter["in"] == "header" && parameter["required"] != true {
            assert!(parameter.get("example").is_none() && parameter["schema"].get("example").is_none(), "{parameter}");
        }
    }
}

#[test]
fn amounts_are_doubles() {
    walk(&CONTRACT.document, "", &mut |location, node| {
        if node["type"] == "number" {
            assert_eq!(node["format"], "double", "{location}");
        }
    });
}
