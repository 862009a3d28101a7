use std::net::{Ipv4Addr, SocketAddr};

use boxoffice_http::{ServerHandle, log};
use boxoffice_openapi::Contract;
use http::{HeaderMap, StatusCode, header};
use serde_json::{Map, Value, json};

use crate::MockSettings;

/// A running stateful mock of a small document.
struct TestMock {
    running: ServerHandle,
    client: reqwest::Client,
}

/// A received response.
struct Reply {
    status: StatusCode,
    headers: HeaderMap,
    /// The body; null if there is none.
    body: Value,
}

impl TestMock {
    fn start(paths: Value) -> Self {
        let document = json!({ "openapi": "3.0.3", "info": { "title": "things", "version": "1" }, "paths": paths });
        let settings = MockSettings { is_stateful: true, ..MockSettings::default() };
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let running = crate::start(Contract::new(document).unwrap(), settings, address, &log::silent()).unwrap();
        Self { running, client: reqwest::Client::builder().no_proxy().build().unwrap() }
    }

    async fn send(&self, method: &str, path: &str, body: Option<Value>) -> Reply {
        self.send_with(HeaderMap::new(), method, path, body).await
    }

    async fn send_with(&self, headers: HeaderMap, method: &str, path: &str, body: Option<Value>) -> Reply {
        let url = format!("http://{}{path}", self.running.address());
        let mut request = self.client.request(method.parse().unwrap(), url);
        if let Some(body) = body {
            request = request.header(header::CONTENT_TYPE, "application/json").body(body.to_string());
        }
        // After the usual media type, which it may replace.
        request = request.headers(headers);
        let response = request.send().await.unwrap();
        let (status, headers) = (response.status(), response.headers().clone());
        let body = serde_json::from_slice(&response.bytes().await.unwrap()).unwrap_or_default();
        Reply { status, headers, body }
    }

    async fn get(&self, path: &str) -> Value {
        self.send("GET", path, None).await.body
    }
}

fn content(schema: &Value) -> Value {
    json!({ "application/json": { "schema": schema } })
}

fn response(schema: &Value) -> Value {
    json!({ "description": "", "content": content(schema) })
}

fn object(properties: Value, example: Value) -> Value {
    json!({ "type": "object", "properties": properties, "example": example })
}

/// Returns a collection `/things` and its items, of a schema.
fn things(thing: &Value) -> Value {
    let body = json!({ "content": content(thing) });
    let mut created = response(thing);
    created["headers"] = json!({ "Location": { "schema": { "type": "string" } } });
    let id = json!([{ "name": "thing", "in": "path", "required": true, "schema": { "type": "string" } }]);
    json!({
        "/things": {
            "get": { "responses": { "200": response(&json!({ "type": "array", "items": thing })) } },
            "post": { "requestBody": body, "responses": { "201": created } },
        },
        "/things/{thing}": {
            "parameters": id,
            "get": { "responses": { "200": response(thing) } },
            "patch": { "requestBody": body, "responses": { "200": response(thing) } },
        },
    })
}

#[tokio::test]
async fn created_resource_has_values_of_request() {
    let text = json!({ "type": "string" });
    let number = json!({ "type": "integer" });
    let thing = object(
        json!({ "id": number, "name": text, "number": number, "owner": text, "ratio": text }),
        json!({ "id": 1, "name": "x", "number": 9, "owner": "/users/9", "ratio": "9/8" }),
    );
    let mock = TestMock::start(things(&thing));
    let body = json!({ "name": "a", "number": 1, "owner": "/users/1", "ratio": "1/3" });

    let mut created = mock.send("POST", "/things", Some(body.clone())).await.body;

    let id = created.as_object_mut().unwrap().shift_remove("id").unwrap();
    assert_ne!(id, 1);
    assert_eq!(created, body);
    assert_eq!(mock.get(&format!("/things/{id}")).await["number"], 1);
}

#[tokio::test]
async fn collection_path_may_end_with_slash() {
    let thing = object(json!({ "id": { "type": "integer" }, "name": { "type": "string" } }), json!({ "id": 1, "name": "x" }));
    let mut paths = things(&thing);
    paths["/things/"] = paths.as_object_mut().unwrap().shift_remove("/things").unwrap();
    let mock = TestMock::start(paths);

    let created = mock.send("POST", "/things/", Some(json!({ "id": 7, "name": "a" }))).await;

    assert_eq!((created.status, created.headers[header::LOCATION].to_str().unwrap()), (StatusCode::CREATED, "/things/7"));
    assert_eq!(mock.get("/things/7").await, created.body);
    assert_eq!(mock.get("/things/").await.as_array().unwrap().last(), Some(&created.body));
}

