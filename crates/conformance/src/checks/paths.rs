//! Checks that undocumented paths and methods are rejected.

use std::collections::BTreeSet;

use boxoffice_http::error::Code;
use boxoffice_openapi::{METHODS, Operation, RouteError, segments};
use http::header;

use crate::http_client::{ReceivedResponse, Request};
use crate::model::Check;
use crate::operation_run::{OperationRun, RequestPair};
use crate::recorder::CheckFailure;
use crate::server_kind::ServerKind;

/// Methods that a server may implement for every resource, whatever the document declares (RFC 9110).
pub const GENERIC_METHODS: [&str; 2] = ["HEAD", "OPTIONS"];

impl OperationRun<'_> {
    /// Checks an undocumented path below this one, and each undocumented method. Runs once for each path, with its first
    /// operation.
    pub async fn check_paths(&mut self, pair: &RequestPair) {
        let (spec, contract) = (self.operation.spec, &self.comparison.contract);
        let first = contract.operations().find(|other| other.path == spec.path);
        if first.is_none_or(|first| first.id != spec.id) {
            return;
        }
        let request = &pair.target.request;
        self.check_unknown_path(request).await;
        // `/users/{name}` also matches `/users/import`, so the server may allow its methods there.
        if self.matches_other_path(request) {
            return;
        }
        let may_change = self.may_change(request);
        for method in METHODS.map(str::to_uppercase).into_iter().filter(|method| may_change || method == "GET") {
            if let Err(RouteError::MethodNotAllowed(declared)) = contract.find_ignoring_slashes(&method, &request.path) {
                let request = Request { method, body: None, ..request.clone().without_header("Content-Type") };
                self.check_undeclared_method(&request, &declared.into_iter().collect()).await;
            }
        }
    }

    /// Returns if a request may change the resource in its path: it has none, the comparison created it, or the server is a mock.
    fn may_change(&self, request: &Request) -> bool {
        let template: Vec<_> = segments(&self.operation.spec.path).collect();
        let Some(last) = template.iter().rposition(|segment| segment.contains('{')) else { return true };
        let is_in_path = |created: &String| segments(created).eq(segments(&request.path).take(last + 1));
        self.comparison.is_builtin()
            || self.comparison.kind() != ServerKind::Real
            || self.comparison.target.client.created().paths.iter().any(is_in_path)
    }

    /// Returns if another path of the document matches a request, too.
    pub fn matches_other_path(&self, request: &Request) -> bool {
        let path: Vec<_> = segments(&request.path).collect();
        let is_other = |other: &Operation| other.path != self.operation.spec.path && other.template.matches(&path);
        self.comparison.contract.operations().any(is_other)
    }

    async fn check_unknown_path(&mut self, request: &Request) {
        let candidates =
            ["/no-such-path", "/no/such/path"].map(|suffix| format!("{}{suffix}", request.path.trim_end_matches('/')));
        let is_unknown =
            |path: &&String| matches!(self.comparison.contract.find_ignoring_slashes("GET", path), Err(RouteError::NotFound));
        let Some(path) = candidates.iter().find(is_unknown) else { return };
        let request = Request { path: path.clone(), ..request.clone() };
        let Some(response) = self.send(&request).await else { return };
        let summary = match response.status {
            404 => self.missing_code(&response, Code::ENDPOINT_UNKNOWN),
            status => Some(format!("an undocumented path is answered with {status}")),
        };
        let failure = summary.filter(|_| response.status < 500).map(|summary| CheckFailure {
            pointer: "/paths".to_owned(),
            summary,
            expected: "404".to_owned(),
            actual: response.describe(),
        });
        self.record(Check::PathUnknown, &request, failure);
    }

    async fn check_undeclared_method(&mut self, request: &Request, declared: &BTreeSet<String>) {
        let Some(response) = self.send(request).await else { return };
        let (status, allowed) = (response.status, allowed_methods(&response));
        let is_declared =
            |allowed: &BTreeSet<String>| allowed.iter().filter(|method| !GENERIC_METHODS.contains(&method.as_str())).eq(declared);
        let summary = match &allowed {
            _ if status != 405 => Some(format!("the undocumented method {} is answered with {status}", request.method)),
            None => Some("405 has no Allow header".to_owned()),
            Some(allowed) if !is_declared(allowed) => Some("Allow doesn't list the documented methods".to_owned()),
            Some(_) => self.missing_code(&response, Code::METHOD_NOT_ALLOWED),
        };
        let join = |methods: &BTreeSet<String>| methods.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
        let failure = summary.filter(|_| status < 500).map(|summary| CheckFailure {
            pointer: self.operation.spec.pointer.rsplit_once('/').map_or_else(String::new, |(path, _)| path.to_owned()),
            summary,
            expected: format!("405 with Allow: {}", join(declared)),
            actual: allowed.map_or_else(|| response.describe(), |allowed| format!("{status} with Allow: {}", join(&allowed))),
        });
        self.record(Check::MethodUndeclared, request, failure);
    }

    /// Returns a summary if an error of the platform does not have this code.
    pub fn missing_code(&self, response: &ReceivedResponse, code: Code) -> Option<String> {
        let has_code = !self.comparison.is_builtin() || response.json()["code"] == code.as_str();
        (!has_code).then(|| format!("{} does not have the code {}", response.status, code.as_str()))
    }
}

/// Returns the methods in `Allow`, which are case-sensitive (RFC 9110), or `None` without the header.
pub fn allowed_methods(response: &ReceivedResponse) -> Option<BTreeSet<String>> {
    let values: Vec<_> = response.headers.get_all(header::ALLOW).iter().filter_map(|value| value.to_str().ok()).collect();
    let methods = || values.iter().flat_map(|value| value.split(',')).map(|method| method.trim().to_owned());
    (!values.is_empty()).then(|| methods().filter(|method| !method.is_empty()).collect())
}
