//! ETags and conditional requests, for every operation that declares them. The fixtures of `boxoffice compare` create the
//! resources.

use std::sync::Arc;

use boxoffice_conformance::fixtures;
use boxoffice_conformance::http_client::{HttpClient, ReceivedResponse, Request};
use boxoffice_openapi::{Contract, Operation};
use futures::future::join_all;
use serde_json::{Value, json};

use crate::support::{Request as PlainRequest, Response, TestApp, rejection, section, test_on};

/// A tag that no resource has.
const OTHER: &str = "\"AAAAAAAAAAAAAAAAAAAAAA\"";

/// Operations whose response has the time, or a new key.
const VOLATILE: [&str; 4] = ["account_export_get", "event_gate_list_get", "time_get", "token_authentication_get"];

/// A server with the fixtures of a comparison.
struct Fixtures {
    contract: Arc<Contract>,
    server: HttpClient,
    created: fixtures::Fixtures,
}

impl Fixtures {
    async fn on(app: &TestApp) -> Self {
        let contract = boxoffice::contract::load().unwrap();
        let server = HttpClient::new(&app.address).unwrap();
        let all = contract.operations().map(|operation| operation.id.clone()).collect();
        let created = fixtures::Fixtures::create(&server, &contract, &app.staff.key, 7, &all).await.unwrap();
        Self { contract, server, created }
    }

    /// Returns the operations with this request header.
    fn operations_with(&self, header: &str) -> Vec<&Operation> {
        self.contract.operations().filter(|operation| operation.has_parameter(header)).collect()
    }

    /// Builds a valid request for a resource of its own.
    async fn request(&self, operation: &Operation) -> Request {
        self.created.valid_request(&self.server, operation, None).await.unwrap().request
    }

    async fn send(&self, request: &Request) -> ReceivedResponse {
        self.server.send(request).await.unwrap()
    }

    /// Reads the resource that a request would change, with the same key.
    async fn read(&self, change: &Request) -> ReceivedResponse {
        let mut read = Request::new("GET", change.path.clone());
        read.headers.clone_from(&change.clone().without_header("Content-Type").headers);
        self.send(&read).await
    }
}

fn tag(reply: &ReceivedResponse) -> String {
    let tag = reply.headers.get("etag").map(|tag| tag.to_str().unwrap().to_owned());
    tag.unwrap_or_else(|| panic!("no ETag: {} {}", reply.status, reply.json()))
}

fn assert_changed(reply: &ReceivedResponse, about: &str) {
    assert_eq!((reply.status, &reply.json()["code"]), (412, &json!("resource.changed")), "{about}: {}", reply.json());
}

fn is_success(reply: &ReceivedResponse) -> bool {
    (200..300).contains(&reply.status)
}

#[test_on(sqlite, postgres)]
async fn if_none_match_returns_not_modified(app: TestApp) {
    let fixtures = Fixtures::on(&app).await;
    // Images have no caller (`media::known_image_is_not_modified`).
    let reads: Vec<_> = fixtures.operations_with("If-None-Match").into_iter().filter(|operation| operation.needs_key).collect();
    assert!(reads.len() > 50, "only {}", reads.len());
    for operation in reads {
        let request = fixtures.request(operation).await;
        let send = async |tags: &str| fixtures.send(&request.clone().with_header("If-None-Match", tags)).await;

        let first = fixtures.send(&request).await;
        let known = send(&format!("{OTHER}, W/{}", tag(&first))).await;
        let any = send("*").await;
        let unknown = send(OTHER).await;

        assert_eq!((first.status, unknown.status), (200, 200), "{}", operation.id);
        assert!(first.headers.get_all("vary").iter().any(|vary| vary == "x-api-key"), "{}", operation.id);
        let is_same = known.status == 304 && tag(&known) == tag(&first);
        assert!(is_same || VOLATILE.contains(&operation.id.as_str()), "{}: {} {}", operation.id, known.status, known.json());
        assert_eq!((any.status, any.body.len()), (304, 0), "{}", operation.id);
    }
}

