//! The run of all checks against one operation. The checks are in [`checks`](super::checks).

use std::collections::BTreeSet;
use std::time::Instant;

use boxoffice_openapi::RouteError;

use super::comparison::Comparison;
use super::fixtures::{ExpectedOutcome, PreparationFailure, PreparedRequest};
use super::http_client::{ReceivedResponse, Request};
use super::model::{Check, STOPPED};
use super::operation_under_test::{Alternative, IF_MATCH, OperationUnderTest};
use super::recorder::{CheckFailure, OperationRecorder};
use super::server_kind::ServerKind;
use super::target::Target;

/// Summary of the only finding of an operation that refuses the key. Every other request would be refused, too.
pub const KEY_REJECTED: &str = "a valid request is answered with 401: the key is rejected, see --key";

/// A run of all checks against one operation.
pub struct OperationRun<'a> {
    pub(super) comparison: &'a Comparison,
    pub(super) operation: &'a OperationUnderTest<'a>,
    /// Every operation of the document, to look up the operation that a link leads to.
    pub(super) operations: &'a [OperationUnderTest<'a>],
    pub(super) recorder: OperationRecorder,
    /// A request that returned a page of a list. [`OperationRun::check_pages`] reads the other pages.
    pub(super) list_request: Option<Request>,
    /// The valid requests, if the first was successful. [`OperationRun::run_in_turn`] varies them.
    valid_pair: Option<RequestPair>,
    /// True if the operation was left out because no resource is known.
    lacks_resource: bool,
    /// Sentences for the report about what the comparison accepts.
    pub(super) notes: BTreeSet<String>,
}

/// Valid requests for both servers.
pub struct RequestPair {
    /// Request for the target.
    pub target: PreparedRequest,
    /// Request for the reference, if there is one.
    pub reference: Option<PreparedRequest>,
}

impl RequestPair {
    /// Returns the requests with another body.
    pub fn with_alternative(&self, alternative: &Alternative) -> Self {
        let replace = |valid: &PreparedRequest| PreparedRequest { request: alternative.replace(&valid.request), ..valid.clone() };
        Self { target: replace(&self.target), reference: self.reference.as_ref().map(replace) }
    }
}

/// A request and its response.
pub struct Exchange {
    /// The request.
    pub request: Request,
    /// The response.
    pub response: ReceivedResponse,
}

