//! The frame around every operation: the order of checks, and the requirement's bodies to the letter.

use std::sync::Arc;

use boxoffice::contract::Contract;
use boxoffice::http::{self, Api, Failure, Rq};
use dropshot::{HttpResponseOk, endpoint};
use serde_json::json;

use crate::on_both_databases;
use crate::support::{ANY_PORT, TestApp};

on_both_databases![
    an_unknown_path_is_named,
    another_method_is_told_which_are_allowed,
    every_path_is_served_below_v3_too,
    a_request_is_served_in_every_way_of_writing_it,
    an_outdated_client_is_told_to_upgrade,
    a_key_is_asked_for,
    a_key_that_is_unknown_or_too_low_is_refused,
    an_unknown_resource_is_told_in_the_requirements_words,
    a_browser_may_call_from_any_origin,
    every_answer_carries_the_requests_identifier,
    a_body_is_held_to_its_size_and_media_type,
    a_body_that_is_no_json_object_is_refused,
    no_body_is_one_without_arguments,
    a_long_list_is_refused_for_its_length,
    a_value_that_may_be_null_is_not_told_so,
    everything_wrong_is_named_at_once_in_the_documents_order,
    checks_come_in_their_order,
    a_panic_is_answered_like_any_failure_inside,
];

async fn an_unknown_path_is_named(app: TestApp) {
    for path in ["/nowhere", "/v3/nowhere", "/v3x", "/", "/regions/1/2", "/v4/regions"] {
        let answer = app.request("GET", path).no_key().version(None).send().await;

        assert_eq!(answer.status, 404, "{path}");
        let message = format!("The requested endpoint {path} does not exist on this server.");
        assert_eq!(answer.body, json!({ "message": message, "code": "endpoint.unknown" }));
    }
}

async fn another_method_is_told_which_are_allowed(app: TestApp) {
    for (method, path, allowed) in [
        ("DELETE", "/regions", "GET, POST"),
        ("POST", "/v3/regions/17637000000001", "GET, PUT, DELETE"),
        ("PATCH", "/orders", "GET, POST"),
        ("HEAD", "/time", "GET"),
    ] {
        let answer = app.request(method, path).no_key().version(None).send().await;

        assert_eq!((answer.status, answer.header("allow")), (405, allowed), "{method} {path}");
    }
}

async fn every_path_is_served_below_v3_too(app: TestApp) {
    let plain = app.request("GET", "/regions").send().await;
    let versioned = app.request("GET", "/v3/regions").send().await;

    assert_eq!((plain.status, versioned.status), (200, 200));
    assert_eq!(plain.body, versioned.body);
    assert_eq!(plain.body, json!({ "total": 0, "page": 1, "records": 25, "entries": [] }));
}

async fn a_request_is_served_in_every_way_of_writing_it(app: TestApp) {
    let usual = app.request("GET", "/published-events").send().await;

    for (method, path) in [
        ("get", "/published-events"),
        ("GET", "//published-events/"),
        ("GET", "/published%2Devents"),
        ("Get", "/v3/%70ublished-events"),
    ] {
        let answer = app.request(method, path).send().await;

        assert_eq!((answer.status, &answer.body), (200, &usual.body), "{method} {path}");
    }
    let answer = app.request("get", "/published%2Devents/1").send().await;
    assert_eq!(answer.status, 404);
}

async fn an_outdated_client_is_told_to_upgrade(app: TestApp) {
    for version in [None, Some(""), Some("2.9.9"), Some("2"), Some("three"), Some("3.0.0.0"), Some("-3")] {
        let answer = app.request("GET", "/regions").version(version).send().await;

        assert_eq!(answer.status, 412, "{version:?}");
        let error = "Please upgrade your client to complete this request";
        assert_eq!(answer.body, json!({ "error": error, "code": "client.outdated" }));
    }
    for version in ["3", "3.0", "3.0.0", "3.1", "12.0.7"] {
        assert_eq!(app.request("GET", "/regions").version(Some(version)).send().await.status, 200, "{version}");
    }
}

