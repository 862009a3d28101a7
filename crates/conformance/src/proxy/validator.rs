//! Validation of the requests and responses that passed through the proxy, with the checks of a comparison.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::LazyLock;

use boxoffice_openapi::response::essence;
use boxoffice_openapi::{FieldErrorKind, RequestError, RouteError, SecurityScheme};
use bytes::Bytes;
use chrono::{DateTime, Utc};
use form_urlencoded::parse;
use http::header::{AUTHORIZATION, CONTENT_ENCODING, CONTENT_TYPE};
use http::request::Parts;
use regex::Regex;

use super::forwarder::{Exchange, MAX_VALIDATED_BYTES};
use super::recording::{Recording, is_secret_name, mask, mask_secrets};
use crate::comparison::Comparison;
use crate::http_client::{KEY_VARIABLE, ReceivedResponse, Request};
use crate::model::{Check, Finding, NOT_REQUESTED, Report};
use crate::operation_run::OperationRun;
use crate::operation_under_test::OperationUnderTest;

/// Maximum number of different requests without an operation that are listed.
const MAX_UNKNOWN_REQUESTS: usize = 100;

/// A number in the name of an argument.
#[expect(clippy::unwrap_used, reason = "the pattern is constant")]
static NUMBER: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"\d+").unwrap());

/// Validates exchanges, and collects the findings.
pub struct Validator<'a> {
    comparison: &'a Comparison,
    /// In the order of the document's operations.
    runs: Vec<OperationRun<'a>>,
    /// Findings about requests without an operation.
    unknown: Vec<Finding>,
    /// Names of the parameters and headers that the document declares as keys.
    key_names: Vec<String>,
    request_count: usize,
    /// Number of bodies that were compressed or too large, or had no known end.
    unchecked_bodies: usize,
    /// Number of requests without an operation that are not listed.
    unlisted_requests: usize,
}

