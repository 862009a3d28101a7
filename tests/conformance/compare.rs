//! `boxoffice compare`: it finds nothing wrong with conforming servers, and every planted fault.

use std::fs;
use std::process::Command;
use std::sync::Arc;

use boxoffice::contract::builtin_document;
use boxoffice::kernel::settings::Settings;
use boxoffice_conformance::comparison::{BuiltinServer, Comparison};
use boxoffice_conformance::http_client::HttpClient;
use boxoffice_conformance::model::{Check, Coverage, Report};
use boxoffice_conformance::options::select_operations;
use boxoffice_conformance::target::Target;
use boxoffice_mock::MockSettings;
use serde_json::json;

use planted_fault::{Change, On, planted_fault};

use crate::support::{CONTRACT, MockServer, TestApp, test_on};

mod faults;
mod fixtures;
mod foreign;
mod planted;
mod planted_fault;
mod proxy;

fn mock() -> MockServer {
    MockServer::start(MockSettings::default())
}

/// Returns the facts about the platform's server.
fn builtin_server() -> BuiltinServer {
    builtin_document().unwrap().server
}

/// Returns a target with a key of the scope `public`.
async fn target(address: &str) -> Target {
    let mut target = Target::connect(address, None).await.unwrap();
    target.public_key = Some("public".to_owned());
    target
}

/// Returns a comparison of every operation.
async fn comparison(mock: &MockServer, reference: Option<&MockServer>) -> Comparison {
    let contract = Arc::clone(&CONTRACT);
    let selected = select_operations(&contract, &[], &[]).unwrap();
    let reference = match reference {
        Some(reference) => Some(target(&reference.server.base_url).await),
        None => None,
    };
    let target = target(&mock.server.base_url).await;
    Comparison::new(contract, target, reference, 1, selected, builtin_server())
}

/// The checks that a mock or a small change of its responses can't show.
const ON_REAL_SERVERS: [Check; 26] = [
    Check::Prepared,
    Check::Created,
    Check::Listed,
    Check::Removed,
    Check::UnknownResource,
    Check::Conflict,
    Check::UpdateResponse,
    Check::Tag,
    Check::IfMatch,
    Check::Repeat,
    Check::Action,
    Check::RepeatedAction,
    Check::Filter,
    Check::Sort,
    Check::DeclaredValue,
    Check::JsonText,
    Check::CommonHeader,
    Check::Caching,
    Check::ErrorText,
    Check::ErrorCode,
    Check::Leak,
    Check::Head,
    Check::Options,
    Check::Cors,
    Check::TooLarge,
    Check::IgnoredParameter,
];

/// The checks that only the proxy makes.
const IN_PROXY: [Check; 3] = [Check::Requested, Check::Sent, Check::Accepted];

