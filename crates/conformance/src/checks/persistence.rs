//! Whether a server does what it says it did: what was sent is read afterwards, and what was deleted is gone.

use serde_json::Value;

use boxoffice_openapi::Operation;
use crate::http_client::Request;
use crate::operation_run::{Exchange, OperationRun, describe};
use crate::model::Check;
use crate::recorder::Fault;
use crate::operation_under_test::Place;

/// What these delete is ended, and can still be read.
const ENDING: [&str; 2] = ["account_session_delete", "transfer_delete"];

impl OperationRun<'_> {
    /// Reads the resource that a request has made, changed or deleted. Of our own document alone, whose resources are read where
    /// they are made; and not of a mock without a state, which answers with its examples whatever it was sent.
    pub async fn check_kept(&mut self, asked: &Exchange) {
        let (method, status) = (asked.request.method.as_str(), asked.reply.status);
        let path = match (method, status) {
            ("POST", 201) => asked.reply.headers.get(http::header::LOCATION).and_then(|uri| uri.to_str().ok()),
            ("PUT", 200) | ("DELETE", 204) => Some(asked.request.path.as_str()),
            _ => None,
        };
        let comparison = self.comparison;
        let Some((path, reading)) = path.and_then(|path| Some((path, comparison.contract.find("GET", path).ok()?))) else {
            return;
        };
        // What a collection or a relation of the caller's has is not deleted with it: `/sessions/active`.
        if !comparison.is_builtin() || (method == "DELETE" && !reading.path.ends_with('}')) {
            return;
        }
        let request =
            Request { method: "GET".to_owned(), path: path.to_owned(), body: None, query: Vec::new(), ..asked.request.clone() };
        let request = request.without_header("Content-Type");
        let Some(reply) = self.send(&request).await else { return };
        let read = reply.json();
        let odd = match reply.status {
            200 if is_example(reading, &read) || ENDING.contains(&self.subject.operation.id.as_str()) => None,
            200 if method == "DELETE" => Some(("what was deleted can still be read".to_owned(), "404".to_owned())),
            200 => self.unkept(&asked.request, &read),
            _ => None,
        };
        let fault = odd.map(|(summary, expected)| Fault {
            pointer: self.subject.operation.pointer.clone(),
            summary,
            expected,
            actual: describe(&reply),
        });
        self.record(Check::Kept, &request, fault);
    }

    /// A property that was sent and is read with another value, and that value. What has a format may be written otherwise, as a
    /// picture by its address; what has parts may have more of them; and a URI may be read as the number that it ends with.
    fn unkept(&self, request: &Request, read: &Value) -> Option<(String, String)> {
        let sent: Value = serde_json::from_slice(request.body.as_deref()?).ok()?;
        let arguments = self.subject.arguments.iter().filter(|argument| argument.place == Place::Body);
        arguments.filter(|argument| argument.schema.get("format").is_none()).find_map(|argument| {
            let (name, sent) = (&argument.name, &sent[&argument.name]);
            let is_kept = match (sent, &read[name]) {
                (Value::String(sent), Value::String(read)) => sent == read || sent.ends_with(&format!("/{read}")),
                (Value::Bool(sent), Value::Bool(read)) => sent == read,
                (Value::Number(sent), Value::Number(read)) => sent.as_f64() == read.as_f64(),
                _ => true,
            };
            (!is_kept).then(|| (format!("{name} is read otherwise than it was sent"), format!("{name}: {sent}")))
        })
    }
}

/// Whether a body is the document's own example of what the operation answers.
pub fn is_example(operation: &Operation, body: &Value) -> bool {
    let contents = operation.answers.iter().flat_map(|answer| &answer.contents);
    contents.flat_map(|content| content.examples.values()).any(|example| example == body)
}
