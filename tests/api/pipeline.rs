//! The request pipeline: paths, methods, headers, the order of the checks, and the error bodies of the requirement.

use std::sync::Arc;

use boxoffice::kernel::http::{self, Routes, get};
use boxoffice::state::Ctx;
use boxoffice_http::error::Result;
use boxoffice_openapi::Contract;
use serde_json::json;

use crate::support::{ANY_PORT, TestApp, fetch_url, rejection, test_on};

#[test_on(sqlite, postgres)]
async fn unknown_path_is_named(app: TestApp) {
    for path in ["/nowhere", "/v3/nowhere", "/v3x", "/docs/x", "/regions/1/2", "/v4/regions"] {
        let response = app.request("GET", path).anonymous().send().await;

        assert_eq!(response.status, 404, "{path}");
        let message = format!("The requested endpoint {path} does not exist on this server.");
        assert_eq!(response.body, json!({ "message": message, "code": "endpoint.unknown" }));
    }
}

#[test_on(sqlite, postgres)]
async fn wrong_method_lists_allowed_methods(app: TestApp) {
    for (method, path, allowed) in [
        ("DELETE", "/regions", "GET, HEAD, POST, OPTIONS"),
        ("POST", "/v3/regions/17637000000001", "GET, HEAD, PUT, DELETE, OPTIONS"),
        ("PATCH", "/orders", "GET, HEAD, POST, OPTIONS"),
        ("HEAD", "/sessions", "POST, OPTIONS"),
    ] {
        let response = app.request(method, path).anonymous().send().await;

        assert_eq!((response.status, response.header("allow")), (405, allowed), "{method} {path}");
    }
}

#[test_on(sqlite, postgres)]
async fn serves_every_path_below_v3(app: TestApp) {
    let plain = app.request("GET", "/regions").send().await;
    let versioned = app.request("GET", "/v3/regions").send().await;

    assert_eq!((plain.status, versioned.status), (200, 200));
    assert_eq!(plain.body, versioned.body);
    assert_eq!(plain.body, json!({ "total": 0, "page": 1, "records": 25, "entries": [] }));
}

#[test_on(sqlite, postgres)]
async fn accepts_equivalent_request_forms(app: TestApp) {
    let usual = app.request("GET", "/published-events").send().await;

    for (method, path) in [
        ("get", "/published-events"),
        ("GET", "//published-events/"),
        ("GET", "/published%2Devents"),
        ("Get", "/v3/%70ublished-events"),
    ] {
        let response = app.request(method, path).send().await;

        assert_eq!((response.status, &response.body), (200, &usual.body), "{method} {path}");
    }
    assert_eq!(app.request("get", "/published%2Devents/1").send().await.status, 404);
}

#[test_on(sqlite, postgres)]
async fn allows_any_origin(app: TestApp) {
    let preflight = app.request("OPTIONS", "/orders").anonymous().header("Origin", "https://shop.example");
    let preflight = preflight.header("Access-Control-Request-Method", "POST").send().await;
    let found = app.request("GET", "/regions").header("Origin", "https://shop.example").send().await;
    let rejected = app.request("GET", "/regions").no_key().header("Origin", "https://shop.example").send().await;

    assert_eq!(preflight.status, 204);
    assert_eq!(preflight.header("access-control-allow-methods"), "GET, HEAD, POST, OPTIONS");
    assert_eq!(preflight.header("access-control-allow-headers"), "*, Authorization");
    for response in [preflight, found, rejected] {
        assert_eq!(response.header("access-control-allow-origin"), "*", "{}", response.status);
        for header in ["x-request-id", "date", "content-disposition"] {
            assert!(response.header("access-control-expose-headers").contains(header));
        }
    }
}

#[test_on(sqlite, postgres)]
async fn every_response_has_request_id(app: TestApp) {
    let found = app.request("GET", "/regions").send().await;
    let rejected = app.request("GET", "/regions").no_key().send().await;
    let unknown = app.request("GET", "/nowhere").send().await;

    let ids = [found, rejected, unknown].map(|response| response.header("x-request-id").to_owned());
    assert!(ids.iter().all(|id| !id.is_empty()));
    assert_ne!(ids[0], ids[1]);
}

