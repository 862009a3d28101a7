//! Servers that do what HTTP and OpenAPI leave open: these are no findings.

use boxoffice_openapi::Contract;
use bytes::Bytes;
use http::{Request, Response};
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::{compare, document, findings, json_answer, json_body, json_response, rejection, response, variable};

/// Compares a server with a document, and returns the findings that contain a text.
async fn found(
    document: Value,
    text: &str,
    answer: impl Fn(&Request<Bytes>) -> Response<String> + Send + Sync + 'static,
) -> Vec<String> {
    let report = compare(document, answer).await;
    findings(&report).into_iter().filter(|finding| finding.contains(text)).collect()
}

/// Compares a server of a profile, whose update with this method replaces it, and returns the findings about lost properties.
async fn lost_by(method: &str) -> Vec<String> {
    let text = json!({ "type": "string", "minLength": 1 });
    let profile = json!({ "type": "object", "properties": { "name": text, "motto": text } });
    let example = json!({ "name": "Ama", "motto": "Sing" });
    let body = json_body(&profile, example.clone());
    let paths = json!({ "/profile": {
        "get": { "operationId": "read", "responses": { "200": json_answer(&profile) } },
        method: { "operationId": "update", "requestBody": body, "responses": { "200": json_answer(&profile), "400": json_answer(&json!({})) } },
    } });
    let profile = Mutex::new(example);
    found(document("other", paths), "clears", move |request| {
        let mut profile = profile.lock();
        if request.method() != "GET" {
            match serde_json::from_slice::<Value>(request.body()) {
                Ok(body) if body.is_object() => *profile = body,
                _ => return json_response(400, &json!({})),
            }
        }
        json_response(200, &profile)
    })
    .await
}

#[tokio::test]
async fn replacement_may_clear_what_it_lacks() {
    assert_eq!(lost_by("put").await, [""; 0]);
    let expected = ["name", "motto"].map(|name| format!("update sent.kept: an update without {name} clears it"));
    let found = lost_by("patch").await;
    assert!(found.contains(&expected[0]) || found.contains(&expected[1]), "{found:?}");
}

#[tokio::test]
async fn overlapping_paths_may_allow_the_methods_of_both() {
    let identifier = variable("id", json!({ "type": "string" }));
    let responses = json!({ "200": json_answer(&json!({})), "404": json_answer(&json!({})) });
    let paths = json!({
        "/users": {
            "get": { "operationId": "list", "responses": responses },
            "post": { "operationId": "create", "responses": responses },
        },
        "/users/me": { "get": { "operationId": "me", "responses": responses } },
        "/users/{id}": {
            "parameters": identifier,
            "get": { "operationId": "read", "responses": responses },
            "delete": { "operationId": "remove", "responses": responses },
        },
    });
    let allow = |methods: &'static [&'static str]| {
        move |request: &Request<Bytes>| {
            let mut response = json_response(200, &json!({ "id": "me" }));
            if request.method() == "OPTIONS" {
                let methods = if request.uri().path() == "/users" { &["GET, POST"] } else { methods };
                for methods in methods {
                    response.headers_mut().append("allow", methods.parse().unwrap());
                }
            }
            response
        }
    };
    assert_eq!(found(document("other", paths.clone()), "method.options", allow(&["GET, HEAD", "DELETE"])).await, [""; 0]);
    let mut others = paths;
    others.as_object_mut().unwrap().shift_remove("/users/me");
    let expected = ["read method.options: Allow in the response to OPTIONS doesn't list the documented methods"];
    assert_eq!(found(document("other", others), "method.options", allow(&["GET"])).await, expected);
}

#[tokio::test]
async fn any_media_type_is_accepted_where_any_is_declared() {
    for (declared, expected) in [("*/*", vec![]), ("application/*", vec![]), ("application/json", vec!["200"])] {
        let body = json!({ "required": true, "content": { declared: { "schema": { "type": "object" } } } });
        let responses = json!({ "200": json_answer(&json!({})), "400": json_answer(&json!({})), "415": json_answer(&json!({})) });
        let paths = json!({ "/echo": { "post": { "operationId": "echo", "requestBody": body, "responses": responses } } });
        let found = found(document("other", paths), "another media type", |request| {
            let status = if serde_json::from_slice::<Value>(request.body()).is_ok() { 200 } else { 400 };
            json_response(status, &json!({}))
        });
        let expected: Vec<_> = expected
            .into_iter()
            .map(|status| format!("echo body.form: a body of another media type is answered with {status}"))
            .collect();
        assert_eq!(found.await, expected, "{declared}");
    }
}

