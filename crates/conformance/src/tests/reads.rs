//! Servers whose reads need other parameters or credentials than the changes, or the same ones.

use std::collections::HashSet;
use std::fs;
use std::sync::Arc;

use boxoffice_openapi::Contract;
use bytes::Bytes;
use clap::Parser;
use http::{Request, Response};
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::{
    Store, compare_stateful, comparison, crud_document, error, findings, id_in, json_answer, json_response, rejection, start,
};
use crate::comparison::BuiltinServer;
use crate::model::{Check, Report};
use crate::operation_run::KEY_REJECTED;
use crate::options::{BuiltinDocument, CompareOptions};

/// The operations of the document with their methods and paths.
const OPERATIONS: [(&str, &str, &str); 6] = [
    ("list", "/notes", "get"),
    ("create", "/notes", "post"),
    ("read", "/notes/{id}", "get"),
    ("replace", "/notes/{id}", "put"),
    ("remove", "/notes/{id}", "delete"),
    ("close", "/notes/{id}/closings", "post"),
];

const FAULTS: [(&str, &str); 4] = [
    ("removes nothing", "remove resource.removed: the removed resource can still be read"),
    ("loses text", "replace sent.kept: a changed text is not read back"),
    ("closes nothing", "close action.kept: a read after the action differs from its result: /state"),
    ("lists nothing", "create resource.listed: the list lacks a created resource"),
];

/// Builds a document of notes that can be closed. `change` changes the operations with these names.
fn notes(change: impl Fn(&str, &mut Value)) -> Value {
    let state = json!({ "type": "string", "enum": ["open", "closed"], "readOnly": true });
    let schema = json!({ "type": "object", "required": ["text"], "properties": {
        "id": { "type": "integer", "minimum": 1, "readOnly": true },
        "text": { "type": "string", "minLength": 1, "maxLength": 40 },
        "state": state,
    } });
    let reference = json!({ "$ref": "#/components/schemas/Note" });
    let operations = ["list", "create", "read", "replace", "remove"];
    let mut document = crud_document("/notes", &operations, &reference, json!({ "text": "Hello" }));
    document["paths"]["/notes/{id}/closings"] = json!({
        "parameters": document["paths"]["/notes/{id}"]["parameters"],
        "post": { "operationId": "close", "responses": {
            "200": json_answer(&reference), "400": error(), "404": error(), "409": error(),
        } },
    });
    let schemes = json!({
        "token": { "type": "http", "scheme": "bearer" }, "key": { "type": "apiKey", "in": "query", "name": "key" },
    });
    document["components"] = json!({ "schemas": { "Note": schema }, "securitySchemes": schemes });
    for (name, path, method) in OPERATIONS {
        change(name, &mut document["paths"][path][method]);
    }
    document
}

/// Declares a required parameter.
fn required(location: &str, name: &str) -> Value {
    json!({ "name": name, "in": location, "required": true, "schema": { "type": "string", "enum": ["2024-01-01"] } })
}

fn respond(contract: &Contract, notes: &mut Store, request: &Request<Bytes>, fault: &str) -> Response<String> {
    let (method, path) = (request.method().as_str(), request.uri().path());
    let operation = contract.find(method, path);
    let has_key = request.uri().query().is_some_and(|query| query.split('&').any(|pair| pair == "key=compare"));
    let has_token = request.headers().get("authorization").is_some_and(|value| value == "Bearer compare");
    if operation.is_ok_and(|operation| operation.needs_key) && !has_key && !has_token {
        return json_response(401, &json!({}));
    }
    if let Some(rejection) = rejection(contract, request) {
        return rejection;
    }
    if let Some(id) = path.strip_suffix("/closings").and_then(|path| path.rsplit('/').next()?.parse::<u64>().ok()) {
        let Some(note) = notes.resources.get_mut(&id) else { return json_response(404, &json!({})) };
        if note["state"] == "closed" {
            return json_response(409, &json!({}));
        }
        let mut closed = note.clone();
        closed["state"] = json!("closed");
        if fault != "closes nothing" {
            *note = closed.clone();
        }
        return json_response(200, &closed);
    }
    let before = id_in(request).and_then(|id| Some((id, notes.resources.get(&id)?.clone())));
    let mut response = notes.respond(request);
    for note in notes.resources.values_mut().filter(|note| note["state"].is_null()) {
        note["state"] = json!("open");
    }
    match (method, before) {
        ("DELETE", Some((id, note))) if fault == "removes nothing" => {
            notes.resources.insert(id, note);
        }
        ("PUT", Some((id, note))) if fault == "loses text" => {
            notes.resources.insert(id, note);
        }
        ("GET", None) if fault == "lists nothing" && path == "/notes" => response = json_response(200, &json!([])),
        _ => {}
    }
    response
}

