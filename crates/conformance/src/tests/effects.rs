//! Effects of a comparison on the data of a server: which resources it changes, and what it deletes at the end.

use std::collections::BTreeMap;
use std::fs;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use clap::Parser;
use http::{Request, Response};
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::{compare, comparison, document, error, findings, json_answer, json_response, response, start, variable};
use crate::comparison::{BuiltinServer, Comparison};
use crate::model::{Check, Report};
use crate::operation_under_test::OperationUnderTest;
use crate::options::{BuiltinDocument, CompareOptions};
use crate::report::text;

/// The pets of a server by identifier, and the requests that it got: methods and paths.
#[derive(Default)]
struct Pets {
    pets: BTreeMap<String, Value>,
    requests: Vec<String>,
}

/// The response to a POST: its status, its Location with the identifier for `{}`, and the body for a pet.
type Created = (u16, &'static str, fn(&Value) -> Value);

/// A server of pets, and its document. The fields change both.
#[derive(Clone)]
struct PetServer {
    /// The variable in the path of a pet, and the property with its identifier.
    identifier: &'static str,
    /// The schema of the variable.
    schema: Value,
    /// The end of each path: empty or a slash.
    slash: &'static str,
    /// The operations of a pet apart from GET.
    methods: &'static [&'static str],
    /// The response to a POST.
    created: Created,
    /// True if the document has POST.
    has_post: bool,
    /// The status of DELETE.
    deleted: u16,
}

impl Default for PetServer {
    fn default() -> Self {
        Self {
            identifier: "id",
            schema: json!({ "type": "string" }),
            slash: "",
            methods: &["put", "delete"],
            created: (201, "", Value::clone),
            has_post: true,
            deleted: 204,
        }
    }
}

impl PetServer {
    fn document(&self) -> Value {
        let (id, name) = (json!({ "type": "string", "readOnly": true }), json!({ "type": "string", "minLength": 1 }));
        let pet = json!({ "type": "object", "required": ["name"], "properties": { self.identifier: id, "name": name } });
        let (answer, error) = (json_answer(&pet), error());
        let body = json!({ "content": { "application/json": { "schema": pet, "example": { "name": "Rex" } } } });
        let mut collection = json!({ "get": {
            "operationId": "list", "responses": { "200": json_answer(&json!({ "type": "array", "items": pet })) },
        } });
        if self.has_post {
            let success = self.created.0.to_string();
            collection["post"] = json!({
                "operationId": "create", "requestBody": body, "responses": { success: json_answer(&json!({})), "400": error },
            });
        }
        let mut item = json!({
            "parameters": variable(self.identifier, self.schema.clone()),
            "get": { "operationId": "read", "responses": { "200": answer, "404": error } },
        });
        for method in self.methods {
            item[*method] = match *method {
                "delete" => json!({ "operationId": "remove", "responses": { "204": { "description": "" }, "404": error } }),
                _ => json!({
                    "operationId": "update", "requestBody": body, "responses": { "200": answer, "400": error, "404": error },
                }),
            };
        }
        let paths =
            [(format!("/pets{}", self.slash), collection), (format!("/pets/{{{}}}{}", self.identifier, self.slash), item)];
        let paths: Value = paths.into_iter().collect();
        document("pets", paths)
    }

    fn answer(&self, request: &Request<Bytes>, pets: &mut Pets) -> Response<String> {
        let (method, path) = (request.method().as_str(), request.uri().path());
        pets.requests.push(format!("{method} {path}"));
        let not_found = json_response(404, &json!({}));
        let Some(path) = path.strip_suffix(self.slash).and_then(|path| path.strip_prefix("/pets")) else { return not_found };
        let body: Option<Value> = serde_json::from_slice(request.body()).ok().filter(|body: &Value| body["name"].is_string());
        match (method, path.strip_prefix('/')) {
            ("GET", None) if path.is_empty() => json_response(200, &pets.pets.values().cloned().collect()),
            ("POST", None) if path.is_empty() && self.has_post => {
                let Some(mut pet) = body else { return json_response(400, &json!({})) };
                // The last existing pet has the identifier 12.
                let id = (pets.requests.len() + 100).to_string();
                pet[self.identifier] = json!(id);
                let (status, location, content) = self.created;
                let mut response = json_response(status, &content(&pet));
                if !location.is_empty() {
                    response.headers_mut().insert("location", location.replace("{}", &id).parse().unwrap());
                }
                pets.pets.insert(id, pet);
                response
            }
            (_, Some(id)) if pets.pets.contains_key(id) => match (method, body) {
                ("GET", _) => json_response(200, &pets.pets[id]),
                ("PUT" | "PATCH" | "POST", None) => json_response(400, &json!({})),
                ("PUT" | "PATCH" | "POST", Some(mut pet)) => {
                    pet[self.identifier] = json!(id);
                    pets.pets.insert(id.to_owned(), pet.clone());
                    json_response(200, &pet)
                }
                ("DELETE", _) if self.deleted == 204 => {
                    pets.pets.remove(id);
                    response(204, String::new())
                }
                ("DELETE", _) => json_response(self.deleted, &json!({})),
                _ => json_response(405, &json!({})),
            },
            _ => not_found,
        }
    }

