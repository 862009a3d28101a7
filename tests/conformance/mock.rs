//! The mock server: responses generated from the contract, selected by the `Prefer` header, and rejections equal to the
//! platform's.

mod callbacks;
mod command;
mod foreign;
mod gate;
mod impairment;
mod pages;
mod stateful;
mod store;

use boxoffice_conformance::http_client::{API_KEY_HEADER, CLIENT_VERSION_HEADER, HttpClient, ReceivedResponse, Request};
use boxoffice_mock::MockSettings;
use boxoffice_openapi::{Contract, Operation};
use serde_json::json;

use crate::support::{MockServer, TestApp, mock_request as request, operations, test_on};

/// Returns a valid request for each operation.
fn requests(contract: &Contract) -> Vec<(&Operation, Request)> {
    let with_request = |operation: &crate::support::Operation| {
        let path = format!("{}?{}", operation.path_with(&[]), operation.required_query());
        let request = request(&operation.method, path.trim_end_matches(['?', '&']));
        let request = if operation.body_schema().is_some() { request.with_json(&operation.body()) } else { request };
        (contract.operation(&operation.id).unwrap(), request)
    };
    operations().iter().map(with_request).collect()
}

fn header<'a>(reply: &'a ReceivedResponse, name: &str) -> &'a str {
    reply.headers.get(name).map(|value| value.to_str().unwrap()).unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_operation_returns_its_first_example() {
    let mock = MockServer::start(MockSettings::default());
    let requests = requests(&mock.contract);
    assert_eq!(requests.len(), 164);
    for (operation, request) in requests {
        let reply = mock.send(&request).await;

        let success = operation.responses.iter().find(|answer| (200..300).contains(answer.statuses.start())).unwrap();
        assert_eq!(reply.status, *success.statuses.start(), "{}", operation.id);
        match success.contents.first() {
            Some(content) if content.is_json() => {
                assert_eq!(Some(&reply.json()), content.examples.values().next(), "{}", operation.id);
            }
            Some(content) if content.media_type.starts_with("image/") => {
                assert!(reply.body.starts_with(b"\x89PNG"), "{}", operation.id);
            }
            Some(_) => assert!(!reply.body.is_empty(), "{}", operation.id),
            None => assert!(reply.body.is_empty(), "{}", operation.id),
        }
        if reply.status == 201 && reply.headers.contains_key("location") {
            assert_eq!(header(&reply, "location"), reply.json()["self"], "{}", operation.id);
        }
        assert!(header(&reply, "vary").ends_with("Prefer") && !reply.headers.contains_key("preference-applied"));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_declared_status_can_be_selected() {
    let mock = MockServer::start(MockSettings::default());
    let mut requested = 0;
    for (operation, request) in requests(&mock.contract) {
        for status in &operation.statuses {
            let reply = mock.send(&request.clone().with_header("Prefer", &format!("code={status}"))).await;
            assert_eq!((reply.status, header(&reply, "preference-applied")), (*status, format!("code={status}").as_str()));
            requested += 1;
        }
    }
    assert!(requested > 1000, "only {requested}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_example_can_be_selected() {
    let mock = MockServer::start(MockSettings::default());
    let mut requested = 0;
    for (operation, request) in requests(&mock.contract) {
        for (answer, content) in
            operation.responses.iter().flat_map(|answer| answer.contents.iter().map(move |content| (answer, content)))
        {
            for (name, example) in content.examples.iter().filter(|_| content.is_json()) {
                let kebab: String =
                    name.chars().map(|c| if c.is_uppercase() { format!("-{}", c.to_lowercase()) } else { c.into() }).collect();
                let prefer = format!("example={kebab}, code={}", answer.statuses.start());
                let reply = mock.send(&request.clone().with_header("Prefer", &prefer)).await;
                assert_eq!((reply.status, &reply.json()), (*answer.statuses.start(), example), "{} {name}", operation.id);
                requested += 1;
            }
        }
    }
    assert!(requested > 1000, "only {requested}");
    let alone = request("POST", "/lookups").with_json(&json!({ "identification": "ama.mensah" }));
    assert_eq!(mock.send(&alone.with_header("Prefer", "example=role")).await.status, 200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_response_can_be_generated_from_schema() {
    let mock = MockServer::start(MockSettings::default());
    for (operation, request) in requests(&mock.contract) {
        let mut seen = std::collections::BTreeSet::new();
        for number in 0..20 {
            let mut request = request.clone().with_header("Prefer", "dynamic=true");
            request.path += if request.path.contains('?') { "&" } else { "?" };
            request.path += &format!("unknown={number}");
            let reply = mock.send(&request).await;
            assert!((200..300).contains(&reply.status), "{}: {} {}", operation.id, reply.status, reply.json());
            seen.insert(reply.body);
        }
        let varies =
            operation.response_for(200).or(operation.response_for(201)).is_some_and(|answer| answer.contents[0].is_json());
        assert!(!varies || seen.len() > 1, "{} has always the same data", operation.id);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn same_seed_and_request_generate_same_data() {
    let body = |name: &str| json!({ "name": name, "country": "Ghana" });
    let create = async |mock: &MockServer, target: &str, name: &str| {
        let request = request("POST", target).with_json(&body(name)).with_header("Prefer", "dynamic=true");
        mock.send(&request).await.json()
    };
    let (one, same) = (
        MockServer::start(MockSettings { seed: 7, ..MockSettings::default() }),
        MockServer::start(MockSettings { seed: 7, ..MockSettings::default() }),
    );
    let other = MockServer::start(MockSettings { seed: 8, ..MockSettings::default() });

    let first = create(&one, "/regions", "Accra").await;
    assert_eq!(create(&one, "/regions", "Accra").await, first);
    assert_eq!(create(&same, "/regions", "Accra").await, first);
    assert_ne!(create(&other, "/regions", "Accra").await, first);
    assert_ne!(create(&one, "/regions?x=1", "Accra").await, first);
    assert_ne!(create(&one, "/regions", "Kumasi").await, first);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unknown_selection_lists_available_ones() {
    let mock = MockServer::start(MockSettings::default());
    for (prefer, details) in [
        (
            "code=418",
            vec!["has code=418, which the operation doesn't declare; there are 200, 304, 400, 401, 403, 404, 412, 429, 500, 503"],
        ),
        ("code=OK", vec!["has code=OK; a code is a status from 200 to 599"]),
        ("example=sold-out", vec!["has example=sold-out, which is no example here; there are page of 200; "]),
        ("example=region, code=404", vec!["has example=region, which is no example here; there are resource, page of 404"]),
        ("delay=1e3", vec!["has delay=1e3; a delay is in milliseconds, from 0 to 60000"]),
        ("dynamic=often", vec!["has dynamic=often; it is true or false"]),
        ("scope=staff, code=x", vec!["has scope=staff; there are public, customer", "has code=x"]),
        ("code 404", vec!["is not as RFC 7240 has it"]),
    ] {
        let reply = mock.send(&request("GET", "/regions").with_header("Prefer", prefer)).await;

        let body = reply.json();
        assert_eq!((reply.status, &body["code"]), (400, &json!("arguments.invalid")), "{prefer}");
        let fields = body["fields"].as_array().unwrap();
        assert_eq!(fields.len(), details.len(), "{prefer}: {body}");
        for (field, detail) in fields.iter().zip(details) {
            assert_eq!((&field["name"], &field["problem"]), (&json!("Prefer"), &json!("invalid")));
            assert!(field["detail"].as_str().unwrap().starts_with(detail), "{prefer}: {field}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn selections_combine_and_are_reported() {
    let mock = MockServer::start(MockSettings::default());
    let order = |prefer| {
        request("POST", "/orders").with_json(&json!({ "items": { "/sections/17637000000061": 2 } })).with_header("Prefer", prefer)
    };

    let sold_out = mock.send(&order("Example=soldOut, code=409, scope=customer, wait=5")).await;
    let unlike = mock.send(&order("example=sold-out")).await;
    let generated = mock.send(&order("code=409, dynamic=true")).await;

    assert_eq!((sold_out.status, &sold_out.json()["code"]), (409, &json!("section.sold-out")));
    assert_eq!(header(&sold_out, "preference-applied"), "code=409, example=soldOut, scope=customer");
    assert_eq!((unlike.status, unlike.json()), (409, sold_out.json()));
    assert_eq!(generated.status, 409);
    assert_ne!(generated.json(), sold_out.json());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn response_is_delayed_on_request() {
    let mock = MockServer::start(MockSettings::default());
    let started = std::time::Instant::now();
    let reply = mock.send(&request("GET", "/time").with_header("Prefer", "delay=80")).await;
    assert!(started.elapsed().as_millis() >= 80);
    assert_eq!((reply.status, header(&reply, "preference-applied")), (200, "delay=80"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn prefer_header_sets_scope_of_any_key() {
    let mock = MockServer::start(MockSettings::default());
    for (operation, request) in requests(&mock.contract).into_iter().filter(|(operation, _)| operation.needs_key) {
        for scope in ["public", "customer", "administrator", "redeemer", "none"] {
            let reply = mock.send(&request.clone().with_header("Prefer", &format!("scope={scope}"))).await;
            let reaches = operation.scopes.iter().any(|reaching| json!(reaching) == scope);
            assert_eq!(reply.status == 403, !reaches, "{} {scope}: {}", operation.id, reply.status);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn configured_key_is_required() {
    let mock = MockServer::start(MockSettings { key: Some("the one".to_owned()), ..MockSettings::default() });
    let with_key = async |key: &str| mock.send(&request("GET", "/regions").with_header(API_KEY_HEADER, key)).await.status;
    assert_eq!([with_key("the one").await, with_key("another").await, with_key(" ").await], [200, 403, 401]);
}

#[test_on(sqlite, postgres)]
async fn error_responses_equal_those_of_platform(app: TestApp) {
    let mock = MockServer::start(MockSettings::default());
    let platform = HttpClient::new(&app.address).unwrap();
    let staff = |method: &str, path: &str| request(method, path).with_header(API_KEY_HEADER, &app.staff.key);
    let region = || staff("POST", "/regions").with_json(&json!({ "name": "Accra", "country": "Ghana" }));
    let with_body = |request: Request, body: &[u8]| Request { body: Some(body.to_vec()), ..request };
    let mut bad = vec![
        request("GET", "/nowhere"),
        request("GET", "/v3/nowhere"),
        request("GET", "/"),
        staff("DELETE", "/regions"),
        staff("HEAD", "/time"),
        staff("PATCH", "/v3/orders"),
        staff("GET", "/regions").without_header(CLIENT_VERSION_HEADER),
        staff("GET", "/regions").with_header(CLIENT_VERSION_HEADER, "2.9.9"),
        staff("GET", "/regions").with_header(CLIENT_VERSION_HEADER, "three"),
        staff("GET", "/regions").without_header(API_KEY_HEADER),
        staff("GET", "/regions").with_header(API_KEY_HEADER, "  "),
        staff("GET", "/regions?page=0&records=101"),
        staff("GET", "/regions?page=1&page=2"),
        staff("GET", "/regions/no%20such"),
        region().with_header("Content-Type", "text/plain"),
        with_body(region(), b"{\"name\": "),
        with_body(region(), b"[]"),
        with_body(region(), b""),
        with_body(region(), &[b'x'; 64 * 1024 + 1]),
    ];
    for operation in operations().iter().filter(|operation| operation.body_schema().is_some()) {
        bad.push(staff(&operation.method, &operation.path_with(&[])).with_json(&json!([])));
        for name in operation.body_schema().unwrap()["properties"].as_object().unwrap().keys() {
            let mut body = operation.body();
            body[name] = json!({ "": [] });
            bad.push(staff(&operation.method, &operation.path_with(&[])).with_json(&body));
        }
    }
    let mut rejected = 0;
    for request in bad {
        let ours = mock.send(&request).await;
        // Arguments that satisfy the contract are subject to the platform's own rules.
        if ours.status < 300 {
            continue;
        }
        rejected += 1;
        let theirs = platform.send(&request).await.unwrap();

        let about = format!("{} {}", request.method, request.path_and_query());
        assert_eq!((ours.status, ours.json()), (theirs.status, theirs.json()), "{about}");
        for name in ["content-type", "allow", "access-control-allow-origin"] {
            assert_eq!(ours.headers.get(name), theirs.headers.get(name), "{about}: {name}");
        }
    }
    assert!(rejected > 100, "only {rejected}");
}