/// Asserts that there are no findings, that every operation was reached, and that every check was made except these.
fn assert_clean(report: &Report, without: &[Check]) {
    assert_eq!(report.findings, []);
    for operation in &report.operations {
        assert_eq!(operation.left_out, None, "{}", operation.operation);
        assert!(operation.seen.iter().any(|status| *status < 300) || operation.method == "PATCH", "{operation:?}");
    }
    let made = |check| report.operations.iter().any(|operation| operation.checks.contains_key(check));
    let is_expected = |check: &&Check| !without.contains(check) && !IN_PROXY.contains(check);
    let never: Vec<_> = Check::ALL.iter().filter(|check| !made(check)).filter(is_expected).collect();
    assert_eq!(never, [&Check::ReferenceStatus, &Check::ReferenceShape]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mock_conforms_to_contract() {
    let mock = mock();

    assert_clean(&comparison(&mock, None).await.run(|_| ()).await, &ON_REAL_SERVERS);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mock_with_fixtures_conforms_to_contract() {
    let mock = mock();
    let mut comparison = comparison(&mock, None).await;
    comparison.target.create_fixtures(&comparison.contract, 1, &comparison.selected).await.unwrap();

    assert_clean(&comparison.run(|_| ()).await, &ON_REAL_SERVERS);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stateful_mock_conforms_to_contract() {
    let mock = MockServer::start_stateful();
    let mut comparison = comparison(&mock, None).await;
    comparison.target.create_fixtures(&comparison.contract, 1, &comparison.selected).await.unwrap();

    assert_clean(&comparison.run(|_| ()).await, &ON_REAL_SERVERS);
}

#[test_on(sqlite, postgres)]
async fn platform_conforms_to_contract(app: TestApp) {
    // A job would end the return of an event between a request for it and one for the list.
    app.stop_jobs().await;
    let contract = Arc::clone(&CONTRACT);
    let mut target = Target::connect(&app.address, Some(&app.staff.key)).await.unwrap();
    let selected = select_operations(&contract, &[], &[]).unwrap();
    target.create_fixtures(&contract, 1, &selected).await.unwrap();
    let comparison = Comparison::new(contract, target, None, 1, selected, builtin_server());

    assert_clean(&comparison.run(|_| ()).await, &[Check::Prepared]);
}

#[test_on(sqlite, postgres)]
async fn platform_without_decimals_conforms_to_contract(app: TestApp) {
    // Without fees, less is to pay than in the examples.
    let (currency, fee_steps) = ("XOF".parse().unwrap(), "0".parse().unwrap());
    let server = app.start_second_server(Settings { currency, fee_steps, ..app.state.settings.clone() }).await;
    let address = format!("http://{}", server.address);
    // Those that take an amount, and one that returns amounts.
    let operations =
        "section_create,section_update,section_modifier_create,section_modifier_update,order_payment_create,order_get";
    let (code, output) = run(&["--target", &address, "--key", &app.staff.key, "--seed", "1", "--only", operations]).await;
    assert_eq!(code, Some(0), "{output}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn same_seed_sends_same_requests() {
    let mock = mock();

    let run = async || comparison(&mock, None).await.run(|_| ()).await;

    let (one, other) = (run().await, run().await);

    // Says more than the numbers of checks if a response is missing.
    assert_eq!(one.findings, other.findings);
    let untimed = |operations: Vec<Coverage>| {
        operations.into_iter().map(|operation| Coverage { seconds: 0.0, ..operation }).collect::<Vec<_>>()
    };
    assert_eq!((untimed(one.operations), one.requests), (untimed(other.operations), other.requests));
}

/// Runs the command, and returns its exit status and output.
async fn run(arguments: &[&str]) -> (Option<i32>, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_boxoffice"));
    command.arg("compare").args(arguments).env_clear();
    // The servers that it calls run in this process.
    let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
    (output.status.code(), String::from_utf8([output.stdout, output.stderr].concat()).unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn exit_status_reports_result() {
    let mock = mock();
    let address = &mock.server.base_url;
    let fault = planted_fault("region_get", On::Success, Change::Remove("/name"));
    let broken = proxy::start(address, fault).await;
    let folder = tempfile::tempdir().unwrap();
    let (report, baseline) = (folder.path().join("report"), folder.path().join("baseline.yaml"));
    let known = "- {check: response.body, operation: region_get, expires: 2999-12-31, reason: It is on its way}";
    fs::write(&baseline, known).unwrap();
    let (report, baseline) = (report.to_str().unwrap(), baseline.to_str().unwrap());

    let clean = run(&["--target", address, "--only", "region_get,Zones", "--seed", "7"]).await;
    let found = run(&["--target", &broken, "--only", "region_get", "--report", report]).await;
    let is_known = run(&["--target", &broken, "--only", "region_get", "--baseline", baseline]).await;
    let unknown = run(&["--target", address, "--skip", "region_gets"]).await;
    let unreachable = run(&["--target", "http://127.0.0.1:1"]).await;

    assert_eq!(clean.0, Some(0), "{}", clean.1);
    assert!(clean.1.contains("6 of 164 operations reached") && clean.1.contains("seed 7"), "{}", clean.1);
    assert_eq!(found.0, Some(1), "{}", found.1);
    assert!(found.1.contains("response.body of region_get: the response 200 has a body that lacks name"), "{}", found.1);
    for file in ["report.json", "junit.xml", "report.html"] {
        assert!(fs::read_to_string(format!("{report}/{file}")).unwrap().contains("region_get"), "{file}");
    }
    assert_eq!(is_known.0, Some(0), "{}", is_known.1);
    assert_eq!(unknown.0, Some(2), "{}", unknown.1);
    assert!(unknown.1.contains("similar names are") && unknown.1.contains("region_get"), "{}", unknown.1);
    assert_eq!(unreachable.0, Some(2), "{}", unreachable.1);
    assert!(unreachable.1.contains("start the server, or correct the address"), "{}", unreachable.1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn failed_setup_is_reported() {
    const REFUSED: &str = r#"{"message": "You are restricted from accessing this resource.", "code": "key.refused"}"#;
    let mock = mock();
    let mut comparison = comparison(&mock, None).await;
    comparison.target.create_fixtures(&comparison.contract, 1, &comparison.selected).await.unwrap();
    let fault = planted_fault("event_create", On::Success, Change::Answer(403, REFUSED));
    comparison.target.client = HttpClient::new(&proxy::start(&mock.server.base_url, fault).await).unwrap();
    comparison.selected = ["event_update".to_owned()].into();

    let report = comparison.run(|_| ()).await;

    let [finding] = report.findings.as_slice() else { panic!("{:#?}", report.findings) };
    assert_eq!((finding.check, finding.operation.as_str()), (Check::Prepared, "event_update"));
    assert_eq!(finding.summary, "a valid request could not be sent");
    assert!(finding.actual.contains("event_create returned 403: 403 (You are restricted"), "{}", finding.actual);
    assert!(finding.curl.contains("curl -i -X POST") && finding.curl.contains("/events"), "{}", finding.curl);
    assert_eq!(report.operation("event_update").unwrap().left_out, None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn comparison_without_requests_fails() {
    let mock = mock();
    let address = &mock.server.base_url;
    let folder = tempfile::tempdir().unwrap();
    let unwritten = folder.path().join("unwritten.json");
    let document = json!({ "openapi": "3.0.0", "info": { "title": "pictures", "version": "1" }, "paths": { "/pictures": { "post": {
        "requestBody": { "required": true, "content": { "application/pdf": { "schema": { "type": "string" } } } },
        "responses": { "201": { "description": "" } },
    } } } });
    fs::write(&unwritten, document.to_string()).unwrap();

    let left = run(&["--target", address, "--only", "region_get", "--skip", "region_get"]).await;
    let unwritten = run(&["--target", address, "--spec", unwritten.to_str().unwrap()]).await;

    assert_eq!(left.0, Some(2), "{}", left.1);
    assert!(left.1.contains("--only and --skip leave no operation"), "{}", left.1);
    assert_eq!(unwritten.0, Some(2), "{}", unwritten.1);
    assert!(unwritten.1.contains("no operation was checked") && unwritten.1.contains("application/pdf"), "{}", unwritten.1);
}

#[test]
fn unknown_operation_name_suggests_similar_names() {
    let names = |name: &str| [name.to_owned()];

    let unknown = select_operations(&CONTRACT, &names("session_creat"), &[]).unwrap_err().to_string();
    let some = select_operations(&CONTRACT, &names("Sessions"), &names("session_create")).unwrap();

    assert!(unknown.starts_with("session_creat is neither a tag nor an operationId"), "{unknown}");
    assert!(unknown.contains("session_create"), "{unknown}");
    assert_eq!(some.len(), 5);
    assert!(some.contains("session_active_get"));
}