    /// Starts the server with the pets 11 and 12, and prepares its comparison.
    async fn start(self) -> (Comparison, Arc<Mutex<Pets>>) {
        let existing = ["11", "12"].map(|id| (id.to_owned(), json!({ self.identifier: id, "name": format!("Pet {id}") })));
        let pets = Arc::new(Mutex::new(Pets { pets: existing.into(), requests: Vec::new() }));
        let (document, shared) = (self.document(), Arc::clone(&pets));
        let address = start(move |request| self.answer(request, &mut shared.lock())).await;
        (comparison(document, None, &address).await, pets)
    }

    /// Compares the server, and deletes what was created. Returns the report with the notes of the deletion, the identifiers of the
    /// remaining pets, and the requests.
    async fn compare(self) -> (Report, Vec<String>, Vec<String>) {
        let (comparison, pets) = self.start().await;
        let mut report = comparison.run(|_| ()).await;
        report.notes.extend(comparison.target.remove_created(&comparison.contract, 1).await);
        let pets = pets.lock();
        (report, pets.pets.keys().cloned().collect(), pets.requests.clone())
    }
}

/// Returns the requests that change something at these paths.
fn changes<'r>(requests: &'r [String], paths: &[&str]) -> Vec<&'r String> {
    let is_change = |request: &&String| {
        let (method, path) = request.split_once(' ').unwrap();
        !["GET", "HEAD", "OPTIONS"].contains(&method) && paths.contains(&path)
    };
    requests.iter().filter(is_change).collect()
}

#[tokio::test]
async fn stopped_comparison_deletes_what_it_created() {
    let (comparison, pets) = PetServer { created: (201, "/pets/{}", Value::clone), ..PetServer::default() }.start().await;
    let operation = comparison.contract.find("POST", "/pets").unwrap();
    let operation = OperationUnderTest::new(&comparison.contract, operation, 1);
    let request = operation.example_request(&comparison.contract, "", None, 1).unwrap();
    comparison.target.client.send(&request).await.unwrap();
    assert_eq!(pets.lock().pets.len(), 3);
    comparison.target.client.stopped.store(true, Ordering::Relaxed);
    comparison.target.remove_created(&comparison.contract, 1).await;
    assert_eq!(pets.lock().pets.len(), 2);
}

#[tokio::test]
async fn identifier_is_the_property_with_the_name_of_the_variable() {
    let (report, _, requests) = PetServer { identifier: "petId", ..PetServer::default() }.compare().await;
    let is_about_resource = |finding: &String| ["request.valid", "resource."].iter().any(|check| finding.contains(check));
    assert_eq!(findings(&report).into_iter().find(is_about_resource), None);
    assert!(!requests.iter().any(|request| request.contains("Rex") || request.contains("Pet")), "{requests:?}");
    let checks = &report.operation("create").unwrap().checks;
    assert!(checks.contains_key(&Check::Created) && checks.contains_key(&Check::Listed), "{checks:?}");
    // The path can't have this identifier.
    let schema = json!({ "type": "integer", "minimum": 1000 });
    let (_, remaining, requests) = PetServer { schema, ..PetServer::default() }.compare().await;
    assert!(remaining.len() > 2 && !requests.contains(&format!("GET /pets/{}", remaining[0])), "{requests:?}");
}

