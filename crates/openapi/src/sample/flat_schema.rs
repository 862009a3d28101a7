//! Flat schemas, in which `allOf` is merged and one branch of `oneOf` and `anyOf` is chosen.

use anyhow::bail;
use rand::RngExt;
use rand::seq::SliceRandom;
use serde_json::{Map, Value, json};

use super::generator::Generator;
use super::merge::merge;
use crate::escape;

impl Generator<'_> {
    /// Merges a schema with its `allOf` and with one branch of its `oneOf` and `anyOf`. The result is not a reference, and its
    /// exclusive bounds are numbers.
    pub fn flatten(&mut self, schema: &Value, pointer: &str, level: usize) -> anyhow::Result<Map<String, Value>> {
        let bundle = self.bundle;
        let (schema, pointer) = self.resolve_terminating(schema, pointer)?;
        let mut flat = schema.as_object().cloned().unwrap_or_default();
        for (exclusive, bound) in [("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")] {
            match flat.get(exclusive) {
                Some(Value::Bool(true)) => drop(flat.remove(bound).map(|limit| flat.insert(exclusive.to_owned(), limit))),
                Some(Value::Bool(false)) => drop(flat.remove(exclusive)),
                _ => {}
            }
        }
        flat.remove("allOf");
        self.flatten_condition(schema, &pointer, level, &mut flat)?;
        for (number, parent) in schema["allOf"].as_array().into_iter().flatten().enumerate() {
            merge(&mut flat, self.flatten(parent, &format!("{pointer}/allOf/{number}"), level)?);
            let (parent, _) = bundle.follow(parent, "");
            if let Some(constraint) =
                discriminator_value(&parent["discriminator"], &pointer, &flat).filter(|_| !has_branches(parent))
            {
                merge(&mut flat, constraint);
            }
        }
        if let Some(constraint) = any_discriminator_value(&schema["discriminator"]).filter(|_| !has_branches(schema)) {
            merge(&mut flat, constraint);
        }
        for keyword in ["oneOf", "anyOf"] {
            flat.remove(keyword);
            let Some(branches) = schema[keyword].as_array() else { continue };
            let mut candidates: Vec<(Option<usize>, usize)> =
                branches.iter().enumerate().map(|(number, branch)| (bundle.min_depth(branch), number)).collect();
            candidates.retain(|(depth, _)| depth.is_some());
            // A branch that only excludes values says nothing about the others.
            let only_excludes = |branch: &Value| branch.as_object().is_some_and(|branch| branch.keys().eq(["not"]));
            if candidates.iter().any(|(_, number)| !only_excludes(&branches[*number])) {
                candidates.retain(|(_, number)| !only_excludes(&branches[*number]));
            }
            candidates.shuffle(self.rng);
            if self.is_minimal(level) {
                candidates.sort_by_key(|(depth, _)| *depth);
            }
            let Some((_, number)) = candidates.first() else { bail!("`{pointer}/{keyword}` has only branches without end") };
            let branch = &branches[*number];
            let chosen = self.flatten(branch, &format!("{pointer}/{keyword}/{number}"), level)?;
            merge(&mut flat, chosen);
            if let Some(constraint) = discriminator_value(&schema["discriminator"], &bundle.follow(branch, "").1, &flat) {
                merge(&mut flat, constraint);
            }
        }
        self.flatten_dependent_schemas(schema, &pointer, level, &mut flat)?;
        require_dependents(&mut flat);
        Ok(flat)
    }

    /// Merges the schemas that depend on a required property.
    fn flatten_dependent_schemas(
        &mut self,
        schema: &Value,
        pointer: &str,
        level: usize,
        flat: &mut Map<String, Value>,
    ) -> anyhow::Result<()> {
        flat.remove("dependentSchemas");
        for (name, dependent) in schema["dependentSchemas"].as_object().into_iter().flatten() {
            let required = flat.get("required").and_then(Value::as_array);
            if required.is_some_and(|required| required.iter().any(|other| other == name)) {
                merge(flat, self.flatten(dependent, &format!("{pointer}/dependentSchemas/{}", escape(name)), level)?);
            }
        }
        Ok(())
    }

    /// Merges either `if` and `then`, or `else`.
    fn flatten_condition(
        &mut self,
        schema: &Value,
        pointer: &str,
        level: usize,
        flat: &mut Map<String, Value>,
    ) -> anyhow::Result<()> {
        for keyword in ["if", "then", "else"] {
            flat.remove(keyword);
        }
        if !schema["if"].is_object() {
            return Ok(());
        }
        let chosen = if self.rng.random_bool(0.5) { ["if", "then"].as_slice() } else { &["else"] };
        for keyword in chosen.iter().filter(|keyword| schema[**keyword].is_object()) {
            merge(flat, self.flatten(&schema[*keyword], &format!("{pointer}/{keyword}"), level)?);
        }
        Ok(())
    }
}

/// Makes the properties required on which a required property depends.
fn require_dependents(flat: &mut Map<String, Value>) {
    let Some(Value::Object(dependents)) = flat.remove("dependentRequired") else { return };
    let mut required = flat.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
    let mut next = 0;
    while let Some(name) = required.get(next) {
        let added = name.as_str().and_then(|name| dependents.get(name)?.as_array()).into_iter().flatten();
        let added: Vec<Value> = added.filter(|name| !required.contains(name)).cloned().collect();
        required.extend(added);
        next += 1;
    }
    flat.insert("required".to_owned(), required.into());
}

/// Returns the constraint of a discriminator on the schema at `pointer`, which is a branch of the discriminator's schema or includes
/// it with `allOf`: a property contains the schema's name. Only the schemas of the mapping and the named schemas of the document have a
/// constraint.
fn discriminator_value(discriminator: &Value, pointer: &str, flat: &Map<String, Value>) -> Option<Map<String, Value>> {
    let property = discriminator["propertyName"].as_str()?;
    let schema = pointer.strip_prefix("#/components/schemas/").filter(|name| !name.contains('/'));
    let is_schema = |target: &Value| target.as_str().is_some_and(|target| target == pointer || Some(target) == schema);
    let mapped = discriminator["mapping"].as_object().into_iter().flatten().find(|(_, target)| is_schema(target));
    let name = match mapped {
        Some((name, _)) => name,
        // The branch restricts its own name.
        None if flat.get("properties")?.get(property)?.get("enum").is_some() => return None,
        None => schema?,
    };
    property_constraint(property, json!([name]))
}

/// Returns the constraint of a discriminator on its own schema, if other schemas include it with `allOf`: any of their names.
fn any_discriminator_value(discriminator: &Value) -> Option<Map<String, Value>> {
    let names = discriminator["mapping"].as_object()?.keys().cloned().collect();
    property_constraint(discriminator["propertyName"].as_str()?, names)
}

fn property_constraint(property: &str, values: Value) -> Option<Map<String, Value>> {
    json!({ "required": [property], "properties": { property: { "enum": values } } }).as_object().cloned()
}

/// Returns whether [`Generator::flatten`] would return a copy of a schema. Copying is most of the work of a small value.
pub fn is_flat(schema: &Map<String, Value>) -> bool {
    let combining = [
        "allOf",
        "oneOf",
        "anyOf",
        "if",
        "then",
        "else",
        "discriminator",
        "exclusiveMinimum",
        "exclusiveMaximum",
        "dependentRequired",
        "dependentSchemas",
    ];
    !combining.iter().any(|keyword| schema.contains_key(*keyword))
}

fn has_branches(schema: &Value) -> bool {
    ["oneOf", "anyOf"].iter().any(|keyword| schema[keyword].is_array())
}