async fn compare(document: Value, fault: &'static str) -> Report {
    compare_stateful(document, Store::default(), move |contract, notes, request| respond(contract, notes, request, fault)).await
}

/// Asserts that a server without a fault has no findings, and that each fault is found.
async fn assert_checked(document: Value) {
    let report = compare(document.clone(), "").await;
    assert_eq!(findings(&report), [""; 0]);
    for (operation, check) in [
        ("create", Check::Created),
        ("create", Check::Listed),
        ("replace", Check::Persistence),
        ("remove", Check::Removed),
        ("close", Check::Action),
        ("close", Check::RepeatedAction),
    ] {
        assert!(report.operation(operation).unwrap().checks.contains_key(&check), "{operation} {check:?}");
    }
    for (fault, expected) in FAULTS {
        let found = findings(&compare(document.clone(), fault).await);
        assert!(found.iter().any(|finding| finding == expected), "{fault}: {found:?}");
    }
}

#[tokio::test]
async fn reads_have_their_required_query() {
    assert_checked(notes(|_, operation| operation["parameters"] = json!([required("query", "api-version")]))).await;
}

#[tokio::test]
async fn reads_have_parameters_that_changes_lack() {
    let parameters = json!([required("query", "api-version"), required("header", "X-Version")]);
    assert_checked(notes(|name, operation| {
        if name == "read" {
            operation["parameters"] = parameters.clone();
        }
    }))
    .await;
}

#[tokio::test]
async fn reads_have_credentials_that_changes_lack() {
    assert_checked(notes(|name, operation| {
        if name != "create" {
            operation["security"] = json!([{ "token": [] }]);
            operation["responses"]["401"] = error();
        }
    }))
    .await;
}

#[tokio::test]
async fn reads_have_keys_in_the_query() {
    assert_checked(notes(|_, operation| {
        operation["security"] = json!([{ "key": [] }]);
        operation["responses"]["401"] = error();
    }))
    .await;
}

#[tokio::test]
async fn list_with_a_required_filter_may_lack_a_resource() {
    let filter = json!([{ "name": "owner", "in": "query", "required": true, "schema": { "type": "string" }, "example": "Ama" }]);
    let document = notes(|name, operation| {
        if name == "list" {
            operation["parameters"] = filter.clone();
        }
    });
    assert_eq!(findings(&compare(document, "lists nothing").await), [""; 0]);
}

#[tokio::test]
async fn read_with_a_generated_parameter_may_be_rejected() {
    let tenant = json!([{ "name": "tenant", "in": "query", "required": true, "schema": { "type": "string", "minLength": 20 } }]);
    let document = notes(|name, operation| {
        if name == "read" {
            operation["parameters"] = tenant.clone();
            operation["responses"]["422"] = error();
        }
    });
    let report = compare_stateful(document, Store::default(), |contract, notes, request| {
        let is_read = request.method() == "GET" && id_in(request).is_some() && rejection(contract, request).is_none();
        let mut response = if is_read { json_response(422, &json!({})) } else { respond(contract, notes, request, "") };
        if request.method() == "POST" && request.uri().path() == "/notes" && response.status() == 201 {
            let id = notes.resources.last_key_value().unwrap().0;
            response.headers_mut().insert("location", format!("/notes/{id}").parse().unwrap());
        }
        response
    });
    let found = findings(&report.await);
    assert!(!found.iter().any(|finding| finding.starts_with("create ")), "{found:?}");
}

