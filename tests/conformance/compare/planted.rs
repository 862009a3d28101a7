//! One planted fault for everything that a comparison checks.

use std::collections::BTreeSet;

use boxoffice_conformance::http_client::HttpClient;
use boxoffice_conformance::model::{Check, Finding};
use boxoffice_openapi::Contract;
use serde_json::{Value, json};

use super::planted_fault::Change::{Answer, Around, Bare, Body, Closed, Header, Remove, Set, Status, Truncated, Twice};
use super::planted_fault::On::{Never, Other, Query, Rejection, Success, UnknownPath};
use super::planted_fault::{Change, On, planted_fault};
use super::{builtin_server, comparison, mock, proxy, target};
use crate::support::{CONTRACT, MockServer};

/// The operation under test, the changed responses, the change, the check that finds it, and a part of the finding's text.
type Planted = (&'static str, On, Change, Check, &'static str);

const NO_ENTRIES: &str = r#"{"total": 5, "page": 4, "records": 2, "entries": []}"#;
const UNKNOWN: &str = r#"{"message": "The requested endpoint does not exist.", "code": "endpoint.unknown"}"#;
const NOT_YOURS: &str = r#"{"error": "This is somebody else's.", "code": "resource.not-yours"}"#;
const INVALID: &str = r#"{"error": "Invalid: active (must be true).", "code": "arguments.invalid", "fields": []}"#;
const FAILED: &str = r#"{"message": "There was a server error.", "code": "server.error"}"#;
const REFUSED: &str = r#"{"message": "You are restricted from accessing this resource.", "code": "key.refused"}"#;
const ANOTHER: &str = r#""/regions/17637000000019""#;

