//! Tests of the comparison of two documents, with small documents of other APIs.

mod branches;
mod operations;
mod schemas;

use boxoffice_openapi::Contract;
use boxoffice_openapi::diff::Impact::{self, Breaking, NonBreaking};
use boxoffice_openapi::diff::diff;
use serde_json::{Value, json};

/// Returns a document with one operation, `POST /x`, and these members of the whole document.
fn document(operation: Value, members: Value) -> Value {
    let mut document = json!({ "openapi": "3.1.0", "paths": { "/x": { "post": operation } } });
    document.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
    document
}

/// Returns an operation with this schema of its request and response.
fn operation(request: Value, response: Value) -> Value {
    let body = |schema: Value| json!({ "description": "", "content": { "application/json": { "schema": schema } } });
    json!({ "requestBody": body(request), "responses": { "200": body(response) } })
}

/// Returns the changes between two documents, without prose, as `place: text`.
fn changes(old: Value, new: Value) -> Vec<(Impact, String)> {
    let [old, new] = [old, new].map(|document| Contract::new(document).unwrap().document);
    let changes = diff(&old, &new).into_iter().filter(|change| change.impact != Impact::Prose);
    changes.map(|change| (change.impact, format!("{}: {}", change.place, change.text))).collect()
}

/// Returns the changes if only the schema of a request changes.
fn request_changes(old: Value, new: Value, schemas: Value) -> Vec<(Impact, String)> {
    let [old, new] =
        [old, new].map(|schema| document(operation(schema, json!({})), json!({ "components": { "schemas": schemas } })));
    changes(old, new)
}

/// Returns the changes if only the schema of a response changes.
fn response_changes(old: Value, new: Value, schemas: Value) -> Vec<(Impact, String)> {
    let [old, new] =
        [old, new].map(|schema| document(operation(json!({}), schema), json!({ "components": { "schemas": schemas } })));
    changes(old, new)
}

fn breaking(text: &str) -> (Impact, String) {
    (Breaking, text.to_owned())
}

fn non_breaking(text: &str) -> (Impact, String) {
    (NonBreaking, text.to_owned())
}

const NONE: [(Impact, String); 0] = [];

/// Returns a document with a parameter that has these members besides its name.
fn with_parameter(members: Value, schemas: Value) -> Value {
    let mut parameter = json!({ "name": "q" });
    parameter.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
    let operation = json!({ "parameters": [parameter], "responses": { "204": { "description": "" } } });
    document(operation, json!({ "components": { "schemas": schemas } }))
}
