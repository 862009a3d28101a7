//! Checks that an update with changed values is stored: one property after the other.

use serde_json::{Value, json};

use super::changed_values::{changed_values, difference, is_same_value, without_differences};
use crate::argument::Argument;
use crate::comparison::Comparison;
use crate::http_client::Request;
use crate::model::Check;
use crate::operation_run::{OperationRun, RequestPair};

/// Number of values to try for a property, until one is accepted.
const ATTEMPTS: usize = 3;

impl<'a> OperationRun<'a> {
    /// Replaces a resource, then changes each of its properties, and reads it after each change.
    pub async fn check_updates(&mut self) {
        let Some((pair, read, mut before)) = self.updatable().await else { return };
        // `check_persistence` replaces those of the built-in document.
        let request = &pair.target.request;
        if request.method == "PUT" && !self.comparison.is_builtin() {
            if !self.send(request).await.is_some_and(|response| self.operation.is_success(&response)) {
                return;
            }
            let Some(after) = self.read(&read).await else { return };
            self.record_changed_property(&read.path, request, &after);
            before = after;
        }
        let mut current = before;
        for argument in self.body_arguments() {
            for value in self.new_values(&pair, argument, &current) {
                let request = self.update_of(&pair, argument, &value, &current);
                let Comparison { contract, target, seed, .. } = self.comparison;
                let request = target.with_current_tag(contract, *seed, self.operation, request).await;
                let Some(response) = self.send(&request).await else { return };
                if !self.operation.is_success(&response) {
                    continue;
                }
                let updated = response.json();
                let Some(after) = self.read(&read).await else { return };
                let stable = match difference(&updated, &after) {
                    Some(_) => self.without_counters(&read, &after).await,
                    None => after.clone(),
                };
                self.record_update(&request, argument, &value, [&current, &updated, &stable]);
                current = after;
                break;
            }
        }
    }

    /// Returns a valid request of an update, the request that reads the resource, and the resource.
    pub async fn updatable(&mut self) -> Option<(RequestPair, Request, Value)> {
        let spec = self.operation.spec;
        if !["PUT", "PATCH"].contains(&spec.method.as_str()) {
            return None;
        }
        let pair = self.valid_requests(None).await.ok()?;
        let request = &pair.target.request;
        let read = self.read_request(&request.path, request)?;
        let body = self.read(&read).await?;
        Some((pair, read, body))
    }

    /// Returns the request that reads the resource or the list at a path, for the checks of another request. `None` if the document has no
    /// such operation.
    pub fn read_request(&self, path: &str, other: &Request) -> Option<Request> {
        let Comparison { contract, target, seed, .. } = self.comparison;
        target.read_request(contract, *seed, path, other)
    }

    /// Reads a resource. Returns `None` unless the response is a JSON object.
    pub async fn read(&mut self, request: &Request) -> Option<Value> {
        let response = self.send(request).await?;
        Some(response.json()).filter(|body| response.status == 200 && body.is_object())
    }

    /// Reads a resource again. Returns it as it was before, without the properties that a read changes, such as a counter of reads.
    pub async fn without_counters(&mut self, read: &Request, resource: &Value) -> Value {
        let again = if self.comparison.is_builtin() { None } else { self.read(read).await };
        again.map_or_else(|| resource.clone(), |again| without_differences(resource, resource, &again))
    }