#[tokio::test]
async fn declared_slash_at_the_end_of_a_path_is_sent() {
    for location in ["", "/pets/{}/"] {
        let created = (201, location, Value::clone as fn(&Value) -> Value);
        let (report, _, requests) = PetServer { slash: "/", created, ..PetServer::default() }.compare().await;
        let is_about_resource = |finding: &String| ["request.valid", "resource."].iter().any(|check| finding.contains(check));
        assert_eq!(findings(&report).into_iter().find(is_about_resource), None);
        let checks = &report.operation("remove").unwrap().checks;
        assert!(checks.contains_key(&Check::Removed), "{checks:?}");
        let wrong = requests.iter().find(|request| !request.ends_with('/') && !request.contains("no"));
        assert_eq!(wrong, None);
        assert_eq!(report.operations.iter().filter_map(|operation| operation.left_out.as_ref()).next(), None);
    }
    let (_, _, requests) = PetServer { slash: "/", has_post: false, ..PetServer::default() }.compare().await;
    assert_eq!(requests.iter().find(|request| *request == "GET /pets"), None);
}

#[tokio::test]
async fn created_resources_are_deleted_or_noted() {
    let created: [Created; 6] = [
        (201, "", Value::clone),
        (200, "", Value::clone),
        (201, "https://pets.example/pets/{}", |_| json!({})),
        (201, "pets/{}", |_| json!({})),
        (201, "{}", |_| json!({})),
        (200, "/pets/{}", |_| json!({})),
    ];
    for created in created {
        let (report, remaining, _) = PetServer { created, ..PetServer::default() }.compare().await;
        assert_eq!((remaining, report.notes), (vec!["11".to_owned(), "12".to_owned()], Vec::new()), "{created:?}");
    }
    let (report, remaining, _) = PetServer { deleted: 403, ..PetServer::default() }.compare().await;
    assert!(remaining.len() > 2, "{remaining:?}");
    let note = format!("/pets/{} stays: DELETE is answered with 403.", remaining[0]);
    assert_eq!(report.notes.len(), remaining.len() - 2);
    assert!(report.notes.contains(&note), "{note}: {:?}", report.notes);
}

#[tokio::test]
async fn resources_that_cannot_be_deleted_are_noted() {
    let (report, remaining, _) = PetServer { methods: &["put"], ..PetServer::default() }.compare().await;
    let paths: Vec<_> =
        remaining.iter().filter(|id| !["11", "12"].contains(&id.as_str())).map(|id| format!("/pets/{id}")).collect();
    let [note] = report.notes.as_slice() else { panic!("{:?}", report.notes) };
    assert!(
        note.starts_with(&format!("{} resources stay, because the document has no DELETE for /pets/{{id}}: ", paths.len())),
        "{note}"
    );
    assert!(paths.len() > 2 && paths.iter().all(|path| note.contains(path)), "{note} {paths:?}");

    // No operation reads what this leads to.
    let created: Created = (201, "/animals/{}", Value::clone);
    let (report, _, _) = PetServer { created, ..PetServer::default() }.compare().await;
    let [note] = report.notes.as_slice() else { panic!("{:?}", report.notes) };
    assert!(note.contains(" resources stay, because the document has no DELETE for /animals/…: /animals/1"), "{note}");

    let created: Created = (201, "", |pet| json!({ "data": pet }));
    let (report, remaining, _) = PetServer { created, ..PetServer::default() }.compare().await;
    let count = remaining.len() - 2;
    assert_eq!(report.notes, [format!("{count} responses to POST /pets don't identify what it created, which stays.")]);
}

#[tokio::test]
async fn resources_on_the_reference_are_deleted() {
    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        options: CompareOptions,
    }
    let (comparison, target) = PetServer::default().start().await;
    let (other, reference) = PetServer { deleted: 403, ..PetServer::default() }.start().await;
    let folder = tempfile::tempdir().unwrap();
    let spec = folder.path().join("pets.json");
    fs::write(&spec, comparison.contract.document.to_string()).unwrap();
    let [address, reference_address] = [&comparison, &other].map(|comparison| comparison.target.client.base_url.clone());
    let arguments = ["compare", "--target", &address, "--reference", &reference_address, "--spec", spec.to_str().unwrap()];
    let options = Command::parse_from(arguments).options;
    let builtin = BuiltinDocument {
        contract: Arc::clone(&comparison.contract),
        server: BuiltinServer::default(),
        whole_currencies: Vec::new(),
    };
    let report = options.compare(builtin, &Arc::default(), |_, _| ()).await.unwrap();
    assert_eq!(target.lock().pets.len(), 2);
    let remaining = reference.lock().pets.len() - 2;
    let notes = report.notes.iter().filter(|note| note.starts_with("On the reference: /pets/1"));
    assert!(remaining > 0 && notes.count() == remaining, "{remaining}: {:?}", report.notes);
}

