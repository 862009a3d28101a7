//! Comparison of two servers: the same request must return the same status and a body of the same shape.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::http_client::ReceivedResponse;
use crate::model::Check;
use crate::operation_run::{Exchange, OperationRun};
use crate::recorder::CheckFailure;

/// Number of items to compare of two arrays.
const MAX_COMPARED_ITEMS: usize = 3;

impl OperationRun<'_> {
    /// Compares the responses of target and reference. `same_status` as in [`OperationRun::send_mutated`].
    pub fn check_reference(&mut self, exchange: &Exchange, reference: anyhow::Result<ReceivedResponse>, same_status: bool) {
        let spec = self.operation.spec;
        let Exchange { request, response } = exchange;
        let may_differ =
            |response: &ReceivedResponse| !same_status && response.status != 400 && (400..500).contains(&response.status);
        if may_differ(response) || reference.as_ref().is_ok_and(may_differ) {
            return;
        }
        let (summary, expected) = match &reference {
            Ok(other) => (format!("the target returns {}, the reference {}", response.status, other.status), other.describe()),
            Err(error) => ("the reference returns no complete response".to_owned(), format!("{error:#}")),
        };
        let reference = reference.ok().filter(|other| other.status == response.status);
        let pointer = format!("{}/responses", spec.pointer);
        let failure = reference.is_none().then(|| CheckFailure { pointer, summary, expected, actual: response.describe() });
        self.record(Check::ReferenceStatus, request, failure);

        let Some(reference) = reference else { return };
        let response_spec = spec.response_for(response.status);
        let content = response_spec.and_then(|response| response.contents.iter().find(|content| content.is_json()));
        let schema = content.and_then(|content| content.schema.as_deref()).map_or(&Value::Null, |schema| &schema.resolved);
        let mut differences = Vec::new();
        compare_shapes(&response.json(), &reference.json(), schema, "", &mut differences);
        if differences.is_empty() {
            self.record(Check::ReferenceShape, request, None);
        }
        for difference in differences {
            let failure = CheckFailure {
                pointer: response_spec.map_or_else(String::new, |response| response.pointer.clone()),
                summary: format!("{} responses differ: {difference}", response.status),
                expected: reference.describe(),
                actual: response.describe(),
            };
            self.record(Check::ReferenceShape, request, Some(failure));
        }
    }
}

/// Collects the differences between the shapes of two bodies: other types of values, and properties that only one body has.
///
/// One body may lack an optional property, have null for a nullable value, or have an empty array.
fn compare_shapes(target: &Value, reference: &Value, schema: &Value, pointer: &str, differences: &mut Vec<String>) {
    match (target, reference) {
        (Value::Object(target), Value::Object(reference)) => {
            let names: BTreeSet<_> = target.keys().chain(reference.keys()).collect();
            for name in names {
                let Some(property) = property_schema(schema, name) else { continue };
                let pointer = format!("{pointer}/{name}");
                match (target.get(name), reference.get(name)) {
                    (Some(target), Some(reference)) => compare_shapes(target, reference, property, &pointer, differences),
                    _ if !is_required(schema, name) => {}
                    (Some(_), None) => differences.push(format!("only the target has {pointer}")),
                    _ => differences.push(format!("only the reference has {pointer}")),
                }
            }
        }
        (Value::Array(target), Value::Array(reference)) => {
            for (target, reference) in target.iter().zip(reference).take(MAX_COMPARED_ITEMS) {
                compare_shapes(target, reference, item_schema(schema), &format!("{pointer}/*"), differences);
            }
        }
        (Value::Null, _) | (_, Value::Null) if schema["nullable"] == true => {}
        _ if type_name(target) == type_name(reference) => {}
        _ => {
            let name = if pointer.is_empty() { "the body" } else { pointer };
            let (target, reference) = (type_name(target), type_name(reference));
            differences.push(format!("{name} is {target} on the target, {reference} on the reference"));
        }
    }
}

/// Returns the schema of a named property. The keys of a map are data, so they have none.
fn property_schema<'a>(schema: &'a Value, name: &str) -> Option<&'a Value> {
    let property = schema["properties"].get(name);
    property.or_else(|| subschemas(schema).find_map(|part| property_schema(part, name)))
}

fn is_required(schema: &Value, name: &str) -> bool {
    let required = schema["required"].as_array().into_iter().flatten().any(|required| required == name);
    required || schema["allOf"].as_array().into_iter().flatten().any(|part| is_required(part, name))
}

fn item_schema(schema: &Value) -> &Value {
    schema.get("items").or_else(|| subschemas(schema).find_map(|part| part.get("items"))).unwrap_or(&Value::Null)
}

/// Returns the schemas that a schema combines.
fn subschemas(schema: &Value) -> impl Iterator<Item = &Value> {
    ["allOf", "oneOf", "anyOf"].into_iter().flat_map(|keyword| schema[keyword].as_array().into_iter().flatten())
}

fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}
