//! Checks of HEAD and OPTIONS, and of the permission to read a response from other web sites.

use std::collections::BTreeSet;

use http::HeaderName;
use http::header::{ACCESS_CONTROL_ALLOW_CREDENTIALS, ACCESS_CONTROL_ALLOW_ORIGIN, CONTENT_LENGTH, CONTENT_TYPE, ETAG};

use super::paths::{GENERIC_METHODS, allowed_methods};
use crate::http_client::{ReceivedResponse, Request};
use crate::model::Check;
use crate::operation_run::{OperationRun, RequestPair};
use crate::server_kind::ServerKind;

/// A web site that no server has as a friend.
const FOREIGN_ORIGIN: &str = "https://compare.invalid";

impl OperationRun<'_> {
    /// Checks that HEAD has the status and the headers of GET. Other documents than the built-in one don't promise HEAD.
    pub async fn check_head(&mut self, pair: &RequestPair) {
        if self.operation.spec.method != "GET" {
            return;
        }
        let get = pair.target.request.clone();
        let without_key = self.operation.spec.needs_key.then(|| self.operation.with_key(&get, None));
        for get in [Some(get), without_key].into_iter().flatten() {
            let head = Request { method: "HEAD".to_owned(), ..get.clone() };
            let Some(expected) = self.send(&get).await else { return };
            let Some(response) = self.send(&head).await else { return };
            if !self.comparison.is_builtin() && [404, 405, 501].contains(&response.status) {
                return;
            }
            let header = |response: &ReceivedResponse, name: HeaderName| response.header(name).map(str::to_owned);
            // RFC 9110 only recommends that HEAD has the headers of GET.
            let may_lack = |name: &HeaderName| !self.comparison.is_builtin() && header(&response, name.clone()).is_none();
            let differs = [ETAG, CONTENT_TYPE]
                .into_iter()
                .find(|name| header(&response, name.clone()) != header(&expected, name.clone()) && !may_lack(name));
            // The body of a stream is not read.
            let has_length = response.status == 200 && !expected.is_event_stream();
            let length = header(&response, CONTENT_LENGTH).filter(|_| has_length);
            let has_wrong_length = length.is_some_and(|length| length != expected.body.len().to_string());
            let has_wrong_length = has_wrong_length && self.is_unchanged(&get, &expected, &response).await;
            let summary = match differs {
                _ if response.status != expected.status => {
                    Some(format!("HEAD is answered with {}, GET with {}", response.status, expected.status))
                }
                // A list or a clock may have changed in between.
                Some(ETAG) if header(&response, ETAG).is_some() => None,
                Some(name) => Some(format!("HEAD and GET have different {name} headers")),
                None if has_wrong_length => {
                    Some("the Content-Length of HEAD is not the length of the response to GET".to_owned())
                }
                None => None,
            };
            let failure = summary.map(|summary| {
                let headers = |response: &ReceivedResponse| format!("{} {}", response.status, response.describe_headers());
                self.failure(summary, headers(&expected), headers(&response))
            });
            self.record(Check::Head, &head, failure);
        }
    }

    /// Returns if a resource was the same for GET and HEAD: by its tag, and by the response to another GET. A tag may leave out a
    /// counter of reads.
    async fn is_unchanged(&mut self, get: &Request, expected: &ReceivedResponse, head: &ReceivedResponse) -> bool {
        if expected.header(ETAG).is_some() && head.header(ETAG) != expected.header(ETAG) {
            return false;
        }
        self.send(get).await.is_some_and(|again| again.body == expected.body)
    }

    /// Checks that OPTIONS allows exactly the declared methods, and that no other web site may read with a user's credentials.
    /// Runs once for each path, with its first operation.
    pub async fn check_options(&mut self, pair: &RequestPair) {
        let (spec, contract) = (self.operation.spec, &self.comparison.contract);
        let at_path = || contract.operations().filter(|other| other.path == spec.path);
        if at_path().next().is_none_or(|first| first.id != spec.id) {
            return;
        }
        let declared: BTreeSet<String> = at_path().map(|operation| operation.method.clone()).collect();
        let base = pair.target.request.clone().without_header("Content-Type").with_header("Origin", FOREIGN_ORIGIN);
        let request = Request { method: "OPTIONS".to_owned(), body: None, ..base };
        let Some(response) = self.send(&request).await else { return };
        let is_shared = !self.comparison.is_builtin() && self.matches_other_path(&request);
        let failure = allowed_methods(&response).filter(|_| !is_shared).and_then(|allowed| {
            let listed = allowed.iter().filter(|method| !GENERIC_METHODS.contains(&method.as_str()));
            let join = |methods: &BTreeSet<String>| methods.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
            let summary = "Allow in the response to OPTIONS doesn't list the documented methods";
            (!listed.eq(&declared)).then(|| self.failure(summary, join(&declared), join(&allowed)))
        });
        self.record(Check::Options, &request, failure);
        self.check_cors(&request, &response);
        if spec.method == "GET" {
            let request = pair.target.request.clone().with_header("Origin", FOREIGN_ORIGIN);
            if let Some(response) = self.send(&request).await {
                self.check_cors(&request, &response);
            }
        }
    }

    fn check_cors(&mut self, request: &Request, response: &ReceivedResponse) {
        // A mock of another document has no users.
        if !self.comparison.is_builtin() && self.comparison.kind() != ServerKind::Real {
            return;
        }
        let allows_credentials = response.header(ACCESS_CONTROL_ALLOW_CREDENTIALS) == Some("true");
        let origin = response.header(ACCESS_CONTROL_ALLOW_ORIGIN);
        let is_open = allows_credentials && origin.is_some_and(|origin| [FOREIGN_ORIGIN, "*"].contains(&origin));
        let failure = is_open.then(|| {
            let summary = "every web site may read the response with a user's credentials";
            self.failure(summary, "no Access-Control-Allow-Credentials for an unknown origin", response.describe_headers())
        });
        self.record(Check::Cors, request, failure);
    }
}
