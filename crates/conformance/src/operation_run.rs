//! One operation, asked from beginning to end. What is asked stands in `checks`, by what it is about.

use super::comparison::Comparison;
use super::http_client::{ReceivedResponse, Request};
use super::model::Check;
use super::recorder::{Fault, OperationRecorder};
use super::target::{ANY_KEY, Target};
use super::operation_under_test::Subject;
use super::fixtures::{self, ExpectedOutcome, ValidRequest};

/// An operation while it is asked.
pub struct OperationRun<'a> {
    pub(super) comparison: &'a Comparison,
    pub(super) subject: &'a Subject<'a>,
    /// Every operation, for what an answer refers to.
    pub(super) subjects: &'a [Subject<'a>],
    pub(super) record: OperationRecorder,
    /// The request that a list was read with, where the operation reads one.
    pub(super) list: Option<Request>,
}

/// A request that is to succeed, of either server.
pub struct RequestPair {
    /// The server's.
    pub target: ValidRequest,
    /// The reference's, where there is one.
    pub reference: Option<ValidRequest>,
}

/// A request that was sent, and what was answered.
pub struct Exchange {
    /// The request.
    pub request: Request,
    /// The answer.
    pub reply: ReceivedResponse,
}

impl<'a> OperationRun<'a> {
    /// Nothing asked yet.
    pub fn new(comparison: &'a Comparison, subjects: &'a [Subject<'a>], subject: &'a Subject<'a>) -> Self {
        Self { comparison, subject, subjects, record: OperationRecorder::new(subject), list: None }
    }

    /// Asks everything but the pages of a list, which is read when nobody adds to it: [`Interview::check_pages`].
    pub async fn run(&mut self) {
        self.check_examples();
        self.check_described();
        let pair = match self.valid_requests(None).await {
            Ok(pair) => pair,
            // What can't be made in a world is refused by its server; what can't be written from a document, by nobody.
            Err(error) if self.comparison.target.has_fixtures() => return self.note_unmade("a valid request", &error),
            Err(error) => {
                self.record.coverage.left_out = Some(format!("no valid request could be made: {error:#}"));
                return;
            }
        };
        let Some(asked) = self.check_reachable(&pair).await else { return };
        if self.check_valid(&pair, &asked).await {
            self.check_choices(&pair).await;
        }
        self.check_arguments(&pair).await;
        self.check_body_form(&pair).await;
        self.check_keys(&pair).await;
        self.check_versions(&pair).await;
        self.check_paths(&pair).await;
    }

    /// A request that is to succeed, for either server, with the body's example of this name, or the first.
    pub async fn valid_requests(&self, body: Option<&str>) -> anyhow::Result<RequestPair> {
        let Comparison { contract, seed, .. } = self.comparison;
        let valid = async |side: &Target| side.valid(contract, self.subject, body, *seed).await;
        let target = valid(&self.comparison.target).await?;
        let reference = match &self.comparison.reference {
            Some(side) => Some(valid(side).await?),
            None => None,
        };
        Ok(RequestPair { target, reference })
    }

    /// Sends a request of this operation, changed in one way, to the server, and to the reference where there is one. Nothing
    /// when there is no whole answer. `is_certain` tells whether both have to answer with the same status: a value at its bounds
    /// may stand against the state of one.
    pub async fn send_mutated(
        &mut self,
        pair: &RequestPair,
        is_certain: bool,
        change: impl Fn(&Request) -> Request,
    ) -> Option<Exchange> {
        let request = change(&pair.target.request);
        let reply = self.send(&request).await?;
        self.record.coverage.seen.insert(reply.status);
        let asked = Exchange { request, reply };
        if let (Some(valid), Some(side)) = (&pair.reference, &self.comparison.reference) {
            let referred = fixtures::send(&side.server, &change(&valid.request)).await;
            if pair.target.outcome == ExpectedOutcome::Success {
                self.check_reference(&asked, referred, is_certain);
            }
        }
        Some(asked)
    }

    /// Sends a request, and waits where the server says that it was asked too often. Nothing when there is no whole answer.
    pub async fn send(&mut self, request: &Request) -> Option<ReceivedResponse> {
        let answer = fixtures::send(&self.comparison.target.server, request).await;
        let missing = answer.as_ref().err().map(|error| Fault {
            pointer: self.subject.operation.pointer.clone(),
            summary: "there is no whole answer".to_owned(),
            expected: "an answer, within 30 seconds and with all of its body".to_owned(),
            actual: format!("{error:#}"),
        });
        self.record(Check::Whole, request, missing);
        let reply = answer.ok()?;
        let failed = (reply.status >= 500).then(|| Fault {
            pointer: self.subject.operation.pointer.clone(),
            summary: format!("the server failed with {}", reply.status),
            expected: "an answer below 500".to_owned(),
            actual: describe(&reply),
        });
        self.record(Check::Failure, request, failed);
        Some(reply)
    }

    /// Notes that a check was made with a request, and what it found.
    pub fn record(&mut self, check: Check, request: &Request, fault: Option<Fault>) {
        let Target { server, key, .. } = &self.comparison.target;
        let mut curl = request.curl(&server.address);
        // Wherever another document wants the key.
        if key != ANY_KEY {
            curl = curl.replace(key, "$KEY");
        }
        self.record.judge(check, &curl, fault);
    }
}

/// An answer in words.
pub fn describe(reply: &ReceivedResponse) -> String {
    match reply.body.len() {
        0 => format!("{} without a body", reply.status),
        _ => format!("{} {}", reply.status, String::from_utf8_lossy(&reply.body)),
    }
}
