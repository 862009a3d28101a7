//! A server of notes with Basic authentication, which is correct apart from one fault.

use std::collections::BTreeMap;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use boxoffice_openapi::Contract;
use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::{
    Store, comparison, crud_document, error, findings, id_in, is_valid, json_response, response, sent, start, unrouted, variable,
};
use crate::model::Report;

const KEY: &str = "qa:secret";

fn document() -> Value {
    let note = json!({ "type": "object", "required": ["id", "text"], "additionalProperties": false, "properties": {
        "id": { "type": "integer", "minimum": 1, "readOnly": true },
        "text": { "type": "string", "minLength": 1, "maxLength": 40 },
    } });
    let mut document = crud_document("/notes", &["list", "create", "read", "remove"], &note, json!({ "text": "Hello" }));
    let paths = &mut document["paths"];
    paths["/notes/{id}"]["parameters"] = variable("id", json!({ "type": "integer", "minimum": 1, "maximum": 999_999_999 }));
    for (path, method) in [("/notes", "get"), ("/notes", "post"), ("/notes/{id}", "get"), ("/notes/{id}", "delete")] {
        paths[path][method]["responses"]["401"] = error();
    }
    paths["/notes"]["get"]["responses"]["400"] = error();
    paths["/notes"]["post"]["responses"]["415"] = error();
    document["security"] = json!([{ "basic": [] }]);
    document["components"] = json!({ "securitySchemes": { "basic": { "type": "http", "scheme": "basic" } } });
    document
}

/// The server. `fault` names its fault.
struct Notes {
    contract: Contract,
    fault: &'static str,
    notes: Mutex<Store>,
    removed: Mutex<BTreeMap<u64, Value>>,
}

impl Notes {
    fn answer(&self, request: &Request<Bytes>) -> Response<String> {
        let method = if request.method() == "HEAD" { "GET" } else { request.method().as_str() };
        let operation = match self.contract.find(method, request.uri().path()) {
            Ok(operation) => operation,
            Err(error) => return unrouted(error),
        };
        if let Err(status) = self.authenticate(request.headers()) {
            return json_response(status, &json!({}));
        }
        let ignores_body =
            self.fault == "allows undeclared properties" && request.body().windows(10).any(|part| part == b"undeclared");
        if !ignores_body && !is_valid(operation, request) {
            return json_response(400, &json!({}));
        }
        let mut response = self.respond(request);
        if request.method() == "HEAD" && self.fault == "wrong length of HEAD" {
            "other".clone_into(response.body_mut());
        }
        if request.method() == "HEAD" && self.fault == "HEAD without media type" {
            response.headers_mut().remove("content-type");
        }
        response
    }

    /// Returns the status of a refusal.
    fn authenticate(&self, headers: &HeaderMap) -> Result<(), u16> {
        let sent = headers
            .get("authorization")
            .and_then(|value| value.to_str().ok()?.strip_prefix("Basic "))
            .ok_or(self.unauthenticated())?;
        let sent = BASE64_STANDARD.decode(sent).ok().and_then(|bytes| String::from_utf8(bytes).ok());
        match sent.filter(|text| text.contains(':')) {
            _ if self.fault == "accepts any key" => Ok(()),
            Some(text) if text == KEY => Ok(()),
            Some(_) => Err(self.unauthenticated()),
            None => Err(400),
        }
    }

    fn unauthenticated(&self) -> u16 {
        if self.fault == "only 403" { 403 } else { 401 }
    }

    /// Answers a valid request.
    fn respond(&self, request: &Request<Bytes>) -> Response<String> {
        let (mut notes, mut removed) = (self.notes.lock(), self.removed.lock());
        match (request.method().as_str(), id_in(request)) {
            ("POST", None) => notes.create(json!({ "text": sent(request)["text"] })),
            (_, None) => {
                let pairs = form_urlencoded::parse(request.uri().query().unwrap_or_default().as_bytes());
                let limit = pairs.filter_map(|(name, text)| (name == "limit").then(|| text.parse().unwrap())).next();
                let limit = limit.unwrap_or(usize::MAX);
                let limit = if self.fault == "limits pages silently" { limit.min(10) } else { limit };
                json_response(200, &notes.resources.values().take(limit).cloned().collect())
            }
            ("DELETE", Some(id)) => {
                removed.extend(notes.resources.get(&id).map(|note| (id, note.clone())));
                let is_repeated = self.fault == "removes again" && removed.contains_key(&id);
                let answer = notes.respond(request);
                if is_repeated { response(204, String::new()) } else { answer }
            }
            (_, Some(id)) => match removed.get(&id).filter(|_| self.fault == "reads removed") {
                Some(note) => json_response(200, note),
                None => notes.respond(request),
            },
        }
    }
}