#[tokio::test]
async fn property_that_equals_the_identifier_can_be_changed() {
    let number = json!({ "type": "integer" });
    let thing = object(json!({ "id": number, "quantity": number }), json!({ "id": 3, "quantity": 3 }));
    let mut paths = things(&thing);
    paths["/things/{thing}"]["get"]["responses"]["200"]["content"]["application/json"]["example"] = thing["example"].clone();
    let mock = TestMock::start(paths);

    let changed = mock.send("PATCH", "/things/3", Some(json!({ "id": 4, "quantity": 50 }))).await;

    let expected = json!({ "id": 3, "quantity": 50 });
    assert_eq!((changed.status, &changed.body), (StatusCode::OK, &expected));
    assert_eq!(mock.get("/things/3").await, expected);
}

#[tokio::test]
async fn merge_patch_changes_members_of_objects() {
    let number = json!({ "type": "integer" });
    let removable = json!({ "type": "integer", "nullable": true });
    let size = json!({ "type": "object", "properties": { "a": removable, "b": number, "c": number } });
    let thing = object(
        json!({ "id": number, "size": size, "name": { "type": "string" } }),
        json!({ "id": 3, "size": { "a": 1, "b": 2 }, "name": "x" }),
    );
    let mut paths = things(&thing);
    let item = &mut paths["/things/{thing}"];
    item["get"]["responses"]["200"]["content"]["application/json"]["example"] = thing["example"].clone();
    item["patch"]["requestBody"]["content"] = json!({ "application/merge-patch+json": { "schema": thing } });
    let mock = TestMock::start(paths);
    let headers = [(header::CONTENT_TYPE, "application/merge-patch+json".parse().unwrap())].into_iter().collect();

    let changed = mock.send_with(headers, "PATCH", "/things/3", Some(json!({ "size": { "a": null, "c": 9 } }))).await;

    let expected = json!({ "id": 3, "size": { "b": 2, "c": 9 }, "name": "x" });
    assert_eq!((changed.status, &changed.body), (StatusCode::OK, &expected));
    assert_eq!(mock.get("/things/3").await, expected);
}

#[tokio::test]
async fn change_is_stored_if_response_is_not_the_resource() {
    let thing = object(json!({ "id": { "type": "integer" }, "name": { "type": "string" } }), json!({ "id": 3, "name": "x" }));
    let success = object(json!({ "success": { "type": "boolean" } }), json!({ "success": true }));
    let mut paths = things(&thing);
    let item = &mut paths["/things/{thing}"];
    item["get"]["responses"]["200"]["content"]["application/json"]["example"] = thing["example"].clone();
    item["put"] = json!({ "requestBody": { "content": content(&thing) }, "responses": { "200": response(&success) } });
    let settings = object(json!({ "colour": { "type": "string" } }), json!({ "colour": "red" }));
    paths["/settings"] = json!({
        "get": { "responses": { "200": response(&settings) } },
        "put": { "requestBody": { "content": content(&settings) }, "responses": { "204": { "description": "" } } },
    });
    let mock = TestMock::start(paths);

    let changed = mock.send("PUT", "/things/3", Some(json!({ "name": "y" }))).await;
    assert_eq!(changed.body, json!({ "success": true }));
    assert_eq!(mock.get("/things/3").await, json!({ "id": 3, "name": "y" }));
    assert_eq!(mock.get("/settings").await, json!({ "colour": "red" }));
    assert_eq!(mock.send("PUT", "/settings", Some(json!({ "colour": "blue" }))).await.status, StatusCode::NO_CONTENT);
    assert_eq!(mock.get("/settings").await, json!({ "colour": "blue" }));
}

#[tokio::test]
async fn every_posted_resource_is_stored() {
    let id = "00000000-0000-0000-0000-000000000000";
    let uuid = json!({ "type": "string", "format": "uuid" });
    let mock = TestMock::start(things(&object(json!({ "id": uuid, "name": { "type": "string" } }), json!({ "id": id }))));
    for name in ["a", "b", "c"] {
        let created = mock.send("POST", "/things", Some(json!({ "name": name }))).await;
        let uri = created.headers[header::LOCATION].to_str().unwrap();
        assert_eq!(mock.get(uri).await["name"], name, "{uri}");
    }
}