async fn a_key_is_asked_for(app: TestApp) {
    let expected = json!({ "message": "Your request could not be authenticated.", "code": "key.missing" });

    let without = app.request("GET", "/regions").no_key().send().await;
    let empty = app.request("GET", "/regions").key("").send().await;
    let blank = app.request("GET", "/regions").key("  ").send().await;

    for answer in [without, empty, blank] {
        assert_eq!((answer.status, &answer.body), (401, &expected));
    }
}

async fn a_key_that_is_unknown_or_too_low_is_refused(app: TestApp) {
    let expected = json!({ "message": "You are restricted from accessing this resource.", "code": "key.refused" });
    let ama = app.sign_up("ama").await;

    let unknown = app.request("GET", "/regions").key("abcdefghijklmnopqrstuvwxyz012345").send().await;
    let nobody = app.request("GET", &format!("/accounts/{}", ama.number)).send().await;
    let customer = app.request("GET", "/orders").key(&ama.key).send().await;

    for answer in [unknown, nobody, customer] {
        assert_eq!((answer.status, &answer.body), (403, &expected));
    }
}

async fn an_unknown_resource_is_told_in_the_requirements_words(app: TestApp) {
    for path in ["/regions/17637000000001", "/regions/no-such", "/events/1", "/v3/hosts/00000000000000"] {
        let answer = app.request("GET", path).send().await;

        assert_eq!(answer.status, 404, "{path}");
        let error = "There is presently no resource with the given URI.";
        assert_eq!(answer.body, json!({ "error": error, "code": "resource.not-found" }));
    }
}

async fn a_browser_may_call_from_any_origin(app: TestApp) {
    let preflight = app.request("OPTIONS", "/orders").no_key().version(None).header("Origin", "https://shop.example");
    let preflight = preflight.header("Access-Control-Request-Method", "POST").send().await;
    let found = app.request("GET", "/regions").header("Origin", "https://shop.example").send().await;
    let refused = app.request("GET", "/regions").no_key().header("Origin", "https://shop.example").send().await;

    assert_eq!(preflight.status, 204);
    assert!(preflight.header("access-control-allow-methods").contains("POST"));
    assert_eq!(preflight.header("access-control-allow-headers"), "*, Authorization");
    for answer in [preflight, found, refused] {
        assert_eq!(answer.header("access-control-allow-origin"), "*", "{}", answer.status);
        assert!(answer.header("access-control-expose-headers").contains("x-request-id"));
    }
}

async fn every_answer_carries_the_requests_identifier(app: TestApp) {
    let found = app.request("GET", "/regions").send().await;
    let refused = app.request("GET", "/regions").no_key().send().await;
    let unknown = app.request("GET", "/nowhere").send().await;

    let ids = [found, refused, unknown].map(|answer| answer.header("x-request-id").to_owned());
    assert!(ids.iter().all(|id| !id.is_empty()));
    assert_ne!(ids[0], ids[1]);
}

