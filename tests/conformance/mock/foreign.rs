//! The mock of a document that differs from the platform's contract.

use boxoffice_conformance::http_client::Request;
use boxoffice_mock::Settings;
use serde_json::{Value, json};

use super::header;
use crate::support::MockServer;

/// Recursive and mutually exclusive schemas, keys in other places, errors of another shape.
fn document() -> Value {
    let answer = |schema: Value| json!({ "description": "", "content": { "application/json": { "schema": schema } } });
    let problem = json!({ "description": "", "content": { "application/problem+json": {
        "schema": { "type": "object", "required": ["title"], "properties": { "title": { "type": "string", "minLength": 3 } } },
    } } });
    let actual = json!({ "description": "", "content": { "application/json": {
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
                "responses": { "200": answer(json!({ "$ref": "#/components/schemas/Tree" })), "401": actual, "4XX": problem },
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

/// Starts a mock of a document with these paths and schemas, without security.
fn small(paths: Value, schemas: Value) -> MockServer {
    let document = json!({
        "openapi": "3.0.0",
        "info": { "title": "small", "version": "1" },
        "paths": paths,
        "components": { "schemas": schemas },
    });
    MockServer::of(document, Settings::default())
}

/// Builds an operation that returns 200 with this content.
fn answered(content: Value) -> Value {
    json!({ "get": { "responses": { "200": { "description": "", "content": content } } } })
}

fn mock() -> MockServer {
    MockServer::of(document(), Settings::default())
}

fn tree(query: &str) -> Request {
    Request::new("GET", format!("/trees/oak{query}")).with_header("Authorization", "Bearer abc")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn generates_responses_from_schemas_without_examples() {
    let mock = mock();
    for depth in 0..20 {
        let reply = mock.send(&tree(&format!("?depth={depth}"))).await;
        assert!(reply.status == 200 && reply.json()["name"].is_string(), "{}", reply.json());
    }
    let shape = mock.send(&Request::new("GET", "/shapes")).await;
    assert_eq!(shape.status, 200, "`default` alone declares the success");
    assert!(["Circle", "Square"].contains(&shape.json()["kind"].as_str().unwrap()));
    let other = mock.send(&Request::new("GET", "/shapes").with_header("Prefer", "code=503")).await;
    assert_eq!(other.status, 503);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn error_responses_have_shape_of_document() {
    let mock = mock();
    let bad = mock.send(&tree("?depth=deep")).await;
    assert_eq!((bad.status, header(&bad, "content-type")), (400, "application/problem+json"));
    assert_eq!(bad.json(), json!({ "title": "Invalid: depth (must be an integer)." }));
    assert_eq!(header(&bad, "x-mock-refusal"), "Invalid: depth (must be an integer).");
    let nowhere = mock.send(&Request::new("GET", "/nowhere")).await;
    assert_eq!((nowhere.status, &nowhere.json()["code"]), (404, &json!("endpoint.unknown")));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn error_response_contains_reason_if_possible() {
    let reason = "Invalid: size (must be an integer).";
    for (schema, example, actual) in [
        (json!({ "required": ["id"] }), json!({ "message": "Out of stock", "id": 7 }), json!({ "message": reason, "id": 7 })),
        (
            json!({ "properties": { "error": {} } }),
            json!({ "error": { "message": "" } }),
            json!({ "error": { "message": reason } }),
        ),
        (json!({ "properties": { "title": {}, "detail": {} } }), json!({ "title": "Bad" }), json!({ "title": reason })),
        (json!({ "properties": { "message": { "maxLength": 5 } } }), json!({ "message": "Bad" }), json!({ "message": "Bad" })),
        (json!({ "type": "array", "items": {} }), json!(["Bad"]), json!(["Bad"])),
    ] {
        let sized = json!({ "get": {
            "parameters": [{ "name": "size", "in": "query", "schema": { "type": "integer" } }],
            "responses": { "200": { "description": "" }, "400": { "description": "", "content": {
                "application/json": { "schema": schema, "example": example },
            } } },
        } });
        let mock = small(json!({ "/sized": sized }), json!({}));
        let reply = mock.send(&Request::new("GET", "/sized?size=large")).await;
        assert_eq!((reply.status, reply.json()), (400, actual));
        assert_eq!(header(&reply, "x-mock-refusal"), reason);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn discriminator_selects_schema() {
    let kind = json!({ "type": "string" });
    let reference = |name: &str| json!({ "$ref": format!("#/components/schemas/{name}") });
    let of = |name: &str| answered(json!({ "application/json": { "schema": reference(name) } }));
    let mapping = json!({ "cat": "#/components/schemas/Feline", "dog": "Canine" });
    let pet = |own: &str| json!({ "required": ["kind", own], "properties": { "kind": kind, own: { "type": "boolean" } } });
    let discriminator = json!({ "propertyName": "kind", "mapping": mapping });
    let mock = small(
        json!({ "/pets": of("Pet"), "/parents": of("Parent"), "/children": of("Child"), "/others": of("Other") }),
        json!({
            "Pet": { "oneOf": [reference("Feline"), reference("Canine")], "discriminator": discriminator },
            "Feline": pet("purrs"),
            "Canine": pet("barks"),
            "Parent": { "required": ["kind"], "properties": { "kind": kind }, "discriminator": {
                "propertyName": "kind", "mapping": { "child": "#/components/schemas/Child" },
            } },
            "Child": { "allOf": [reference("Parent"), { "properties": { "age": { "type": "integer" } } }] },
            "Other": { "allOf": [{ "properties": { "kind": kind }, "discriminator": { "propertyName": "kind" } }] },
        }),
    );
    for number in 0..20 {
        let ask = async |path: &str| mock.send(&Request::new("GET", format!("{path}?{number}"))).await.json();
        let pet = ask("/pets").await;
        assert_eq!(pet["kind"], if pet.get("purrs").is_some() { "cat" } else { "dog" }, "{pet}");
        assert_eq!(ask("/parents").await["kind"], "child");
        assert_eq!(ask("/children").await["kind"], "child");
        assert_eq!(ask("/others").await["kind"], "Other");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn absolute_uri_is_not_reported_as_path() {
    for (format, location) in [("uri", "https://example.org/pets/7"), ("uri-reference", "/pets/1")] {
        let made = json!({ "post": { "responses": { "201": {
            "description": "",
            "headers": { "Location": {
                "schema": { "type": "string", "format": format }, "example": "https://example.org/pets/7",
            } },
            "content": { "application/json": { "example": { "self": "/pets/1" } } },
        } } } });
        let reply = small(json!({ "/pets": made }), json!({})).send(&Request::new("POST", "/pets")).await;
        assert_eq!((reply.status, header(&reply, "location")), (201, location), "{format}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reads_body_by_parameters_of_media_type() {
    let asking = |name: &str| json!({ "schema": { "type": "object", "required": [name] } });
    let post = json!({ "post": {
        "requestBody": { "content": { "application/vnd.a+json;version=1": asking("one"), "application/vnd.a+json;version=2": asking("two") } },
        "responses": { "200": { "description": "" } },
    } });
    let mock = small(json!({ "/versions": post }), json!({}));
    for (media_type, body, status) in [
        ("application/vnd.a+json;version=1", json!({ "one": 1 }), 200),
        ("application/vnd.a+json; Version=\"2\"", json!({ "two": 2 }), 200),
        ("application/vnd.a+json;version=2", json!({ "one": 1 }), 400),
        ("application/vnd.a+json", json!({ "one": 1 }), 200),
        ("application/json", json!({ "one": 1 }), 415),
    ] {
        let request = Request::new("POST", "/versions").with_json(&body).with_header("Content-Type", media_type);
        assert_eq!(mock.server.send(&request).await.unwrap().status, status, "{media_type} {body}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keeps_texts_unchanged() {
    let binary = json!({ "type": "string", "format": "binary" });
    for (content, body) in [
        (json!({ "application/javascript": { "example": "test" } }), "test"),
        (json!({ "application/octet-stream": { "schema": { "type": "string" }, "example": "word" } }), "word"),
        (json!({ "application/octet-stream": { "schema": binary, "example": "aGVsbG8=" } }), "hello"),
    ] {
        let reply = small(json!({ "/text": answered(content) }), json!({})).send(&Request::new("GET", "/text")).await;
        assert_eq!(reply.body, body.as_bytes());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn xml_response_contains_text_only() {
    let schema = json!({ "type": "object", "properties": { "a": { "type": "integer" } } });
    let both = |xml: Value| json!({ "application/xml": xml, "application/json": { "schema": schema } });
    let alone = json!({ "application/xml": { "schema": schema } });
    for (content, status, media_type) in [
        (both(json!({ "schema": schema, "example": "<a/>" })), 200, "application/xml"),
        (both(json!({ "schema": schema, "example": { "a": 1 } })), 200, "application/json"),
        (both(json!({ "schema": schema })), 200, "application/json"),
        (alone, 500, "application/json"),
    ] {
        let request = Request::new("GET", "/xml").with_header("Accept", "application/xml");
        let reply = small(json!({ "/xml": answered(content) }), json!({})).server.send(&request).await.unwrap();
        assert_eq!((reply.status, header(&reply, "content-type")), (status, media_type));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn validates_form_parts() {
    let form = json!({ "schema": { "type": "object", "required": ["file", "name"], "properties": {} } });
    let post = json!({ "post": {
        "requestBody": { "content": { "multipart/form-data": form } }, "responses": { "200": { "description": "" } },
    } });
    let mock = small(json!({ "/files": post }), json!({}));
    let ask = async |names: &[&str]| {
        let part = |name: &&str| format!("--x\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\nfile\r\n");
        let form: String = names.iter().map(part).collect();
        let request = Request::new("POST", "/files").with_header("Content-Type", "multipart/form-data; boundary=x");
        let request = Request { body: Some(format!("{form}--x--\r\n").into_bytes()), ..request };
        mock.server.send(&request).await.unwrap()
    };
    assert_eq!(ask(&["name", "file", "other"]).await.status, 200);
    let lacking = ask(&["name"]).await;
    assert_eq!((lacking.status, &lacking.json()["fields"][0]["name"]), (400, &json!("file")));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requires_keys_of_document() {
    let mock = mock();
    let ask = async |request: Request| mock.send(&request).await;
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn accept_header_selects_media_type() {
    let mock = mock();
    for (accept, media_type) in [
        ("*/*", "application/json"),
        ("text/html, text/*;q=0.5", "text/plain"),
        ("application/json;q=0.1, image/png", "image/png"),
        ("image/*", "image/png"),
        ("application/json;q=0, */*;q=0.1", "text/plain"),
        ("application/xml", "application/json"),
    ] {
        let reply = mock.send(&Request::new("GET", "/pictures").with_header("Accept", accept)).await;
        assert_eq!((reply.status, header(&reply, "content-type")), (200, media_type), "{accept}");
        assert_eq!(header(&reply, "vary"), "Accept, Prefer");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn invalid_example_is_not_served() {
    let reply = mock().send(&Request::new("GET", "/wrong")).await;
    assert!(reply.json()["size"].is_i64(), "{}", reply.json());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ungeneratable_response_is_reported() {
    let reply = mock().server.send(&Request::new("GET", "/impossible")).await.unwrap();
    assert_eq!((reply.status, &reply.json()["code"]), (500, &json!("server.error")));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn invalid_example_cannot_be_selected() {
    let examples = json!({ "good": { "value": 1 }, "bad": { "value": "one" }, "ba-d": { "value": 2 } });
    let numbers = answered(json!({ "application/json": { "schema": { "type": "integer" }, "examples": examples } }));
    let mock = small(json!({ "/numbers": numbers }), json!({}));
    let ask = async |example: &str| {
        let request = Request::new("GET", "/numbers").with_header("Prefer", &format!("example={example}"));
        mock.server.send(&request).await.unwrap()
    };
    assert_eq!([ask("good").await.json(), ask("ba-d").await.json()], [1, 2]);
    let bad = ask("bad").await;
    let detail = bad.json()["fields"][0]["detail"].as_str().unwrap().to_owned();
    assert!(bad.status == 400 && detail.starts_with("has example=bad, which is not as its schema says: "), "{detail}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn oversized_response_is_not_generated() {
    let list = |items: Value| json!({ "type": "array", "minItems": 90_000, "items": items });
    let huge = list(list(json!({ "type": "string", "minLength": 90_000 })));
    let mock = small(json!({ "/huge": answered(json!({ "application/json": { "schema": huge } })) }), json!({}));
    let reply = mock.server.send(&Request::new("GET", "/huge")).await.unwrap();
    assert_eq!((reply.status, &reply.json()["code"]), (500, &json!("server.error")));
}
