//! The stateful mock.

use std::sync::Arc;

use boxoffice_conformance::http_client::{HttpClient, Request};
use boxoffice_mock::MockSettings;
use serde_json::{Value, json};

use super::{header, requests};
use crate::support::{Client, MockServer, Rejection, id_of, mock_request as request};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn creates_reads_lists_updates_and_deletes_region() {
    let mock = MockServer::start_stateful();
    let client = Client::connect(&mock.server.base_url, "any").unwrap();

    let created = client.region_create().body_map(|body| body.name("Ashanti").country("Ghana")).send().await.unwrap();
    let id = id_of(&created.self_).to_owned();
    assert_eq!((created.name.as_str(), id.len()), ("Ashanti", 14));
    assert_eq!(client.region_get().region(&id).send().await.unwrap().name, created.name);
    let listed = client.region_list().send().await.unwrap();
    assert_eq!(listed.total, 3);
    assert_eq!(listed.entries.last().unwrap().self_, created.self_);
    let changed = client.region_update().region(&id).body_map(|body| body.name("Volta".to_owned())).send().await.unwrap();
    assert_eq!((changed.name.as_str(), &changed.country), ("Volta", &created.country));
    assert_eq!(client.region_get().region(&id).send().await.unwrap().name, changed.name);
    client.region_delete().region(&id).send().await.unwrap();
    assert_eq!(client.region_get().region(&id).send().await.rejection(), (404, "resource.not-found".to_owned()));
    assert_eq!(client.region_delete().region(&id).send().await.rejection(), (404, "resource.not-found".to_owned()));
    assert_eq!(client.region_list().send().await.unwrap().total, 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn examples_can_be_read() {
    let mock = MockServer::start_stateful();
    let mut read = 0;
    for (operation, request) in requests(&mock.contract).into_iter().filter(|(operation, _)| operation.method == "GET") {
        let reply = mock.send(&request).await;
        assert_eq!(reply.status, 200, "{} {}", request.path_and_query(), reply.json());
        let shown = operation.response_for(200).unwrap().contents[0].examples.values().next().unwrap();
        if reply.json()["self"].is_string() {
            assert_eq!(reply.json()["self"], shown["self"], "{}", operation.id);
            read += 1;
        }
    }
    assert!(read > 20, "only {read}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nested_examples_can_be_read() {
    let mock = MockServer::start_stateful();
    // The sender of a transfer, an entry of an account's transfers, and a section of an event.
    for path in ["/accounts/GH-8T3NB6XR", "/transfers/17637816000001", "/sections/17637000000061"] {
        let reply = mock.send(&request("GET", path)).await;
        assert_eq!((reply.status, &reply.json()["self"]), (200, &json!(path)), "{}", reply.json());
    }
    assert_eq!(mock.send(&request("GET", "/events/17637000000051/sections/17637000000061")).await.status, 200, "its long path");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nested_resource_has_path_of_parent() {
    let mock = MockServer::start_stateful();
    let create = request("POST", "/accounts");
    let body = json!({ "username": "esi.addo", "password": "Kpanlogo-1987", "email": "esi@example.com" });
    let account = mock.send(&create.with_json(&body)).await.json()["self"].as_str().unwrap().to_owned();
    let get = async |path: &str| mock.send(&request("GET", path)).await.json();

    let session = format!("{account}/sessions/17637201000001");
    let read = get(&session).await;
    assert_eq!((&read["self"], &read["account"]["self"]), (&json!(session), &json!(account)));
    assert_eq!(format!("/accounts/{}", read["account"]["number"].as_str().unwrap()), account);
    for entry in get(&format!("{account}/sessions")).await["entries"].as_array().unwrap() {
        assert!(entry["self"].as_str().unwrap().starts_with(&format!("{account}/sessions/")), "{entry}");
    }
    assert_eq!(get(&format!("{account}/preferences")).await["self"], format!("{account}/preferences"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_response_still_conforms() {
    let mock = MockServer::start_stateful();
    // Deletions last, and nested resources before their parents.
    let mut requests = requests(&mock.contract);
    requests.sort_by_key(|(operation, _)| (operation.method == "DELETE", std::cmp::Reverse(operation.path.len())));
    for (operation, request) in requests {
        let reply = mock.send(&request).await;
        let is_gone = operation.method == "DELETE" && reply.status == 404;
        assert!((200..300).contains(&reply.status) || is_gone, "{} {}: {}", operation.id, reply.status, reply.json());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_collection_stores_posted_items() {
    let mock = MockServer::start_stateful();
    let mut kept = 0;
    for (operation, request) in requests(&mock.contract) {
        let is_collection = mock.contract.operations().any(|item| {
            let below = item.path.strip_prefix(&operation.path).and_then(|rest| rest.strip_prefix("/{"));
            item.method == "GET" && below.is_some_and(|rest| !rest.contains('/'))
        });
        if operation.method != "POST" || !is_collection {
            continue;
        }
        let created = mock.send(&request).await;
        if operation.id == "order_return_create" {
            assert_eq!(
                (created.status, &created.json()["self"]),
                (200, &json!("/orders/17637202000001")),
                "it returns the order"
            );
            let returns = mock.send(&super::request("GET", "/orders/17637202000001/returns")).await.json();
            assert_eq!((&returns["total"], returns["entries"].as_array().unwrap().len()), (&json!(2), 2), "{returns}");
            let read = mock.send(&super::request("GET", returns["entries"][1]["self"].as_str().unwrap())).await;
            assert_eq!((read.status, &read.json()), (200, &returns["entries"][1]), "the new return");
            continue;
        }
        assert_eq!(created.status, 201, "{} {}", operation.id, created.json());
        if operation.id == "event_admission_create" {
            assert!(created.json().is_array(), "which has no Location");
            continue;
        }
        let again = mock.send(&request).await;
        assert_ne!(created.json()["self"], again.json()["self"], "{}", operation.id);
        let uri = header(&again, "location");
        assert_eq!(again.json()["self"], uri, "{}", operation.id);
        let read = mock.send(&super::request("GET", uri)).await;
        assert_eq!((read.status, &read.json()["self"]), (200, &json!(uri)), "{} {}", operation.id, read.json());
        kept += 1;
    }
    assert!(kept > 12, "only {kept}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn deleting_item_deletes_nested_items() {
    let mock = MockServer::start_stateful();
    let (_, create) = requests(&mock.contract).into_iter().find(|(operation, _)| operation.id == "event_create").unwrap();
    let event = mock.send(&create).await.json()["self"].as_str().unwrap().to_owned();
    let (_, create) = requests(&mock.contract).into_iter().find(|(operation, _)| operation.id == "event_token_create").unwrap();
    let get = async |path: &str| mock.send(&request("GET", path)).await;

    assert_eq!(get(&format!("{event}/tokens")).await.json()["total"], 0);
    let token =
        mock.send(&Request { path: format!("{event}/tokens"), ..create }).await.json()["self"].as_str().unwrap().to_owned();
    assert!(token.starts_with(&format!("{event}/tokens/")), "{token}");
    assert_eq!(get(&token).await.status, 200);
    assert_eq!(get(&format!("/v3{event}/statistics")).await.status, 200);
    assert_eq!(mock.send(&request("DELETE", &event)).await.status, 204);
    for path in [&event, &token, &format!("{event}/tokens"), &format!("{event}/statistics")] {
        assert_eq!(get(path).await.status, 404, "{path}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lists_in_pages() {
    let mock = MockServer::start_stateful();
    for number in 0..5 {
        let create = request("POST", "/regions").with_json(&json!({ "name": format!("Region {number}"), "country": "Ghana" }));
        assert_eq!(mock.send(&create).await.status, 201);
    }
    let page = async |query: &str| {
        let reply = mock.send(&request("GET", &format!("/regions?{query}"))).await;
        let names = reply.json()["entries"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|entry| entry["name"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>();
        (reply.status, reply.json(), names)
    };

    let (_, whole, names) = page("").await;
    assert_eq!((&whole["total"], &whole["page"], &whole["records"], names.len()), (&json!(7), &json!(1), &json!(25), 7));
    let (_, second, names) = page("page=2&records=3").await;
    assert_eq!((&second["total"], &second["page"], &second["records"]), (&json!(7), &json!(2), &json!(3)));
    assert_eq!(names, ["Region 1", "Region 2", "Region 3"]);
    let (_, _, names) = page("page=3&records=3").await;
    assert_eq!(names, ["Region 4"]);
    let (status, past, _) = page("page=4&records=3").await;
    assert_eq!((status, &past["code"]), (404, &json!("page.past-end")));
    assert_eq!(past["error"], "There is presently no resource with the given URI.");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn filters_lists() {
    let mock = MockServer::start_stateful();
    let body = json!({ "name": "National Theatre", "region": "/regions/17637000000012", "address": "Liberia Road, Accra",
        "longitude": -0.2, "latitude": 5.55 });
    assert_eq!(mock.send(&request("POST", "/venues").with_json(&body)).await.status, 201);
    let order = mock.send(&request("POST", "/orders").with_json(&json!({ "items": { "/sections/17637000000062": 2 } }))).await;
    mock.send(&request("POST", &format!("{}/cancellations", order.json()["self"].as_str().unwrap()))).await;

    for (path, property, left) in [
        ("/venues?name=AMPHI", "name", vec!["Labadi Amphitheatre"]),
        ("/venues?name=nowhere", "name", vec![]),
        ("/venues?region=17637000000012", "name", vec!["National Theatre"]),
        ("/venues?region=/regions/17637000000012", "name", vec!["National Theatre"]),
        ("/venues?page=1&records=1", "name", vec!["Labadi Amphitheatre"]),
        ("/orders?status=Cancelled", "status", vec!["Cancelled"]),
        ("/orders?status=Voided", "status", vec![]),
    ] {
        let list = mock.send(&request("GET", path)).await.json();
        let found: Vec<_> = list["entries"].as_array().unwrap().iter().map(|entry| entry[property].as_str().unwrap()).collect();
        assert_eq!(found, left, "{path}");
        assert!(path.contains("records") || list["total"] == left.len(), "{path}: {list}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_creations_are_stored_separately() {
    let mock = MockServer::start_stateful();
    let (_, create) = requests(&mock.contract).into_iter().find(|(operation, _)| operation.id == "event_create").unwrap();
    let event = mock.send(&create).await.json()["self"].as_str().unwrap().to_owned();
    let body = json!({ "serials": ["7QK2M9-X4T8R1ZB6N3W", "7QK2M9-P0D5V7HJ2C9L"], "redeemer": "Esi" });
    let admit = request("POST", &format!("{event}/admissions")).with_json(&body);

    let [first, second] = [mock.send(&admit).await.json(), mock.send(&admit).await.json()];

    let created: Vec<_> = [&first, &second].into_iter().flat_map(|created| created.as_array().unwrap()).collect();
    for admission in &created {
        let uri = admission["self"].as_str().unwrap();
        assert!(uri.starts_with(&format!("{event}/admissions/")), "{uri}");
        assert_eq!((&mock.send(&request("GET", uri)).await.json(), &admission["redeemer"]), (*admission, &json!("Esi")));
    }
    let list = mock.send(&request("GET", &format!("{event}/admissions"))).await.json();
    assert_eq!((&list["total"], list["entries"].as_array().unwrap().iter().collect()), (&json!(4), created));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn action_on_item_returns_item() {
    let mock = MockServer::start_stateful();
    let order = request("POST", "/orders").with_json(&json!({ "items": { "/sections/17637000000062": 2 } }));
    let order = mock.send(&order).await.json()["self"].as_str().unwrap().to_owned();

    let cancelled = mock.send(&request("POST", &format!("{order}/cancellations"))).await;
    assert_eq!((cancelled.status, &cancelled.json()["self"]), (200, &json!(order)));
    assert_eq!(cancelled.json()["status"], "Cancelled");
    assert_eq!(mock.send(&request("GET", &order)).await.json(), cancelled.json());
    let unknown = mock.send(&request("POST", "/orders/99999999999999/cancellations")).await;
    assert_eq!((unknown.status, &unknown.json()["code"]), (404, &json!("resource.not-found")));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn selected_response_ignores_state() {
    let mock = MockServer::start_stateful();
    let nobody = request("GET", "/regions/99999999999999");
    assert_eq!(mock.send(&nobody).await.status, 404);
    assert_eq!(mock.send(&nobody.clone().with_header("Prefer", "example=region")).await.status, 200);
    let create = request("POST", "/regions").with_json(&json!({ "name": "Volta", "country": "Ghana" }));
    assert_eq!(mock.send(&create.with_header("Prefer", "dynamic=true")).await.status, 201);
    assert_eq!(mock.send(&request("GET", "/regions")).await.json()["total"], 2);
}

/// Returns a document of another style: arrays, numbers, another envelope, another prefix, no `self`.
fn pets() -> Value {
    let body = |schema: Value| json!({ "content": { "application/json": { "schema": schema } } });
    let pet = json!({ "$ref": "#/components/schemas/Pet" });
    let answer = |schema: &Value| json!({ "description": "", "content": { "application/json": { "schema": schema } } });
    let id = |name: &str| json!([{ "name": name, "in": "path", "required": true, "schema": { "type": "integer" } }]);
    let number = |name: &str| json!({ "name": name, "in": "query", "schema": { "type": "integer", "default": 2 } });
    let mut created = answer(&pet);
    created["headers"] = json!({ "Location": { "schema": { "type": "string" } } });
    let page = json!({ "allOf": [
        { "type": "object", "required": ["count"], "properties": { "count": { "type": "integer" } } },
        { "type": "object", "required": ["visits"], "properties": { "visits": { "type": "array", "items": { "type": "string" } } } },
    ] });
    json!({
        "openapi": "3.0.3",
        "info": { "title": "pets", "version": "1" },
        "servers": [{ "url": "https://pets.example/api" }],
        "paths": {
            "/pets": {
                "get": { "parameters": [number("limit"), { "name": "offset", "in": "query", "schema": { "type": "integer" } }],
                    "responses": { "200": answer(&json!({ "type": "array", "items": pet })) } },
                "post": { "requestBody": body(pet.clone()), "responses": { "201": created } },
            },
            "/pets/{petId}": {
                "parameters": id("petId"),
                "get": { "responses": { "200": answer(&pet), "404": { "description": "", "content": { "application/json": {
                    "schema": { "type": "object", "required": ["reason"], "properties": { "reason": { "type": "string" } } },
                    "example": { "reason": "no such pet" } } } } } },
                "patch": { "requestBody": body(json!({ "type": "object", "properties": { "name": { "type": "string" } } })),
                    "responses": { "204": { "description": "" } } },
                "delete": { "responses": { "204": { "description": "" } } },
            },
            "/pets/{petId}/visits": { "parameters": id("petId"), "get": { "responses": {
                "200": answer(&page), "404": { "description": "" } } } },
        },
        "components": { "schemas": { "Pet": {
            "type": "object", "required": ["id", "name"],
            "properties": {
                "id": { "type": "integer", "minimum": 1 },
                "name": { "type": "string" },
                "parent": { "$ref": "#/components/schemas/Pet" },
            },
            "example": { "id": 1, "name": "Rex" },
        } } },
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn supports_other_documents() {
    let mock = MockServer::of(pets(), MockSettings { is_stateful: true, ..MockSettings::default() });
    let send = async |method: &str, path: &str, body: Option<Value>| {
        let request = Request::new(method, path);
        mock.send(&body.map_or(request.clone(), |body| request.with_json(&body))).await
    };

    assert_eq!(send("GET", "/pets", None).await.json(), json!([]));
    let own = send("POST", "/api/pets", Some(json!({ "id": 70, "name": "Ada" }))).await;
    assert_eq!((own.status, &own.json()["id"], header(&own, "location")), (201, &json!(70), "/api/pets/70"));
    for name in ["Ben", "Cleo"] {
        let created = send("POST", "/pets", Some(json!({ "id": 70, "name": name }))).await;
        assert_ne!(created.json()["id"], 70, "taken");
        assert_eq!(created.json()["name"], name);
        let read = send("GET", header(&created, "location"), None).await;
        assert_eq!(read.json(), created.json());
    }
    let names = async |path: &str| {
        let list = send("GET", path, None).await.json();
        list.as_array().unwrap().iter().map(|pet| pet["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(names("/pets").await, ["Ada", "Ben"]);
    assert_eq!(names("/pets?offset=1&limit=5").await, ["Ben", "Cleo"]);
    assert_eq!(send("PATCH", "/pets/70", Some(json!({ "name": "Eve", "id": 5 }))).await.status, 204);
    assert_eq!((&send("GET", "/pets/70", None).await.json()["name"], names("/pets").await[0].as_str()), (&json!("Eve"), "Eve"));
    assert_eq!(send("GET", "/pets/70/visits", None).await.status, 200);
    assert_eq!(send("DELETE", "/pets/70", None).await.status, 204);
    let gone = send("GET", "/pets/70", None).await;
    assert_eq!((gone.status, gone.json()), (404, json!({ "reason": "no such pet" })));
    assert_eq!(send("GET", "/pets/70/visits", None).await.status, 404);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn oldest_items_are_evicted() {
    let mut document = pets();
    let shown = &mut document["paths"]["/pets/{petId}"]["get"]["responses"]["200"]["content"]["application/json"];
    shown["example"] = json!({ "id": 1_000_000, "name": "Rex" });
    let mock = MockServer::of(document, MockSettings { is_stateful: true, ..MockSettings::default() });
    let post = async |number: u64| {
        let create = Request::new("POST", "/pets").with_json(&json!({ "id": number, "name": "Rex" }));
        assert_eq!(mock.server.send(&create).await.unwrap().status, 201);
    };
    for number in 1..=10_001 {
        post(number).await;
    }
    let status = async |path: &str| mock.server.send(&Request::new("GET", path)).await.unwrap().status;
    assert_eq!([status("/pets/1").await, status("/pets/2").await, status("/pets/10001").await], [404, 200, 200]);
    assert_eq!(status("/pets/1000000").await, 200, "the examples stay");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_one_of_simultaneous_changes_matches_an_etag() {
    let mock = MockServer::start_stateful();
    let client = Arc::new(HttpClient::new(&mock.server.base_url).unwrap());
    for round in 0..20 {
        let seen = header(&mock.send(&request("GET", "/regions/17637000000011")).await, "etag").to_owned();
        let changes = (0..8).map(|number| {
            let name = json!({ "name": format!("Region {round} {number}") });
            let change = request("PUT", "/regions/17637000000011").with_json(&name).with_header("If-Match", &seen);
            let client = Arc::clone(&client);
            tokio::spawn(async move { client.send(&change).await.unwrap().status })
        });
        let mut statuses = Vec::new();
        for change in changes.collect::<Vec<_>>() {
            statuses.push(change.await.unwrap());
        }
        assert_eq!(statuses.iter().filter(|status| **status == 200).count(), 1, "{statuses:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn if_match_rejects_stale_etag() {
    let mock = MockServer::start_stateful();
    let region = request("GET", "/regions/17637000000011");
    let seen = header(&mock.send(&region).await, "etag").to_owned();
    let change = |name: &str, tag: &str| {
        request("PUT", "/regions/17637000000011").with_json(&json!({ "name": name })).with_header("If-Match", tag)
    };

    let known = mock.send(&region.clone().with_header("If-None-Match", &seen)).await;
    let first = mock.send(&change("Volta", &seen)).await;
    let late = mock.send(&change("Ashanti", &seen)).await;
    let next = mock.send(&change("Ashanti", header(&first, "etag"))).await;
    let absent = mock.send(&request("DELETE", "/regions/17637000099999").with_header("If-Match", &seen)).await;

    assert_eq!((known.status, known.body.len()), (304, 0));
    assert_eq!((first.status, late.status, next.status, absent.status), (200, 412, 200, 404));
    assert_eq!(late.json()["code"], "resource.changed");
    assert_eq!(mock.send(&region).await.json()["name"], "Ashanti");
}