#[tokio::test]
async fn weak_tag_in_if_match_may_be_refused() {
    let note = json!({ "type": "object", "required": ["text"], "properties": { "text": { "type": "string", "minLength": 1 } } });
    let body = json!({ "content": { "application/json": { "schema": note, "example": { "text": "Hello" } } } });
    let condition = json!([{ "name": "If-Match", "in": "header", "schema": { "type": "string" } }]);
    let paths = json!({ "/note": {
        "get": { "operationId": "read", "responses": { "200": json_answer(&note) } },
        "put": {
            "operationId": "update", "parameters": condition, "requestBody": body,
            "responses": { "200": json_answer(&note), "400": json_answer(&json!({})), "412": json_answer(&json!({})) },
        },
    } });
    for (tag, expected) in
        [("W/\"1\"", vec![]), ("\"1\"", vec!["update tag.if-match: an update with the right tag in If-Match is refused"])]
    {
        let found = found(document("other", paths.clone()), "right tag", move |request| {
            let status = if request.headers().contains_key("if-match") { 412 } else { 200 };
            let mut response = json_response(status, &json!({ "text": "Hello" }));
            response.headers_mut().insert("etag", tag.parse().unwrap());
            response
        });
        assert_eq!(found.await, expected, "{tag}");
    }
}

#[tokio::test]
async fn stream_of_events_is_not_read() {
    let events =
        json!({ "description": "", "content": { "text/event-stream": { "schema": { "type": "string", "minLength": 1 } } } });
    let paths = json!({ "/events": { "get": { "operationId": "events", "responses": { "200": events } } } });
    let answer = |_: &Request<Bytes>| {
        let mut response = response(200, "data: 1\n\n".to_owned());
        response.headers_mut().insert("content-type", "text/event-stream".parse().unwrap());
        response
    };
    for check in ["response.", "method.head"] {
        assert_eq!(found(document("other", paths.clone()), check, answer).await, [""; 0]);
    }
}

#[tokio::test]
async fn declared_redirect_is_expected_beside_default() {
    let paths = json!({ "/old": { "get": { "operationId": "old", "responses": {
        "302": { "description": "" }, "default": json_answer(&json!({})),
    } } } });
    for (status, expected) in [(302, None), (404, Some("old request.valid: a valid request is answered with 404".to_owned()))] {
        let found = found(document("other", paths.clone()), "request.valid", move |_| json_response(status, &json!({}))).await;
        assert_eq!(found, Vec::from_iter(expected));
    }
}

#[tokio::test]
async fn unknown_method_may_be_501() {
    let paths = json!({ "/pets": { "get": { "operationId": "list", "responses": { "200": json_answer(&json!({})) } } } });
    let server = |get: u16| {
        move |request: &Request<Bytes>| match (request.method().as_str(), request.uri().path()) {
            ("GET", "/pets") => json_response(get, &json!({})),
            ("GET", _) => json_response(404, &json!({})),
            _ => json_response(501, &json!({})),
        }
    };
    for check in ["status.failure", "method.other"] {
        assert_eq!(found(document("other", paths.clone()), check, server(200)).await, [""; 0]);
    }
    assert_eq!(
        found(document("other", paths), "status.failure", server(501)).await,
        ["list status.failure: the server failed with 501"]
    );
}