#[tokio::test]
async fn location_is_percent_encoded() {
    let text = json!({ "type": "string" });
    let mock = TestMock::start(things(&object(json!({ "id": text }), json!({ "id": "x" }))));
    for (id, uri) in [("a b?c", "/things/a%20b%3Fc"), ("a\nb", "/things/a%0Ab"), ("50%", "/things/50%25")] {
        let created = mock.send("POST", "/things", Some(json!({ "id": id }))).await;
        assert_eq!((created.status, created.headers[header::LOCATION].to_str().unwrap()), (StatusCode::CREATED, uri));
        assert_eq!(mock.get(uri).await["id"], id, "{uri}");
    }
}

#[tokio::test]
async fn array_parameter_filters_by_any_of_its_items() {
    let status = json!({ "type": "string", "enum": ["available", "unavailable", "sold"] });
    let mut paths = things(&object(json!({ "id": { "type": "integer" }, "status": status }), json!({ "id": 1 })));
    paths["/things"]["get"]["parameters"] =
        json!([{ "name": "status", "in": "query", "schema": { "type": "array", "items": status } }]);
    let mock = TestMock::start(paths);
    for status in ["available", "unavailable", "sold"] {
        mock.send("POST", "/things", Some(json!({ "status": status }))).await;
    }
    for (query, expected) in
        [("status=available", vec!["available"]), ("status=sold&status=available", vec!["available", "sold"])]
    {
        let list = mock.get(&format!("/things?{query}")).await;
        let found: Vec<_> = list.as_array().unwrap().iter().filter_map(|thing| thing["status"].as_str()).collect();
        assert_eq!(found, expected, "{query}");
    }
}

#[tokio::test]
async fn object_with_many_properties_is_stored() {
    let mut paths = things(&json!({}));
    paths["/things"]["post"]["requestBody"] = json!({ "content": content(&json!({ "type": "object" })) });
    let mut closed = object(json!({ "id": { "type": "integer" } }), json!({ "id": 1 }));
    closed["additionalProperties"] = json!({ "type": "integer" });
    paths["/things"]["post"]["responses"]["201"] = response(&closed);
    paths["/things/{thing}"]["get"]["responses"]["200"] = response(&closed);
    let mock = TestMock::start(paths);
    let mut properties: Map<String, Value> = (0..16_000).map(|number| (format!("p{number}"), json!(number))).collect();
    for invalid in [None, Some("p9000")] {
        properties.extend(invalid.map(|name| (name.to_owned(), json!("x"))));
        let created = mock.send("POST", "/things", Some(properties.clone().into())).await;
        assert_eq!((created.status, &created.body["p15999"]), (StatusCode::CREATED, &json!(15_999)));
        assert_eq!(created.body["p9000"].is_null(), invalid.is_some(), "an invalid property is left out");
    }
}

#[tokio::test]
async fn first_page_may_be_zero() {
    for (keyword, first) in [("minimum", 0), ("default", 0), ("default", 1)] {
        let mut paths = things(&object(json!({ "id": { "type": "integer" } }), json!({ "id": 1 })));
        paths["/things"]["get"]["parameters"] = json!([
            { "name": "page", "in": "query", "schema": { "type": "integer", keyword: first } },
            { "name": "size", "in": "query", "schema": { "type": "integer" } },
        ]);
        let mock = TestMock::start(paths);
        for id in [5, 6, 7] {
            mock.send("POST", "/things", Some(json!({ "id": id }))).await;
        }
        let whole = mock.get("/things?size=100").await;
        for (index, entry) in whole.as_array().unwrap().iter().enumerate() {
            let page = mock.get(&format!("/things?size=1&page={}", first + index)).await;
            assert_eq!(page, json!([entry]), "{keyword} {first}");
        }
    }
}

