//! Paths and methods that the document doesn't have.

use std::collections::BTreeSet;

use http::header;

use boxoffice_openapi::{METHODS, RouteError};
use boxoffice_http::error::Code;
use crate::http_client::{ReceivedResponse, Request};
use crate::operation_run::{OperationRun, RequestPair, describe};
use crate::model::Check;
use crate::recorder::Fault;

/// Methods that HTTP itself gives a resource, whatever the document says (RFC 9110).
const HTTPS_OWN: [&str; 2] = ["HEAD", "OPTIONS"];

impl OperationRun<'_> {
    /// Asked once for each path, with its first operation: a path below it that the document doesn't have, and each method that
    /// it doesn't have there.
    pub async fn check_paths(&mut self, pair: &RequestPair) {
        let operation = self.subject.operation;
        let first = self.comparison.contract.operations().find(|other| other.path == operation.path);
        if first.is_none_or(|first| first.id != operation.id) {
            return;
        }
        let request = &pair.target.request;
        self.check_unknown_path(request).await;
        for method in METHODS.map(str::to_uppercase) {
            if let Err(RouteError::MethodNotAllowed(declared)) = self.comparison.contract.find(&method, &request.path) {
                let request = Request { method, body: None, ..request.clone().without_header("Content-Type") };
                self.check_other_method(&request, &declared.into_iter().collect()).await;
            }
        }
    }

    async fn check_unknown_path(&mut self, request: &Request) {
        let below = ["/no-such-path", "/no/such/path"].map(|below| format!("{}{below}", request.path));
        let is_unknown = |path: &&String| matches!(self.comparison.contract.find("GET", path), Err(RouteError::NotFound));
        let Some(path) = below.iter().find(is_unknown) else { return };
        let request = Request { path: path.clone(), ..request.clone() };
        let Some(reply) = self.send(&request).await else { return };
        let status = reply.status;
        let summary = match status {
            404 => self.lacks_code(&reply, Code::EndpointUnknown),
            _ => Some(format!("a path that the document doesn't have is answered with {status}")),
        };
        let fault = summary.filter(|_| status < 500).map(|summary| Fault {
            pointer: "/paths".to_owned(),
            summary,
            expected: "404".to_owned(),
            actual: describe(&reply),
        });
        self.record(Check::PathUnknown, &request, fault);
    }

    async fn check_other_method(&mut self, request: &Request, declared: &BTreeSet<String>) {
        let Some(reply) = self.send(request).await else { return };
        let (is_405, told_methods) = (reply.status == 405, allowed(&reply));
        let named: BTreeSet<String> = told_methods.iter().flatten().cloned().collect();
        let is_right = named.iter().filter(|method| !HTTPS_OWN.contains(&method.as_str())).eq(declared);
        let summary = match (is_405, &told_methods) {
            (false, _) => {
                Some(format!("{}, which the document doesn't have here, is answered with {}", request.method, reply.status))
            }
            (true, None) => Some("405 comes without Allow".to_owned()),
            (true, Some(_)) if !is_right => Some("Allow doesn't name the document's methods".to_owned()),
            (true, Some(_)) => self.lacks_code(&reply, Code::MethodNotAllowed),
        };
        let declared: Vec<_> = declared.iter().map(String::as_str).collect();
        let fault = summary.filter(|_| reply.status < 500).map(|summary| Fault {
            pointer: self.subject.operation.pointer.rsplit_once('/').map_or_else(String::new, |(path, _)| path.to_owned()),
            summary,
            expected: format!("405 with Allow: {}", declared.join(", ")),
            actual: match told_methods {
                Some(_) => format!("{} with Allow: {}", reply.status, named.into_iter().collect::<Vec<_>>().join(", ")),
                None => describe(&reply),
            },
        });
        self.record(Check::MethodOther, request, fault);
    }

    /// That an error of our own server hasn't the code that tells what went wrong.
    fn lacks_code(&self, reply: &ReceivedResponse, code: Code) -> Option<String> {
        let has_code = !self.comparison.is_builtin() || reply.json()["code"] == code.as_str();
        (!has_code).then(|| format!("{} comes without the code {}", reply.status, code.as_str()))
    }
}

/// The methods that an answer's Allow names, whose case means something (RFC 9110); nothing where it has none.
fn allowed(reply: &ReceivedResponse) -> Option<Vec<String>> {
    let values: Vec<_> = reply.headers.get_all(header::ALLOW).iter().filter_map(|value| value.to_str().ok()).collect();
    let methods = || values.iter().flat_map(|value| value.split(',')).map(|method| method.trim().to_owned());
    (!values.is_empty()).then(|| methods().filter(|method| !method.is_empty()).collect())
}