#[tokio::test]
async fn resource_that_nothing_created_is_left_out() {
    let responses = json!({ "200": json_answer(&json!({})), "404": json_answer(&json!({})), "410": json_answer(&json!({})) });
    let text = json!({ "type": "string", "minLength": 1 });
    let read = |id: &str| json!({ "operationId": id, "responses": responses });
    let mut known = text.clone();
    known["example"] = json!("theme");
    let paths = json!({
        "/settings/{key}": { "parameters": variable("key", text.clone()), "get": read("generated") },
        "/offers/{key}": { "parameters": variable("key", text.clone()), "get": read("gone") },
        "/books": { "get": read("list") },
        "/books/{id}": { "parameters": variable("id", text.clone()), "get": read("book") },
        "/books/{id}/cover": { "parameters": variable("id", text.clone()), "get": read("cover"), "delete": read("remove") },
        "/books/{id}/summary": { "parameters": variable("id", text), "get": read("summary") },
        "/themes/{key}": { "parameters": variable("key", known), "get": read("example") },
    });
    let report = compare(document("other", paths), |request| match request.uri().path() {
        "/books" => json_response(200, &json!([{ "id": "7" }])),
        "/books/7" => json_response(200, &json!({ "id": "7" })),
        path if path.starts_with("/offers/") => json_response(410, &json!({})),
        _ => json_response(404, &json!({})),
    });
    let report = report.await;
    for (id, status) in [("generated", 404), ("cover", 404), ("gone", 410)] {
        let reason = format!("no such resource is known: a request for one is answered with {status}");
        assert_eq!(report.operation(id).unwrap().left_out, Some(reason), "{id}");
    }
    let found: Vec<_> = findings(&report).into_iter().filter(|finding| finding.contains("request.valid")).collect();
    let expected = ["summary", "example"].map(|id| format!("{id} request.valid: a valid request is answered with 404"));
    assert_eq!(found, expected);
}

#[tokio::test]
async fn started_task_is_read() {
    let task = json!({ "type": "object", "required": ["state"], "properties": { "state": { "enum": ["running", "done"] } } });
    let started = json!({ "description": "", "headers": { "Location": { "schema": { "type": "string" } } } });
    let number = variable("id", json!({ "type": "integer", "minimum": 1 }));
    let paths = json!({
        "/tasks/{id}": { "parameters": number, "get": {
            "operationId": "read", "responses": { "200": json_answer(&task), "404": json_answer(&json!({})) },
        } },
        "/reports": { "post": { "operationId": "begin", "responses": { "202": started } } },
    });
    for (state, expected) in [
        ("done", vec![]),
        ("gone", vec!["read response.body: the response 200 has a body that at /state must be one of: running, done"]),
    ] {
        let answer = move |request: &Request<Bytes>| match (request.method().as_str(), request.uri().path()) {
            ("POST", "/reports") => {
                let mut response = response(202, String::new());
                response.headers_mut().insert("location", "/tasks/4711".parse().unwrap());
                response
            }
            ("GET" | "HEAD", "/tasks/4711") => json_response(200, &json!({ "state": state })),
            (_, "/reports" | "/tasks/4711") => json_response(405, &json!({})),
            _ => json_response(404, &json!({})),
        };
        let report = compare(document("other", paths.clone()), answer).await;
        assert_eq!(report.operation("read").unwrap().left_out, None);
        let found: Vec<_> = findings(&report).into_iter().filter(|finding| !finding.contains("method.other")).collect();
        assert_eq!(found, expected);
    }
}

#[tokio::test]
async fn location_of_a_stateless_mock_is_generated() {
    let created = json!({ "description": "", "headers": { "Location": { "schema": { "type": "string" } } } });
    let variable = variable("id", json!({ "type": "string" }));
    let paths = json!({
        "/pets": { "post": { "operationId": "create", "responses": { "201": created } } },
        "/pets/{id}": { "parameters": variable, "get": { "operationId": "read", "responses": { "200": json_answer(&json!({})) } } },
    });
    for (is_mock, expected) in
        [(true, vec![]), (false, vec!["create self.resolves: Location leads to no operation of the document"])]
    {
        let answer = move |request: &Request<Bytes>| {
            let mut response = json_response(if request.method() == "POST" { 201 } else { 200 }, &json!({}));
            response.headers_mut().insert("location", "/anywhere".parse().unwrap());
            if is_mock && request.headers().contains_key("prefer") {
                response.headers_mut().insert("preference-applied", "delay=1".parse().unwrap());
            }
            response
        };
        assert_eq!(found(document("other", paths.clone()), "self.resolves", answer).await, expected, "{is_mock}");
    }
}

#[tokio::test]
async fn location_is_not_followed_without_an_operation_that_reads_the_resource() {
    let created = json!({ "description": "", "headers": { "Location": { "schema": { "type": "string" } } } });
    let paths = json!({ "/pets": { "post": { "operationId": "create", "responses": { "201": created } } } });
    let answer = |_: &Request<Bytes>| {
        let mut response = response(201, String::new());
        response.headers_mut().insert("location", "/pets/7".parse().unwrap());
        response
    };
    assert_eq!(found(document("other", paths), "self.resolves", answer).await, [""; 0]);
}