#[tokio::test]
async fn nested_envelope_has_numbers_of_the_page() {
    let thing = object(json!({ "id": { "type": "integer" }, "size": { "type": "integer" } }), json!({ "id": 1, "size": 40 }));
    let mut paths = things(&thing);
    let example =
        json!({ "data": [], "meta": { "total": 90, "page": 9, "per_page": 10 }, "links": { "self": "/things", "total": 3 } });
    paths["/things"]["get"]["responses"]["200"] = response(&json!({ "type": "object" }));
    paths["/things"]["get"]["responses"]["200"]["content"]["application/json"]["example"] = example;
    let number = |name: &str| json!({ "name": name, "in": "query", "schema": { "type": "integer" } });
    paths["/things"]["get"]["parameters"] = json!([number("page"), number("per_page")]);
    let mock = TestMock::start(paths);
    let mut created = Vec::new();
    for _ in 0..3 {
        created.push(mock.send("POST", "/things", Some(json!({ "size": 5 }))).await.body);
    }

    let page = mock.get("/things?page=2&per_page=2").await;

    let meta = json!({ "total": 3, "page": 2, "per_page": 2 });
    assert_eq!(page, json!({ "data": [created[2]], "meta": meta, "links": { "self": "/things", "total": 3 } }));
}

#[tokio::test]
async fn list_with_empty_example_has_posted_entries() {
    let text = json!({ "type": "string" });
    let mut paths = things(&object(json!({ "id": text, "name": text, "note": text }), json!({ "id": "x1" })));
    let entry = json!({ "type": "object", "additionalProperties": false, "properties": { "id": text, "name": text } });
    let mut list = response(&json!({ "type": "array", "items": entry }));
    list["content"]["application/json"]["example"] = json!([]);
    paths["/things"]["get"]["responses"]["200"] = list;
    let mock = TestMock::start(paths);
    mock.send("POST", "/things", Some(json!({ "id": "y", "name": "a", "note": "b" }))).await;
    assert_eq!(mock.get("/things").await, json!([{ "id": "y", "name": "a" }]));
}

#[tokio::test]
async fn changed_examples_are_evicted_like_created_resources() {
    let thing = object(json!({ "id": { "type": "integer" }, "name": { "type": "string" } }), json!({ "id": 1 }));
    let mut paths = things(&thing);
    let examples: Vec<_> = (1..=300).map(|id| json!({ "id": id })).collect();
    paths["/things"]["get"]["responses"]["200"]["content"]["application/json"]["example"] = examples.into();
    let mock = TestMock::start(paths);
    let status = async |id: usize| mock.send("GET", &format!("/things/{id}"), None).await.status;

    for id in 1..300 {
        let change = json!({ "name": "x".repeat(60_000) });
        assert_eq!(mock.send("PATCH", &format!("/things/{id}"), Some(change)).await.status, StatusCode::OK);
    }

    // Fewer than 300 of these names have room in 16 MiB.
    assert_eq!([status(1).await, status(299).await, status(300).await], [StatusCode::NOT_FOUND, StatusCode::OK, StatusCode::OK]);
}

#[tokio::test]
async fn if_match_on_missing_resource_is_404() {
    let mut paths = things(&object(json!({ "id": { "type": "integer" } }), json!({ "id": 1 })));
    let mut missing = response(&json!({ "type": "object", "required": ["reason"] }));
    missing["content"]["application/json"]["example"] = json!({ "reason": "no such thing" });
    let item = &mut paths["/things/{thing}"];
    item["get"]["responses"]["404"] = missing.clone();
    item["patch"]["responses"]["404"] = missing;
    item["patch"]["parameters"] = json!([{ "name": "If-Match", "in": "header", "schema": { "type": "string" } }]);
    let mock = TestMock::start(paths);
    let headers: HeaderMap = [(header::IF_MATCH, "\"a\"".parse().unwrap())].into_iter().collect();
    let missing = mock.send_with(headers, "PATCH", "/things/99", Some(json!({}))).await;
    assert_eq!((missing.status, &missing.body["reason"]), (StatusCode::NOT_FOUND, &json!("no such thing")));
}

/// Returns a query parameter.
fn query(name: &str, schema: Value) -> Value {
    json!({ "name": name, "in": "query", "schema": schema })
}