#[test_on(sqlite, postgres)]
async fn media_type_may_have_charset(app: TestApp) {
    let request = app.request("POST", "/regions").key(&app.staff.key).header("Content-Type", "Application/JSON; charset=utf-8");

    let created = request.body(r#"{"name": "Accra", "country": "Ghana"}"#).send().await;

    assert_eq!(created.status, 201);
}

#[test_on(sqlite, postgres)]
async fn rejects_non_object_body(app: TestApp) {
    for body in ["{", "name", "[]", "\"name\"", "7", "{\"name\": \"Accra\"", "\u{feff}{}"] {
        let response = app.request("POST", "/regions").key(&app.staff.key).header("Content-Type", "application/json");
        let response = response.body(body).send().await;

        assert_eq!(rejection(&response), (400, "body.malformed"), "{body}");
    }
}

#[test_on(sqlite, postgres)]
async fn missing_body_is_empty_object(app: TestApp) {
    let region = app.create_region().await;
    let staff = &app.staff.key;

    let creation = app.post_empty(staff, "/regions").await;
    let change = app.request("PUT", &region).key(staff).send().await;
    let blank = app.request("PUT", &region).key(staff).header("Content-Type", "application/json").body(" \n").send().await;

    assert_eq!(creation.invalid_arguments(), ["-name", "-country"]);
    assert_eq!((change.status, blank.status), (200, 200), "a client may send nothing where it has nothing to say");
}

/// The size of the error response is limited, however many items are invalid.
#[test_on(sqlite, postgres)]
async fn rejects_long_list(app: TestApp) {
    let body = json!({ "name": "Music", "subcategories": vec![json!({}); 5000] });
    let response = app.post(&app.staff.key, "/categories", &body).await;

    assert_eq!(response.invalid_arguments(), ["subcategories"]);
    assert!(response.body["fields"][0]["detail"].as_str().unwrap().starts_with("must have at most "), "{}", response.body);
}

#[test_on(sqlite, postgres)]
async fn omits_null_from_error_detail(app: TestApp) {
    let body = json!({ "identification": "kofi", "role": "boss" });
    let response = app.post(&app.staff.key, "/lookups", &body).await;

    assert_eq!(response.body["fields"][0]["detail"], "must be one of: public, customer, administrator");
}

#[test_on(sqlite, postgres)]
async fn names_all_errors_in_document_order(app: TestApp) {
    let venue = |body| app.request("POST", "/venues").key(&app.staff.key).json(&body).send();

    let nothing = venue(json!({})).await;
    assert_eq!(nothing.invalid_arguments(), ["-name", "-region", "-address", "-longitude", "-latitude"]);
    let blank = venue(json!({ "name": " ", "region": "", "address": null, "longitude": "", "latitude": null })).await;
    assert_eq!(blank.invalid_arguments(), ["-name", "-region", "-address", "-longitude", "-latitude"]);
    let mixed = venue(json!({ "latitude": 91, "longitude": "west", "name": 7, "region": "/regions/1" })).await;
    assert_eq!(mixed.invalid_arguments(), ["name", "-address", "longitude", "latitude"]);
    assert_eq!(mixed.code(), "arguments.invalid");
    let text = "Missing: address. Invalid: name (must be a string), longitude (must be a number), latitude (must be at most 90).";
    assert_eq!(mixed.body["error"], text);
}

#[test_on(sqlite, postgres)]
async fn checks_run_in_documented_order(app: TestApp) {
    let ama = app.sign_up("ama").await;
    let nowhere = app.request("DELETE", "/nowhere").anonymous().send().await;
    let version = app.request("POST", "/regions").anonymous().send().await;
    let key = app.request("POST", "/regions").no_key().send().await;
    let scope = app.request("POST", "/regions").key(&ama.key).body("{").send().await;
    let arguments = app.put(&app.staff.key, "/regions/17637000000001", json!({ "name": 7 })).await;
    let resource = app.put(&app.staff.key, "/regions/17637000000001", json!({ "name": "x" })).await;

    let statuses = [nowhere, version, key, scope, arguments, resource].map(|response| response.status);
    assert_eq!(statuses, [404, 412, 401, 403, 400, 404]);
}

async fn panic_get(_: Ctx) -> Result<()> {
    panic!("a mistake in an endpoint")
}

#[test_on(sqlite, postgres)]
async fn panic_returns_server_error(app: TestApp) {
    let contract = json!({ "paths": { "/panics": { "get": { "operationId": "panic_get", "responses": { "500": {} } } } } });
    let mut routes = Routes::new();
    routes.add("Panics", [get("panic_get", "/panics", panic_get).without_key()]);
    let server = http::start(Arc::clone(&app.state), routes, Arc::new(Contract::new(contract).unwrap()), ANY_PORT).unwrap();

    let response = fetch_url(&format!("http://{}/panics", server.address())).await;

    assert_eq!(response.status().as_u16(), 500);
    assert!(response.headers().contains_key("x-request-id"));
    let message = "There was a server error while excuting this request. Please see system logs for details.";
    let body: serde_json::Value = response.json().await.unwrap();
    assert_eq!(body, json!({ "message": message, "code": "server.error" }));
}
