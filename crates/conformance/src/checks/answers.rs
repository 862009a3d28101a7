//! Whether an operation is there, and what it answers to a valid request.

use std::hash::{DefaultHasher, Hash, Hasher};

use http::header::ETAG;
use serde_json::Value;

use boxoffice_openapi::response::{Violation, ViolationKind};
use boxoffice_openapi::{Direction, Sampler, is_blank};
use boxoffice_http::error::Code;
use crate::http_client::{ReceivedResponse, Request};
use crate::operation_run::{Exchange, OperationRun, RequestPair, describe};
use crate::model::Check;
use crate::recorder::Fault;
use crate::operation_under_test::{Argument, Place};
use crate::fixtures::ExpectedOutcome;

/// How many values at the bounds of an argument are sent.
const EDGES: usize = 4;

impl OperationRun<'_> {
    /// The operation is there: what answers is not the front door alone.
    pub async fn check_reachable(&mut self, pair: &RequestPair) -> Option<Exchange> {
        let asked = self.send_mutated(pair, true, Request::clone).await?;
        let reply = &asked.reply;
        let is_astray = match reply.status {
            405 | 501 => true,
            // Another document's 404 may be any body; ours has a shape, which what stands before the server doesn't know.
            404 if self.comparison.is_builtin() => reply.json()["code"] == "endpoint.unknown" || !self.wrong(reply).is_empty(),
            404 => self.subject.operation.answer(404).is_none(),
            _ => false,
        };
        let fault = is_astray.then(|| Fault {
            pointer: self.subject.operation.pointer.clone(),
            summary: format!("the server doesn't know the operation: it answers {}", reply.status),
            expected: self.successes(),
            actual: describe(reply),
        });
        self.record(Check::Reachable, &asked.request, fault);
        (!is_astray).then_some(asked)
    }

    /// A valid request succeeds, and its answer is as the document says; whether it did.
    pub async fn check_valid(&mut self, pair: &RequestPair, asked: &Exchange) -> bool {
        let succeeds = pair.target.outcome == ExpectedOutcome::Declared || is_success(&asked.reply);
        self.judge_success(asked, succeeds, "a valid request");
        self.check_answer(&asked.request, &asked.reply);
        if !is_success(&asked.reply) {
            return false;
        }
        self.check_known(asked).await;
        self.check_selves(asked).await;
        self.check_list(asked);
        self.check_kept(asked).await;
        true
    }

    /// A GET that names the tag of what it was answered with is answered with 304, unless another content is there by then.
    async fn check_known(&mut self, asked: &Exchange) {
        let Some(tag) = asked.reply.headers.get(ETAG) else { return };
        let knows = self.subject.operation.method == "GET" && self.subject.operation.statuses.contains(&304);
        let Some(text) = tag.to_str().ok().filter(|_| knows) else { return };
        let request = asked.request.clone().with_header("If-None-Match", text);
        let Some(reply) = self.send(&request).await else { return };
        self.record.coverage.seen.insert(reply.status);
        self.check_answer(&request, &reply);
        let is_same = reply.status != 304 && reply.headers.get(ETAG) == Some(tag);
        let fault = is_same.then(|| Fault {
            pointer: self.subject.operation.pointer.clone(),
            summary: "what the caller has is sent again".to_owned(),
            expected: "304".to_owned(),
            actual: describe(&reply),
        });
        self.record(Check::Known, &request, fault);
    }

    /// The other requests that the document allows succeed too: each further example, and each free argument at its bounds.
    pub async fn check_choices(&mut self, pair: &RequestPair) {
        for (name, _) in self.subject.body.iter().flat_map(|body| body.examples.iter().skip(1)) {
            self.check_choice(Some(name), &format!("the example {name}"), Request::clone).await;
        }
        for argument in self.subject.arguments.iter().filter(|argument| !pair.target.bound.contains(&argument.name)) {
            for value in self.edges(argument) {
                let operation = self.subject.operation;
                let about = format!("{} at its bounds", argument.name);
                self.check_choice(None, &about, |request| argument.set(request, operation, Some(&value))).await;
            }
        }
    }

    /// One of them: an example of the body, or a change. A value at its bounds may stand against a state, which the schema can't
    /// say: a declared refusal will do for it, but none that calls the value or the caller wrong.
    async fn check_choice(&mut self, example: Option<&str>, about: &str, change: impl Fn(&Request) -> Request) {
        let is_certain = example.is_some();
        let pair = match self.valid_requests(example).await {
            Ok(pair) => pair,
            Err(error) => return self.note_unmade(about, &error),
        };
        let Some(asked) = self.send_mutated(&pair, is_certain, change).await else { return };
        let status = asked.reply.status;
        let is_declared = self.subject.operation.answer(status).is_some();
        let is_refused = is_declared && (400..500).contains(&status) && ![400, 401, 403].contains(&status);
        self.judge_success(&asked, is_success(&asked.reply) || (!is_certain && is_refused), about);
        self.check_answer(&asked.request, &asked.reply);
        if is_success(&asked.reply) {
            self.check_identifiers(&asked);
            // A mock without a state has one page alone, whatever it is asked for.
            if !["page", "records"].iter().any(|name| asked.request.query.iter().any(|(given, _)| given == name)) {
                self.check_list(&asked);
            }
        }
    }

    /// A request that could not be made is no silence.
    pub fn note_unmade(&mut self, about: &str, error: &anyhow::Error) {
        let fault = Fault {
            pointer: self.subject.operation.pointer.clone(),
            summary: format!("{about} could not be asked"),
            expected: "what it needs can be made".to_owned(),
            actual: format!("{error:#}"),
        };
        self.record.judge(Check::Valid, "", Some(fault));
    }

    fn judge_success(&mut self, asked: &Exchange, succeeds: bool, about: &str) {
        // A failure inside is told as such.
        let fault = (!succeeds && asked.reply.status < 500).then(|| Fault {
            pointer: self.subject.operation.pointer.clone(),
            summary: format!("{about} is answered with {}", asked.reply.status),
            expected: self.successes(),
            actual: describe(&asked.reply),
        });
        self.record(Check::Valid, &asked.request, fault);
    }

    /// Status, media type, headers and body of an answer are as the document says.
    pub fn check_answer(&mut self, request: &Request, reply: &ReceivedResponse) {
        let mut wrong = self.wrong(reply);
        let answer = self.subject.operation.answer(reply.status);
        let has_headers = answer.is_some_and(|answer| !answer.headers.is_empty());
        let has_json = answer.is_some_and(|answer| answer.contents.iter().any(|content| content.is_json()));
        let made = [
            (ViolationKind::Status, Check::Status, true),
            (ViolationKind::MediaType, Check::MediaType, answer.is_some()),
            (ViolationKind::Header, Check::Header, has_headers),
            (ViolationKind::Body, Check::Body, has_json),
            (ViolationKind::Undeclared, Check::Undeclared, has_json),
        ];
        for (kind, check, is_made) in made {
            let of_kind: Vec<_> = wrong.extract_if(.., |wrong| wrong.kind == kind).collect();
            if is_made && of_kind.is_empty() {
                self.record(check, request, None);
            }
            if kind == ViolationKind::Body
                && let Some((code, status)) = self.misplaced_code(reply)
            {
                let fault = Fault {
                    pointer: answer.map_or_else(String::new, |answer| answer.pointer.clone()),
                    summary: format!("the answer {} has the code {code}, which belongs to {status}", reply.status),
                    expected: format!("a code of an error {}", reply.status),
                    actual: describe(reply),
                };
                self.record(check, request, Some(fault));
            }
            for wrong in of_kind {
                let fault = Fault {
                    summary: format!("the answer {} {}", reply.status, wrong.normalized),
                    expected: format!("what the document says at {}", wrong.pointer),
                    actual: wrong.text,
                    pointer: wrong.pointer,
                };
                self.record(check, request, Some(fault));
            }
        }
    }

    /// All that is wrong with an answer.
    pub fn wrong(&self, reply: &ReceivedResponse) -> Vec<Violation> {
        self.subject.operation.violations(reply.status, &reply.headers, &reply.body)
    }

    /// The code of one of our own errors, and the status that it belongs to, where that is not the answer's.
    fn misplaced_code(&self, reply: &ReceivedResponse) -> Option<(&'static str, u16)> {
        let code: Code = serde_json::from_value(reply.json().get("code")?.clone()).ok()?;
        let is_misplaced = self.comparison.is_builtin() && reply.status >= 400 && code.status() != reply.status;
        is_misplaced.then(|| (code.as_str(), code.status().as_u16()))
    }

    /// The success statuses that the document declares, in words.
    fn successes(&self) -> String {
        let successes = self.subject.operation.statuses.iter().filter(|status| (200..300).contains(*status));
        let successes: Vec<_> = successes.map(u16::to_string).collect();
        if successes.is_empty() { "a success status".to_owned() } else { successes.join(" or ") }
    }

    /// Some values at the bounds of an argument, chosen by the seed.
    fn edges(&self, argument: &Argument) -> Vec<Value> {
        if matches!(argument.place, Place::Path | Place::Header) || argument.schema["format"] == "image" {
            return Vec::new();
        }
        let document = &self.comparison.contract.document;
        let Ok(sampler) = Sampler::new(document, &argument.schema, Direction::Request) else { return Vec::new() };
        let mut edges = sampler.boundaries();
        edges.retain(|value| {
            let is_blank = is_blank(value);
            match argument.place {
                Place::Body => !(is_blank && self.comparison.is_builtin() && (argument.required || argument.filled)),
                _ => !is_blank && !value.is_object(),
            }
        });
        let mut hasher = DefaultHasher::new();
        (self.comparison.seed, &self.subject.operation.id, &argument.name).hash(&mut hasher);
        if edges.len() > EDGES {
            let first = hasher.finish() as usize % edges.len();
            edges.rotate_left(first);
            edges.truncate(EDGES);
        }
        edges
    }
}

/// Whether an answer is a success.
pub fn is_success(reply: &ReceivedResponse) -> bool {
    (200..300).contains(&reply.status)
}