#[tokio::test]
async fn array_property_is_filtered_by_its_items() {
    let text = json!({ "type": "string" });
    let texts = json!({ "type": "array", "items": text });
    let mut paths = things(&object(json!({ "id": { "type": "integer" }, "tags": texts }), json!({ "id": 1 })));
    paths["/things"]["get"]["parameters"] = json!([query("tags", text)]);
    let mock = TestMock::start(paths);
    for tags in [json!(["old", "rare"]), json!(["new", "rare"]), json!([])] {
        mock.send("POST", "/things", Some(json!({ "tags": tags }))).await;
    }
    for (tag, count) in [("new", 1), ("rare", 2), ("none", 0)] {
        assert_eq!(mock.get(&format!("/things?tags={tag}")).await.as_array().unwrap().len(), count, "{tag}");
    }
}

/// Returns a mock whose list has this schema of its envelope besides `data`, with these query parameters, and three things.
async fn with_pages(properties: Value, required: Value, parameters: Value) -> TestMock {
    let thing = object(json!({ "id": { "type": "integer" } }), json!({ "id": 1 }));
    let mut paths = things(&thing);
    let mut list = json!({ "type": "object", "required": required, "properties": properties });
    list["properties"]["data"] = json!({ "type": "array", "items": thing });
    let mut ok = response(&list);
    ok["headers"] =
        json!({ "X-Total-Count": { "schema": { "type": "integer" } }, "X-Other": { "schema": { "type": "integer" } } });
    paths["/things"]["get"]["responses"]["200"] = ok;
    paths["/things"]["get"]["parameters"] = parameters;
    let mock = TestMock::start(paths);
    for id in [5, 6, 7] {
        mock.send("POST", "/things", Some(json!({ "id": id }))).await;
    }
    mock
}

#[tokio::test]
async fn cursors_lead_from_page_to_page() {
    let text = || json!({ "type": "string" });
    let nullable = json!({ "type": "string", "nullable": true });
    let number = || json!({ "type": "integer" });
    for (parameter, schema, next, next_schema, required) in [
        ("cursor", text(), "next_cursor", &nullable, json!(["data", "next_cursor"])),
        ("page_token", text(), "nextPageToken", &text(), json!(["data"])),
        ("page_token", text(), "nextPageToken", &text(), json!(["data", "nextPageToken"])),
        ("starting_after", number(), "next", &number(), json!(["data"])),
    ] {
        let parameters = json!([query(parameter, schema), query("limit", number())]);
        let mock = with_pages(json!({ next: next_schema, "has_more": { "type": "boolean" } }), required, parameters).await;
        let (mut path, mut found) = ("/things?limit=2".to_owned(), Vec::new());
        for is_last in [false, true] {
            let page = mock.get(&path).await;
            found.extend(page["data"].as_array().unwrap().iter().map(|thing| thing["id"].as_u64().unwrap()));
            assert_eq!((page["has_more"] == true, page[next].is_null() || page[next] == ""), (!is_last, is_last), "{page}");
            path = format!("/things?limit=2&{parameter}={}", page[next].to_string().trim_matches('"'));
        }
        assert_eq!(found, [5, 6, 7], "{parameter}");
    }
    // Another parameter decides about the next page, and a client may send the identifier of the last entry.
    let flag = json!({ "has_more": { "type": "boolean" } });
    let mock = with_pages(flag, json!([]), json!([query("starting_after", number()), query("limit", number())])).await;
    assert_eq!(mock.get("/things?limit=1&starting_after=5").await, json!({ "has_more": true, "data": [{ "id": 6 }] }));
    assert_eq!(mock.get("/things?limit=1&starting_after=1700000000").await, json!({ "has_more": true, "data": [{ "id": 5 }] }));
    let links = json!({ "next": { "type": "string", "example": "/things?page=3" } });
    let mock = with_pages(links, json!([]), json!([query("page", number()), query("limit", number())])).await;
    assert_eq!(mock.get("/things?limit=2").await["next"], "/things?page=2&limit=2");
    assert_eq!(mock.get("/things?limit=2&page=2").await, json!({ "data": [{ "id": 7 }] }));
}

#[tokio::test]
async fn header_has_the_total() {
    let mock = with_pages(json!({}), json!([]), json!([query("limit", json!({ "type": "integer" }))])).await;
    let reply = mock.send("GET", "/things?limit=1", None).await;
    assert_eq!((&reply.headers["x-total-count"], reply.body["data"].as_array().unwrap().len()), (&3.into(), 1));
    assert!(reply.headers.contains_key("x-other"));
}