async fn a_body_is_held_to_its_size_and_media_type(app: TestApp) {
    let staff = &app.staff.key;
    let large = json!({ "name": "x".repeat(64 * 1024), "country": "Ghana" });

    let large = app.request("POST", "/regions").key(staff).json(&large).send().await;
    let form = app.request("POST", "/regions").key(staff).header("Content-Type", "application/x-www-form-urlencoded");
    let form = form.body("name=Accra&country=Ghana").send().await;
    let charset = app.request("POST", "/regions").key(staff).header("Content-Type", "Application/JSON; charset=utf-8");
    let charset = charset.body(r#"{"name": "Accra", "country": "Ghana"}"#).send().await;

    assert_eq!((large.status, large.code()), (413, "body.too-large"));
    assert_eq!((form.status, form.code()), (415, "media-type.unsupported"));
    assert_eq!(charset.status, 201);
}

async fn a_body_that_is_no_json_object_is_refused(app: TestApp) {
    for body in ["{", "name", "[]", "\"name\"", "7", "{\"name\": \"Accra\"", "\u{feff}{}"] {
        let answer = app.request("POST", "/regions").key(&app.staff.key).header("Content-Type", "application/json");
        let answer = answer.body(body).send().await;

        assert_eq!((answer.status, answer.code()), (400, "body.malformed"), "{body}");
    }
}

async fn no_body_is_one_without_arguments(app: TestApp) {
    let region = app.create_region().await;
    let staff = &app.staff.key;

    let creation = app.request("POST", "/regions").key(staff).send().await;
    let change = app.request("PUT", &region).key(staff).send().await;
    let blank = app.request("PUT", &region).key(staff).header("Content-Type", "application/json").body(" \n").send().await;

    assert_eq!(creation.invalid_arguments(), ["-name", "-country"]);
    assert_eq!((change.status, blank.status), (200, 200), "a client may send nothing where it has nothing to say");
}

/// However much is wrong with what it holds: an error of each item would fill the memory.
async fn a_long_list_is_refused_for_its_length(app: TestApp) {
    let body = json!({ "name": "Music", "subcategories": vec![json!({}); 5000] });
    let answer = app.request("POST", "/categories").key(&app.staff.key).json(&body).send().await;

    assert_eq!(answer.invalid_arguments(), ["subcategories"]);
    assert!(answer.body["fields"][0]["detail"].as_str().unwrap().starts_with("must have at most "), "{}", answer.body);
}

async fn a_value_that_may_be_null_is_not_told_so(app: TestApp) {
    let body = json!({ "identification": "kofi", "role": "boss" });
    let answer = app.request("POST", "/lookups").key(&app.staff.key).json(&body).send().await;

    assert_eq!(answer.body["fields"][0]["detail"], "must be one of: customer, administrator");
}

async fn everything_wrong_is_named_at_once_in_the_documents_order(app: TestApp) {
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

async fn checks_come_in_their_order(app: TestApp) {
    let ama = app.sign_up("ama").await;
    let nowhere = app.request("DELETE", "/nowhere").no_key().version(None).send().await;
    let version = app.request("POST", "/regions").no_key().version(None).send().await;
    let key = app.request("POST", "/regions").no_key().send().await;
    let scope = app.request("POST", "/regions").key(&ama.key).body("{").send().await;
    let arguments = app.request("PUT", "/regions/17637000000001").key(&app.staff.key).json(&json!({ "name": 7 })).send().await;
    let resource = app.request("PUT", "/regions/17637000000001").key(&app.staff.key).json(&json!({ "name": "x" })).send().await;

    let statuses = [nowhere, version, key, scope, arguments, resource].map(|answer| answer.status);
    assert_eq!(statuses, [404, 412, 401, 403, 400, 404]);
}

#[endpoint { method = GET, path = "/panics" }]
async fn panic_get(_rq: Rq) -> Result<HttpResponseOk<()>, Failure> {
    panic!("a mistake in an endpoint")
}

async fn a_panic_is_answered_like_any_failure_inside(app: TestApp) {
    let contract = json!({ "paths": { "/panics": { "get": { "operationId": "panic_get", "responses": { "500": {} } } } } });
    let mut api = Api::new();
    api.add_open(panic_get, &[]);
    let server = http::start(Arc::clone(&app.state), api, Contract::new(contract).unwrap(), ANY_PORT).unwrap();

    let answer = reqwest::get(format!("http://{}/panics", server.address())).await.unwrap();

    assert_eq!(answer.status().as_u16(), 500);
    assert!(answer.headers().contains_key("x-request-id"));
    let message = "There was a server error while excuting this request. Please see system logs for details.";
    let body: serde_json::Value = answer.json().await.unwrap();
    assert_eq!(body, json!({ "message": message, "code": "server.error" }));
}
