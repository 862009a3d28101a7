//! What resources call themselves: `self` leads to them, `Location` too, and identifiers look as the document has it.

use http::header;
use percent_encoding::percent_decode_str;
use serde_json::Value;

use super::persistence::is_example;
use boxoffice_openapi::Operation;
use crate::comparison::Comparison;
use crate::http_client::Request;
use crate::operation_run::{Exchange, OperationRun, describe};
use crate::model::Check;
use crate::recorder::Fault;
use crate::operation_under_test::Place;

/// How many of the selves in an answer are followed.
const FOLLOWED: usize = 4;

impl<'a> OperationRun<'a> {
    /// Every identifier in an answer is as the document has it; some selves and the Location are followed.
    pub async fn check_selves(&mut self, asked: &Exchange) {
        self.check_identifiers(asked);
        let body = asked.reply.json();
        let own = body["self"].as_str();
        if let (Some(own), "GET") = (own, asked.request.method.as_str()) {
            let fault = (!is_same(own, &asked.request.path)).then(|| Fault {
                pointer: self.subject.operation.pointer.clone(),
                summary: "the resource that was asked for calls itself another".to_owned(),
                expected: asked.request.path.clone(),
                actual: own.to_owned(),
            });
            let is_item = self.leads_to(own).is_some_and(|found| found.path.contains('{')) && self.is_named_by_path();
            self.record(Check::SelfResolves, &asked.request, fault.filter(|_| is_item));
        }
        let mut selves = Vec::new();
        selves_in(&body, &mut selves);
        for uri in selves.into_iter().take(FOLLOWED) {
            self.follow(asked, &uri, "a self").await;
        }
        let location = asked.reply.headers.get(header::LOCATION).and_then(|location| location.to_str().ok());
        if let Some(location) = location.filter(|_| asked.reply.status == 201) {
            self.follow(asked, location, "Location").await;
        }
    }

    /// Every identifier that an answer's selves end with matches the pattern of the path's variable.
    pub fn check_identifiers(&mut self, asked: &Exchange) {
        let mut selves = Vec::new();
        selves_in(&asked.reply.json(), &mut selves);
        for uri in selves {
            let Some(operation) = self.leads_to(&uri) else { continue };
            let Some(subject) = self.subjects.iter().find(|subject| subject.operation.id == operation.id) else { continue };
            let segments = operation.path.split('/').zip(self.path_of(&uri).split('/'));
            let odd = segments.filter_map(|(template, text)| {
                let name = template.strip_prefix('{')?.strip_suffix('}')?;
                let argument = subject.arguments.iter().find(|each| each.place == Place::Path && each.name == name)?;
                let text = percent_decode_str(text).decode_utf8_lossy();
                (!argument.allows(&text)).then(|| (argument.pointer.clone(), argument.schema.to_string(), name.to_owned()))
            });
            let fault = odd.last().map(|(pointer, schema, name)| Fault {
                pointer,
                summary: format!("an identifier in a self is none that {name} may be"),
                expected: schema,
                actual: uri.clone(),
            });
            self.record(Check::Identifier, &asked.request, fault);
        }
    }

    /// Reads what a URI leads to, with the key that the URI was read with, or where that may not, with the comparison's own.
    async fn follow(&mut self, asked: &Exchange, uri: &str, about: &str) {
        let Some(operation) = self.leads_to(uri) else {
            let fault = Fault {
                pointer: self.subject.operation.pointer.clone(),
                summary: format!("{about} leads to no operation of the document"),
                expected: "the URI of what an operation reads".to_owned(),
                actual: uri.to_owned(),
            };
            return self.record(Check::SelfResolves, &asked.request, Some(fault));
        };
        let path = self.path_of(uri).to_owned();
        let mut request = Request::new("GET", path.clone());
        request.headers.clone_from(&asked.request.clone().without_header("Content-Type").headers);
        let Some(mut reply) = self.send(&request).await else { return };
        if [401, 403].contains(&reply.status) {
            request = self.subject.with_key(&request, Some(&self.comparison.target.key));
            let Some(again) = self.send(&request).await else { return };
            reply = again;
        }
        let body = reply.json();
        let found = body["self"].as_str();
        let is_itself = found.is_none_or(|found| is_same(found, &path));
        // A mock without a state answers with its example, whatever is asked for.
        let is_example = is_example(operation, &body);
        let summary = match reply.status {
            200 if is_itself || is_example => None,
            200 => Some(format!("{about} leads to another resource")),
            status => Some(format!("{about} is answered with {status}")),
        };
        let fault = summary.filter(|_| reply.status < 500).map(|summary| Fault {
            pointer: self.subject.operation.pointer.clone(),
            summary,
            expected: format!("200 with the self {path}"),
            actual: describe(&reply),
        });
        self.record(Check::SelfResolves, &request, fault);
    }

    /// The operation that reads what a URI names.
    fn leads_to(&self, uri: &str) -> Option<&'a Operation> {
        let comparison: &'a Comparison = self.comparison;
        comparison.contract.find("GET", self.path_of(uri)).ok()
    }

    /// The path of a URI, as the document writes paths.
    fn path_of<'u>(&self, uri: &'u str) -> &'u str {
        let path = uri.strip_prefix(self.comparison.target.server.address.as_str()).unwrap_or(uri);
        self.comparison.contract.without_prefix(path)
    }

    /// Whether the operation's own path names a resource, and not a relation of the caller's such as `/sessions/active`.
    fn is_named_by_path(&self) -> bool {
        self.subject.operation.path.ends_with('}')
    }
}

/// Whether two paths are the same resource: one may be the short form of the other, `/sections/1` of `/events/2/sections/1`.
fn is_same(one: &str, other: &str) -> bool {
    let [one, other] = [one, other].map(|path| percent_decode_str(path).decode_utf8_lossy());
    let (long, short) = if one.len() >= other.len() { (one, other) } else { (other, one) };
    short.starts_with('/') && long.ends_with(short.as_ref())
}

/// The selves in a value: its own, then those of what is in it.
fn selves_in(value: &Value, selves: &mut Vec<String>) {
    match value {
        Value::Object(object) => {
            let own = object.get("self").and_then(Value::as_str).map(str::to_owned);
            selves.extend(own.filter(|own| !selves.contains(own)));
            object.values().for_each(|value| selves_in(value, selves));
        }
        Value::Array(items) => items.iter().for_each(|item| selves_in(item, selves)),
        _ => {}
    }
}