#[tokio::test]
async fn repeated_action_may_be_rejected_for_another_reason_with_a_declared_range() {
    for (status, is_found) in [("409", true), ("4XX", false)] {
        let document = notes(|name, operation| {
            if name == "close" {
                operation["responses"].as_object_mut().unwrap().shift_remove("409");
                operation["responses"][status] = error();
            }
        });
        let state = (Store::default(), HashSet::new());
        let report = compare_stateful(document, state, |contract, (notes, closed), request| {
            let path = request.uri().path();
            let is_valid = path.ends_with("/closings") && rejection(contract, request).is_none();
            let note = path.split('/').nth(2).and_then(|id| notes.resources.get(&id.parse().ok()?));
            match note.filter(|_| is_valid) {
                Some(note) => json_response(if closed.insert(path.to_owned()) { 200 } else { 409 }, note),
                None => respond(contract, notes, request, ""),
            }
        });
        let found = findings(&report.await);
        assert_eq!(found.iter().any(|finding| finding.contains("can't be repeated")), is_found, "{status}: {found:?}");
    }
}

#[tokio::test]
async fn unknown_resource_is_not_changed_without_a_read() {
    for (max_length, is_checked) in [(20, true), (1, false)] {
        let tenant = json!([{ "name": "tenant", "in": "query", "required": true, "schema": { "type": "string", "minLength": 2, "maxLength": max_length } }]);
        let document = notes(|name, operation| {
            if name == "read" {
                operation["parameters"] = tenant.clone();
            }
        });
        let report = compare(document, "").await;
        let checks = &report.operation("replace").unwrap().checks;
        assert_eq!(checks.contains_key(&Check::UnknownResource), is_checked, "{max_length}");
    }
}

#[tokio::test]
async fn rejected_key_is_one_finding_of_an_operation() {
    let document = |public: &'static [&str]| {
        notes(move |name, operation| {
            if !public.contains(&name) {
                operation["security"] = json!([{ "token": [] }]);
                operation["responses"]["401"] = error();
            }
        })
    };
    let rejected = |operation: &str| format!("{operation} request.valid: {KEY_REJECTED}");
    let server = || {
        let (contract, store) = (Contract::new(document(&["list"])).unwrap(), Mutex::new(Store::default()));
        start(move |request| respond(&contract, &mut store.lock(), request, ""))
    };
    let report = comparison(document(&["list"]), Some("wrong"), &server().await).await.run(|_| ()).await;
    assert_eq!(findings(&report), ["create", "read"].map(rejected));
    let reason = "no valid request can be built: POST /notes created no resource of its own: it was answered with 401";
    assert_eq!(report.operation("remove").unwrap().left_out.as_deref(), Some(reason));

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        options: CompareOptions,
    }
    let folder = tempfile::tempdir().unwrap();
    let spec = folder.path().join("notes.json");
    fs::write(&spec, document(&["list"]).to_string()).unwrap();
    let address = server().await;
    for (skipped, is_error) in [("read", false), ("list", true)] {
        let arguments = ["compare", "--target", &address, "--spec", spec.to_str().unwrap(), "--key", "wrong", "--skip", skipped];
        let contract = Contract::new(document(&[])).unwrap().into();
        let builtin = BuiltinDocument { contract, server: BuiltinServer::default(), whole_currencies: Vec::new() };
        let result = Command::parse_from(arguments).options.compare(builtin, &Arc::default(), |_, _| ()).await;
        let error = result.err().map(|error| error.to_string());
        let expected = "every operation that was requested rejects the key with 401: see --key";
        assert_eq!(error.as_deref(), is_error.then_some(expected), "{skipped}");
    }

    // What was created without a key is deleted.
    let document = document(&["create", "remove"]);
    let (contract, store) = (Contract::new(document.clone()).unwrap(), Arc::new(Mutex::new(Store::default())));
    let notes = Arc::clone(&store);
    let address = start(move |request| respond(&contract, &mut notes.lock(), request, "")).await;
    fs::write(&spec, document.to_string()).unwrap();
    let arguments = [
        "compare",
        "--target",
        &address,
        "--spec",
        spec.to_str().unwrap(),
        "--key",
        "wrong",
        "--skip",
        "create",
        "--skip",
        "remove",
    ];
    let contract = Contract::new(document).unwrap().into();
    let builtin = BuiltinDocument { contract, server: BuiltinServer::default(), whole_currencies: Vec::new() };
    assert!(Command::parse_from(arguments).options.compare(builtin, &Arc::default(), |_, _| ()).await.is_err());
    assert!(store.lock().last_id > 0 && store.lock().resources.is_empty());
}