impl<'a> OperationRun<'a> {
    /// Creates a run that has sent no request.
    pub fn new(
        comparison: &'a Comparison,
        operations: &'a [OperationUnderTest<'a>],
        operation: &'a OperationUnderTest<'a>,
    ) -> Self {
        Self {
            comparison,
            operation,
            operations,
            recorder: OperationRecorder::new(operation.spec),
            list_request: None,
            valid_pair: None,
            lacks_resource: false,
            notes: BTreeSet::new(),
        }
    }

    /// Runs every check except [`OperationRun::check_pages`], which must not overlap with requests that create resources.
    pub async fn run(&mut self) {
        self.check_examples();
        self.check_drift();
        let pair = match self.valid_requests(None).await {
            Ok(pair) => pair,
            Err(_) if self.comparison.is_stopped() => return self.leave_out_stopped(),
            // With fixtures, the server has rejected a prerequisite: a finding. Without, the document lacks an example.
            Err(error) if self.comparison.target.has_fixtures() => return self.record_unsent("a valid request", &error),
            Err(error) => {
                self.recorder.coverage.left_out = Some(format!("no valid request can be built: {error:#}"));
                return;
            }
        };
        let Some((pair, exchange)) = self.check_reachable(pair).await else { return };
        let status = exchange.response.status;
        let is_unknown = [404, 410].contains(&status) && !pair.target.is_known;
        if is_unknown && self.operation.spec.response_for(status).is_some() {
            self.check_response(&exchange.request, &exchange.response);
            self.check_keys(&pair).await;
            self.check_versions(&pair).await;
            self.recorder.coverage.left_out =
                Some(format!("no such resource is known: a request for one is answered with {status}"));
            self.lacks_resource = true;
            return;
        }
        if status == 401 && self.operation.spec.needs_key && !self.comparison.is_builtin() {
            let failure = self.failure(KEY_REJECTED, "a success status", exchange.response.describe());
            self.record(Check::Valid, &exchange.request, Some(failure));
            return self.check_response(&exchange.request, &exchange.response);
        }
        let is_valid = self.check_valid(&pair, &exchange).await;
        if is_valid {
            self.check_variants(&pair).await;
        }
        // The valid request has changed the tag, or removed the resource.
        let needs_tag = self.operation.arguments.iter().any(|argument| argument.required && argument.is_header(IF_MATCH));
        let pair = if is_valid && needs_tag { self.valid_requests(None).await.unwrap_or(pair) } else { pair };
        self.check_arguments(&pair).await;
        self.check_undeclared_property(&pair).await;
        self.check_whole_body(&pair).await;
        self.check_body_format(&pair).await;
        self.check_keys(&pair).await;
        self.check_versions(&pair).await;
        self.check_paths(&pair).await;
        self.valid_pair = is_valid.then_some(pair);
    }

    /// Runs the checks again if no resource was known, and another operation has started a task since that this one reads.
    pub async fn run_with_task(&mut self) {
        let Comparison { contract, target, .. } = self.comparison;
        if self.lacks_resource && target.client.started_task(contract, self.operation.spec).is_some() {
            self.recorder.coverage.left_out = None;
            self.run().await;
        }
    }

    /// Runs a phase and adds its time to the operation's.
    pub async fn timed(&mut self, phase: impl AsyncFnOnce(&mut Self)) {
        let started = Instant::now();
        phase(self).await;
        self.recorder.coverage.seconds += started.elapsed().as_secs_f64();
    }

    /// Runs the checks of behavior, which must not overlap with other requests that create or change resources.
    pub async fn run_in_turn(&mut self) {
        let Some(pair) = self.valid_pair.take() else { return };
        self.check_head(&pair).await;
        self.check_options(&pair).await;
        self.check_ignored_parameters(&pair).await;
        self.check_body_text(&pair).await;
        if self.comparison.kind() == ServerKind::Real {
            self.check_unknown_resources(&pair).await;
            self.check_creation().await;
            self.check_updates().await;
            self.check_conditional_update().await;
            self.check_conditional_removal().await;
            self.check_removal().await;
            self.check_action().await;
            self.check_large_body(&pair).await;
            self.check_taken_name().await;
            self.check_repeats().await;
            if self.operation.spec.method == "GET" {
                self.create_entries().await;
                self.check_page_size(&pair.target.request).await;
                self.check_total(&pair.target.request).await;
                self.check_order(&pair.target.request).await;
                self.check_filters(&pair.target.request).await;
                self.check_sorts(&pair.target.request).await;
            }
        }
        self.valid_pair = Some(pair);
    }

    /// Runs the checks that may remove shared resources.
    pub async fn run_last(&mut self) {
        if self.valid_pair.is_some() && self.comparison.kind() == ServerKind::Real {
            self.check_used_resource().await;
        }
    }

    /// Builds valid requests for both servers. `body_example` names an example of the body; the default is the first.
    pub async fn valid_requests(&self, body_example: Option<&str>) -> anyhow::Result<RequestPair> {
        let Comparison { contract, seed, .. } = self.comparison;
        let is_mock = self.comparison.kind() != ServerKind::Real;
        let build = async |target: &Target| target.valid_request(contract, self.operation, body_example, *seed, is_mock).await;
        let target = build(&self.comparison.target).await?;
        let reference = match &self.comparison.reference {
            Some(reference) => Some(build(reference).await?),
            None => None,
        };
        Ok(RequestPair { target, reference })
    }

    /// Applies a mutation to the valid requests, sends them to both servers and compares the responses.
    ///
    /// Returns `None` if the target returns no complete response. `same_status` requires equal statuses of both servers; a
    /// boundary value may conflict with the state of one of them.
    pub async fn send_mutated(
        &mut self,
        pair: &RequestPair,
        same_status: bool,
        mutate: impl Fn(&Request) -> Request,
    ) -> Option<Exchange> {
        let document = &self.comparison.contract.document;
        let mutate = |request: &Request| self.operation.with_fresh_key(document, &mutate(request));
        let request = mutate(&pair.target.request);
        let response = self.send_unchanged(&request).await?;
        self.recorder.coverage.seen.insert(response.status);
        let exchange = Exchange { request, response };
        if let (Some(valid), Some(reference)) = (&pair.reference, &self.comparison.reference) {
            let reference_response = reference.client.send_with_retries(&mutate(&valid.request)).await;
            if reference_response.is_err() && self.comparison.is_stopped() {
                return Some(exchange);
            }
            if pair.target.outcome == ExpectedOutcome::Success {
                self.check_reference(&exchange, reference_response, same_status);
            }
        }
        Some(exchange)
    }

    /// Sends valid requests like [`OperationRun::send_mutated`], and others after a declared conflict: a text in the body may have to
    /// be unique. Returns the requests with the exchange.
    pub async fn send_valid(
        &mut self,
        pair: RequestPair,
        body_example: Option<&str>,
        same_status: bool,
        mutate: impl Fn(&Request) -> Request,
    ) -> Option<(RequestPair, Exchange)> {
        let exchange = self.send_mutated(&pair, same_status, &mutate).await?;
        if !self.is_conflict(&exchange.response) {
            return Some((pair, exchange));
        }
        let Ok(pair) = self.valid_requests(body_example).await else { return Some((pair, exchange)) };
        let exchange = self.send_mutated(&pair, same_status, &mutate).await?;
        Some((pair, exchange))
    }

    /// Returns if the response to a valid request is a declared conflict that other texts in the body may avoid. Later requests have
    /// some.
    pub fn is_conflict(&self, response: &ReceivedResponse) -> bool {
        let (spec, target) = (self.operation.spec, &self.comparison.target);
        let may_be_avoided = spec.response_for(409).is_some() && self.operation.json_body.is_some() && !target.has_fixtures();
        let is_conflict = response.status == 409 && may_be_avoided;
        if is_conflict {
            target.note_conflict(spec);
        }
        is_conflict
    }

    /// Sends a request to the target, with retries after 429. A valid `Idempotency-Key` is replaced by a fresh one. Returns `None` if
    /// there is no complete response.
    pub async fn send(&mut self, request: &Request) -> Option<ReceivedResponse> {
        self.send_unchanged(&self.operation.with_fresh_key(&self.comparison.contract.document, request)).await
    }

    /// Sends a request like [`OperationRun::send`], with its own `Idempotency-Key`.
    pub async fn send_unchanged(&mut self, request: &Request) -> Option<ReceivedResponse> {
        let result = self.comparison.target.client.send_with_retries(request).await;
        if result.is_err() && self.comparison.is_stopped() {
            self.leave_out_stopped();
            return None;
        }
        let incomplete = result.as_ref().err().map(|error| {
            let summary = "the response is missing or incomplete";
            self.failure(summary, "a complete response within 30 seconds", format!("{error:#}"))
        });
        self.record(Check::Complete, request, incomplete);
        let response = result.ok()?;
        self.check_received(request, &response);
        Some(response)
    }

    /// Notes that the comparison was stopped before the operation's first response.
    pub fn leave_out_stopped(&mut self) {
        if self.recorder.coverage.seen.is_empty() {
            self.recorder.coverage.left_out = Some(STOPPED.to_owned());
        }
    }

    /// Checks a response to any request apart from what the document declares for it.
    pub fn check_received(&mut self, request: &Request, response: &ReceivedResponse) {
        let failed = (response.status >= 500 && !self.is_unknown_method(request, response)).then(|| {
            self.failure(format!("the server failed with {}", response.status), "a status below 500", response.describe())
        });
        self.record(Check::ServerError, request, failed);
        self.check_message(request, response);
    }

    /// Returns if 501 means that the server doesn't know the method of a request, which the document doesn't declare (RFC 9110, section
    /// 15.6.2). The platform knows every method.
    fn is_unknown_method(&self, request: &Request, response: &ReceivedResponse) -> bool {
        let find = || self.comparison.contract.find_ignoring_slashes(&request.method, &request.path);
        response.status == 501 && !self.comparison.is_builtin() && matches!(find(), Err(RouteError::MethodNotAllowed(_)))
    }

    /// Builds a failure that refers to the operation as a whole.
    pub fn failure(&self, summary: impl Into<String>, expected: impl Into<String>, actual: impl Into<String>) -> CheckFailure {
        CheckFailure {
            pointer: self.operation.spec.pointer.clone(),
            summary: summary.into(),
            expected: expected.into(),
            actual: actual.into(),
        }
    }

    /// Returns the failure of a check whose response has another status than expected. `name` is the request or the state that was
    /// answered, such as `a taken name`.
    pub fn status_failure(
        &self,
        name: &str,
        response: &ReceivedResponse,
        is_expected: bool,
        expected: &str,
    ) -> Option<CheckFailure> {
        // `send` has recorded statuses from 500.
        (!is_expected && response.status < 500)
            .then(|| self.failure(format!("{name} is answered with {}", response.status), expected, response.describe()))
    }

    /// Records a check made with a request, and its failure, if any.
    pub fn record(&mut self, check: Check, request: &Request, failure: Option<CheckFailure>) {
        let target = &self.comparison.target;
        self.recorder.record(check, || target.curl(request), failure);
    }

    /// Records a request that could not be sent because its prerequisites could not be created.
    pub fn record_unsent(&mut self, name: &str, error: &anyhow::Error) {
        if self.comparison.is_stopped() {
            return;
        }
        let summary = format!("{name} could not be sent");
        let failure = self.failure(summary, "its prerequisites can be created", format!("{error:#}"));
        let request = error.downcast_ref::<PreparationFailure>().and_then(|failure| failure.request.as_ref());
        let curl = || request.map_or_else(String::new, |request| self.comparison.target.curl(request));
        self.recorder.record(Check::Prepared, curl, Some(failure));
    }
}
