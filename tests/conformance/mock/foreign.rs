//! The mock of a document that differs from the platform's contract.

mod media_types;

use boxoffice_conformance::http_client::{HttpClient, Request};
use boxoffice_mock::MockSettings;
use serde_json::{Value, json};

use super::header;
use crate::support::MockServer;

/// Recursive and mutually exclusive schemas, keys in other places, errors of another shape.
fn document() -> Value {
    let answer = |schema: Value| json!({ "description": "", "content": { "application/json": { "schema": schema } } });
    let problem = json!({ "description": "", "content": { "application/problem+json": {
        "schema": { "type": "object", "required": ["title"], "properties": { "title": { "type": "string", "minLength": 3 } } },
    } } });
    let unauthorized = json!({ "description": "", "content": { "application/json": {
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
                "responses": { "200": answer(json!({ "$ref": "#/components/schemas/Tree" })), "401": unauthorized, "4XX": problem },
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
            "/socket": { "get": { "security": [], "responses": { "101": { "description": "" }, "4XX": problem } } },
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
    MockServer::of(document, MockSettings::default())
}

/// Builds an operation that returns 200 with this content.
fn answered(content: Value) -> Value {
    json!({ "get": { "responses": { "200": { "description": "", "content": content } } } })
}

fn mock() -> MockServer {
    MockServer::of(document(), MockSettings::default())
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
    assert_eq!(mock.send(&Request::new("GET", "/shapes").with_header("Prefer", "code=503")).await.status, 503);
    let socket = mock.send(&Request::new("GET", "/socket")).await;
    assert_eq!((socket.status, header(&socket, "content-type")), (400, "application/problem+json"), "101 is no response");
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
    for (schema, example, expected) in [
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
        assert_eq!((reply.status, reply.json()), (400, expected));
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
        let send = async |path: &str| mock.send(&Request::new("GET", format!("{path}?{number}"))).await.json();
        let pet = send("/pets").await;
        assert_eq!(pet["kind"], if pet.get("purrs").is_some() { "cat" } else { "dog" }, "{pet}");
        assert_eq!(send("/parents").await["kind"], "child");
        assert_eq!(send("/children").await["kind"], "child");
        assert_eq!(send("/others").await["kind"], "Other");
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
async fn requires_keys_of_document() {
    let mock = mock();
    let send = async |request: Request| mock.send(&request).await;
    let bare = |query: &str| tree(query).without_header("Authorization");

    let without = send(bare("")).await;
    assert_eq!((without.status, without.json()), (401, json!({ "reason": "show a key" })));
    for (request, status) in [
        (tree(""), 200),
        (bare("").with_header("Authorization", "Basic abc"), 401),
        (bare("").with_header("X-API-Key", "abc"), 401),
        (bare("?key=abc"), 401),
        (bare("?key=abc").with_header("Cookie", "a=b; session=xyz"), 200),
        (tree("").with_header("Prefer", "scope=none"), 403),
    ] {
        assert_eq!(send(request.clone()).await.status, status, "{request:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rejection_has_declared_status() {
    let error = json!({ "description": "", "content": { "application/json": {
        "schema": { "type": "object", "required": ["reason"], "properties": { "reason": { "type": "string" } }, "additionalProperties": false },
    } } });
    let fitting = json!({ "description": "", "content": { "application/json": { "schema": { "type": "object" } } } });
    for (responses, expected) in [
        (json!({ "200": {} }), 400),
        (json!({ "200": {}, "422": error }), 422),
        (json!({ "200": {}, "422": error, "default": error }), 422),
        (json!({ "200": {}, "422": { "description": "" } }), 422),
        (json!({ "200": {}, "422": fitting }), 422),
        (json!({ "200": {}, "400": error, "422": error }), 400),
        (json!({ "200": {}, "4XX": error }), 400),
    ] {
        let parameters = json!([{ "name": "size", "in": "query", "schema": { "type": "integer" } }]);
        let mock = small(json!({ "/a": { "get": { "parameters": parameters, "responses": responses } } }), json!({}));
        assert_eq!(mock.server.send(&Request::new("GET", "/a?size=x")).await.unwrap().status, expected, "{responses}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn problem_has_status_of_response() {
    let problem = |schema: Value, example: Value| json!({ "description": "", "content": { "application/problem+json": { "schema": schema, "example": example } } });
    let closed = json!({ "type": "object", "properties": { "title": { "type": "string" } }, "additionalProperties": false });
    let open = json!({ "type": "object", "properties": { "title": {}, "status": { "type": "integer" } } });
    for (response, expected) in [
        (problem(open.clone(), json!({ "title": "a", "status": 500 })), json!(400)),
        (problem(open, json!({ "title": "a" })), json!(400)),
        (problem(closed, json!({ "title": "a" })), Value::Null),
        (json!({ "description": "", "content": { "application/problem+json": {} } }), json!(400)),
        (
            json!({ "description": "", "content": { "application/json": { "example": { "error": { "code": 404, "message": "a" } } } } }),
            Value::Null,
        ),
    ] {
        let parameters = json!([{ "name": "size", "in": "query", "schema": { "type": "integer" } }]);
        let get = json!({ "get": { "parameters": parameters, "responses": { "200": {}, "default": response } } });
        let reply = small(json!({ "/a": get }), json!({})).server.send(&Request::new("GET", "/a?size=x")).await.unwrap();
        assert_eq!((reply.status, &reply.json()["status"]), (400, &expected), "{response}");
        let nested = &reply.json()["error"]["code"];
        assert!(nested.is_null() || nested == 400);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn headers_of_message_and_connection_are_not_taken_from_examples() {
    let declared = |example: &str| json!({ "schema": { "type": "string" }, "example": example, "required": true });
    let mut get = answered(json!({ "application/json": { "example": { "a": 1 } } }));
    get["get"]["responses"]["200"]["headers"] = json!({
        "Content-Length": declared("9999"), "date": declared("Mon, 01 Jan 2001 00:00:00 GMT"), "Transfer-Encoding": declared("gzip"),
        "Connection": declared("upgrade"), "Content-Encoding": declared("br"), "Keep-Alive": declared("timeout=5"), "X-Own": declared("yes"),
        "X-Request-Id": declared("7"),
        "bad name": declared("no"), "X-Impossible": { "schema": { "type": "integer", "minimum": 2, "maximum": 1 } },
    });
    let mock = small(json!({ "/a": get }), json!({}));
    for method in ["GET", "HEAD"] {
        let reply = mock.server.send(&Request::new(method, "/a")).await.unwrap();
        assert_eq!((reply.status, header(&reply, "x-own"), header(&reply, "content-length")), (200, "yes", "7"), "{method}");
        assert!(!header(&reply, "date").contains("2001"));
        assert_eq!(reply.headers.get_all("x-request-id").iter().collect::<Vec<_>>(), ["7"], "{method}");
        for name in ["transfer-encoding", "connection", "content-encoding", "keep-alive", "x-impossible"] {
            assert_eq!(header(&reply, name), "", "{name}");
        }
    }
    let options = mock.server.send(&Request::new("OPTIONS", "/a")).await.unwrap();
    assert_eq!((options.status, options.body.len(), header(&options, "allow")), (204, 0, "GET, HEAD, OPTIONS"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn examples_in_schemas_are_followed_unless_dynamic() {
    let schema = json!({ "type": "object", "required": ["name", "tags"], "properties": {
        "name": { "type": "string", "example": "Ama" }, "tags": { "type": "array", "items": { "type": "string", "example": "new" } },
        "note": { "type": "string", "default": "none" },
    } });
    let mock = small(json!({ "/a": answered(json!({ "application/json": { "schema": schema } })) }), json!({}));
    for number in 0..10 {
        let request = Request::new("GET", format!("/a?{number}"));
        let body = mock.send(&request).await.json();
        assert_eq!((&body["name"], &body["tags"][0], &body["note"]), (&json!("Ama"), &json!("new"), &json!("none")));
        let dynamic = mock.send(&request.with_header("Prefer", "dynamic=true")).await.json().to_string();
        assert!(!["Ama", "new", "none"].iter().any(|example| dynamic.contains(&format!("\"{example}\""))), "{dynamic}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn operation_without_responses_is_not_implemented() {
    let mock = small(json!({ "/a": { "get": { "summary": "no responses" } } }), json!({}));
    let reply = mock.server.send(&Request::new("GET", "/a")).await.unwrap();
    assert_eq!((reply.status, &reply.json()["message"]), (501, &json!("The document declares no response of GET /a.")));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn document_of_openapi_3_1_is_served() {
    let schema = json!({ "type": ["object", "null"], "required": ["kind", "parts"], "properties": {
        "kind": { "const": "tree" }, "parts": { "type": "array", "prefixItems": [{ "type": "integer" }], "items": false },
        "note": { "$ref": "#/components/schemas/Note", "description": "A note." },
    } });
    let schemas = json!({ "Note": { "type": ["string", "integer"], "examples": ["a note"] } });
    let document = json!({
        "openapi": "3.1.0",
        "paths": { "/a": answered(json!({ "application/json": { "schema": schema } })) },
        "webhooks": { "grown": { "post": {} } },
        "components": { "schemas": schemas },
    });
    let mock = MockServer::of(document, MockSettings::default());
    let body = mock.send(&Request::new("GET", "/a")).await.json();
    assert_eq!((&body["kind"], &body["note"]), (&json!("tree"), &json!("a note")), "{body}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn invalid_example_is_not_served() {
    let reply = mock().send(&Request::new("GET", "/wrong")).await;
    assert!(reply.json()["size"].is_i64(), "{}", reply.json());

    let examples = json!({ "bad": { "value": "one" }, "good": { "value": 4711 }, "other": { "value": 2 } });
    let mut numbers = answered(json!({ "application/json": { "schema": { "type": "integer" }, "examples": examples } }));
    numbers["get"]["responses"]["200"]["headers"] =
        json!({ "X-Number": { "schema": { "type": "integer" }, "examples": examples } });
    let reply = small(json!({ "/numbers": numbers }), json!({})).send(&Request::new("GET", "/numbers")).await;
    assert_eq!((reply.json(), header(&reply, "x-number")), (json!(4711), "4711"), "the first valid example");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn path_with_more_literal_text_takes_precedence() {
    let of = |name: &str| answered(json!({ "text/plain": { "example": name } }));
    let mock = small(
        json!({ "/a/{id}": of("any"), "/a/{id}.{kind}": of("kind"), "/a/{id}.json": of("json"), "/a/b": of("b") }),
        json!({}),
    );
    for (path, expected) in [("/a/7", "any"), ("/a/7.txt", "kind"), ("/a/7.json", "json"), ("/a/b", "b")] {
        assert_eq!(mock.send(&Request::new("GET", path)).await.body, expected.as_bytes(), "{path}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn schema_without_valid_value_is_served_as_described() {
    let part = |name: &str| json!({ "type": "object", "required": [name], "properties": { name: { "type": "integer" } }, "additionalProperties": false });
    let schema = json!({ "allOf": [part("a"), part("b")] });
    let mock = small(json!({ "/a": answered(json!({ "application/json": { "schema": schema } })) }), json!({}));
    let reply = mock.server.send(&Request::new("GET", "/a")).await.unwrap();
    assert_eq!(reply.status, 200);
    assert!(["a", "b"].iter().all(|name| reply.json()[name].is_i64()), "{}", reply.json());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn example_with_forbidden_property_is_not_served() {
    let schema = |additional: bool| json!({ "type": "object", "properties": { "a": { "type": "integer" } }, "additionalProperties": additional });
    let with =
        |additional: bool| answered(json!({ "application/json": { "schema": schema(additional), "example": { "b": 1 } } }));
    let mock = small(json!({ "/open": with(true), "/closed": with(false) }), json!({}));
    let send = async |path: &str| mock.server.send(&Request::new("GET", path)).await.unwrap().json();
    assert_eq!(send("/open").await, json!({ "b": 1 }));
    assert!(send("/closed").await.get("b").is_none());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn accepts_large_body_of_foreign_document() {
    let post = json!({ "post": {
        "requestBody": { "content": { "application/json": {} } }, "responses": { "200": { "description": "" } },
    } });
    let mock = small(json!({ "/a": post }), json!({}));
    let request = Request::new("POST", "/a").with_json(&json!("x".repeat(1024 * 1024)));
    assert_eq!(mock.send(&request).await.status, 200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn response_without_valid_value_violates_its_schema() {
    let reply = mock().server.send(&Request::new("GET", "/impossible")).await.unwrap();
    assert_eq!((reply.status, reply.json()), (200, json!(0)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn invalid_example_cannot_be_selected() {
    let examples = json!({ "good": { "value": 1 }, "bad": { "value": "one" }, "ba-d": { "value": 2 } });
    let numbers = answered(json!({ "application/json": { "schema": { "type": "integer" }, "examples": examples } }));
    let mock = small(json!({ "/numbers": numbers }), json!({}));
    let send = async |example: &str| {
        let request = Request::new("GET", "/numbers").with_header("Prefer", &format!("example={example}"));
        mock.server.send(&request).await.unwrap()
    };
    assert_eq!([send("good").await.json(), send("ba-d").await.json()], [1, 2]);
    let bad = send("bad").await;
    let detail = bad.json()["fields"][0]["detail"].as_str().unwrap().to_owned();
    assert!(bad.status == 400 && detail.starts_with("has example=bad, which is not as its schema says: "), "{detail}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn oversized_response_is_not_generated() {
    let list = |items: Value| json!({ "type": "array", "minItems": 90_000, "items": items });
    let huge = list(list(json!({ "type": "string", "minLength": 90_000 })));
    let mock = small(json!({ "/huge": answered(json!({ "application/json": { "schema": huge } })) }), json!({}));
    let reply = mock.server.send(&Request::new("GET", "/huge")).await.unwrap();
    assert_eq!((reply.status, reply.json()), (200, json!([])));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn failed_response_names_its_cause() {
    let schema = json!({ "type": "object", "patternProperties": { "[": { "type": "string" } } });
    let mock = small(json!({ "/wrong": answered(json!({ "application/json": { "schema": schema } })) }), json!({}));
    let client = HttpClient::new(&format!("http://{}", mock.address())).unwrap();
    let failed = client.send(&Request::new("GET", "/wrong")).await.unwrap();
    assert_eq!((failed.status, &failed.json()["code"]), (500, &json!("response.not-generated")));
    let message = failed.json()["message"].as_str().unwrap().to_owned();
    assert!(message.contains("/paths/~1wrong/get/responses/200") && message.contains("\"[\" is not a \"regex\""), "{message}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn redirect_takes_precedence_over_default() {
    let location = json!({ "Location": { "required": true, "schema": { "type": "string" }, "example": "/b" } });
    let error = || json!({ "description": "", "content": { "application/json": { "schema": { "type": "object" } } } });
    let moved = || json!({ "description": "", "headers": location });
    for (responses, status) in [
        (json!({ "302": moved(), "default": error() }), 302),
        (json!({ "302": moved(), "404": error() }), 302),
        (json!({ "304": { "description": "" }, "default": error() }), 200),
        (json!({ "302": moved(), "200": error() }), 200),
    ] {
        let mock = small(json!({ "/a": { "get": { "responses": responses } } }), json!({}));
        let reply = mock.server.send(&Request::new("GET", "/a")).await.unwrap();
        assert_eq!((reply.status, header(&reply, "location")), (status, if status == 302 { "/b" } else { "" }), "{responses}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn generated_error_has_status_of_response() {
    let schema = json!({ "type": "object", "required": ["status"], "properties": { "status": { "type": "integer", "minimum": 100, "maximum": 599 } } });
    let error = |media_type: &str| json!({ "description": "", "content": { media_type: { "schema": schema } } });
    for media_type in ["application/problem+json", "application/json"] {
        let responses = json!({ "200": {}, "404": error(media_type), "409": error(media_type), "default": error(media_type) });
        let mock = small(json!({ "/a": { "get": { "responses": responses } } }), json!({}));
        for status in [404, 409, 500] {
            for prefer in [format!("code={status}"), format!("code={status}, dynamic=true")] {
                let request = Request::new("GET", "/a").with_header("Prefer", &prefer);
                let reply = mock.server.send(&request).await.unwrap();
                assert_eq!((reply.status, &reply.json()["status"]), (status, &json!(status)), "{media_type}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rejected_preference_has_shape_of_document() {
    let schema = json!({ "type": "object", "required": ["reason"], "properties": { "reason": { "type": "string" } }, "additionalProperties": false });
    let error = || json!({ "description": "", "content": { "application/json": { "schema": schema } } });
    let xml = json!({ "description": "", "content": { "application/xml": { "schema": { "type": "object" } } } });
    let mock = small(json!({ "/a": { "get": { "responses": { "200": xml, "400": error(), "501": error() } } } }), json!({}));
    let declared = mock.send(&Request::new("GET", "/a").with_header("Prefer", "code=418")).await;
    assert_eq!((declared.status, declared.json()["reason"].is_string()), (400, true), "{}", declared.json());
    assert!(header(&declared, "x-mock-refusal").contains("code=418"));
    let xml = mock.send(&Request::new("GET", "/a")).await;
    assert_eq!((xml.status, xml.json()["reason"].is_string()), (501, true), "{}", xml.json());
}