#[tokio::test]
async fn resource_is_created_below_one_that_exists() {
    let answer = json!({ "description": "", "content": { "application/json": {} } });
    let variable = |name: &str| json!({ "name": name, "in": "path", "required": true, "schema": { "type": "string" } });
    let operation = |id: &str, status: &str| json!({ "operationId": id, "responses": { status: answer, "404": answer } });
    let paths = json!({
        "/users": { "get": operation("users", "200") },
        "/users/{user}/notes": { "parameters": [variable("user")], "post": operation("create", "201") },
        "/users/{user}/notes/{note}": { "parameters": [variable("user"), variable("note")], "delete": operation("remove", "204") },
    });
    let report = compare(document("notes", paths), |request| match (request.method().as_str(), request.uri().path()) {
        ("GET", "/users") => json_response(200, &json!([{ "id": "7" }])),
        ("POST", "/users/7/notes") => json_response(201, &json!({ "id": "1" })),
        ("DELETE", "/users/7/notes/1") => response(204, String::new()),
        _ => json_response(404, &json!({})),
    });
    let report = report.await;
    for id in ["create", "remove"] {
        let operation = report.operation(id).unwrap();
        assert!(operation.left_out.is_none() && operation.seen.iter().any(|status| *status < 300), "{operation:?}");
    }
}

#[tokio::test]
async fn only_created_resources_are_changed() {
    for (reason, server) in [
        ("no operation creates a resource in /pets", PetServer { has_post: false, ..PetServer::default() }),
        (
            "POST /pets created no resource of its own",
            PetServer { created: (200, "", |pet| json!({ "data": pet })), ..PetServer::default() },
        ),
    ] {
        let (report, remaining, requests) = server.compare().await;
        assert!(remaining.contains(&"11".to_owned()) && remaining.contains(&"12".to_owned()), "{remaining:?}");
        assert_eq!(changes(&requests, &["/pets/11", "/pets/12"]), [""; 0]);
        let reason = format!("no valid request can be built: {reason}");
        for (id, expected) in [("read", None), ("update", Some(&reason)), ("remove", Some(&reason))] {
            assert_eq!(report.operation(id).unwrap().left_out.as_ref(), expected, "{id}");
        }
        let text = text(&report, 0);
        assert!(text.contains(&format!("Left out: update, remove: {reason}.\n")), "{text}");
    }
    let (report, remaining, requests) = PetServer { methods: &["put"], ..PetServer::default() }.compare().await;
    assert_eq!(report.operation("update").unwrap().left_out, None);
    assert!(changes(&requests, &["/pets/11", "/pets/12"]).is_empty() && remaining.len() > 2, "{requests:?}");
    assert!(requests.iter().any(|request| request.starts_with("DELETE /pets/")), "{requests:?}");
}

#[tokio::test]
async fn unknown_identifier_is_not_that_of_a_neighbor() {
    for (schema, is_sent) in [
        (json!({ "type": "string" }), true),
        // No identifier that this schema allows is unlikely.
        (json!({ "type": "string", "pattern": "^[0-9]{3}$" }), false),
    ] {
        let (comparison, pets) = PetServer { schema, ..PetServer::default() }.start().await;
        let neighbors = (111..1000).map(|id| (id.to_string(), json!({ "id": id.to_string(), "name": "Neighbor" })));
        pets.lock().pets.extend(neighbors);
        comparison.run(|_| ()).await;
        let requests = &pets.lock().requests;
        let created: Vec<_> = (101..).zip(requests).filter(|(_, request)| *request == "POST /pets").map(|(id, _)| id).collect();
        let neighbors = (111..1000).filter(|id| !created.contains(id)).map(|id| format!("/pets/{id}")).collect::<Vec<_>>();
        let neighbors: Vec<_> = neighbors.iter().map(String::as_str).collect();
        assert_eq!(changes(requests, &neighbors), [""; 0]);
        assert_eq!(requests.iter().any(|request| request == "DELETE /pets/987654321"), is_sent);
    }
}
