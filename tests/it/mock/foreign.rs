//! The mock of a document that is nothing like the platform's.

use boxoffice::mock::Settings;
use boxoffice::qa::exchange::Request;
use serde_json::{Value, json};

use super::{Mock, header};
use crate::plain_tests;

plain_tests![async
    a_document_without_examples_is_answered_from_its_schemas,
    refusals_have_the_documents_own_shape,
    its_own_keys_are_asked_for,
    the_caller_accepts_one_of_several_media_types,
    an_example_that_is_not_valid_is_not_served,
    what_cannot_be_made_is_told,
];

/// Schemas that refer to themselves and that exclude each other, keys in other places, errors of another shape.
fn document() -> Value {
    let answer = |schema: Value| json!({ "description": "", "content": { "application/json": { "schema": schema } } });
    let problem = json!({ "description": "", "content": { "application/problem+json": {
        "schema": { "type": "object", "required": ["title"], "properties": { "title": { "type": "string", "minLength": 3 } } },
    } } });
    let told = json!({ "description": "", "content": { "application/json": {
        "schema": { "type": "object", "properties": { "reason": { "type": "string" } } },
        "example": { "reason": "show a key" },
    } } });
    json!({
        "openapi": "3.0.0",
        "info": { "title": "trees", "version": "1" },
        "security": [{ "token": [] }, { "query": [], "cookie": [] }],
        "paths": {
            "/trees/{tree}": { "get": {
                "parameters": [
                    { "name": "tree", "in": "path", "required": true, "schema": { "type": "string" } },
                    { "name": "depth", "in": "query", "schema": { "type": "integer" } },
                ],
                "responses": { "200": answer(json!({ "$ref": "#/components/schemas/Tree" })), "401": told, "4XX": problem },
            } },
            "/shapes": { "get": { "security": [], "responses": { "default": answer(json!({
                "oneOf": [{ "$ref": "#/components/schemas/Circle" }, { "$ref": "#/components/schemas/Square" }],
                "discriminator": { "propertyName": "kind" },
            })) } } },
            "/pictures": { "get": { "security": [], "responses": { "2XX": { "description": "", "content": {
                "text/plain": { "schema": { "type": "string" }, "example": "a picture" },
                "application/json": { "schema": { "type": "object" }, "example": { "a": "picture" } },
                "image/*": { "schema": { "type": "string", "format": "binary" } },
            } } } } },
            "/wrong": { "get": { "security": [], "responses": { "200": { "description": "", "content": { "application/json": {
                "schema": { "type": "object", "required": ["size"], "properties": { "size": { "type": "integer" } } },
                "example": { "size": "large" },
            } } } } } },
            "/impossible": { "get": { "security": [], "responses": {
                "200": answer(json!({ "type": "integer", "minimum": 2, "maximum": 1 })),
            } } },
        },
        "components": {
            "securitySchemes": {
                "token": { "type": "http", "scheme": "bearer" },
                "query": { "type": "apiKey", "in": "query", "name": "key" },
                "cookie": { "type": "apiKey", "in": "cookie", "name": "session" },
            },
            "schemas": {
                "Tree": { "type": "object", "required": ["name", "branches"], "properties": {
                    "name": { "type": "string" },
                    "branches": { "type": "array", "items": { "$ref": "#/components/schemas/Tree" } },
                } },
                "Circle": { "type": "object", "required": ["kind", "radius"], "properties": {
                    "kind": { "type": "string", "enum": ["Circle"] }, "radius": { "type": "number" } } },
                "Square": { "type": "object", "required": ["kind", "side"], "properties": {
                    "kind": { "type": "string", "enum": ["Square"] }, "side": { "type": "number" } } },
            },
        },
    })
}

fn mock() -> Mock {
    Mock::of(document(), Settings::default())
}

fn tree(query: &str) -> Request {
    Request::new("GET", format!("/trees/oak{query}")).with_header("Authorization", "Bearer abc")
}

async fn a_document_without_examples_is_answered_from_its_schemas() {
    let mock = mock();
    for depth in 0..20 {
        let reply = mock.ask(&tree(&format!("?depth={depth}"))).await;
        assert!(reply.status == 200 && reply.json()["name"].is_string(), "{}", reply.json());
    }
    let shape = mock.ask(&Request::new("GET", "/shapes")).await;
    assert_eq!(shape.status, 200, "`default` alone stands for the success");
    assert!(["Circle", "Square"].contains(&shape.json()["kind"].as_str().unwrap()));
    let other = mock.ask(&Request::new("GET", "/shapes").with_header("Prefer", "code=503")).await;
    assert_eq!(other.status, 503);
}

async fn refusals_have_the_documents_own_shape() {
    let mock = mock();
    let bad = mock.ask(&tree("?depth=deep")).await;
    assert_eq!((bad.status, header(&bad, "content-type")), (400, "application/problem+json"));
    assert!(bad.json()["title"].is_string() && bad.json().get("code").is_none(), "{}", bad.json());
    let nowhere = mock.ask(&Request::new("GET", "/nowhere")).await;
    assert_eq!((nowhere.status, &nowhere.json()["code"]), (404, &json!("endpoint.unknown")));
}

async fn its_own_keys_are_asked_for() {
    let mock = mock();
    let ask = async |request: Request| mock.ask(&request).await;
    let bare = |query: &str| tree(query).without_header("Authorization");

    let without = ask(bare("")).await;
    assert_eq!((without.status, without.json()), (401, json!({ "reason": "show a key" })));
    for (request, status) in [
        (tree(""), 200),
        (bare("").with_header("Authorization", "Basic abc"), 401),
        (bare("").with_header("X-API-Key", "abc"), 401),
        (bare("?key=abc"), 401),
        (bare("?key=abc").with_header("Cookie", "a=b; session=xyz"), 200),
        (tree("").with_header("Prefer", "scope=none"), 403),
    ] {
        assert_eq!(ask(request.clone()).await.status, status, "{request:?}");
    }
}

async fn the_caller_accepts_one_of_several_media_types() {
    let mock = mock();
    for (accept, media_type) in [
        ("*/*", "application/json"),
        ("text/html, text/*;q=0.5", "text/plain"),
        ("application/json;q=0.1, image/png", "image/png"),
        ("image/*", "image/png"),
        ("application/json;q=0, */*;q=0.1", "text/plain"),
        ("application/xml", "application/json"),
    ] {
        let reply = mock.ask(&Request::new("GET", "/pictures").with_header("Accept", accept)).await;
        assert_eq!((reply.status, header(&reply, "content-type")), (200, media_type), "{accept}");
        assert_eq!(header(&reply, "vary"), "Accept, Prefer");
    }
}

async fn an_example_that_is_not_valid_is_not_served() {
    let reply = mock().ask(&Request::new("GET", "/wrong")).await;
    assert!(reply.json()["size"].is_i64(), "{}", reply.json());
}

async fn what_cannot_be_made_is_told() {
    let reply = mock().server.send(&Request::new("GET", "/impossible")).await.unwrap();
    assert_eq!((reply.status, &reply.json()["code"]), (500, &json!("server.error")));
}
