//! Tests of callbacks and the runtime expressions in their URLs.

use boxoffice_openapi::callback::RuntimeValues;
use boxoffice_openapi::{Contract, ParsedRequest};
use http::{HeaderMap, HeaderName};
use serde_json::json;

use super::contract;

/// Creates a contract whose operation, `POST /things`, has a callback to this URL.
fn contract_with_callback(url: &str) -> Contract {
    let callbacks = json!({ "done": { url: { "post": { "responses": { "204": {} } } } } });
    contract(json!({ "/things": { "post": { "callbacks": callbacks, "responses": { "204": {} } } } }), json!({}))
}

#[test]
fn replaces_expressions_in_url() {
    let headers: HeaderMap = [(HeaderName::from_static("x"), "h".parse().unwrap())].into_iter().collect();
    let query = json!({ "url": "http://q", "u": 2 }).as_object().unwrap().clone();
    let arguments = ParsedRequest { query, body: json!({ "url": "http://b" }), ..ParsedRequest::default() };
    for (url, expected) in [
        ("{$request.body#/url}", "http://b"),
        ("$request.query.url", "http://q"),
        ("http://a/{id}?u={$request.query.u}", "http://a/{id}?u=2"),
        ("{$request.header.x}/{$response.body#/id}/end", "h/7/end"),
    ] {
        let contract = contract_with_callback(url);
        let operation = contract.find("POST", "/things").unwrap();
        let values = RuntimeValues {
            operation,
            url: "/things",
            request_headers: &headers,
            arguments: &arguments,
            status: 204,
            response_headers: &HeaderMap::new(),
            response_body: &json!({ "id": 7 }),
        };
        assert_eq!(operation.callbacks[0].resolve_url(&values).as_deref(), Ok(expected), "{url}");
    }
    let contract = contract_with_callback("{$request.body#/url");
    assert_eq!(contract.warnings, ["the callback done is left out: an expression in {$request.body#/url has no end"]);
}
