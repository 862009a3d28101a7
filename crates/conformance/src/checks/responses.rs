//! Checks that an operation exists, and that its responses to valid requests match the document.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;

use boxoffice_openapi::paging::{CURSOR_NAMES, has_name};
use boxoffice_openapi::response::{ResponseSpec, Violation, ViolationKind};
use boxoffice_openapi::{Direction, Sampler, is_blank};
use http::header::ETAG;
use serde_json::Value;

use super::arguments::is_sendable_in;
use crate::argument::{Argument, ArgumentLocation};
use crate::fixtures::ExpectedOutcome;
use crate::http_client::{ReceivedResponse, Request};
use crate::model::Check;
use crate::operation_run::{Exchange, OperationRun, RequestPair};
use crate::recorder::CheckFailure;

/// Number of boundary values to send for each argument.
const MAX_BOUNDARY_VALUES: usize = 4;

impl OperationRun<'_> {
    /// Checks that the server implements the operation. Returns the valid requests and the exchange if it does.
    pub async fn check_reachable(&mut self, pair: RequestPair) -> Option<(RequestPair, Exchange)> {
        let (pair, exchange) = self.send_valid(pair, None, true, Request::clone).await?;
        let response = &exchange.response;
        let is_missing = match response.status {
            status @ (405 | 501) => !self.operation.spec.statuses.contains(&status),
            // The platform's own 404 has a declared body. A 404 of a proxy in front of it does not.
            404 if self.comparison.is_builtin() => {
                response.json()["code"] == "endpoint.unknown" || !self.violations(response).is_empty()
            }
            404 => self.operation.spec.response_for(404).is_none(),
            _ => false,
        };
        // `send` has recorded statuses from 500.
        let failure = (is_missing && response.status < 500).then(|| {
            let summary = format!("the server does not implement the operation: it returns {}", response.status);
            self.failure(summary, self.success_statuses(), response.describe())
        });
        self.record(Check::Reachable, &exchange.request, failure);
        (!is_missing).then_some((pair, exchange))
    }

    /// Checks that a valid request succeeds with a valid response. Returns if it succeeded.
    pub async fn check_valid(&mut self, pair: &RequestPair, exchange: &Exchange) -> bool {
        let is_success = self.operation.is_success(&exchange.response);
        let spec = self.operation.spec;
        // `default` is no success if the document declares a redirect.
        let (default, own): (Vec<_>, Vec<_>) = spec.responses.iter().partition(|response| response.is_default());
        let declares = |statuses: Range<u16>| own.iter().any(|response| statuses.contains(response.statuses.start()));
        let is_redirect = !declares(200..300) && declares(300..400);
        // Some documents declare only errors.
        let has_success = declares(200..300) || !default.is_empty() && !is_redirect;
        let declared = spec.response_for(exchange.response.status);
        let is_declared = declared.is_some_and(|response| !response.is_default() || !is_redirect);
        let is_expected = is_success || pair.target.outcome == ExpectedOutcome::Declared || !has_success && is_declared;
        self.record_outcome(exchange, is_expected, "a valid request");
        self.check_response(&exchange.request, &exchange.response);
        if is_success {
            self.check_not_modified(exchange).await;
            self.check_self_links(exchange).await;
            self.check_list(exchange);
            self.check_persistence(exchange).await;
        }
        is_success
    }

    /// Checks that a GET with the `ETag` in `If-None-Match` returns 304, unless the resource has changed in between.
    async fn check_not_modified(&mut self, exchange: &Exchange) {
        let Some(etag) = exchange.response.header(ETAG) else { return };
        let spec = self.operation.spec;
        if spec.method != "GET" || !spec.statuses.contains(&304) {
            return;
        }
        let request = exchange.request.clone().with_header("If-None-Match", etag);
        let Some(response) = self.send(&request).await else { return };
        self.check_response(&request, &response);
        let is_unchanged = response.header(ETAG) == Some(etag);
        let failure = (response.status != 304 && is_unchanged).then(|| {
            let summary = "an unchanged resource is sent again despite If-None-Match";
            self.failure(summary, "304", response.describe())
        });
        self.record(Check::NotModified, &request, failure);
        let has_other_tag = response.status == 304 && response.header(ETAG).is_some_and(|other| other != etag);
        let failure = has_other_tag
            .then(|| self.failure("304 has another tag than If-None-Match", etag, response.header(ETAG).unwrap_or_default()));
        self.record(Check::NotModified, &request, failure);
    }

    /// Checks that other valid requests succeed: every further example of the body, the body with nothing but required properties, and
    /// boundary values of each argument that is not constrained by the fixtures.
    pub async fn check_variants(&mut self, pair: &RequestPair) {
        for (name, _) in self.operation.json_body.iter().flat_map(|body| body.examples.iter().skip(1)) {
            self.check_variant(Some(name), &format!("the example {name}"), Request::clone).await;
        }
        let spec = self.operation.spec;
        let optional: Vec<_> = self
            .operation
            .arguments
            .iter()
            .filter(|argument| argument.is_property())
            .filter(|argument| !argument.required && !pair.target.constrained.contains(&argument.name))
            .collect();
        let without_optional =
            |request: &Request| optional.iter().fold(request.clone(), |request, argument| argument.set(&request, spec, None));
        let required = without_optional(&pair.target.request);
        let is_valid = match self.operation.json_body {
            Some(_) => self.operation.has_valid_body(&required),
            None => self.operation.has_valid_form(&required),
        };
        if required.body != pair.target.request.body && is_valid {
            self.check_variant(None, "a body with nothing but required properties", without_optional).await;
        }
        for argument in self.operation.arguments.iter().filter(|argument| !pair.target.constrained.contains(&argument.name)) {
            for value in self.boundary_values(argument, &pair.target.request) {
                let name = format!("{} with a boundary value", argument.name);
                self.check_variant(None, &name, |request| argument.set(request, spec, Some(&value))).await;
            }
        }
        // An update may not change the alternative of a resource.
        if spec.method == "POST" {
            self.check_alternatives(pair).await;
        }
    }

    /// Checks boundary values of the properties that other alternatives of the body have. A generated alternative of a body that has
    /// examples is left out unless it succeeds: the server may demand more than the schema says.
    async fn check_alternatives(&mut self, pair: &RequestPair) {
        let spec = self.operation.spec;
        let examples = self.operation.json_body.as_ref().map(|body| &body.examples);
        let examples = examples.or_else(|| self.operation.form.map(|form| &form.examples));
        let has_examples = examples.is_some_and(|examples| !examples.is_empty());
        for alternative in self.alternatives() {
            let replaced = pair.with_alternative(&alternative);
            if has_examples {
                let Some((_, exchange)) = self.send_valid(replaced, None, false, Request::clone).await else { return };
                if !self.operation.is_success(&exchange.response) {
                    continue;
                }
            } else {
                self.check_variant(None, "an alternative of the body", |request| alternative.replace(request)).await;
            }
            for argument in &alternative.arguments {
                for value in self.boundary_values(argument, &alternative.replace(&pair.target.request)) {
                    let name = format!("{} with a boundary value", argument.name);
                    let set = |request: &Request| argument.set(&alternative.replace(request), spec, Some(&value));
                    self.check_variant(None, &name, set).await;
                }
            }
        }
    }

    /// Checks an example of the body, or a mutation with a boundary value.
    ///
    /// A boundary value may conflict with a state, which no schema describes. So a declared 4xx is allowed for it, except 400,
    /// 401 and 403.
    async fn check_variant(&mut self, body_example: Option<&str>, name: &str, mutate: impl Fn(&Request) -> Request) {
        let is_example = body_example.is_some();
        let pair = match self.valid_requests(body_example).await {
            Ok(pair) => pair,
            Err(error) => return self.record_unsent(name, &error),
        };
        let Some((_, exchange)) = self.send_valid(pair, body_example, is_example, mutate).await else { return };
        let (status, is_success) = (exchange.response.status, self.operation.is_success(&exchange.response));
        let is_declared = self.operation.spec.response_for(status).is_some();
        let is_conflict = is_declared && (400..500).contains(&status) && ![400, 401, 403].contains(&status);
        self.record_outcome(&exchange, is_success || (!is_example && is_conflict), name);
        self.check_response(&exchange.request, &exchange.response);
        if is_success {
            self.check_identifiers(&exchange);
            // A stateless mock returns the same page for every query.
            if !exchange.request.query.iter().any(|(name, _)| name == "page" || name == "records") {
                self.check_list(&exchange);
            }
        }
    }

    fn record_outcome(&mut self, exchange: &Exchange, is_expected: bool, name: &str) {
        let failure = self.status_failure(name, &exchange.response, is_expected, &self.success_statuses());
        self.record(Check::Valid, &exchange.request, failure);
    }

    /// Checks status, media type, headers and body of a response, and records that its status was seen.
    pub fn check_response(&mut self, request: &Request, response: &ReceivedResponse) {
        self.recorder.coverage.seen.insert(response.status);
        self.check_declared_values(request, response);
        let mut violations = self.violations(response);
        let is_undeclared = violations.iter().any(|violation| violation.kind == ViolationKind::Status);
        let spec = self.operation.spec.response_for(response.status).filter(|_| !is_undeclared);
        let has_headers = spec.is_some_and(|spec| !spec.headers.is_empty());
        let has_json = spec.is_some_and(|spec| spec.contents.iter().any(|content| content.is_json()));
        let checks = [
            (ViolationKind::Status, Check::Status, true),
            (ViolationKind::MediaType, Check::MediaType, spec.is_some()),
            (ViolationKind::Header, Check::Header, has_headers),
            (ViolationKind::Body, Check::Body, has_json),
            (ViolationKind::Undeclared, Check::UndeclaredProperty, has_json),
        ];
        for (kind, check, is_applicable) in checks {
            let of_kind: Vec<_> = violations.extract_if(.., |violation| violation.kind == kind).collect();
            if is_applicable && of_kind.is_empty() {
                self.record(check, request, None);
            }
            if kind == ViolationKind::Body
                && let Some((code, status)) = self.misplaced_code(response)
            {
                let failure = CheckFailure {
                    pointer: spec.map_or_else(String::new, |spec| spec.pointer.clone()),
                    summary: format!("the response {} has the code {code}, which belongs to {status}", response.status),
                    expected: format!("an error code of status {}", response.status),
                    actual: response.describe(),
                };
                self.record(check, request, Some(failure));
            }
            for violation in of_kind {
                let failure = CheckFailure {
                    summary: format!("the response {} {}", response.status, violation.normalized),
                    expected: format!("a response that matches the document at {}", violation.pointer),
                    actual: violation.text,
                    pointer: violation.pointer,
                };
                self.record(check, request, Some(failure));
            }
        }
    }

    fn violations(&self, response: &ReceivedResponse) -> Vec<Violation> {
        let spec = self.operation.spec.response_for(response.status);
        if let Some((coding, spec)) = response.coding().zip(spec) {
            let text = format!("is encoded with {coding}");
            let normalized = text.clone();
            return vec![Violation { kind: ViolationKind::MediaType, pointer: spec.pointer.clone(), text, normalized }];
        }
        let mut violations = self.operation.spec.violations(response.status, &response.headers, &response.body);
        let declares_nothing = spec.is_some_and(|spec| spec.contents.is_empty());
        let is_empty = response.body.is_empty();
        // Some frameworks send a media type without a body, or a note in a redirect, which do no harm.
        let is_harmless = match response.status {
            204 | 205 | 304 => is_empty,
            status => declares_nothing && (is_empty || (300..400).contains(&status)),
        };
        if response.is_event_stream() {
            violations.retain(|violation| violation.kind != ViolationKind::Body);
        }
        if is_harmless && !self.comparison.is_builtin() {
            violations.retain(|violation| violation.kind != ViolationKind::MediaType);
        }
        // `default` then describes the errors.
        let is_other_success =
            response.is_success() && spec.is_some_and(ResponseSpec::is_default) && self.operation.declares_success();
        if is_other_success && !violations.is_empty() { vec![self.operation.spec.undeclared(&response.body)] } else { violations }
    }

    /// Returns the platform's error code in a response and the status of that code, if it is not the status of the response.
    fn misplaced_code(&self, response: &ReceivedResponse) -> Option<(&'static str, u16)> {
        let body = response.json();
        let code = self.comparison.codes.iter().find(|code| body["code"] == code.as_str())?;
        let is_misplaced = self.comparison.is_builtin() && response.status >= 400 && code.status() != response.status;
        is_misplaced.then(|| (code.as_str(), code.status().as_u16()))
    }

    /// Returns the declared success statuses for a report.
    fn success_statuses(&self) -> String {
        let statuses = self.operation.spec.statuses.iter().filter(|status| (200..300).contains(*status));
        let statuses: Vec<_> = statuses.map(u16::to_string).collect();
        if statuses.is_empty() { "a success status".to_owned() } else { statuses.join(" or ") }
    }

    /// Returns some boundary values of an argument of a valid request, selected by the seed.
    fn boundary_values(&self, argument: &Argument, request: &Request) -> Vec<Value> {
        let location = argument.location;
        // Only the server can make a cursor.
        let is_cursor = location == ArgumentLocation::Query && has_name(&CURSOR_NAMES, &argument.name);
        let is_sent = matches!(location, ArgumentLocation::Query | ArgumentLocation::Body | ArgumentLocation::Form) && !is_cursor;
        // Another name of a discriminator belongs to another subtype, or to none.
        let is_sent = is_sent && !argument.is_discriminator;
        if !is_sent || ["image", "binary"].iter().any(|format| argument.schema["format"] == *format) {
            return Vec::new();
        }
        let document = &self.comparison.contract.document;
        let Ok(sampler) = Sampler::new(document, &argument.schema, Direction::Request) else { return Vec::new() };
        let mut values = sampler.boundaries();
        let is_blank_rejected = self.comparison.is_builtin() && (argument.required || argument.not_blank);
        values.retain(|value| match location {
            ArgumentLocation::Body => !(is_blank(value) && is_blank_rejected),
            // An empty list is no parameter, and a blank item an empty one.
            _ => match value {
                Value::Array(items) => !items.is_empty() && !items.iter().any(is_blank),
                value => !is_blank(value) && !value.is_object(),
            },
        });
        if let Some(parameter) = argument.parameter(self.operation.spec) {
            values.retain(|value| parameter.serialize(value).iter().all(|(_, text)| is_sendable_in(location, text)));
        }
        // Another part of the schema may forbid a value. An example of the document may be invalid itself.
        if !self.comparison.is_builtin() && self.operation.has_valid_body(request) {
            values.retain(|value| self.operation.has_valid_body(&argument.set(request, self.operation.spec, Some(value))));
        }
        if self.operation.has_valid_form(request) {
            values.retain(|value| self.operation.has_valid_form(&argument.set(request, self.operation.spec, Some(value))));
        }
        let mut hasher = DefaultHasher::new();
        (self.comparison.seed, &self.operation.spec.id, &argument.name).hash(&mut hasher);
        if values.len() > MAX_BOUNDARY_VALUES {
            let first = hasher.finish() as usize % values.len();
            values.rotate_left(first);
            values.truncate(MAX_BOUNDARY_VALUES);
        }
        values
    }
}
