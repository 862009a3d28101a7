//! Faults of a mock of the contract, as data: the responses that are changed, and the change.

use serde_json::{Value, json};

use super::proxy::{Answer, Call, Fault, fault};

/// The responses that are changed. Without another rule they belong to the operation under test.
#[derive(Debug, Clone, Copy)]
pub enum On {
    /// Successful responses.
    Success,
    /// Responses with this status.
    Status(u16),
    /// Rejections of arguments that contain this text.
    Rejection(&'static str),
    /// Successful responses to requests whose path and query contain this text.
    Query(&'static str),
    /// Successful responses of another operation.
    Other(&'static str),
    /// Responses to paths that the document doesn't have.
    UnknownPath,
    /// None.
    Never,
}

/// The change.
#[derive(Debug, Clone, Copy)]
pub enum Change {
    /// Sets the JSON at this pointer.
    Set(&'static str, &'static str),
    /// Removes the JSON at this pointer.
    Remove(&'static str),
    /// Duplicates the list item at this pointer.
    Twice(&'static str),
    /// Sets or removes a header.
    Header(&'static str, Option<&'static str>),
    /// Replaces the status.
    Status(u16),
    /// Replaces the body.
    Body(&'static str),
    /// Adds texts before and after the body.
    Around(&'static str, &'static str),
    /// Replaces the status and the JSON body.
    Answer(u16, &'static str),
    /// Removes the body and its media type.
    Bare,
    /// Truncates the body.
    Truncated,
    /// Closes the connection without a response.
    Closed,
}

/// Builds a fault. `operation` is the operation under test.
pub fn planted_fault(operation: &'static str, on: On, change: Change) -> Fault {
    fault("planted", "").response("*", move |call, answer, _| {
        if call.path.ends_with("/broken") && answer.status == 200 {
            answer.replace(404, &json!({ "error": "There is no such resource.", "code": "resource.not-found" }));
        }
        if ["HEAD", "OPTIONS"].contains(&call.method.as_str()) {
            return;
        }
        if call.operation == "region_list" && answer.status == 200 {
            become_page(call, answer);
        }
        if on.includes(operation, call, answer) {
            change.apply(answer);
        }
    })
}

/// Replaces the body by a page of five regions.
fn become_page(call: &Call, answer: &mut Answer) {
    const TOTAL: usize = 5;
    let number = |name: &str, default| call.query(name).map_or(default, |number| number.parse::<usize>().unwrap());
    let (page, records) = (number("page", 1), number("records", 25));
    let example = answer.json().unwrap()["entries"][0].take();
    let entries = (1..=TOTAL).skip((page - 1).saturating_mul(records)).take(records).map(|number| {
        let mut region = example.clone();
        region["self"] = json!(format!("/regions/1763700000001{number}"));
        region
    });
    let entries: Vec<_> = entries.collect();
    if entries.is_empty() {
        return answer
            .replace(404, &json!({ "error": "There is presently no resource with the given URI.", "code": "page.past-end" }));
    }
    answer.set_json(&json!({ "total": TOTAL, "page": page, "records": records, "entries": entries }));
}

impl On {
    fn includes(self, operation: &str, call: &Call, answer: &Answer) -> bool {
        let is_tested = call.operation == operation || call.operation.is_empty() && call.is_path_known;
        match self {
            Self::Success => is_tested && answer.is_success(),
            Self::Status(status) => is_tested && answer.status == status,
            Self::Rejection(text) => is_tested && answer.status == 400 && String::from_utf8_lossy(&answer.body).contains(text),
            Self::Query(text) => is_tested && answer.is_success() && call.uri().contains(text),
            Self::Other(other) => call.operation == other && answer.is_success(),
            Self::UnknownPath => !call.is_path_known,
            Self::Never => false,
        }
    }
}

impl Change {
    fn apply(self, answer: &mut Answer) {
        // Empty bodies and HTML pages are not JSON.
        let mut body = answer.json().unwrap_or_default();
        let split = |pointer: &'static str| pointer.rsplit_once('/').unwrap();
        match self {
            Self::Set(pointer, value) => {
                let (parent, name) = split(pointer);
                let value: Value = serde_json::from_str(value).unwrap();
                match body.pointer_mut(parent).unwrap() {
                    Value::Array(items) => items[name.parse::<usize>().unwrap()] = value,
                    object => object[name] = value,
                }
                answer.set_json(&body);
            }
            Self::Remove(pointer) => {
                let (parent, name) = split(pointer);
                body.pointer_mut(parent).unwrap().as_object_mut().unwrap().remove(name).unwrap();
                answer.set_json(&body);
            }
            Self::Twice(pointer) => {
                let item = body.pointer(pointer).unwrap().clone();
                body.pointer_mut(split(pointer).0).unwrap().as_array_mut().unwrap().push(item);
                answer.set_json(&body);
            }
            Self::Header(name, Some(value)) => answer.set_header(name, value),
            Self::Header(name, None) => drop(answer.headers.remove(name)),
            Self::Status(status) => answer.status = status,
            Self::Body(body) => answer.body = body.into(),
            Self::Around(before, after) => {
                answer.body = [before.as_bytes(), &answer.body, after.as_bytes()].concat().into();
            }
            Self::Answer(status, body) => answer.replace(status, &serde_json::from_str(body).unwrap()),
            Self::Bare => {
                answer.body.clear();
                answer.headers.remove("content-type");
            }
            Self::Truncated => answer.is_truncated = true,
            Self::Closed => answer.status = 0,
        }
    }
}
