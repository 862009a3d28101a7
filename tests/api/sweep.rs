//! Invalid input generated from the contract: every argument of every operation with every kind of invalid value, one at a time.
//! Each request is rejected with an error that names this argument only, and changes nothing.

use boxoffice_openapi::Scope;
use boxoffice_openapi::invalid_values::{InvalidKind, invalid_values_for};
use serde_json::{Value, json};

use crate::error_texts::faults;
use crate::support::{Operation, Response, TestApp, operations, rejection, test_on};
use crate::tokens::{global_token, redeemer_key};

/// Returns the number of resources of each kind.
async fn totals(app: &TestApp) -> Vec<Value> {
    let mut totals = Vec::new();
    let lists = ["/accounts", "/regions", "/categories", "/venues", "/hosts", "/events", "/orders", "/submissions"];
    for path in lists.into_iter().chain(["/zones", "/advertisements"]) {
        totals.push(app.get(&app.staff.key, path).await.body["total"].clone());
    }
    totals
}

fn assert_complains(response: &Response, of: &str, about: &str) {
    assert_eq!(rejection(response), (400, "arguments.invalid"), "{about}: {}", response.body);
    assert_eq!(response.invalid_arguments(), [of], "{about}: {}", response.body);
    assert_eq!(faults(response), [""; 0], "{about}: {}", response.body);
}

/// Returns whether the existence of the resource is checked before the body: if the body is large and the path names one.
fn is_looked_up_first(operation: &Operation, bytes: usize) -> bool {
    operation.path.contains('{') && bytes > 64 * 1024 && operation.body_limit > 64 * 1024
}

/// These requests are rejected before the database is read.
#[test_on(sqlite)]
async fn every_body_argument_is_validated(app: TestApp) {
    let before = totals(&app).await;
    let mut tried = 0;
    for operation in operations() {
        let Some(schema) = operation.body_schema() else { continue };
        let named = |keyword: &str, name: &str| schema[keyword].as_array().is_some_and(|names| names.contains(&json!(name)));
        let send = async |body: &Value| {
            app.request(&operation.method, &operation.path_with(&[])).key(&app.staff.key).json(body).send().await
        };
        let properties = schema["properties"].as_object().unwrap();
        let (required, optional): (Vec<_>, Vec<_>) = properties.keys().cloned().partition(|name| named("required", name));
        let missing: Vec<_> = required.iter().map(|name| format!("-{name}")).collect();
        if !missing.is_empty() {
            assert_eq!(send(&json!({})).await.invalid_arguments(), missing, "{}: all, in order", operation.id);
        }
        let mut all_wrong = operation.body();
        for (name, property) in properties {
            all_wrong[name] = invalid_values_for(property, false)[0].value.clone();
        }
        let all = [required, optional].concat();
        assert_eq!(send(&all_wrong).await.invalid_arguments(), all, "{}: all, in order", operation.id);
        for (name, property) in properties {
            if named("required", name) {
                let mut body = operation.body();
                body.as_object_mut().unwrap().remove(name);
                assert_complains(&send(&body).await, &format!("-{name}"), &format!("{} without {name}", operation.id));
            }
            for wrong in invalid_values_for(property, named("required", name) || named("x-not-blank", name)) {
                let mut body = operation.body();
                body[name] = wrong.value.clone();
                if is_looked_up_first(operation, body.to_string().len()) {
                    assert_eq!(send(&body).await.code(), "resource.not-found", "{} with a large {name}", operation.id);
                    continue;
                }
                let complaint = if wrong.kind == InvalidKind::Missing { format!("-{name}") } else { name.clone() };
                assert_complains(
                    &send(&body).await,
                    &complaint,
                    &format!("{} with {name} = {}", operation.id, short(&wrong.value)),
                );
                tried += 1;
            }
        }
    }
    assert!(tried > 500, "only {tried}");
    assert_eq!(totals(&app).await, before, "nothing was done");
}

fn short(value: &Value) -> String {
    value.to_string().chars().take(60).collect()
}

/// These requests are rejected before the database is read.
#[test_on(sqlite)]
async fn every_query_argument_is_validated(app: TestApp) {
    let mut tried = 0;
    for operation in operations() {
        for parameter in operation.parameters("query") {
            let (name, schema) = (parameter["name"].as_str().unwrap(), &parameter["schema"]);
            let send = async |query: String| {
                let path = format!("{}?{query}", operation.path_with(&[]));
                (app.request(&operation.method, &path).key(&app.staff.key).send().await, format!("{} ?{query}", operation.id))
            };
            let others = if parameter["required"] == true { String::new() } else { operation.required_query() };
            if parameter["required"] == true {
                for query in [String::new(), format!("{name}="), format!("{name}=%20")] {
                    let (response, about) = send(query).await;
                    assert_complains(&response, &format!("-{name}"), &about);
                }
            }
            let texts = invalid_values_for(schema, false).into_iter().filter_map(|wrong| match wrong.value {
                Value::String(text) => Some(text),
                Value::Number(number) if schema["type"] != "string" => Some(number.to_string()),
                _ => None,
            });
            for text in texts.filter(|text| schema["type"] != "boolean" || text != "true") {
                let encoded: String = form_urlencoded::byte_serialize(text.as_bytes()).collect();
                let (response, about) = send(format!("{others}{name}={encoded}")).await;
                assert_complains(&response, name, &about);
                tried += 1;
            }
            let example = &parameter["example"];
            let example = example.as_str().map_or_else(|| example.to_string(), str::to_owned);
            let encoded: String = form_urlencoded::byte_serialize(example.as_bytes()).collect();
            let (response, about) = send(format!("{others}{name}={encoded}&{name}={encoded}")).await;
            assert_complains(&response, name, &about);
        }
    }
    assert!(tried > 150, "only {tried}");
}

