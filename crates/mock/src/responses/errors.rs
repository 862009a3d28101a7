//! Errors with the reason and the status of a rejection, in the shape that the document declares.

use boxoffice_openapi::response::{BodyContent, essence};
use dropshot::Body;
use http::Response;
use serde_json::Value;

use super::{RenderContext, SelectedResponse};

/// JSON pointers to an error's reason, the most specific first (in RFC 9457, `title` is only the kind of error).
const REASON_POINTERS: [&str; 9] = [
    "/detail",
    "/message",
    "/error/message",
    "/error_description",
    "/errors/0/message",
    "/detail/0/msg",
    "/description",
    "/error",
    "/title",
];

/// JSON pointers to an error's status.
const STATUS_POINTERS: [&str; 5] = ["/status", "/statusCode", "/status_code", "/error/status", "/error/code"];

impl SelectedResponse<'_> {
    /// Renders an error with a reason and the response's status. The reason replaces the first string at [`REASON_POINTERS`], or is
    /// added there, as far as the schema allows it.
    ///
    /// # Errors
    /// Returns an error if no data can be generated; the error contains the location in the document.
    pub fn render_error(&self, context: &RenderContext<'_>, reason: &str, seed: u64) -> anyhow::Result<Response<Body>> {
        let Some((content, _)) = self.content.filter(|(content, _)| content.is_json()) else {
            return self.render(context, false, || seed);
        };
        let mut value = self.body_value(context, seed)?;
        let violations = |value: &Value| content.schema.as_deref().map_or(0, |schema| schema.violations(value).len());
        self.correct_status(content, &mut value);
        let count = violations(&value);
        let is_string = |pointer: &str| value.pointer(pointer).is_some_and(Value::is_string);
        let (present, absent): (Vec<&str>, Vec<&str>) = REASON_POINTERS.iter().copied().partition(|pointer| is_string(pointer));
        let with_reason = present.into_iter().chain(absent).find_map(|pointer| {
            let candidate = with_value_at(&value, pointer, reason.into())?;
            let remaining = violations(&candidate);
            // The example itself may have undeclared properties, which count as violations.
            (remaining == 0 || is_string(pointer) && remaining <= count).then_some(candidate)
        });
        self.render_body(context, with_reason.as_ref().unwrap_or(&value), &[])
    }

    /// Replaces another status in an error by that of the response. Adds it to a problem (RFC 9457) if the schema allows it.
    pub(super) fn correct_status(&self, content: &BodyContent, value: &mut Value) {
        let violations = |value: &Value| content.schema.as_deref().map_or(0, |schema| schema.violations(value).len());
        let status = self.status.as_u16();
        let is_status = |value: &Value| value.as_u64().is_some_and(|status| (100..600).contains(&status));
        let wrong = STATUS_POINTERS.into_iter().find(|pointer| value.pointer(pointer).is_some_and(is_status));
        let is_problem = essence(&content.media_type).eq_ignore_ascii_case("application/problem+json");
        let Some(pointer) = wrong.or(is_problem.then_some("/status")) else { return };
        if let Some(corrected) =
            with_value_at(value, pointer, status.into()).filter(|corrected| violations(corrected) <= violations(value))
        {
            *value = corrected;
        }
    }
}

/// Returns a copy of a value with another value at a pointer; `None` if its parent is no object.
fn with_value_at(value: &Value, pointer: &str, new: Value) -> Option<Value> {
    let (parent, name) = pointer.rsplit_once('/')?;
    let mut copy = value.clone();
    copy.pointer_mut(parent)?.as_object_mut()?.insert(name.to_owned(), new);
    Some(copy)
}
