//! Subtypes that a discriminator selects, as branches of a schema.
//!
//! OpenAPI leaves a discriminator to tools. Here, its property decides which branch applies:
//!
//! | schema with a discriminator | becomes |
//! |---|---|
//! | `oneOf: [Cat, Dog]`, with a mapping | each branch is valid only with its own names of the mapping |
//! | `Pet` without branches, which `Cat` includes with `allOf` | `Pet` with `anyOf`: its subtypes, or the name of none |
//!
//! Without a mapping, the name of a subtype is that of its schema. Servers often use other names: a subtype may have any then.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::resolver::{escape, reference, target};

/// The pointer of the named schemas, as a reference.
const SCHEMAS: &str = "#/components/schemas/";

/// Restricts each branch of a schema to its names in the mapping of the discriminator.
pub fn restrict_branches(schema: &mut Map<String, Value>) {
    let Some((property, names)) = discriminator(schema) else { return };
    for keyword in ["oneOf", "anyOf"] {
        for branch in schema.get_mut(keyword).and_then(Value::as_array_mut).into_iter().flatten() {
            if let Some(names) = reference(branch).and_then(|reference| names.get(reference)) {
                *branch = json!({ "allOf": [branch.take(), with_name(&property, names)] });
            }
        }
    }
}

/// Returns the reference of a branch that [`restrict_branches`] has restricted, and its names.
pub fn restricted(branch: &Value) -> Option<(&Value, Vec<String>)> {
    let [subtype, names] = branch.get("allOf")?.as_array()?.as_slice() else { return None };
    reference(subtype)?;
    let is_restriction = names.as_object()?.keys().eq(["properties"]);
    Some((subtype, names_of(names)?)).filter(|_| is_restriction)
}

/// Returns if [`add_branches`] has added a branch for the values that have the names of no other branch.
pub fn excludes_names(branch: &Value) -> bool {
    let Some(names) = branch.get("not") else { return false };
    names_of(names).is_some() && names.as_object().is_some_and(|names| names.keys().eq(["required", "properties"]))
}

/// Returns the name that a discriminator has for a branch if no mapping has another one, and the reference of the branch.
pub fn implied_name(branch: &Value) -> Option<(&str, &str)> {
    let reference = reference(restricted(branch).map_or(branch, |(subtype, _)| subtype))?;
    Some((reference.strip_prefix(SCHEMAS)?, reference))
}

/// Returns the reference that a mapping contains, or names a schema for.
pub fn mapped_reference(target: &str) -> String {
    if target.contains('#') { target.to_owned() } else { format!("{SCHEMAS}{}", escape(target)) }
}

/// Returns the names that [`with_name`] has put into a schema.
fn names_of(schema: &Value) -> Option<Vec<String>> {
    let properties = schema.get("properties")?.as_object().filter(|properties| properties.len() == 1)?;
    let names = properties.values().next()?.get("enum")?.as_array()?;
    names.iter().map(|name| name.as_str().map(str::to_owned)).collect()
}

/// Adds branches to each schema with a discriminator that other schemas include.
pub fn add_branches(document: &mut Value) {
    let Some(schemas) = document["components"]["schemas"].as_object() else { return };
    let has_branches = |schema: &Value| ["oneOf", "anyOf"].iter().any(|keyword| schema.get(keyword).is_some());
    let mut added = Vec::new();
    for (name, schema) in schemas.iter().filter(|(_, schema)| !has_branches(schema)) {
        let Some((property, names)) = schema.as_object().and_then(discriminator) else { continue };
        let own = format!("{SCHEMAS}{}", escape(name));
        // Those of other files have no names, but references in the mapping.
        let mapped = names.keys().filter(|reference| !reference.starts_with(SCHEMAS));
        let mapped = mapped.filter_map(|reference| Some((reference.clone(), target(document, reference).ok()?)));
        let named = schemas.iter().map(|(name, schema)| (format!("{SCHEMAS}{}", escape(name)), schema));
        let subtypes = subtypes(&named.chain(mapped).collect::<Vec<_>>(), &own);
        let branch = |subtype: &String| match names.get(subtype) {
            Some(names) => json!({ "allOf": [{ "$ref": subtype }, with_name(&property, names)] }),
            None => json!({ "$ref": subtype }),
        };
        let mut branches: Vec<Value> = subtypes.iter().map(branch).collect();
        if branches.is_empty() {
            continue;
        }
        let implied = |subtype: &String| Vec::from_iter(subtype.strip_prefix(SCHEMAS).map(str::to_owned));
        let all: Vec<_> =
            subtypes.iter().flat_map(|subtype| names.get(subtype).cloned().unwrap_or_else(|| implied(subtype))).collect();
        branches.push(json!({ "not": { "required": [property], "properties": { &property: { "enum": all } } } }));
        added.push((name.clone(), branches));
    }
    for (name, branches) in added {
        document["components"]["schemas"][name]["anyOf"] = branches.into();
    }
}

/// Returns the property of a discriminator, and the names in its mapping by reference.
fn discriminator(schema: &Map<String, Value>) -> Option<(String, BTreeMap<String, Vec<String>>)> {
    let discriminator = schema.get("discriminator")?;
    let property = discriminator["propertyName"].as_str()?.to_owned();
    let mut names: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (name, target) in discriminator["mapping"].as_object().into_iter().flatten() {
        let Some(target) = target.as_str() else { continue };
        names.entry(mapped_reference(target)).or_default().push(name.clone());
    }
    Some((property, names))
}

/// Returns the references to those of these schemas that include a schema, also indirectly.
fn subtypes(schemas: &[(String, &Value)], base: &str) -> Vec<String> {
    let mut found = vec![base.to_owned()];
    let mut next = 0;
    while let Some(base) = found.get(next).cloned() {
        for (subtype, schema) in schemas {
            let mut included = schema["allOf"].as_array().into_iter().flatten().filter_map(reference);
            if included.any(|reference| reference == base) && !found.contains(subtype) {
                found.push(subtype.clone());
            }
        }
        next += 1;
    }
    found.split_off(1)
}

/// Returns the schema of an object in which a property has one of these names.
fn with_name(property: &str, names: &[String]) -> Value {
    json!({ "properties": { property: { "enum": names } } })
}