#[rustfmt::skip]
const PLANTED: &[Planted] = &[
    // A missing operation, or one without its effect.
    ("region_get", Success, Answer(404, UNKNOWN), Check::Reachable, "it returns 404"),
    ("region_get", Success, Answer(405, UNKNOWN), Check::Reachable, "it returns 405"),
    ("region_get", Success, Answer(501, UNKNOWN), Check::ServerError, "the server failed with 501"),
    ("region_create", Success, Answer(403, NOT_YOURS), Check::Valid, "a valid request is answered with 403"),
    ("region_list", Query("active="), Answer(400, INVALID), Check::Valid, "active with a boundary value is answered with 400"),
    ("region_get", Success, Answer(500, FAILED), Check::ServerError, "failed with 500"),
    ("region_create", Rejection("is required"), Answer(500, FAILED), Check::ServerError, "failed with 500"),
    ("region_list", UnknownPath, Answer(502, FAILED), Check::ServerError, "failed with 502"),
    ("region_get", Success, Closed, Check::Complete, "missing or incomplete"),
    ("region_get", Success, Truncated, Check::Complete, "missing or incomplete"),
    // The response to a valid request.
    ("region_get", Success, Status(206), Check::Status, "206 is not declared"),
    ("region_create", Success, Status(200), Check::Status, "200 is not declared"),
    ("region_delete", Success, Answer(200, "{}"), Check::Status, "200 is not declared"),
    ("region_get", Success, Header("content-type", Some("text/plain")), Check::MediaType, "is `text/plain`"),
    ("region_get", Success, Bare, Check::MediaType, "has no body"),
    ("region_get", Other("region_get"), Header("content-type", None), Check::MediaType, "has no Content-Type"),
    ("region_create", Success, Header("location", None), Check::Header, "lacks the header Location"),
    ("region_create", Success, Header("location", Some("no uri %")), Check::Header, "must be a valid uri-reference"),
    ("region_get", Success, Body("{\"self\": "), Check::Body, "is no JSON"),
    ("region_get", Success, Body("[]"), Check::Body, "must be an object"),
    ("region_get", Success, Remove("/name"), Check::Body, "lacks name"),
    ("region_get", Success, Set("/name", "7"), Check::Body, "at /name must be a string"),
    ("region_get", Success, Set("/name", "null"), Check::Body, "at /name must be a string"),
    ("region_get", Success, Set("/icon", "\"no uri\""), Check::Body, "at /icon must be a valid uri"),
    ("region_list", Success, Remove("/total"), Check::Body, "lacks total"),
    ("region_list", Success, Set("/total", "\"5\""), Check::Body, "at /total must be an integer"),
    ("region_list", Success, Remove("/entries/0/city"), Check::Body, "at /entries/* lacks city"),
    ("event_get", Success, Set("/start", "\"20 December\""), Check::Body, "at /start must match"),
    ("event_get", Success, Set("/tags/0", "true"), Check::Body, "at /tags/* must be a string"),
    ("time_get", Success, Set("/utc", "-1"), Check::Body, "at /utc must be at least 0"),
    ("region_get", Success, Set("/secret", "1"), Check::UndeclaredProperty, "has the undeclared secret"),
    ("event_get", Success, Set("/venue/secret", "1"), Check::UndeclaredProperty, "at /venue has the undeclared secret"),
    ("region_list", Success, Set("/entries/0/secret", "1"), Check::UndeclaredProperty, "at /entries/* has the undeclared secret"),
    ("region_get", On::Status(404), Set("/secret", "1"), Check::UndeclaredProperty, "404 has a body that has the undeclared secret"),
    ("region_get", Success, Status(203), Check::Status, "203 is not declared"),
    ("region_create", Success, Status(202), Check::Status, "202 is not declared"),
    ("region_get", Success, Header("content-type", Some("application/json; charset=iso-8859-1")), Check::MediaType, "charset"),
    ("region_get", On::Status(401), Header("content-type", Some("text/html")), Check::MediaType, "is `text/html`"),
    ("region_delete", Success, Header("content-type", Some("application/json")), Check::MediaType, "has a media type and no body"),
    ("region_get", Success, Around("\u{feff}", ""), Check::Body, "is no JSON"),
    ("region_get", Success, Around("", "\n<!-- served in 3 ms -->"), Check::Body, "is no JSON"),
    ("region_get", Success, Around("callback(", ")"), Check::Body, "is no JSON"),
    ("time_get", Success, Body(r#"{"utc": 1e400}"#), Check::Body, "can't be read"),
    ("time_get", Success, Set("/utc", "\"1763700000\""), Check::Body, "at /utc must be an integer"),
    ("time_get", Success, Set("/utc", "1763700000.5"), Check::Body, "at /utc must be an integer"),
    ("region_list", Success, Set("/entries", "{}"), Check::Body, "at /entries must be an array"),
    ("region_list", Success, Set("/entries/0", "[]"), Check::Body, "at /entries/* must be an object"),
    ("event_get", Success, Set("/start", "\"2026-12-20T19:00:00+01:00\""), Check::Body, "at /start must match"),
    ("region_get", On::Status(403), Set("/code", "\"key.missing\""), Check::Body, "403 has the code key.missing, which belongs to 401"),
    ("region_get", On::Status(403), Remove("/code"), Check::Body, "lacks code"),
    ("region_list", On::Status(405), Set("/code", "\"endpoint.unknown\""), Check::MethodUndeclared, "405 does not have the code method.not-allowed"),
    ("region_list", UnknownPath, Body("<html>not here</html>"), Check::PathUnknown, "404 does not have the code endpoint.unknown"),
    ("region_get", On::Status(304), Answer(200, INVALID), Check::NotModified, "an unchanged resource is sent again"),
    ("region_get", Success, Header("etag", None), Check::Header, "lacks the header ETag"),
    // The `self` links of resources.
    ("region_get", Success, Set("/self", "\"/nowhere/1\""), Check::SelfLink, "a self link leads to no operation"),
    ("region_get", Success, Set("/self", ANOTHER), Check::SelfLink, "names another resource"),
    ("region_list", Success, Set("/entries/0/self", "\"/regions/broken\""), Check::SelfLink, "a self link is answered with 404"),
    ("region_list", Other("region_get"), Set("/self", ANOTHER), Check::SelfLink, "a self link leads to another resource"),
    ("region_create", Success, Header("location", Some("/nowhere")), Check::SelfLink, "Location leads to no operation"),
    ("region_create", Success, Header("location", Some("/regions/broken")), Check::SelfLink, "Location is answered with 404"),
    ("region_get", Success, Set("/self", "\"/regions/bad_one\""), Check::Identifier, "not valid for region"),
    ("account_list", Success, Set("/entries/0/self", "\"/accounts/gh-1\""), Check::Identifier, "not valid for number"),
    ("region_get", Success, Set("/self", "\"/regions/17637000000011/\""), Check::SelfLink, "self"),
    ("region_create", Success, Header("location", Some("http://elsewhere.example/regions/17637000000011")), Check::SelfLink, "leads to no operation"),
    // Lists.
    ("region_list", Query("page=3&records=2"), Set("/entries", "[]"), Check::ListTotals, "the number of entries does not match"),
    ("region_list", Query("page=2&records=2"), Set("/total", "4"), Check::ListTotals, "total is not the same on every page"),
    ("region_list", Query("active="), Set("/total", "9"), Check::ListTotals, "the number of entries does not match"),
    ("region_list", Success, Set("/total", "7"), Check::ListTotals, "the number of entries does not match"),
    ("region_list", Success, Set("/page", "2"), Check::ListTotals, "page is not"),
    ("region_list", Success, Set("/records", "3"), Check::ListTotals, "the number of entries does not match"),
    ("region_list", Success, Twice("/entries/0"), Check::ListTotals, "the number of entries does not match"),
    ("region_list", Query("page=2&records=2"), Set("/records", "1"), Check::ListTotals, "records is not"),
    ("region_list", Query("page=2&records=2"), Set("/entries/0/self", "\"/regions/17637000000011\""), Check::ListTotals, "missing or repeated"),
    ("region_list", Query("page=2&records=2"), Answer(404, UNKNOWN), Check::ListTotals, "is not a page"),
    ("region_list", On::Status(404), Answer(200, NO_ENTRIES), Check::ListTotals, "past the end is answered with 200"),
    // Invalid arguments that are accepted, or rejected in another way.
    ("region_create", Rejection("is required"), Status(201), Check::ArgumentMissing, "name that is missing is answered with 201"),
    ("host_administrator_delete", Rejection("is required"), Status(204), Check::ArgumentMissing, "account that is missing"),
    ("region_create", Rejection("is required"), Set("/fields", "[]"), Check::ArgumentMissing, "doesn't name name"),
    ("region_create", Rejection("is required"), Set("/fields/0/name", "\"Name\""), Check::ArgumentMissing, "doesn't name name"),
    ("region_create", Rejection("is required"), Remove("/fields"), Check::ArgumentMissing, "doesn't name name"),
    ("region_create", Rejection("must be a string"), Status(201), Check::ArgumentType, "is answered with 201"),
    ("region_list", Rejection("must be an integer"), Status(200), Check::ArgumentType, "page that has a wrong type"),
    ("region_list", Rejection("must be true or false"), Status(200), Check::ArgumentType, "active that has a wrong type"),
    ("region_create", On::Status(400), Status(418), Check::ArgumentType, "is answered with 418"),
    ("region_create", Rejection("must have at most"), Status(201), Check::ArgumentBounds, "name that is out of bounds"),
    ("region_create", Rejection("must have at most"), Set("/fields/0/name", "\"x\""), Check::ArgumentBounds, "doesn't name name"),
    ("region_list", Rejection("must be at most"), Status(200), Check::ArgumentBounds, "records that is out of bounds"),
    ("order_create", Rejection("must be at least"), Status(201), Check::ArgumentBounds, "items that is out of bounds"),
    ("event_list", Rejection("must be one of"), Status(200), Check::ArgumentEnum, "status that has an unknown value"),
    ("account_create", Rejection("must be one of"), Status(201), Check::ArgumentEnum, "title that has an unknown value"),
    ("region_get", On::Status(404), Answer(400, INVALID), Check::ArgumentFormat, "region that has an invalid format is answered with 400"),
    ("account_create", Rejection("must be an e-mail address"), Status(201), Check::ArgumentFormat, "email that has an invalid format"),
    ("region_create", Rejection("not valid JSON"), Status(201), Check::BodyFormat, "not JSON is answered with 201"),
    ("region_create", On::Status(415), Status(201), Check::BodyFormat, "another media type is answered with 201"),
    ("region_create", On::Status(415), Answer(400, INVALID), Check::BodyFormat, "another media type is answered with 400"),
    // Callers without permission.
    ("region_get", On::Status(401), Status(200), Check::KeyMissing, "a missing key is answered with 200"),
    ("region_get", On::Status(401), Answer(403, REFUSED), Check::KeyMissing, "a missing key is answered with 403"),
    ("region_get", On::Status(403), Status(200), Check::KeyUnknown, "an unknown key is answered with 200"),
    ("region_get", On::Status(403), Status(401), Check::KeyUnknown, "an unknown key is answered with 401"),
    ("region_create", On::Status(403), Status(201), Check::KeyScope, "too low a scope is answered with 201"),
    ("region_get", On::Status(412), Status(200), Check::VersionMissing, "a missing client version is answered with 200"),
    ("region_get", On::Status(412), Answer(400, INVALID), Check::VersionMissing, "a missing client version is answered with 400"),
    ("region_get", On::Status(412), Status(200), Check::VersionOld, "an old client version is answered with 200"),
    // Paths and methods.
    ("region_list", UnknownPath, Answer(200, "{}"), Check::PathUnknown, "is answered with 200"),
    ("region_list", UnknownPath, Answer(403, REFUSED), Check::PathUnknown, "is answered with 403"),
    ("region_list", On::Status(405), Answer(200, "{}"), Check::MethodUndeclared, "the undocumented method DELETE"),
    ("region_list", On::Status(405), Status(404), Check::MethodUndeclared, "is answered with 404"),
    ("region_list", On::Status(405), Header("allow", None), Check::MethodUndeclared, "has no Allow"),
    ("region_list", On::Status(405), Header("allow", Some("GET")), Check::MethodUndeclared, "Allow doesn't list"),
    ("region_list", On::Status(405), Header("allow", Some("GET, POST, DELETE")), Check::MethodUndeclared, "Allow doesn't list"),
    ("region_list", On::Status(405), Header("allow", Some("get, post")), Check::MethodUndeclared, "Allow doesn't list"),
];

#[rustfmt::skip]
const DIFFERENT: &[Planted] = &[
    ("region_get", Success, Answer(403, NOT_YOURS), Check::ReferenceStatus, "the target returns 403, the reference 200"),
    ("region_create", On::Status(400), Status(422), Check::ReferenceStatus, "the target returns 422, the reference 400"),
    ("region_get", Success, Remove("/name"), Check::ReferenceShape, "only the reference has /name"),
    ("region_get", Success, Set("/name", "[]"), Check::ReferenceShape, "/name is an array on the target, a string on the reference"),
    ("region_get", Success, Set("/name", "null"), Check::ReferenceShape, "/name is null on the target"),
    ("event_get", Success, Set("/venue/region", "7"), Check::ReferenceShape, "/venue/region is a number"),
    ("event_get", Success, Set("/tags/0", "true"), Check::ReferenceShape, "/tags/* is a boolean"),
];

/// Faults of a stateful server: the operation under test, the operation whose responses are changed, which ones and how, and a
/// part of the finding's text.
const UNKEPT: [(&str, &str, On, Change, &str); 3] = [
    ("region_create", "region_get", Success, Set("/name", "\"Old\""), "name differs from the value that was sent"),
    ("region_update", "region_get", Success, Set("/city", "\"Old\""), "city differs from the value that was sent"),
    ("region_delete", "region_get", On::Status(404), Answer(200, "{}"), "the deleted resource can still be read"),
];

/// The checks that find errors in the document.
const IN_DOCUMENT: [Check; 2] = [Check::Example, Check::Undocumented];

#[test]
fn every_check_has_a_planted_fault() {
    let planted = PLANTED.iter().chain(DIFFERENT).map(|(.., check, _)| *check).chain(IN_DOCUMENT).chain([Check::Persistence]);
    // The table of faults in front of a real server has faults for the others, and the tests of the proxy have those of clients.
    let is_elsewhere = |check: &Check| super::ON_REAL_SERVERS.contains(check) || super::IN_PROXY.contains(check);
    let expected = Check::ALL.iter().copied().filter(|check| !is_elsewhere(check));
    assert_eq!(planted.collect::<BTreeSet<_>>(), expected.collect());
}

/// Starts a mock with a fault, and returns its address.
async fn faulty(mock: &MockServer, operation: &'static str, on: On, change: Change) -> String {
    proxy::start(&mock.server.base_url, planted_fault(operation, on, change)).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_planted_fault_is_found() {
    let mock = mock();
    let mut comparison = comparison(&mock, None).await;
    let mut missed = Vec::new();
    let sound: BTreeSet<_> = PLANTED.iter().map(|(operation, ..)| *operation).collect();
    let sound = sound.into_iter().map(|operation| (operation, Never, Bare, None));
    let faults = PLANTED.iter().map(|(operation, on, change, check, text)| (*operation, *on, *change, Some((*check, *text))));
    for (operation, on, change, expected) in sound.chain(faults) {
        comparison.target = target(&faulty(&mock, operation, on, change).await).await;
        comparison.selected = BTreeSet::from([operation.to_owned()]);
        let findings = comparison.run(|_| ()).await.findings;
        if !are_expected(&findings, operation, expected) {
            missed.push(format!("{operation} {on:?} {change:?}: {expected:?} is not {findings:#?}"));
        }
    }
    assert!(PLANTED.len() >= 40);
    assert!(missed.is_empty(), "{}", missed.join("\n"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_difference_from_reference_is_found() {
    let mock = mock();
    let mut comparison = comparison(&mock, Some(&mock)).await;
    for (operation, on, change, check, text) in DIFFERENT {
        comparison.selected = BTreeSet::from([(*operation).to_owned()]);
        comparison.target = target(&mock.server.base_url).await;
        let same = comparison.run(|_| ()).await;
        comparison.target = target(&faulty(&mock, operation, *on, *change).await).await;

        let findings = comparison.run(|_| ()).await.findings;

        assert_eq!(same.findings, []);
        let tally = same.operation(operation).unwrap().checks[check];
        assert!(tally.made > 0, "{operation}");
        assert!(are_expected(&findings, operation, Some((*check, text))), "{operation} {on:?} {change:?}: {findings:#?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn missing_persistence_is_found() {
    let mock = MockServer::start_stateful();
    for (operation, changed, on, change, text) in UNKEPT {
        let mut comparison = comparison(&mock, None).await;
        comparison.selected = BTreeSet::from([operation.to_owned()]);
        comparison.target.create_fixtures(&comparison.contract, 1, &comparison.selected).await.unwrap();
        let sound = comparison.run(|_| ()).await;
        comparison.target.client = HttpClient::new(&faulty(&mock, changed, on, change).await).unwrap();

        let findings = comparison.run(|_| ()).await.findings;

        assert_eq!(sound.findings, []);
        assert!(are_expected(&findings, operation, Some((Check::Persistence, text))), "{operation}: {findings:#?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unknown_values_of_extensible_lists_are_accepted() {
    let mock = mock();
    let mut comparison = comparison(&mock, None).await;
    // An error code is different: it must be among those that the document's examples have for the operation.
    for (operation, on, member, value, expected) in [
        ("event_get", Success, "/status", "\"Postponed\"", None),
        ("region_get", On::Status(412), "/code", "\"client.too-old\"", Some(Check::ErrorCode)),
    ] {
        comparison.target = target(&faulty(&mock, operation, on, Set(member, value)).await).await;
        comparison.selected = BTreeSet::from([operation.to_owned()]);
        let found: Vec<Check> = comparison.run(|_| ()).await.findings.iter().map(|finding| finding.check).collect();
        assert_eq!(found, Vec::from_iter(expected), "{operation}");
    }
}

/// Returns whether the expected finding is there; without an expectation, whether there are none.
fn are_expected(findings: &[Finding], operation: &str, expected: Option<(Check, &str)>) -> bool {
    let Some((check, text)) = expected else { return findings.is_empty() };
    let is_expected = |finding: &Finding| {
        finding.check == check && finding.operation == operation && finding.summary.contains(text) && !finding.curl.is_empty()
    };
    findings.iter().any(is_expected)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn document_errors_are_found() {
    let mock = mock();
    let document = CONTRACT.document.clone();
    let in_document = |change: fn(&mut Value)| {
        let mut document = document.clone();
        change(&mut document);
        Contract::new(document).unwrap()
    };
    let example = in_document(|document| document["components"]["examples"]["Region"]["value"]["name"] = json!(7));
    let undescribed = in_document(|document| {
        document["paths"].as_object_mut().unwrap().remove("/time").unwrap();
    });

    let mut comparison = comparison(&mock, None).await;
    comparison.selected = BTreeSet::from(["region_get".to_owned()]);
    comparison.contract = example.into();
    let of_example = comparison.run(|_| ()).await.findings;
    let target = target(&mock.server.base_url).await;
    let other = super::Comparison::new(undescribed, target, None, 1, BTreeSet::new(), builtin_server());
    let of_operation = other.run(|_| ()).await.findings;

    let place = "/paths/~1regions~1{region}/get/responses/200/content/application~1json/examples/region";
    assert_eq!((of_example[0].check, of_example[0].pointer.as_str()), (Check::Example, place), "{of_example:#?}");
    let found: Vec<_> = of_operation.iter().map(|finding| (finding.check, finding.summary.as_str())).collect();
    let expected = "GET /time: operation is absent in the document, present in the server";
    assert_eq!(found, [(Check::Undocumented, expected)]);
}
