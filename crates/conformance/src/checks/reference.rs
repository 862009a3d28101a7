//! Two servers beside each other: the same request gives the same status and the same shape.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::http_client::ReceivedResponse;
use crate::operation_run::{Exchange, OperationRun, describe};
use crate::model::Check;
use crate::recorder::Fault;

/// How many items of two arrays are held against each other.
const ITEMS: usize = 3;

impl OperationRun<'_> {
    /// Holds the reference's answer against the server's. `is_certain` as in [`Interview::ask`].
    pub fn check_reference(&mut self, asked: &Exchange, referred: anyhow::Result<ReceivedResponse>, is_certain: bool) {
        let operation = self.subject.operation;
        let (status, referred) = match referred {
            Ok(reply) => (reply.status.to_string(), Some(reply)),
            Err(error) => (format!("{error:#}"), None),
        };
        let may_differ = |reply: &ReceivedResponse| !is_certain && reply.status != 400 && (400..500).contains(&reply.status);
        if may_differ(&asked.reply) || referred.as_ref().is_some_and(may_differ) {
            return;
        }
        let is_same = referred.as_ref().is_some_and(|reply| reply.status == asked.reply.status);
        let fault = (!is_same).then(|| Fault {
            pointer: format!("{}/responses", operation.pointer),
            summary: match &referred {
                Some(reply) => format!("the server answers {}, the reference {}", asked.reply.status, reply.status),
                None => "the reference gives no whole answer".to_owned(),
            },
            expected: referred.as_ref().map_or(status, describe),
            actual: describe(&asked.reply),
        });
        self.record(Check::ReferenceStatus, &asked.request, fault);
        let Some(referred) = referred.filter(|_| is_same) else { return };
        let (own, other) = (asked.reply.json(), referred.json());
        let content =
            operation.answer(asked.reply.status).and_then(|answer| answer.contents.iter().find(|content| content.is_json()));
        let nothing = Value::Null;
        let schema = content.and_then(|content| content.schema.as_ref()).map_or(&nothing, |schema| &schema.resolved);
        let mut differences = Vec::new();
        compare(&own, &other, schema, "", &mut differences);
        if differences.is_empty() {
            self.record(Check::ReferenceShape, &asked.request, None);
        }
        for difference in differences {
            let fault = Fault {
                pointer: operation.answer(asked.reply.status).map_or_else(String::new, |answer| answer.pointer.clone()),
                summary: format!("{} answers differ: {difference}", asked.reply.status),
                expected: describe(&referred),
                actual: describe(&asked.reply),
            };
            self.record(Check::ReferenceShape, &asked.request, Some(fault));
        }
    }
}

/// Where the shapes of two bodies differ: the types of values, and the properties that one has and the other doesn't. A
/// property that the schema doesn't require may be missing on one side, a nullable value be null there, and an array be empty.
fn compare(own: &Value, other: &Value, schema: &Value, place: &str, differences: &mut Vec<String>) {
    let shown = if place.is_empty() { "the body" } else { place };
    match (own, other) {
        (Value::Object(own), Value::Object(other)) => {
            let names: BTreeSet<_> = own.keys().chain(other.keys()).collect();
            for name in names {
                let Some(property) = property(schema, name) else { continue };
                let inside = format!("{place}/{name}");
                match (own.get(name), other.get(name)) {
                    (Some(own), Some(other)) => compare(own, other, property, &inside, differences),
                    _ if !is_required(schema, name) => {}
                    (Some(_), None) => differences.push(format!("only the server's has {inside}")),
                    _ => differences.push(format!("only the reference's has {inside}")),
                }
            }
        }
        (Value::Array(own), Value::Array(other)) => {
            for (own, other) in own.iter().zip(other).take(ITEMS) {
                compare(own, other, items(schema), &format!("{place}/*"), differences);
            }
        }
        (Value::Null, _) | (_, Value::Null) if schema["nullable"] == true => {}
        _ if kind(own) == kind(other) => {}
        _ => differences.push(format!("{shown} is {} of the server, {} of the reference", kind(own), kind(other))),
    }
}

/// What a schema says of a property; nothing where it doesn't name it, as in a map, whose keys are data.
fn property<'a>(schema: &'a Value, name: &str) -> Option<&'a Value> {
    let own = schema["properties"].get(name);
    own.or_else(|| parts(schema).find_map(|part| property(part, name)))
}

fn is_required(schema: &Value, name: &str) -> bool {
    let required = schema["required"].as_array().into_iter().flatten().any(|required| required == name);
    required || schema["allOf"].as_array().into_iter().flatten().any(|part| is_required(part, name))
}

fn items(schema: &Value) -> &Value {
    schema.get("items").or_else(|| parts(schema).find_map(|part| part.get("items"))).unwrap_or(&Value::Null)
}

/// The schemas that a schema is put together from.
fn parts(schema: &Value) -> impl Iterator<Item = &Value> {
    ["allOf", "oneOf", "anyOf"].into_iter().flat_map(|parts| schema[parts].as_array().into_iter().flatten())
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}