#[tokio::test]
async fn texts_with_the_pattern_of_an_argument_are_no_keys() {
    let hash = json!({ "type": "string", "pattern": "^0x[0-9a-f]{64}$" });
    let slug = json!({ "type": "string", "pattern": "^[A-Za-z0-9-]+$" });
    let variable = json!([
        { "name": "hash", "in": "path", "required": true, "schema": hash },
        { "name": "network", "in": "query", "schema": slug },
    ]);
    let error = json_answer(&json!({ "type": "object", "properties": { "message": { "type": "string" } } }));
    let paths = json!({ "/blocks/{hash}": {
        "parameters": variable,
        "get": { "operationId": "read", "responses": { "200": { "description": "" }, "400": error } },
    } });
    let block = format!("0x{}", "4bf92f35".repeat(8));
    let key = "4bf92f3577b34da6a3ce929d0e0e4736".to_owned();
    for (text, expected) in [(block, [].as_slice()), (key, &["read response.leak: the error 400 contains a key"])] {
        let answer = move |request: &Request<Bytes>| {
            let is_valid = request.uri().path().strip_prefix("/blocks/0x").is_some_and(|hash| hash.len() == 64);
            if is_valid {
                response(200, String::new())
            } else {
                json_response(400, &json!({ "message": format!("See {text}.") }))
            }
        };
        assert_eq!(found(document("other", paths.clone()), "response.leak", answer).await, expected);
    }
}

#[tokio::test]
async fn an_example_with_an_undeclared_property_is_not_called_invalid() {
    let schema = json!({ "type": "object", "properties": { "name": { "type": "string" } } });
    for (example, expected) in [
        (json!({ "name": "Ama", "age": 7 }), "has properties that its schema doesn't declare"),
        (json!({ "name": 7, "age": 7 }), "is not valid"),
    ] {
        let content = json!({ "application/json": { "schema": schema, "example": example } });
        let paths = json!({ "/pet": {
            "get": { "operationId": "read", "responses": { "200": { "description": "", "content": content } } },
        } });
        let found = found(document("other", paths), "document.example", |_| json_response(200, &json!({ "name": "Ama" }))).await;
        let pointer = "/paths/~1pet/get/responses/200/content/application~1json/examples/example";
        assert_eq!(found, [format!("read document.example: the example at {pointer} {expected}")]);
    }
}

#[tokio::test]
async fn dot_segments_are_not_sent_as_values_in_paths() {
    let schema = json!({ "type": "array", "items": { "type": "integer" }, "minItems": 1 });
    let variable = json!([{ "name": "ids", "in": "path", "required": true, "style": "label", "schema": schema }]);
    let paths = json!({ "/pets/{ids}": {
        "parameters": variable,
        "get": { "operationId": "read", "responses": { "200": json_answer(&json!({})), "400": json_answer(&json!({})) } },
    } });
    let answer = |request: &Request<Bytes>| {
        let ids = request.uri().path().strip_prefix("/pets/.").unwrap_or_default();
        let is_valid = ids.split(',').all(|id| id.parse::<i64>().is_ok());
        json_response(
            if ids.is_empty() {
                404
            } else if is_valid {
                200
            } else {
                400
            },
            &json!({}),
        )
    };
    assert_eq!(found(document("other", paths), "argument.", answer).await, [""; 0]);
}

#[tokio::test]
async fn an_invalid_example_is_not_sent_as_valid() {
    let thing = json!({ "type": "object", "required": ["name"], "properties": { "name": { "type": "string", "minLength": 1 } } });
    let parameters = json!([
        { "name": "size", "in": "query", "required": true, "schema": { "type": "integer", "minimum": 1 }, "example": 0 },
        // As a text, it is valid.
        { "name": "X-Year", "in": "header", "required": true, "schema": { "type": "string", "enum": ["2024"] }, "example": 2024 },
    ]);
    let form = json!({ "application/x-www-form-urlencoded": { "schema": thing, "example": { "age": 7 } } });
    let responses = json!({ "200": { "description": "" }, "400": { "description": "" } });
    let paths = json!({
        "/things": { "post": {
            "operationId": "create", "parameters": parameters, "requestBody": json_body(&thing, json!({ "name": 7 })), "responses": responses,
        } },
        "/forms": { "post": {
            "operationId": "fill", "requestBody": { "required": true, "content": form }, "responses": responses,
        } },
    });
    let contract = Contract::new(document("things", paths.clone())).unwrap();
    let answer = move |request: &Request<Bytes>| match rejection(&contract, request) {
        Some(rejection) => response(rejection.status().as_u16(), String::new()),
        None => response(200, String::new()),
    };
    let found = found(document("things", paths), "", answer).await;
    let others: Vec<_> = found.iter().filter(|finding| !finding.contains("method.")).collect();
    assert!(others.len() == 3 && others.iter().all(|finding| finding.starts_with("create document.example: ")), "{others:?}");
}