/// Every variable of every path, for staff and for any other caller with the scope. A malformed identifier gets the same response as
/// one that no resource has.
#[test_on(sqlite, postgres)]
async fn malformed_identifier_is_not_found(app: TestApp) {
    let (kofi, event) = app.sign_up_host("kofi", &[]).await;
    let gate = redeemer_key(&app, &global_token(&event).await).await;
    let others = [(Scope::Public, &app.public_key), (Scope::Customer, &kofi.key), (Scope::Redeemer, &gate)];
    let contract = boxoffice::contract::load().unwrap();
    let not_found = json!({ "error": "There is presently no resource with the given URI.", "code": "resource.not-found" });
    let long = "x".repeat(300);
    let mut tried = 0;
    for operation in operations() {
        for parameter in operation.parameters("path") {
            let name = parameter["name"].as_str().unwrap();
            let odd = [
                "foo",
                "123",
                "1.5",
                "-1",
                "1e2",
                "99999999999999999999999",
                "00000000000000",
                "ZZ-00000000",
                "no%20such",
                "a%2Fb",
                "'--",
            ];
            let invisible = ["%00", "%07", "%E2%80%AE", "%25%30%30", "a%0d%0ab", &long];
            // The last one is well-formed for most parameters, but unknown.
            for value in odd.into_iter().chain(invisible).chain(["17637999999999"]) {
                let path = operation.path_with(&[(name, value)]);
                if contract.find(&operation.method, &path).is_ok_and(|found| found.id != operation.id) {
                    continue;
                }
                let is_sent = |(scope, _): &&(Scope, &String)| {
                    ["foo", "17637999999999"].contains(&value) && operation.scopes.contains(scope)
                };
                for key in others.iter().filter(is_sent).map(|(_, key)| *key).chain([&app.staff.key]) {
                    let response = operation.request(&app, &path).key(key).send().await;

                    assert_eq!((response.status, &response.body), (404, &not_found), "{} {path}", operation.id);
                    tried += 1;
                }
            }
        }
    }
    assert!(tried > 1000, "only {tried}");
}

#[test_on(sqlite, postgres)]
async fn invalid_body_wins_over_malformed_identifier(app: TestApp) {
    for path in ["/regions/1.5", "/regions/17637999999999"] {
        let rejected = app.put(&app.staff.key, path, json!({ "name": 7 })).await;
        assert_eq!(rejected.invalid_arguments(), ["name"], "{path}");
    }
}

#[test_on(sqlite, postgres)]
async fn every_body_format_is_validated(app: TestApp) {
    for operation in operations().iter().filter(|operation| operation.body_schema().is_some()) {
        // 10,000 scans have a limit of their own.
        let limits: &[_] = if operation.id == "event_offline_scan_create" { &[2 << 20] } else { &[64 << 10, 8 << 20] };
        assert!(limits.contains(&operation.body_limit), "{}: an intended limit", operation.id);
        let request = || app.request(&operation.method, &operation.path_with(&[])).key(&app.staff.key);

        let broken = request().header("Content-Type", "application/json").body("{\"name\": ").send().await;
        let list = request().json(&json!(["x"])).send().await;
        let long = async |bytes| request().header("Content-Type", "application/json").body("x".repeat(bytes)).send().await;
        let (whole, large) = (long(operation.body_limit).await, long(operation.body_limit + 1).await);

        assert_eq!(rejection(&broken), (400, "body.malformed"), "{}", operation.id);
        assert_eq!(rejection(&list), (400, "body.malformed"), "{}", operation.id);
        for other in ["application/x-www-form-urlencoded", "text/plain"] {
            let unsupported = request().header("Content-Type", other).body("{}").send().await;
            assert_eq!(rejection(&unsupported), (415, "media-type.unsupported"), "{}", operation.id);
        }
        let of_whole = if is_looked_up_first(operation, operation.body_limit) {
            (404, "resource.not-found")
        } else {
            (400, "body.malformed")
        };
        assert_eq!(rejection(&whole), of_whole, "{}: as large as it may be", operation.id);
        assert_eq!(rejection(&large), (413, "body.too-large"), "{}", operation.id);
    }
}