/// Compares a server with a fault, and returns the findings.
async fn found(fault: &'static str) -> Vec<String> {
    found_with(document(), fault).await
}

async fn found_with(document: Value, fault: &'static str) -> Vec<String> {
    findings(&compare(document, fault).await)
}

async fn compare(document: Value, fault: &'static str) -> Report {
    let mut store = Store::default();
    for number in 1..=12 {
        store.create(json!({ "text": format!("Note {number}") }));
    }
    let contract = Contract::new(document.clone()).unwrap();
    let notes = Notes { contract, fault, notes: Mutex::new(store), removed: Mutex::default() };
    let address = start(move |request| notes.answer(request)).await;
    comparison(document, Some(KEY), &address).await.run(|_| ()).await
}

#[tokio::test]
async fn correct_server_has_no_findings() {
    assert_eq!(found("").await, [""; 0]);
}

#[tokio::test]
async fn removed_resource_that_can_be_read_is_found() {
    assert_eq!(found("reads removed").await, ["remove resource.removed: the removed resource can still be read"]);
}

#[tokio::test]
async fn missing_and_unknown_keys_are_403_where_only_that_is_declared() {
    let only_403 = || serde_json::from_str(&document().to_string().replace("\"401\"", "\"403\"")).unwrap();
    assert_eq!(found_with(only_403(), "only 403").await, [""; 0]);
    let missing = ["list", "create", "read", "remove"].map(|id| format!("{id} key.missing: a missing key is answered with 403"));
    let found = found("only 403").await;
    assert!(missing.iter().all(|finding| found.contains(finding)), "{found:?}");
}

#[tokio::test]
async fn accepted_unknown_key_is_found() {
    let found = found("accepts any key").await;
    assert!(found.contains(&"list key.bad: an unknown key is answered with 200".to_owned()), "{found:?}");
}

#[tokio::test]
async fn silently_limited_page_is_not_the_whole_list() {
    let mut document = document();
    document["paths"]["/notes"]["get"]["parameters"] =
        json!([{ "name": "limit", "in": "query", "schema": { "type": "integer", "minimum": 1 } }]);
    assert_eq!(found_with(document.clone(), "limits pages silently").await, [""; 0]);
    document["paths"]["/notes"]["get"]["parameters"][0]["schema"]["maximum"] = json!(50);
    assert_eq!(
        found_with(document, "limits pages silently").await,
        ["create resource.listed: the list lacks a created resource"]
    );
}

#[tokio::test]
async fn head_has_the_length_of_get() {
    let finding = |id| format!("{id} method.head: the Content-Length of HEAD is not the length of the response to GET");
    assert_eq!(found("wrong length of HEAD").await, [finding("list"), finding("read")]);
    // RFC 9110 only recommends the other headers.
    assert_eq!(found("HEAD without media type").await, [""; 0]);
}

#[tokio::test]
async fn removal_may_be_repeated() {
    let report = compare(document(), "removes again").await;
    assert_eq!(findings(&report), [""; 0]);
    let note = "remove returns 204 for a resource that doesn't exist, although it declares 404. It may: DELETE is idempotent.";
    assert_eq!(report.notes, [note]);
    let mut document = document();
    document["paths"]["/notes/{id}"]["delete"]["responses"].as_object_mut().unwrap().shift_remove("404");
    let report = compare(document, "removes again").await;
    assert_eq!((findings(&report), report.notes), (Vec::new(), Vec::new()));
}

#[tokio::test]
async fn accepted_undeclared_property_is_found() {
    let expected = ["create argument.form: an undeclared property is answered with 201"];
    assert_eq!(found("allows undeclared properties").await, expected);
}
