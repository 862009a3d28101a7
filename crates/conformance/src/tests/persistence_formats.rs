//! A server that keeps the values of some formats in another representation, or loses them.

use bytes::Bytes;
use http::Request;
use serde_json::{Value, json};

use super::{Store, compare_stateful, crud_document, findings, json_response, rejection, sent, variable};

/// Compares a server that changes a property of each person that is sent. Returns the findings about sent values.
async fn found(property: &'static str, change: fn(&str) -> String) -> Vec<String> {
    let text = |format: &str| json!({ "type": "string", "format": format });
    let schema = json!({ "type": "object", "required": ["mail", "key", "born", "seen"], "properties": {
        "mail": text("email"), "key": text("uuid"), "born": text("date"), "seen": text("date-time"),
    } });
    let example = json!({
        "mail": "Ama@example.com", "key": "0189F7A0-0000-7000-8000-0000000000AB", "born": "2001-02-03", "seen": "2024-01-01T00:00:00Z",
    });
    let document = crud_document("/people", &["create", "read", "replace"], &schema, example);
    let report = compare_stateful(document, Store::default(), move |contract, people, request: &Request<Bytes>| {
        if let Some(rejection) = rejection(contract, request) {
            return rejection;
        }
        let mut body: Value = serde_json::from_slice(request.body()).unwrap_or_default();
        if let Some(text) = body[property].as_str().map(change) {
            body[property] = json!(text);
        }
        let (parts, _) = request.clone().into_parts();
        people.respond(&Request::from_parts(parts, if body.is_object() { body.to_string().into() } else { Bytes::new() }))
    });
    findings(&report.await).into_iter().filter(|finding| finding.contains("sent.kept")).collect()
}

#[tokio::test]
async fn values_of_formats_with_one_representation_are_compared() {
    assert_eq!(found("mail", str::to_lowercase).await, [""; 0]);
    assert_eq!(found("key", str::to_lowercase).await, [""; 0]);
    assert_eq!(found("born", |born| format!("{born}T00:00:00Z")).await, [""; 0]);
    assert_eq!(found("seen", |_| "2024-01-01T01:00:00+01:00".to_owned()).await, [""; 0]);
    for (property, change) in [
        ("mail", (|_| "other@example.com".to_owned()) as fn(&str) -> String),
        ("key", |_| "0189f7a0-0000-7000-8000-000000000000".to_owned()),
        ("born", |_| "1970-01-01".to_owned()),
    ] {
        let expected = ["create", "replace"]
            .map(|operation| format!("{operation} sent.kept: {property} differs from the value that was sent"));
        assert_eq!(found(property, change).await, expected);
    }
}

#[tokio::test]
async fn identifiers_and_versions_that_the_server_assigns_are_not_compared() {
    let uuid = |number: usize| format!("0189f7a0-0000-7000-8000-{number:012x}");
    for (name, property) in [("id", "id"), ("personId", "personId"), ("key", "ref")] {
        let properties = json!({
            name: { "type": "string", "format": "uuid" }, property: { "type": "string", "format": "uuid" },
            "version": { "type": "integer", "format": "int64" }, "size": { "type": "integer", "format": "int32" },
        });
        let schema = json!({ "type": "object", "required": [name, property, "version", "size"], "properties": properties });
        let example = json!({ name: uuid(7), property: uuid(7), "version": 7, "size": 7 });
        let mut document = crud_document("/people", &["create", "read"], &schema, example);
        let paths = document["paths"].as_object_mut().unwrap();
        let mut item = paths.shift_remove("/people/{id}").unwrap();
        item["parameters"] = variable(name, json!({ "type": "string", "format": "uuid" }));
        paths.insert(format!("/people/{{{name}}}"), item);
        let report = compare_stateful(document, Vec::new(), move |contract, people, request: &Request<Bytes>| {
            if let Some(rejection) = rejection(contract, request) {
                return rejection;
            }
            if request.method() == "POST" {
                let mut person = sent(request);
                let id = uuid(100 + people.len());
                (person[name], person[property]) = (json!(id), json!(id));
                (person["version"], person["size"]) = (json!(1), json!(1));
                people.push(person.clone());
                return json_response(201, &person);
            }
            let id = request.uri().path().rsplit('/').next().unwrap_or_default();
            let person = people.iter().find(|person| person[name] == id);
            person.map_or_else(|| json_response(404, &json!({})), |person| json_response(200, person))
        });
        assert_eq!(findings(&report.await), [""; 0], "{name}");
    }
}
