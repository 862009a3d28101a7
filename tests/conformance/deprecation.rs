//! Deprecated operations: the headers that announce their removal.

use boxoffice_conformance::http_client::Request;
use boxoffice_mock::MockSettings;
use boxoffice_openapi::Contract;
use serde_json::{Value, json};

use crate::support::{CONTRACT, MockServer, mock_request};

/// Returns the contract with `GET /time` as a deprecated operation with these dates.
fn contract_with(dates: Value) -> anyhow::Result<Contract> {
    let mut document = CONTRACT.document.clone();
    let operation = document["paths"]["/time"]["get"].as_object_mut().unwrap();
    operation.insert("deprecated".to_owned(), json!(true));
    operation.extend(dates.as_object().unwrap().clone());
    Contract::new(document)
}

#[test]
fn dates_become_header_values() {
    let contract = contract_with(json!({ "x-deprecated-since": "2026-07-01", "x-sunset": "2027-07-01" })).unwrap();
    let deprecation = contract.operation("time_get").unwrap().deprecation.clone().unwrap();
    assert_eq!(
        (deprecation.since, deprecation.sunset.unwrap()),
        ("@1782864000".parse().unwrap(), "Thu, 01 Jul 2027 00:00:00 GMT".parse().unwrap())
    );
    assert_eq!(CONTRACT.operation("time_get").unwrap().deprecation, None);
}

#[test]
fn invalid_dates_are_reported() {
    assert_eq!(CONTRACT.warnings, Vec::<String>::new());
    for (dates, text) in [
        (json!({}), "a deprecated operation needs x-deprecated-since"),
        (json!({ "x-deprecated-since": "soon" }), "x-deprecated-since must be a date such as 2026-12-31"),
        (json!({ "x-deprecated-since": "2026-07-01", "x-sunset": "2026-06-30" }), "x-sunset must be after x-deprecated-since"),
    ] {
        let warnings = contract_with(dates).unwrap().warnings;
        assert!(warnings.iter().any(|warning| warning.contains(text)), "{warnings:?}");
    }
}

/// Returns the block of a language below `Deprecation` in `docs/versioning.md`.
fn documented(language: &str) -> &'static str {
    let section = include_str!("../../docs/versioning.md").split("\n## Deprecation\n").nth(1).unwrap();
    section.split_once(&format!("```{language}\n")).unwrap().1.split("```").next().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_response_of_deprecated_operation_announces_removal() {
    let mut document = CONTRACT.document.clone();
    let declared: Value = serde_yaml_ng::from_str(documented("yaml")).unwrap();
    document["paths"]["/time"]["get"].as_object_mut().unwrap().extend(declared.as_object().unwrap().clone());
    let mock = MockServer::of(document, MockSettings::default());
    let announced = async |request: Request| {
        let response = mock.send(&request).await;
        let header = |name: &str| Some(format!("{name}: {}\n", response.headers.get(name)?.to_str().unwrap()));
        let headers: Vec<_> = ["Deprecation", "Sunset"].into_iter().filter_map(header).collect();
        (response.status, headers.concat())
    };

    let success = announced(mock_request("GET", "/time")).await;
    let rejection = announced(Request::new("GET", "/time")).await;
    let other = announced(mock_request("GET", "/countries")).await;

    let headers = documented("text").to_owned();
    assert_eq!(success, (200, headers.clone()));
    assert_eq!(rejection, (412, headers));
    assert_eq!(other, (200, String::new()));
}
