//! Successes with a status that the document declares only by `default`.

use serde_json::{Value, json};

use super::{
    Store, compare, compare_stateful, crud_document, document, error, findings, id_in, json_answer, json_response, rejection,
    response, sent, variable,
};

/// Compares a server that answers each valid POST with this status and body. `own` is the only status that the document declares beside
/// `default`. Returns the findings about responses.
async fn found(own: &str, default: Value, status: u16, body: Option<Value>) -> Vec<String> {
    let paths = json!({ "/tasks": { "post": { "operationId": "create", "responses": { own: { "description": "" }, "default": default } } } });
    let document = document("tasks", paths);
    let report = compare(document, move |request| match &body {
        _ if request.method() != "POST" => json_response(405, &json!({})),
        Some(body) => json_response(status, body),
        None => response(status, String::new()),
    });
    let report = report.await;
    let is_of_response = |finding: &String| ["status.declared", "response."].iter().any(|check| finding.contains(check));
    findings(&report).into_iter().filter(is_of_response).collect()
}

#[tokio::test]
async fn undeclared_success_is_an_undeclared_status() {
    let problem = json!({ "type": "object", "required": ["title"], "properties": { "title": { "type": "string" } } });
    let error = |media_type: &str| json!({ "description": "", "content": { media_type: { "schema": problem } } });
    let undeclared = ["create status.declared: the response 202 is not declared"];
    for body in [None, Some(json!({ "id": 7 }))] {
        for default in [error("application/problem+json"), error("application/json")] {
            assert_eq!(found("201", default, 202, body.clone()).await, undeclared, "{body:?}");
        }
    }
    assert_eq!(found("303", error("application/json"), 202, None).await, undeclared);
}

#[tokio::test]
async fn default_may_declare_a_success() {
    let any = json_answer(&json!({ "type": "object" }));
    assert_eq!(found("201", any.clone(), 202, Some(json!({ "id": 7 }))).await, [""; 0]);
    // Without another success, `default` is the success.
    let expected = ["create response.media-type: the response 202 has no body"];
    assert_eq!(found("400", any, 202, None).await, expected);
}

/// Compares a server of books that answers a GET of an unknown one with this status and body. Returns the findings of that GET. `errors`
/// is how the document declares the rejections.
async fn found_for_unknown(errors: &str, status: u16, body: Value) -> Vec<String> {
    let problem = json_answer(&json!({ "type": "object", "required": ["title"] }));
    let book = json_answer(&json!({ "type": "object", "required": ["id"] }));
    let id = variable("id", json!({ "type": "integer", "minimum": 1 }));
    let paths = json!({
        "/books": { "get": { "operationId": "list", "responses": { "200": json_answer(&json!({ "type": "array" })) } } },
        "/books/{id}": { "parameters": id, "get": { "operationId": "read", "responses": { "200": book, errors: problem } } },
        // Otherwise the server would be a mock that has a resource for each identifier.
        "/films/{id}": { "parameters": id, "get": { "operationId": "film", "responses": { "200": book, "404": problem } } },
        "/books/{id}/reviews": { "parameters": id, "get": { "operationId": "reviews", "responses": {
            "200": json_answer(&json!({ "type": "array" })), errors: problem,
        } } },
        "/shelves": { "get": { "operationId": "shelves", "responses": { "200": json_answer(&json!({ "type": "array" })) } } },
        "/shelves/{id}": { "parameters": id, "get": { "operationId": "shelf", "responses": {
            "200": json_answer(&json!({ "type": "array" })), errors: problem,
        } } },
        "/greetings/{id}": { "parameters": id, "get": { "operationId": "greet", "responses": { "200": book, errors: problem } } },
    });
    let report = compare(document("books", paths), move |request| {
        let path = request.uri().path();
        let id = path.rsplit('/').next().and_then(|id| id.parse().ok()).filter(|id| *id > 0);
        match (request.method().as_str(), path.split('/').nth(1).unwrap_or_default(), id) {
            ("POST" | "PUT" | "PATCH" | "DELETE" | "OPTIONS", ..) => json_response(405, &json!({})),
            (_, "books", _) if path == "/books" => json_response(200, &json!([{ "id": 7 }])),
            (_, "books", _) if path.ends_with("/reviews") => {
                let is_id = path.split('/').nth(2).and_then(|id| id.parse::<i64>().ok()).is_some_and(|id| id > 0);
                if is_id { json_response(200, &json!([])) } else { json_response(400, &json!({ "title": "Invalid" })) }
            }
            // A list of the books on a shelf, which has none if it doesn't exist.
            (_, "shelves", _) if path == "/shelves" => json_response(200, &json!([{ "id": 7 }])),
            (_, "shelves", Some(_)) => json_response(200, &json!([])),
            (_, "books", Some(7)) | (_, "greetings", Some(_)) => json_response(200, &json!({ "id": 7 })),
            (_, "books", Some(_)) => json_response(status, &body),
            (_, "books" | "greetings" | "shelves", None) if path.split('/').count() == 3 => {
                json_response(400, &json!({ "title": "Invalid" }))
            }
            _ => json_response(404, &json!({ "title": "Unknown" })),
        }
    });
    findings(&report.await).into_iter().filter(|finding| !finding.contains("method.")).collect()
}

#[tokio::test]
async fn unknown_resource_is_rejected_with_a_declared_range() {
    let book = json!({ "id": 8 });
    let title = json!({ "title": "Unknown" });
    let accepted = "read resource.unknown: an unknown id is answered with 200";
    let failed = "read status.failure: the server failed with 500";
    let invalid = "read response.body: the response 404 has a body that lacks title";
    for (errors, status, body, expected) in [
        ("4XX", 404, &title, vec![]),
        ("4XX", 410, &title, vec![]),
        ("4XX", 200, &book, vec![accepted]),
        ("4XX", 404, &json!({}), vec![invalid]),
        ("default", 404, &title, vec![]),
        ("default", 200, &book, vec![]),
        ("default", 500, &title, vec![failed]),
        ("default", 404, &json!({}), vec![invalid]),
    ] {
        assert_eq!(found_for_unknown(errors, status, body.clone()).await, expected, "{errors} {status}");
    }
}

#[tokio::test]
async fn put_may_create_a_resource_if_only_a_range_is_declared() {
    let book =
        json!({ "type": "object", "required": ["title"], "properties": { "title": { "type": "string", "minLength": 1 } } });
    let mut document = crud_document("/books", &["create", "read", "replace"], &book, json!({ "title": "Ark" }));
    let responses = document["paths"]["/books/{id}"]["put"]["responses"].as_object_mut().unwrap();
    responses.shift_remove("400");
    responses.shift_remove("404");
    responses.insert("4XX".to_owned(), error());
    let report = compare_stateful(document, Store::default(), |contract, books, request| {
        if let Some(rejection) = rejection(contract, request) {
            return rejection;
        }
        match id_in(request).filter(|_| request.method() == "PUT") {
            Some(id) => {
                let mut book = sent(request);
                book["id"] = json!(id);
                books.resources.insert(id, book.clone());
                json_response(200, &book)
            }
            None => books.respond(request),
        }
    });
    let found = findings(&report.await);
    assert!(!found.iter().any(|finding| finding.contains("resource.unknown")), "{found:?}");
}
