//! Checks of actions on a resource, such as `POST /orders/{order}/cancellations`: a later read shows their result, and what
//! changed a state can't be done twice.

use boxoffice_openapi::{EXTENSIBLE_ENUM, Operation, Schema};
use serde_json::Value;

use super::changed_values::difference;
use crate::http_client::Request;
use crate::model::Check;
use crate::operation_run::OperationRun;
use crate::resources::{is_item, parent};

/// Names of properties that contain the state of a resource.
const STATES: [&str; 2] = ["status", "state"];

impl OperationRun<'_> {
    /// Carries out an action, reads the resource before and after it, and repeats it.
    pub async fn check_action(&mut self) {
        let spec = self.operation.spec;
        let is_action = spec.method == "POST" && parent(&spec.path).is_some_and(is_item);
        if !is_action {
            return;
        }
        let Ok(pair) = self.valid_requests(None).await else { return };
        let request = pair.target.request;
        let Some(parent) = parent(&request.path) else { return };
        let Some(read) = self.read_request(parent, &request) else { return };
        let Some(before) = self.read(&read).await else { return };
        let Some(response) = self.send(&request).await.filter(|response| self.operation.is_success(response)) else { return };
        let result = response.json();
        let Some(after) = self.read(&read).await else { return };
        let is_read = result["self"].is_string() || self.is_resource_at(parent, response.status);
        if is_read && result["self"] == after["self"] {
            let stable = match difference(&result, &after) {
                Some(_) => self.without_counters(&read, &after).await,
                None => after.clone(),
            };
            let differs = difference(&result, &stable).map(|(path, result, after)| {
                let summary = format!("a read after the action differs from its result: {path}");
                self.failure(summary, result.to_string(), after.to_string())
            });
            self.record(Check::Action, &request, differs);
        }
        // Such as a copy of the resource.
        let creates_another = result["self"].is_string() && result["self"] != after["self"];
        if !creates_another && self.has_state(parent) {
            self.check_repeated_action(&request, &before, &after).await;
        }
    }

    /// Returns if the response is declared to be the resource at a path, by the same named schema.
    fn is_resource_at(&self, path: &str, status: u16) -> bool {
        let schema = |operation: &Operation, status| {
            let contents = operation.response_for(status).map_or(&[][..], |response| &response.contents);
            contents.iter().find_map(|content| content.schema.as_ref()?.raw.get("$ref").cloned())
        };
        let read = self.find_read_operation(path).and_then(|operation| schema(operation, 200));
        read.is_some() && read == schema(self.operation.spec, status)
    }

    /// Returns if the resource at a path has a state: a property with a list of values.
    fn has_state(&self, path: &str) -> bool {
        let response = self.find_read_operation(path).and_then(|operation| operation.response_for(200));
        let contents = response.map_or(&[][..], |response| &response.contents);
        let schemas = contents.iter().filter_map(|content| content.schema.as_deref());
        let mut properties = schemas.flat_map(Schema::properties);
        properties.any(|(name, property)| {
            STATES.contains(&name) && (property.get("enum").is_some() || property.get(EXTENSIBLE_ENUM).is_some())
        })
    }

    async fn check_repeated_action(&mut self, request: &Request, before: &Value, after: &Value) {
        let spec = self.operation.spec;
        if !spec.declares(409) {
            return;
        }
        // `4XX` doesn't say that the state forbids a second action.
        let is_exact = spec.statuses.contains(&409);
        let Some(response) = self.send(request).await else { return };
        self.check_response(request, &response);
        let has_other_state = has_other_state(before, after);
        let summary = match response.status {
            200..300 if has_other_state && is_exact => {
                Some(format!("the action can be repeated after it changed the state: {}", response.status))
            }
            409 if before == after && is_exact => {
                Some("the action can't be repeated, but a read shows no effect of it".to_owned())
            }
            200..300 | 409 => None,
            400..500 if has_other_state && is_exact => Some(format!("the repeated action is answered with {}", response.status)),
            _ => None,
        };
        let failure =
            summary.map(|summary| self.failure(summary, "409, and a read that shows the new state", response.describe()));
        self.record(Check::RepeatedAction, request, failure);
    }
}

/// Returns if the state of a resource changed.
fn has_other_state(before: &Value, after: &Value) -> bool {
    STATES.iter().any(|name| before[name].is_string() && before[name] != after[name])
}