    /// Returns the properties of the body, which may be a form.
    pub fn body_arguments(&self) -> Vec<&'a Argument> {
        self.operation.arguments.iter().filter(|argument| argument.is_property()).collect()
    }

    /// Returns values to try for a property.
    pub fn new_values(&self, pair: &RequestPair, argument: &Argument, current: &Value) -> Vec<Value> {
        if argument.schema["writeOnly"] == true {
            return Vec::new();
        }
        let is_constrained = pair.target.constrained.contains(&argument.name);
        let document = &self.comparison.contract.document;
        let present = match current.get(&argument.name) {
            Some(value) => value.clone(),
            // A number that is read under another name, such as a price inside of an object.
            None if ["integer", "number"].iter().any(|name| argument.schema["type"] == *name) && !is_constrained => Value::Null,
            None if self.is_readable(&pair.target.request.path, &argument.name, current) && !is_constrained => Value::Null,
            None => return Vec::new(),
        };
        let mut values = changed_values(document, argument, &present, is_constrained);
        if !self.comparison.is_builtin() {
            // Another part of the schema may forbid a value.
            values.retain(|value| {
                let request = self.update_of(pair, argument, value, current);
                self.operation.has_valid_body(&request) || self.operation.has_valid_form(&request)
            });
        }
        values.truncate(ATTEMPTS);
        values
    }

    /// Returns a request that changes one property and repeats required ones.
    pub fn update_of(&self, pair: &RequestPair, argument: &Argument, value: &Value, current: &Value) -> Request {
        if self.operation.json_body.is_none() {
            let (spec, example) = (self.operation.spec, &pair.target.request);
            let optional = self.body_arguments().into_iter().filter(|other| !other.required);
            let required = optional.fold(example.clone(), |request, optional| optional.set(&request, spec, None));
            return argument.set(&required, spec, Some(value));
        }
        let mut body = json!({});
        for required in self.operation.arguments.iter().filter(|other| other.is_in_body() && other.required) {
            let example = pair.target.request.json().and_then(|body| body.get(&required.name).cloned());
            let present = current.get(&required.name).filter(|present| required.is_valid(present)).cloned();
            body[&required.name] = present.or(example).unwrap_or_default();
        }
        body[&argument.name] = value.clone();
        pair.target.request.clone().with_json(&body)
    }

    fn record_update(&mut self, request: &Request, argument: &Argument, value: &Value, [before, updated, after]: [&Value; 3]) {
        let name = &argument.name;
        let is_lost = match after.get(name) {
            Some(read) => !is_same_value(value, read),
            None => !contains(after, value),
        };
        let lost = is_lost.then(|| {
            let summary = format!("a changed {name} is not read back");
            self.failure(summary, format!("{name}: {value}"), after.to_string())
        });
        self.record(Check::Persistence, request, lost);
        if updated.is_object() {
            let differs = difference(updated, after).map(|(path, updated, after)| {
                let summary = format!("the response to the update differs from a read right after it: {path}");
                self.failure(summary, after.to_string(), updated.to_string())
            });
            self.record(Check::UpdateResponse, request, differs);
        }
        // PATCH keeps what is absent, and so does PUT without required properties in the built-in document.
        let is_partial = (self.comparison.is_builtin() || request.method == "PATCH")
            && self.operation.arguments.iter().all(|other| !other.is_in_body() || !other.required);
        let others = self.operation.arguments.iter().filter(|other| other.is_in_body() && other.name != *name);
        let lost = others.filter(|_| is_partial).find(|other| {
            let (before, after) = (&before[&other.name], &after[&other.name]);
            before.is_string() && after != before && is_empty(after)
        });
        let lost = lost.map(|other| {
            let summary = format!("an update without {} clears it", other.name);
            self.failure(summary, format!("{}: {}", other.name, before[&other.name]), after.to_string())
        });
        self.record(Check::Persistence, request, lost);
    }
}

fn is_empty(value: &Value) -> bool {
    value.is_null() || value == ""
}

/// Returns if a value occurs in another.
fn contains(whole: &Value, value: &Value) -> bool {
    match whole {
        Value::Object(members) => members.values().any(|member| contains(member, value)),
        Value::Array(items) => items.iter().any(|item| contains(item, value)),
        _ => whole == value || (whole.is_number() && whole.as_f64() == value.as_f64()),
    }
}

/// Returns a GET of the same path, without what belongs to a change.
pub fn as_read(request: &Request) -> Request {
    let headers = ["Content-Type", "If-Match", "Idempotency-Key"];
    let request = headers.iter().fold(request.clone(), |request, name| request.without_header(name));
    Request { method: "GET".to_owned(), query: Vec::new(), body: None, ..request }
}
