//! Checks that declared conflicts and limits are returned: taken names, resources in use, bodies that are too large.

use serde_json::json;

use crate::http_client::Request;
use crate::model::Check;
use crate::operation_run::{OperationRun, RequestPair};
use crate::server_kind::ServerKind;

/// Largest body to send.
const MAX_BODY: usize = 1 << 20;

impl OperationRun<'_> {
    /// Creates a resource twice. If its name must be unique, the second attempt is a conflict.
    pub async fn check_taken_name(&mut self) {
        let spec = self.operation.spec;
        let is_unique = self.comparison.target.has_unique_name(&spec.id);
        if !is_unique || !spec.declares(409) {
            return;
        }
        let Ok(pair) = self.valid_requests(None).await else { return };
        let request = pair.target.request;
        if self.send(&request).await.is_none_or(|response| !response.is_success()) {
            return;
        }
        let Some(response) = self.send(&request).await else { return };
        let failure = self.status_failure("a taken name", &response, response.status == 409, "409");
        self.record(Check::Conflict, &request, failure);
        self.check_response(&request, &response);
    }

    /// Removes a resource that others use. The request must succeed or be a declared conflict.
    pub async fn check_used_resource(&mut self) {
        let spec = self.operation.spec;
        if spec.method != "DELETE" || !spec.path.ends_with('}') || !spec.declares(409) {
            return;
        }
        let Some(request) = self.comparison.target.shared_request(spec) else { return };
        let Some(response) = self.send(&request).await else { return };
        let is_expected = response.is_success() || [403, 404, 409].contains(&response.status);
        let name = "the removal of a resource in use";
        let failure = self.status_failure(name, &response, is_expected, "a success status, or 409");
        self.record(Check::Conflict, &request, failure);
        self.check_response(&request, &response);
    }

    /// Sends a body above the limit.
    pub async fn check_large_body(&mut self, pair: &RequestPair) {
        let spec = self.operation.spec;
        let limit = spec.body_limit().filter(|limit| *limit < MAX_BODY && self.comparison.is_builtin());
        let (Some(limit), true, Some(_)) = (limit, spec.declares(413), &self.operation.json_body) else { return };
        let mut body = pair.target.request.json().unwrap_or_else(|| json!({}));
        if !body.is_object() || self.comparison.kind() != ServerKind::Real {
            return;
        }
        body["padding"] = json!("x".repeat(limit));
        let request: Request = pair.target.request.clone().with_json(&body);
        let Some(response) = self.send(&request).await else { return };
        let failure = self.status_failure("a body above the limit", &response, response.status == 413, "413");
        self.record(Check::TooLarge, &request, failure);
        self.check_response(&request, &response);
    }

    /// Sends bodies that are not unambiguous JSON: with a repeated key, and with broken UTF-8.
    pub async fn check_body_text(&mut self, pair: &RequestPair) {
        let spec = self.operation.spec;
        let (declares_400, is_exact) = (spec.declares(400), spec.statuses.contains(&400));
        let Some(body) = pair.target.request.json().filter(|body| body.is_object() && declares_400) else { return };
        let text = self.operation.arguments.iter().find(|argument| {
            argument.is_in_body() && body[&argument.name].is_string() && argument.schema.get("format").is_none()
        });
        let Some(argument) = text else { return };
        let name = &argument.name;
        let document = body.to_string();
        let mut broken = document.clone().into_bytes();
        let value = body[name].to_string();
        let Some(at) = document.find(&value).filter(|_| value.len() > 2) else { return };
        broken[at + 1] = 0xff;
        let repeated = document.replacen('{', &format!("{{\"{name}\":{value},"), 1).into_bytes();
        let mut bodies = vec![(broken, "a body with broken UTF-8")];
        // Only the built-in document says that a repeated key is malformed.
        if self.comparison.is_builtin() {
            bodies.push((repeated, "a body with a repeated key"));
        }
        for (body, name) in bodies {
            let mut request = pair.target.request.clone();
            request.body = Some(body);
            let Some(response) = self.send(&request).await else { continue };
            let is_expected = [400, 422].contains(&response.status) || !is_exact && (400..500).contains(&response.status);
            let failure = self.status_failure(name, &response, is_expected, "400");
            self.record(Check::BodyFormat, &request, failure);
        }
    }
}