/// For resources whose creation returns the same representation as a GET.
#[test_on(sqlite, postgres)]
async fn created_resource_has_etag_of_get(app: TestApp) {
    let fixtures = Fixtures::on(&app).await;
    let mut wrong = Vec::new();
    for operation in fixtures.contract.operations().filter(|operation| operation.statuses.contains(&201)) {
        let request = fixtures.request(operation).await;
        let created = fixtures.send(&request).await;
        assert_eq!(created.status, 201, "{}: {}", operation.id, created.json());
        let Some(location) = created.headers.get("location") else { continue };
        let read = fixtures.read(&Request { path: location.to_str().unwrap().to_owned(), ..request }).await;
        let is_read = read.status == 200 && read.body == created.body;
        if created.headers.get("etag") != read.headers.get("etag").filter(|_| is_read) {
            wrong.push(format!("{}: {:?} and {:?}", operation.id, created.headers.get("etag"), read.headers.get("etag")));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test_on(sqlite, postgres)]
async fn if_match_rejects_stale_etag(app: TestApp) {
    let fixtures = Fixtures::on(&app).await;
    let changes = fixtures.operations_with("If-Match");
    assert!(changes.len() > 30, "only {}", changes.len());
    for operation in changes {
        let id = &operation.id;
        let request = fixtures.request(operation).await;
        let send = async |tags: &str| fixtures.send(&request.clone().with_header("If-Match", tags)).await;
        let before = fixtures.read(&request).await;
        let seen = tag(&before);

        assert_changed(&send(OTHER).await, id);
        assert_changed(&send(&format!("W/{seen}")).await, id);
        let untouched = fixtures.read(&request).await;
        let done = send(&format!("{OTHER}, {seen}")).await;
        let after = fixtures.read(&request).await;

        assert_eq!((tag(&untouched), &untouched.body), (seen.clone(), &before.body), "{id}: nothing has changed");
        assert!(is_success(&done), "{id}: {} {}", done.status, done.json());
        if operation.method == "PUT" {
            assert_eq!((tag(&done), &done.body), (tag(&after), &after.body), "{id}: returns the representation of a GET");
            // The example may be equal to the current state.
            if tag(&after) != seen {
                assert_changed(&send(&seen).await, id);
            }
        }
        let any = fixtures.request(operation).await.with_header("If-Match", "*");
        let any = fixtures.send(&any).await;
        assert!(is_success(&any), "{id} of anything: {} {}", any.status, any.json());
    }
}

/// The two updates go to different servers.
#[test_on(sqlite, postgres)]
async fn one_of_two_updates_with_same_etag_succeeds(app: TestApp) {
    let fixtures = Fixtures::on(&app).await;
    let second_server = app.start_second_server(app.state.settings.clone()).await;
    let other = HttpClient::new(&format!("http://{}", second_server.address)).unwrap();
    // Ending a session is idempotent: an ended session is unchanged.
    for operation in fixtures.operations_with("If-Match").into_iter().filter(|operation| operation.id != "session_active_delete")
    {
        let id = &operation.id;
        let request = fixtures.request(operation).await;
        let seen = tag(&fixtures.read(&request).await);
        let request = request.with_header("If-Match", &seen);

        let both = join_all([&fixtures.server, &other].map(|server| server.send(&request))).await;

        let both: Vec<ReceivedResponse> = both.into_iter().map(Result::unwrap).collect();
        let after = fixtures.read(&request.without_header("If-Match")).await;
        let succeeded = both.iter().filter(|reply| is_success(reply)).count();
        // If the example equals the current state, both succeed.
        let is_same = after.status == 200 && tag(&after) == seen;
        assert_eq!(
            succeeded,
            if is_same { 2 } else { 1 },
            "{id}: {:?}",
            both.iter().map(ReceivedResponse::json).collect::<Vec<_>>()
        );
        let rejected = both.iter().filter(|reply| !is_success(reply));
        rejected.for_each(|reply| assert!([404, 412].contains(&reply.status), "{id}: {} {}", reply.status, reply.json()));
    }
    second_server.stop().await;
}

async fn rename(app: &TestApp, host: &str, key: &str, name: &str, tag: Option<&str>) -> Response {
    let request = app.request("PUT", host).key(key).json(&json!({ "contact": name }));
    tag.into_iter().fold(request, |request, tag| request.header("If-Match", tag)).send().await
}

/// Each client reads, appends a letter, and starts over after a 412: no letter is lost.
#[test_on(sqlite, postgres)]
async fn concurrent_updates_on_two_servers_are_serialized(app: TestApp) {
    let kofi = app.sign_up("kofi").await;
    let host = app.create_host(&kofi).await.uri;
    let second_server = app.start_second_server(app.state.settings.clone()).await;
    rename(&app, &host, &kofi.key, "-", None).await;
    let add = async |letter: char, is_here: bool| {
        let at = |request: PlainRequest| if is_here { request } else { request.at(second_server.address) };
        loop {
            let read = at(app.request("GET", &host).key(&kofi.key)).send().await;
            let longer = format!("{}{letter}", read.body["contact"].as_str().unwrap());
            let change = at(app.request("PUT", &host).key(&kofi.key)).json(&json!({ "contact": longer }));
            let changed = change.header("If-Match", read.header("etag")).send().await;
            match changed.status {
                200 => return,
                status => assert_eq!((status, changed.code()), (412, "resource.changed")),
            }
        }
    };

    join_all(('a'..='h').enumerate().map(|(place, letter)| add(letter, place % 2 == 0))).await;

    let contact = app.read(&host).await["contact"].as_str().unwrap().to_owned();
    let mut letters: Vec<char> = contact.chars().collect();
    letters.sort_unstable();
    assert_eq!(letters.into_iter().collect::<String>(), "-abcdefgh");
    second_server.stop().await;
}

/// The waiting requests occupy every connection of the pool; the request that holds the lock must still complete.
#[test_on(sqlite, postgres)]
async fn preconditions_do_not_block_on_locked_resource(app: TestApp) {
    let kofi = app.sign_up("kofi").await;
    let host = app.create_host(&kofi).await.uri;
    let seen = app.request("GET", &host).send().await.header("etag").to_owned();

    let changes = (0..60).map(|number| {
        let tag = (number % 3 == 0).then_some(seen.as_str());
        rename(&app, &host, &kofi.key, ["Front office", "Back office"][number % 2], tag)
    });
    let responses = join_all(changes).await;

    assert!(
        responses.iter().all(|response| response.status == 200 || rejection(response) == (412, "resource.changed")),
        "{responses:?}"
    );
    assert!(responses.iter().filter(|response| response.status == 200).count() >= 40, "{responses:?}");
}

#[test_on(sqlite, postgres)]
async fn not_found_and_forbidden_precede_precondition(app: TestApp) {
    let (_, ama, event) = app.create_sale(&[section("Floor", 20.0, 10)]).await;
    let venue = app.read(&event.uri).await["venue"]["self"].as_str().unwrap().to_owned();
    let region = app.read(&venue).await["region"].as_str().unwrap().to_owned();
    let other = app.create_region().await;
    let name = app.read(&region).await["name"].clone();
    let send = async |method: &str, path: &str, key: &str, body: Value, tag: &str| {
        app.request(method, path).key(key).json(&body).header("If-Match", tag).send().await
    };
    let staff = app.staff.key.as_str();

    let absent = send("DELETE", "/regions/17637000000000", staff, Value::Null, OTHER).await;
    let absent_any = send("DELETE", "/regions/17637000000000", staff, Value::Null, "*").await;
    let foreign = send("PUT", &event.host.uri, &ama.key, json!({ "contact": "Me" }), OTHER).await;
    let malformed = send("PUT", &other, staff, json!({ "name": 7 }), OTHER).await;
    let in_use_stale = send("DELETE", &region, staff, Value::Null, OTHER).await;
    let in_use = send("DELETE", &region, staff, Value::Null, "*").await;
    let taken_stale = send("PUT", &other, staff, json!({ "name": name }), OTHER).await;
    let taken = send("PUT", &other, staff, json!({ "name": name }), "*").await;

    assert_eq!(rejection(&absent), (404, "resource.not-found"));
    assert_eq!(rejection(&absent_any), (404, "resource.not-found"));
    assert_eq!(rejection(&foreign), (403, "resource.not-yours"));
    assert_eq!(rejection(&malformed), (400, "arguments.invalid"));
    assert_eq!(rejection(&in_use_stale), (412, "resource.changed"));
    assert_eq!(rejection(&in_use), (409, "region.in-use"));
    assert_eq!(rejection(&taken_stale), (412, "resource.changed"));
    assert_eq!(rejection(&taken), (409, "region.taken"));
}

/// Changed by a POST, which takes no precondition.
#[test_on(sqlite, postgres)]
async fn other_changes_change_etag(app: TestApp) {
    let (kofi, event) = app.sign_up_host_with_draft("kofi").await;
    let seen = app.get(&kofi.key, &event.uri).await.header("etag").to_owned();
    app.list_event(&event).await;

    let change = app.request("PUT", &event.uri).key(&kofi.key).json(&json!({ "description": "Jazz, indoors." }));
    let rejected = change.header("If-Match", &seen).send().await;

    assert_eq!(rejection(&rejected), (412, "resource.changed"));
    assert_eq!(app.read(&event.uri).await["description"], "Jazz, outdoors.");
}

/// A session's representation depends on the key of the request.
#[test_on(sqlite, postgres)]
async fn etag_depends_on_representation(app: TestApp) {
    let ama = app.sign_up("ama").await;
    let again = app.sign_in("ama", crate::support::PASSWORD).await.unwrap().key;
    let active = async |key: &str| app.get(key, "/sessions/active").await;
    let (first, second) = (active(&ama.key).await, active(&again).await);

    let end = app.request("DELETE", "/sessions/active").key(&again).header("If-Match", first.header("etag"));
    let rejected = end.send().await;

    assert_ne!(first.header("etag"), second.header("etag"));
    assert_eq!(rejection(&rejected), (412, "resource.changed"));
    assert_eq!(active(&again).await.status, 200);
}
