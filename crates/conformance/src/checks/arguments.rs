//! Wrong arguments, one at a time: each is refused, with its name.

use serde_json::Value;

use boxoffice_openapi::invalid_values::{InvalidKind, wrong_values};
use boxoffice_openapi::{compile, to_plain_string};
use crate::http_client::{ReceivedResponse, Request};
use crate::operation_run::{Exchange, OperationRun, RequestPair, describe};
use crate::model::Check;
use crate::recorder::Fault;
use crate::operation_under_test::{Argument, Place};

impl OperationRun<'_> {
    /// Every argument in every way that its schema forbids.
    pub async fn check_arguments(&mut self, pair: &RequestPair) {
        let operation = self.subject.operation;
        for argument in &self.subject.arguments {
            if argument.required && argument.place != Place::Path {
                let without = |request: &Request| argument.set(request, operation, None);
                if let Some(asked) = self.send_mutated(pair, true, without).await {
                    self.judge_refusal(Check::ArgumentMissing, argument, &asked, "is missing");
                }
            }
            for (kind, value) in self.wrong_values(argument) {
                let (check, about) = match kind {
                    InvalidKind::Missing => (Check::ArgumentMissing, "is blank"),
                    InvalidKind::Type => (Check::ArgumentType, "has a wrong type"),
                    InvalidKind::Bounds => (Check::ArgumentBounds, "is out of bounds"),
                    InvalidKind::Enum => (Check::ArgumentEnum, "is an unknown value"),
                    InvalidKind::Form => (Check::ArgumentForm, "has a wrong form"),
                };
                let set = |request: &Request| argument.set(request, operation, Some(&value));
                if argument.place == Place::Path && !self.is_here(&set(&pair.target.request)) {
                    continue;
                }
                if let Some(asked) = self.send_mutated(pair, true, set).await {
                    self.judge_refusal(check, argument, &asked, about);
                }
            }
        }
    }

    /// A body that is no JSON, and one of a media type that the operation doesn't take.
    pub async fn check_body_form(&mut self, pair: &RequestPair) {
        let Some(body) = &self.subject.body else { return };
        let pointer = body.pointer.clone();
        for (media_type, text, status, about) in [
            ("application/json", "{\"name\": ", 400, "a body that is no JSON"),
            ("application/x-unknown", "{}", 415, "a body of another media type"),
        ] {
            let change = |request: &Request| {
                let mut request = request.clone().with_header("Content-Type", media_type);
                request.body = Some(text.as_bytes().to_vec());
                request
            };
            let Some(asked) = self.send_mutated(pair, true, change).await else { continue };
            let is_right = asked.reply.status == status || (status == 400 && self.is_refusal(&asked.reply));
            self.judge_status(Check::BodyForm, &asked, is_right, &pointer, about, &status.to_string());
        }
    }

    /// What an argument may not be, in a form in which it can be sent.
    fn wrong_values(&self, argument: &Argument) -> Vec<(InvalidKind, Value)> {
        let mut wrong = wrong_values(&argument.schema, argument.required || argument.filled);
        if !self.comparison.is_builtin() {
            // That a blank is missing, and which characters no text may have, are rules of our own server.
            let Ok(validator) = compile(&argument.schema) else { return Vec::new() };
            wrong.retain(|wrong| !validator.is_valid(&wrong.value));
        }
        let kind = argument.schema["type"].as_str();
        let is_scalar = kind.is_some_and(|kind| ["string", "integer", "number", "boolean"].contains(&kind));
        let wrong = wrong.into_iter().map(|wrong| (wrong.kind, wrong.value));
        let sendable = wrong.filter(|(_, value)| match (argument.place, value) {
            (Place::Body, _) => true,
            // Any text is an array of one.
            _ if !is_scalar => false,
            // As a text, what is blank counts as absent, and a number is as good as any text.
            (place, Value::String(text)) => {
                let is_sent = !text.trim().is_empty()
                    && (place != Place::Header || text.chars().all(|character| matches!(character, ' '..='~')));
                is_sent && !(kind == Some("boolean") && text.parse::<bool>().is_ok())
            }
            (_, Value::Number(_)) => kind != Some("string"),
            _ => false,
        });
        // Told apart as values, several may be the same as a text.
        let mut sent = Vec::new();
        let sendable = sendable.filter(|(_, value)| {
            let is_new = argument.place == Place::Body || !sent.contains(&to_plain_string(value));
            sent.push(to_plain_string(value));
            is_new
        });
        sendable.collect()
    }

    /// Whether a request still leads to this operation.
    fn is_here(&self, request: &Request) -> bool {
        let found = self.comparison.contract.find(&request.method, &request.path);
        found.is_ok_and(|operation| operation.id == self.subject.operation.id)
    }

    /// Whether this status refuses an argument: 400, or where the document has that instead, 422 (RFC 9110).
    fn is_refusal(&self, reply: &ReceivedResponse) -> bool {
        reply.status == 400 || (reply.status == 422 && self.subject.operation.statuses.contains(&422))
    }

    fn judge_refusal(&mut self, check: Check, argument: &Argument, asked: &Exchange, about: &str) {
        let reply = &asked.reply;
        let name = &argument.name;
        let declares_400 = self.subject.operation.statuses.contains(&400);
        // What a path names may be unknown rather than wrong, where the document doesn't tell the two apart.
        let is_unknown = argument.place == Place::Path && reply.status == 404 && !declares_400;
        let is_refusal = self.is_refusal(reply) || is_unknown;
        // Where another document's errors tell the name, if they do, can't be known.
        if self.comparison.is_builtin() && is_refusal && !is_unknown && !names(reply, name) {
            let fault = Fault {
                pointer: argument.pointer.clone(),
                summary: format!("the answer doesn't name {name}, which {about}"),
                expected: format!("{}, naming {name}", reply.status),
                actual: describe(reply),
            };
            self.record(check, &asked.request, Some(fault));
        } else {
            self.judge_status(check, asked, is_refusal, &argument.pointer, &format!("{name} that {about}"), "400");
        }
    }

    /// Notes whether a request that is to be refused got this status; the answer is held against the document where it declares
    /// one of that status.
    pub fn judge_status(&mut self, check: Check, asked: &Exchange, is_right: bool, pointer: &str, about: &str, expected: &str) {
        let Exchange { request, reply } = asked;
        // A failure inside is told as such.
        let fault = (!is_right && reply.status < 500).then(|| Fault {
            pointer: pointer.to_owned(),
            summary: format!("{about} is answered with {}", reply.status),
            expected: expected.to_owned(),
            actual: describe(reply),
        });
        self.record(check, request, fault);
        if self.subject.operation.answer(reply.status).is_some() {
            self.check_answer(request, reply);
        }
    }
}

/// Whether a refusal names an argument among its `fields`.
fn names(reply: &ReceivedResponse, name: &str) -> bool {
    reply.json()["fields"].as_array().is_some_and(|fields| fields.iter().any(|field| field["name"] == name))
}
