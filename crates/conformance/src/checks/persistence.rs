//! Checks that changes are persistent: sent properties are read back, and deleted resources are gone.

use boxoffice_openapi::{Operation, segments};
use http::header::LOCATION;
use serde_json::Value;

use super::changed_values::is_same_value;
use crate::argument::Argument;
use crate::http_client::Request;
use crate::model::Check;
use crate::operation_run::{Exchange, OperationRun};
use crate::resources::IDENTIFIERS;

/// Operations that end a resource, which can still be read afterwards.
const ENDING_OPERATIONS: [&str; 2] = ["account_session_delete", "transfer_delete"];

impl OperationRun<'_> {
    /// Reads a resource after its creation, change or deletion.
    ///
    /// Applies to the built-in document alone, whose resources are read at their own URIs. The examples of a stateless mock are
    /// not compared with the request.
    pub async fn check_persistence(&mut self, exchange: &Exchange) {
        let (method, status) = (exchange.request.method.as_str(), exchange.response.status);
        let path = match (method, status) {
            ("POST", 201) => exchange.response.header(LOCATION),
            ("PUT", 200) | ("DELETE", 204) => Some(exchange.request.path.as_str()),
            _ => None,
        };
        let comparison = self.comparison;
        let Some((path, read_operation)) =
            path.and_then(|path| Some((path, comparison.contract.find_ignoring_slashes("GET", path).ok()?)))
        else {
            return;
        };
        // A DELETE of a collection or an alias, such as `/sessions/active`, doesn't remove the path.
        if !comparison.is_builtin() || (method == "DELETE" && !read_operation.path.ends_with('}')) {
            return;
        }
        let Some(request) = self.read_request(path, &exchange.request) else { return };
        let Some(response) = self.send(&request).await else { return };
        let body = response.json();
        let violation = match response.status {
            200 if is_example(read_operation, &body) || ENDING_OPERATIONS.contains(&self.operation.spec.id.as_str()) => None,
            200 if method == "DELETE" => Some(("the deleted resource can still be read".to_owned(), "404".to_owned())),
            200 => self.compared_properties(path, &exchange.request, &body).into_iter().find_map(Result::err),
            _ => None,
        };
        let failure = violation.map(|(summary, expected)| self.failure(summary, expected, response.describe()));
        self.record(Check::Persistence, &request, failure);
    }

    /// Records whether a resource, which was read after a request, has the properties that were sent. Records nothing if none of them
    /// can be compared.
    pub fn record_changed_property(&mut self, path: &str, request: &Request, read: &Value) {
        let compared = self.compared_properties(path, request, read);
        if compared.is_empty() {
            return;
        }
        let changed = compared.into_iter().find_map(Result::err);
        let failure = changed.map(|(summary, expected)| self.failure(summary, expected, read.to_string()));
        self.record(Check::Persistence, request, failure);
    }

    /// Compares the sent properties with the ones that were read. Returns an item for each that can be compared: summary and expected
    /// value if it differs, or is lost although the resource at the path is declared to have it.
    ///
    /// A property with a format may have another value, because the server may return another representation, such as the URL of an
    /// image, or assign it, such as a version; [`is_kept_in_format`] compares the others. The items of arrays are skipped, and added
    /// members of objects. A sent URI may be returned as the identifier at its end.
    fn compared_properties(&self, path: &str, request: &Request, read: &Value) -> Vec<Result<(), (String, String)>> {
        let Some(sent) = request.json() else { return Vec::new() };
        let is_shown = |argument: &&Argument| argument.is_in_body() && argument.schema["writeOnly"] != true;
        let compare = |argument: &Argument| {
            let (name, sent) = (&argument.name, &sent[&argument.name]);
            let is_readable = || {
                let mut complete = read.clone();
                if let Some(object) = complete.as_object_mut() {
                    object.insert(name.clone(), sent.clone());
                }
                self.is_readable(path, name, &complete)
            };
            let is_kept = match (sent, &read[name]) {
                (Value::String(_) | Value::Bool(_) | Value::Number(_), Value::Null) => is_readable().then_some(false)?,
                (Value::Array(sent), Value::Null) => (!sent.is_empty() && is_readable()).then_some(false)?,
                (Value::Array(sent), Value::Array(read)) => sent.is_empty() || !read.is_empty(),
                // The server may assign the identifier of the resource.
                (_, read) if argument.schema["format"] == "uuid" && self.is_identifier(path, name, read) => return None,
                (sent, read) if argument.schema.get("format").is_some() => {
                    is_kept_in_format(argument.schema["format"].as_str()?, sent, read)?
                }
                (Value::String(sent), Value::String(read)) => sent == read || sent.ends_with(&format!("/{read}")),
                (Value::Bool(sent), Value::Bool(read)) => sent == read,
                (Value::Number(sent), Value::Number(read)) => sent.as_f64() == read.as_f64(),
                (sent @ Value::Object(_), read @ Value::Object(_)) => is_same_value(sent, read),
                _ => return None,
            };
            let difference = || (format!("{name} differs from the value that was sent"), format!("{name}: {sent}"));
            Some(if is_kept { Ok(()) } else { Err(difference()) })
        };
        self.operation.arguments.iter().filter(is_shown).filter_map(compare).collect()
    }

    /// Returns if a property that was read identifies the resource at a path, or one that contains it.
    fn is_identifier(&self, path: &str, name: &str, read: &Value) -> bool {
        let is_variable = |operation: &Operation| operation.path.contains(&format!("{{{name}}}"));
        let is_in_path = |text: &str| segments(path).any(|segment| segment.eq_ignore_ascii_case(text));
        IDENTIFIERS.contains(&name)
            || self.find_read_operation(path).is_some_and(is_variable)
            || read.as_str().is_some_and(is_in_path)
    }

    /// Returns if the document declares that a resource at a path is read with a property. Of alternatives (`oneOf`, `anyOf`), the
    /// resource decides which apply.
    pub fn is_readable(&self, path: &str, name: &str, resource: &Value) -> bool {
        let response = self.find_read_operation(path).and_then(|operation| operation.response_for(200));
        let contents = response.into_iter().flat_map(|response| &response.contents);
        contents.filter_map(|content| content.schema.as_deref()).any(|schema| {
            let parts = schema.parts_for(resource);
            let mut declared = parts.iter().filter_map(|(_, part)| part["properties"].get(name));
            declared.any(|property| property["writeOnly"] != true)
        })
    }
}

/// Returns if a value of a format is read as it was sent. `None` if the format may have other representations of the same value.
fn is_kept_in_format(format: &str, sent: &Value, read: &Value) -> Option<bool> {
    match (format, sent, read) {
        ("email" | "uuid", Value::String(sent), Value::String(read)) => {
            let (sent, read) = (sent.to_lowercase(), read.to_lowercase());
            // A server may return the URI of what a UUID identifies.
            Some(sent == read || format == "uuid" && (read.ends_with(&format!("/{sent}")) || read.ends_with(&format!(":{sent}"))))
        }
        // A server may add a time.
        ("date", Value::String(sent), Value::String(read)) => Some(read.starts_with(sent.as_str())),
        _ => None,
    }
}

/// Returns if a body equals an example of the operation's responses.
pub fn is_example(operation: &Operation, body: &Value) -> bool {
    let contents = operation.responses.iter().flat_map(|response| &response.contents);
    contents.flat_map(|content| content.examples.values()).any(|example| example == body)
}