impl<'a> Validator<'a> {
    /// Creates a validator that has seen no request.
    pub fn new(comparison: &'a Comparison, operations: &'a [OperationUnderTest<'a>]) -> Self {
        let runs = operations.iter().map(|operation| OperationRun::new(comparison, operations, operation)).collect();
        let schemes = operations.iter().flat_map(|operation| operation.spec.security.iter().flatten());
        let key_names = schemes.filter_map(|scheme| match scheme {
            SecurityScheme::Key(_, name) => Some(name.clone()),
            SecurityScheme::Authorization(_) => None,
        });
        Self {
            comparison,
            runs,
            unknown: Vec::new(),
            key_names: key_names.collect::<BTreeSet<_>>().into_iter().collect(),
            request_count: 0,
            unchecked_bodies: 0,
            unlisted_requests: 0,
        }
    }

    /// Returns the number of validated requests.
    pub fn request_count(&self) -> usize {
        self.request_count
    }

    /// Validates a request and its response, and records those without a finding. Calls `on_finding` for each finding that is not like
    /// an earlier one.
    pub fn validate(&mut self, exchange: Exchange, recording: Option<&mut Recording>, mut on_finding: impl FnMut(&Finding)) {
        self.request_count += 1;
        let contract = &self.comparison.contract;
        let path = contract.without_prefix(exchange.head.uri.path());
        let operation = match contract.find(exchange.head.method.as_str(), path) {
            Ok(operation) => operation,
            // The server handles these for every path.
            Err(RouteError::MethodNotAllowed(_)) if ["HEAD", "OPTIONS"].contains(&exchange.head.method.as_str()) => return,
            Err(error) => return self.record_unknown(&exchange.head, path, &error, on_finding),
        };
        let body = exchange.body.as_ref().filter(|_| self.comparison.is_builtin() || !is_compressed(&exchange.head));
        let Some(run) = self.runs.iter_mut().find(|run| std::ptr::eq(run.operation.spec, operation)) else { return };
        let findings = run.recorder.findings().len();
        let request = report_request(run.operation, &self.key_names, &exchange.head, body);
        let is_valid = body.is_none_or(|body| check_request(run, path, &exchange.head, body, &request));
        check_response(run, &exchange, &request, is_valid);
        self.unchecked_bodies += usize::from(body.is_none());
        self.unchecked_bodies += usize::from(exchange.response.is_ok() && !exchange.has_response_body);
        let found = run.recorder.findings().get(findings..).unwrap_or_default();
        found.iter().for_each(&mut on_finding);
        // Repeated findings are not in `found`.
        let has_failed = run.recorder.take_failure();
        if let (Some(recording), Ok(response), false, true) =
            (recording, &exchange.response, has_failed, exchange.has_response_body)
        {
            recording.add(operation, &exchange.head, body.map(Bytes::as_ref).unwrap_or_default(), response);
        }
    }

    /// Records a request that the document has no operation for.
    fn record_unknown(&mut self, head: &Parts, path: &str, error: &RouteError, mut on_finding: impl FnMut(&Finding)) {
        let summary = match error {
            RouteError::NotFound => format!("the document has no path {path}"),
            RouteError::MethodNotAllowed(methods) => {
                // One finding for all values of the path's variables.
                let other = methods.iter().find_map(|method| self.comparison.contract.find(method, path).ok());
                let template = other.map_or(path, |other| &other.path);
                format!("the document has no operation {} {template}", head.method)
            }
        };
        if let Some(known) = self.unknown.iter_mut().find(|finding| finding.summary == summary) {
            known.occurrences += 1;
            return;
        }
        if self.unknown.len() >= MAX_UNKNOWN_REQUESTS {
            self.unlisted_requests += 1;
            return;
        }
        let finding = Finding {
            check: Check::Requested,
            operation: String::new(),
            pointer: "/paths".to_owned(),
            summary,
            expected: "an operation of the document".to_owned(),
            actual: format!("{} {path}", head.method),
            curl: self.comparison.target.curl(&Request::new(head.method.as_str(), path)),
            occurrences: 1,
        };
        on_finding(&finding);
        self.unknown.push(finding);
    }

    /// Returns the report of what was validated since `started`.
    pub fn report(self, started: DateTime<Utc>) -> Report {
        let (mut operations, mut findings) = (Vec::new(), self.unknown);
        for run in self.runs {
            let (mut coverage, found) = run.recorder.finish();
            if coverage.checks.is_empty() {
                coverage.left_out = Some(NOT_REQUESTED.to_owned());
            }
            operations.push(coverage);
            findings.extend(found);
        }
        let mut report = self.comparison.report(started, self.request_count, operations, findings);
        let notes = [
            (
                self.unchecked_bodies,
                format!(
                    "bodies were not validated: they are compressed, larger than {MAX_VALIDATED_BYTES} bytes, or have no known end"
                ),
            ),
            (self.unlisted_requests, "more requests have no operation in the document".to_owned()),
        ];
        report.notes.extend(notes.into_iter().filter(|(count, _)| *count > 0).map(|(count, note)| format!("{count} {note}.")));
        report
    }
}

/// Returns whether the body of a request is compressed. Only the built-in document forbids it.
fn is_compressed(head: &Parts) -> bool {
    head.headers.get_all(CONTENT_ENCODING).iter().any(|coding| !coding.is_empty() && coding != "identity")
}

/// Checks a request. Returns whether it matches the document. `request` is its form in the report.
fn check_request(run: &mut OperationRun<'_>, path: &str, head: &Parts, body: &[u8], request: &Request) -> bool {
    let problems = problems(run.operation.spec.check(path, head.uri.query(), &head.headers, body));
    if problems.is_empty() {
        run.record(Check::Sent, request, None);
        return true;
    }
    for (summary, detail) in problems {
        let failure = run.failure(summary, "a request that matches the document", detail);
        run.record(Check::Sent, request, Some(failure));
    }
    false
}

/// Checks the response to a request. `is_valid` means that the request matches the document.
fn check_response(run: &mut OperationRun<'_>, exchange: &Exchange, request: &Request, is_valid: bool) {
    let incomplete = exchange.response.as_ref().err().map(|reason| {
        run.failure("the response is missing or incomplete", "a complete response within 60 seconds", reason.clone())
    });
    run.record(Check::Complete, request, incomplete);
    let Ok(response) = &exchange.response else { return };
    run.recorder.coverage.seen.insert(response.status);
    check_credential(run, &exchange.head, request, response);
    if !is_valid {
        let summary = "the server accepts a request that does not match the document";
        let accepted = response.is_success().then(|| run.failure(summary, "a status from 400 to 499", response.describe()));
        run.record(Check::Accepted, request, accepted);
    }
    if exchange.has_response_body {
        run.check_received(request, response);
        run.check_response(request, response);
    } else {
        check_status(run, request, response);
    }
}

/// Checks that a request without the required credential is not accepted. Its absence alone is no fault of the client.
fn check_credential(run: &mut OperationRun<'_>, head: &Parts, request: &Request, response: &ReceivedResponse) {
    let spec = run.operation.spec;
    let is_sent = |scheme: &SecurityScheme| scheme.credential(&head.headers, head.uri.query()).is_some();
    if !spec.needs_key || spec.security.iter().any(|schemes| schemes.iter().all(is_sent)) {
        return;
    }
    let summary = "the server accepts a request without the required credential";
    let accepted = response.is_success().then(|| run.failure(summary, "401", response.describe()));
    run.record(Check::Accepted, request, accepted);
}

/// Checks the status of a response whose body was not kept.
fn check_status(run: &mut OperationRun<'_>, request: &Request, response: &ReceivedResponse) {
    let is_declared = run.operation.spec.response_for(response.status).is_some();
    let failure = (!is_declared).then(|| {
        run.failure(format!("the response {} is not declared", response.status), "a declared status", response.status.to_string())
    });
    run.record(Check::Status, request, failure);
}

/// Returns a summary, without the client's values, and a description of each problem of a request.
fn problems(checked: Result<boxoffice_openapi::ParsedRequest, RequestError>) -> Vec<(String, String)> {
    let Err(error) = checked else { return Vec::new() };
    match error {
        RequestError::InvalidFields(fields) => {
            let problem = |field: boxoffice_openapi::FieldError| {
                let kind = if field.problem == FieldErrorKind::Missing { "missing" } else { "invalid" };
                let name = NUMBER.replace_all(&field.name, "*").into_owned();
                (format!("a request has the {kind} argument {name}"), format!("{} {}", field.name, field.detail))
            };
            fields.into_iter().map(problem).collect()
        }
        RequestError::UnknownResource => {
            let text = "a request has an identifier that its schema does not allow".to_owned();
            vec![(text.clone(), text)]
        }
        RequestError::MalformedBody(text) => vec![("a request has a malformed body".to_owned(), text)],
        RequestError::UnsupportedMediaType(text) => vec![("a request has a body of another media type".to_owned(), text)],
        // A mistake in the document.
        RequestError::Internal(_) => Vec::new(),
    }
}

/// Returns a request for the report: without its secrets, and without the headers that every client sends.
fn report_request(operation: &OperationUnderTest<'_>, key_names: &[String], head: &Parts, body: Option<&Bytes>) -> Request {
    let is_secret_name = |name: &str| is_secret_name(name) || key_names.iter().any(|key| key.eq_ignore_ascii_case(name));
    let mut request = Request::new(head.method.as_str(), head.uri.path());
    let pairs = parse(head.uri.query().unwrap_or_default().as_bytes());
    request.query = pairs
        .map(|(name, value)| {
            let value = if is_secret_name(&name) { Cow::Borrowed(KEY_VARIABLE) } else { value };
            (name.into_owned(), value.into_owned())
        })
        .collect();
    let is_declared = |name: &str| operation.spec.parameters.iter().any(|parameter| parameter.name.eq_ignore_ascii_case(name));
    let usual = ["accept", "content-type", "idempotency-key", "if-match", "if-none-match", "x-client-version"];
    for (name, value) in &head.headers {
        let is_secret = is_secret_name(name.as_str()) || ["authorization", "cookie"].contains(&name.as_str());
        if is_secret {
            // The scheme is no secret.
            let scheme = value.to_str().ok().filter(|_| name == AUTHORIZATION).and_then(|text| text.split_once(' '));
            let masked = scheme.map_or_else(|| KEY_VARIABLE.to_owned(), |(scheme, _)| format!("{scheme} {KEY_VARIABLE}"));
            request.headers.push((name.to_string(), masked));
        } else if usual.contains(&name.as_str()) || is_declared(name.as_str()) {
            request.headers.push((name.to_string(), String::from_utf8_lossy(value.as_bytes()).into_owned()));
        }
    }
    let media_type = head.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let is_form = essence(media_type).eq_ignore_ascii_case("application/x-www-form-urlencoded");
    request.body = body.filter(|body| !body.is_empty()).map(|body| if is_form { mask_form(body) } else { mask_body(body) });
    request
}

/// Masks the secrets in a form: the values of secret names, such as `password` and `user[password]`.
fn mask_form(form: &[u8]) -> Vec<u8> {
    let mut masked = form_urlencoded::Serializer::new(String::new());
    for (name, value) in parse(form) {
        let is_secret = name.split(['[', ']', '.']).any(is_secret_name);
        masked.append_pair(&name, &if is_secret { mask(&value).into() } else { value });
    }
    masked.finish().into_bytes()
}

/// Masks the secrets in JSON. Returns only the size of another body, because its secrets can't be found.
fn mask_body(body: &[u8]) -> Vec<u8> {
    let Ok(mut value) = serde_json::from_slice(body) else {
        return format!("({} bytes that are not shown)", body.len()).into_bytes();
    };
    mask_secrets(&mut value);
    value.to_string().into_bytes()
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use http::{HeaderMap, Request, Response};
    use serde_json::{Value, json};

    use super::*;
    use crate::tests::{comparison, findings, start};

    /// Returns the report about a request and its response.
    async fn report(document: Value, request: Request<&'static str>, response: ReceivedResponse) -> Report {
        let address = start(|_| Response::new(String::new())).await;
        let comparison = comparison(document, None, &address).await;
        let operations: Vec<_> = comparison
            .contract
            .operations()
            .map(|operation| OperationUnderTest::new(&comparison.contract, operation, comparison.seed))
            .collect();
        let mut validator = Validator::new(&comparison, &operations);
        let (head, body) = request.into_parts();
        let exchange = Exchange { head, body: Some(Bytes::from(body)), response: Ok(response), has_response_body: true };
        validator.validate(exchange, None, |_| ());
        validator.report(Utc::now())
    }

    /// Returns the curl command of the finding about a request that posts a body to `/logins` with the number of attempts `x`.
    async fn curl(media_type: &str, body: &'static str) -> String {
        let login = json!({ "type": "object", "properties": { "attempts": { "type": "integer" } } });
        let content = ["application/json", "application/x-www-form-urlencoded", "multipart/form-data"];
        let content: Value = content.iter().map(|media_type| ((*media_type).to_owned(), json!({ "schema": login }))).collect();
        let attempts = json!([{ "name": "attempts", "in": "query", "schema": { "type": "integer" } }]);
        let document = json!({
            "openapi": "3.0.3",
            "info": { "title": "logins", "version": "1" },
            "security": [{ "ticket": [] }],
            "components": { "securitySchemes": { "ticket": { "type": "apiKey", "in": "query", "name": "ticket" } } },
            "paths": { "/logins": { "post": {
                "operationId": "login", "parameters": attempts, "requestBody": { "content": content },
                "responses": { "204": { "description": "" } },
            } } },
        });
        let request = Request::post("/logins?ticket=hunter2&attempts=x").header("content-type", media_type).body(body).unwrap();
        let response = ReceivedResponse { status: 204, headers: HeaderMap::new(), body: Bytes::new() };
        let report = report(document, request, response).await;
        let text = serde_json::to_string(&report).unwrap();
        assert!(!text.contains("hunter2"), "{text}");
        report.findings[0].curl.split_once(" -X POST ").unwrap().1.replace(&report.target, "")
    }

    #[tokio::test]
    async fn secrets_of_requests_are_masked() {
        let form = "application/x-www-form-urlencoded";
        let curl_of = |media_type: &str, body: &str| {
            format!("'/logins?attempts=x' --url-query \"ticket=$KEY\" -H 'content-type: {media_type}' --data-binary '{body}'")
        };
        let masked = "name=Ama&password=xxxxxx0&user%5Bpin%5D=0000";
        assert_eq!(curl(form, "name=Ama&password=hunter2&user%5Bpin%5D=1234").await, curl_of(form, masked));
        let multipart = "multipart/form-data; boundary=a";
        let parts = "--a\r\nContent-Disposition: form-data; name=\"password\"\r\n\r\nhunter2\r\n--a--\r\n";
        assert_eq!(curl(multipart, parts).await, curl_of(multipart, "(72 bytes that are not shown)"));
        let json = "application/json";
        assert_eq!(curl(json, r#"{"password":"hunter2""#).await, curl_of(json, "(21 bytes that are not shown)"));
        assert_eq!(curl(json, r#"{"password":"hunter2"}"#).await, curl_of(json, r#"{"password":"xxxxxx0"}"#));
    }

    #[tokio::test]
    async fn compressed_request_is_not_validated() {
        let body = json!({ "content": { "application/json": { "schema": { "type": "object" } } } });
        let operation = json!({ "operationId": "add", "requestBody": body, "responses": { "204": { "description": "" } } });
        let document = json!({ "openapi": "3.0.3", "info": { "title": "notes", "version": "1" }, "paths": { "/notes": { "post": operation } } });
        let found = async |coding: &str, body: &'static str| {
            let request = Request::post("/notes").header("content-type", "application/json").header("content-encoding", coding);
            let response = ReceivedResponse { status: 204, headers: HeaderMap::new(), body: Bytes::new() };
            let report = report(document.clone(), request.body(body).unwrap(), response).await;
            (findings(&report).len(), report.notes)
        };
        let note = "1 bodies were not validated: they are compressed, larger than 4194304 bytes, or have no known end.";
        assert_eq!(found("gzip", "\u{1f}").await, (0, vec![note.to_owned()]));
        assert_eq!(found("identity", "{").await, (2, Vec::new()));
    }

    /// Returns the findings about a request with a key, and a response with this status, header and body.
    async fn found(path: &str, key: Option<&str>, status: u16, header: (&str, &str), body: &'static str) -> Vec<String> {
        let content = json!({ "application/json": { "schema": { "type": "object" } } });
        let document = json!({
            "openapi": "3.0.3",
            "info": { "title": "notes", "version": "1" },
            "security": [{ "key": [] }],
            "components": { "securitySchemes": { "key": { "type": "apiKey", "in": "header", "name": "X-Key" } } },
            "paths": {
                "/notes": { "get": { "operationId": "list", "responses": { "200": { "description": "", "content": content } } } },
                "/other": { "get": { "operationId": "other", "responses": { "200": { "description": "" }, "303": { "description": "" } } } },
            },
        });
        let request = key.into_iter().fold(Request::get(path), |request, key| request.header("X-Key", key));
        let headers = HeaderMap::from_iter([(header.0.parse().unwrap(), header.1.parse().unwrap())]);
        let response = ReceivedResponse { status, headers, body: Bytes::from(body) };
        findings(&report(document, request.body("").unwrap(), response).await)
    }

    #[tokio::test]
    async fn accepted_request_without_credential_is_found() {
        let json = ("content-type", "application/json");
        assert_eq!(found("/notes", Some("a"), 200, json, "{}").await, [""; 0]);
        let expected = ["list client.rejected: the server accepts a request without the required credential"];
        assert_eq!(found("/notes", None, 200, json, "{}").await, expected);
    }

    #[tokio::test]
    async fn encoded_response_is_found() {
        let found = found("/notes", Some("a"), 200, ("content-encoding", "gzip"), "\u{1f}").await;
        assert_eq!(found, ["list response.media-type: the response 200 is encoded with gzip"]);
    }

    #[tokio::test]
    async fn media_type_without_body_and_note_in_redirect_are_harmless() {
        let text = ("content-type", "text/plain");
        assert_eq!(found("/other", Some("a"), 200, text, "").await, [""; 0]);
        assert_eq!(found("/other", Some("a"), 303, text, "See /notes").await, [""; 0]);
        assert_eq!(
            found("/other", Some("a"), 200, text, "A note").await,
            ["other response.media-type: the response 200 has a body"]
        );
    }
}