#[tokio::test]
async fn only_names_of_subtypes_are_sent_as_discriminators() {
    let subtype = |property: &str| {
        let own =
            json!({ "type": "object", "required": [property], "properties": { property: { "type": "integer", "minimum": 1 } } });
        json!({ "allOf": [{ "$ref": "#/components/schemas/Pet" }, own] })
    };
    for mapping in [json!({}), json!({ "Cat": "#/components/schemas/Cat", "Dog": "#/components/schemas/Dog" })] {
        let pet = json!({
            "type": "object", "required": ["kind"], "properties": { "kind": { "type": "string", "minLength": 1 } },
            "discriminator": { "propertyName": "kind", "mapping": mapping },
        });
        let body =
            json!({ "required": true, "content": { "application/json": { "schema": { "$ref": "#/components/schemas/Pet" } } } });
        let responses = json!({ "204": { "description": "" }, "400": { "description": "" } });
        let mut document = document(
            "pets",
            json!({ "/pets": { "post": { "operationId": "create", "requestBody": body, "responses": responses } } }),
        );
        document["components"] = json!({ "schemas": { "Pet": pet, "Cat": subtype("lives"), "Dog": subtype("tricks") } });
        let contract = Contract::new(document.clone()).unwrap();
        let found = found(document, "request.valid", move |request| {
            let body: Value = serde_json::from_slice(request.body()).unwrap_or_default();
            let is_known = body["kind"] == "Cat" || body["kind"] == "Dog";
            let is_valid = rejection(&contract, request).is_none() && is_known;
            response(if is_valid { 204 } else { 400 }, String::new())
        });
        assert_eq!(found.await, [""; 0]);
    }
}

#[tokio::test]
async fn valid_properties_of_an_invalid_example_are_sent() {
    let schema = json!({ "type": "object", "required": ["author", "title", "year"], "properties": {
        "author": { "type": "integer" }, "title": { "type": "string", "minLength": 1 }, "year": { "type": "integer", "minimum": 1 },
    } });
    let body = json_body(&schema, json!({ "author": 7, "title": "Ark", "year": "long ago" }));
    let responses = json!({ "201": { "description": "" }, "400": { "description": "" }, "422": { "description": "" } });
    let paths = json!({ "/books": { "post": { "operationId": "create", "requestBody": body, "responses": responses } } });
    let contract = Contract::new(document("books", paths.clone())).unwrap();
    let found = found(document("books", paths), "create ", move |request| {
        let is_valid = rejection(&contract, request).is_none();
        let author = &serde_json::from_slice::<Value>(request.body()).unwrap_or_default()["author"];
        response(
            if !is_valid {
                400
            } else if *author == 7 {
                201
            } else {
                422
            },
            String::new(),
        )
    });
    let found: Vec<_> =
        found.await.into_iter().filter(|finding| finding.contains("request.valid") || finding.contains("document.")).collect();
    assert!(found.len() == 1 && found[0].starts_with("create document.example: "), "{found:?}");
}

#[tokio::test]
async fn self_link_may_repeat_a_parameter() {
    let tag = json!([{ "name": "tag", "in": "query", "required": true, "schema": { "type": "array", "items": { "type": "string" } }, "example": ["c"] }]);
    let list = json!({ "type": "object", "properties": { "self": { "type": "string" } } });
    let paths =
        json!({ "/notes": { "get": { "operationId": "list", "parameters": tag, "responses": { "200": json_answer(&list) } } } });
    let found = found(document("notes", paths), "self.resolves", |request| {
        let query = request.uri().query().unwrap_or_default();
        let path = if query == "tag=a&tag=b" { "/notes?tag=a&tag=b" } else { "/notes?tag=a" };
        json_response(200, &json!({ "self": if query == "tag=c" { "/notes?tag=a&tag=b" } else { path } }))
    });
    assert_eq!(found.await, [""; 0]);
}