#[tokio::test]
async fn change_of_the_variant_replaces_its_properties() {
    let variant = |kind: &str, name: &str| {
        let properties =
            json!({ "id": { "type": "integer" }, "kind": { "type": "string", "enum": [kind] }, name: { "type": "integer" } });
        json!({ "type": "object", "required": ["kind", name], "properties": properties, "additionalProperties": false })
    };
    let book = json!({ "oneOf": [variant("ebook", "size"), variant("paper", "weight")] });
    let mut paths = things(&book);
    paths["/things/{thing}"]["put"] = paths["/things/{thing}"]["patch"].clone();
    for method in ["PUT", "PATCH"] {
        let mock = TestMock::start(paths.clone());
        let created = mock.send("POST", "/things", Some(json!({ "kind": "ebook", "size": 3 }))).await;
        let path = format!("/things/{}", created.body["id"]);
        let changed = mock.send(method, &path, Some(json!({ "kind": "paper", "weight": 9 }))).await;
        let expected = json!({ "id": created.body["id"], "kind": "paper", "weight": 9 });
        assert_eq!((changed.status, &changed.body, &mock.get(&path).await), (StatusCode::OK, &expected, &expected), "{method}");
    }
}

#[tokio::test]
async fn created_resource_is_the_variant_of_the_request() {
    let variant = |kind: &str, name: &str| {
        json!({ "type": "object", "required": ["kind", name], "properties": {
            "kind": { "type": "string", "enum": [kind] }, name: { "type": "integer" },
        } })
    };
    let own = json!({ "type": "object", "required": ["id"], "properties": { "id": { "type": "integer", "readOnly": true } } });
    let thing = json!({ "allOf": [{ "oneOf": [variant("image", "width"), variant("sound", "seconds")] }, own] });
    let mock = TestMock::start(things(&thing));
    for body in [json!({ "kind": "image", "width": 3 }), json!({ "kind": "sound", "seconds": 4 })] {
        let mut created = mock.send("POST", "/things", Some(body.clone())).await.body;
        let id = created.as_object_mut().unwrap().shift_remove("id").unwrap();
        assert_eq!(created, body);
        assert_eq!(mock.get(&format!("/things/{id}")).await["kind"], body["kind"]);
    }
}

#[tokio::test]
async fn created_resource_has_the_variables_of_its_path() {
    let text = json!({ "type": "string" });
    let mut paths = things(&object(json!({ "id": text, "region": text }), json!({ "id": "a", "region": "north" })));
    let region = json!({ "name": "region", "in": "path", "required": true, "schema": text });
    let paths: Map<_, _> = paths
        .as_object_mut()
        .unwrap()
        .iter_mut()
        .map(|(path, item)| {
            let mut parameters = item["parameters"].as_array().cloned().unwrap_or_default();
            parameters.push(region.clone());
            item["parameters"] = json!(parameters);
            (format!("/{{region}}{path}"), item.take())
        })
        .collect();
    let mock = TestMock::start(paths.into());
    let created = mock.send("POST", "/south/things", Some(json!({ "id": "b" }))).await;
    assert_eq!(created.body, json!({ "id": "b", "region": "south" }));
    assert_eq!(mock.get("/south/things/b").await, created.body);
}

#[tokio::test]
async fn location_is_a_uri() {
    let thing = object(json!({ "id": { "type": "integer" } }), json!({ "id": 1 }));
    let mut paths = things(&thing);
    let redirect = json!({ "description": "", "headers": { "Location": { "schema": { "type": "string" } } } });
    paths["/latest"] = json!({ "get": { "responses": { "302": redirect } } });
    paths["/things"]["post"]["responses"]["201"]["headers"]["Location"]["schema"]["format"] = json!("uri");
    let mock = TestMock::start(paths);
    let location = |reply: Reply| reply.headers[header::LOCATION].to_str().unwrap().to_owned();
    let created = mock.send("POST", "/things", Some(json!({ "id": 7 }))).await;
    assert_eq!(location(created), format!("http://{}/things/7", mock.running.address()));
    let redirects = reqwest::redirect::Policy::none();
    let client = reqwest::Client::builder().no_proxy().redirect(redirects).build().unwrap();
    let redirect = client.get(format!("http://{}/latest", mock.running.address())).send().await.unwrap();
    assert_eq!(redirect.headers()[header::LOCATION], "/");
}
