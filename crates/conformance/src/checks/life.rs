//! Checks of the life of a resource: it is created, read, listed, and removed once.

use boxoffice_openapi::{Contract, Operation, Parameter, ParameterLocation, to_plain_string};
use serde_json::Value;

use super::changed_values::{difference, without_differences};
use super::list_reader::{is_paging, read_whole_list};
use crate::argument::{Argument, ArgumentLocation};
use crate::http_client::{ReceivedResponse, Request};
use crate::model::Check;
use crate::operation_run::OperationRun;
use crate::operation_under_test::first_tag;
use crate::resources::{created_path, identifier, is_item, parent};

impl OperationRun<'_> {
    /// Creates a resource, reads it, and finds it in its list.
    pub async fn check_creation(&mut self) {
        if self.operation.spec.method != "POST" {
            return;
        }
        let Ok(pair) = self.valid_requests(None).await else { return };
        let mut request = pair.target.request;
        let Some(mut response) = self.send(&request).await else { return };
        if self.is_conflict(&response) {
            let Ok(pair) = self.valid_requests(None).await else { return };
            request = pair.target.request;
            let Some(other) = self.send(&request).await else { return };
            response = other;
        }
        if response.status != 201 {
            return;
        }
        let created = response.json();
        let base_url = &self.comparison.target.client.base_url;
        let Some(path) = created_path(&self.comparison.contract, base_url, &request.path, &response) else { return };
        // A resource of another kind, such as the account that became an administrator, may be shown in another way there.
        let is_own = |operation: &Operation| is_item(&operation.path) && first_tag(operation) == first_tag(self.operation.spec);
        let Some(operation) = self.find_read_operation(&path).filter(|operation| is_own(operation)) else { return };
        let times = self.comparison.target.client.created_uris().iter().filter(|uri| **uri == path).count();
        let repeated = (times > 1)
            .then(|| self.failure("two creations have the same resource as result", "a new resource", response.describe()));
        self.record(Check::Created, &request, repeated);
        let Some(read) = self.read_request(&path, &request) else { return };
        let Some(after) = self.send_as_owner(&read).await else { return };
        if after.status != 200 {
            if (400..500).contains(&after.status) && self.has_guessed_parameter(operation, &request) {
                return;
            }
            let failure = self.status_failure("a created resource", &after, false, "200");
            return self.record(Check::Created, &read, failure);
        }
        let mut after = after.json();
        // A body of another media type is a finding of its own.
        let comparable = Some(&created).filter(|created| created.is_object());
        if comparable.and_then(|created| difference(created, &after)).is_some() {
            after = self.without_counters(&read, &after).await;
        }
        let differs = comparable.and_then(|created| difference(created, &after)).map(|(path, created, after)| {
            let summary = format!("a created resource differs from the response to its creation: {path}");
            self.failure(summary, created.to_string(), after.to_string())
        });
        self.record(Check::Created, &read, differs);
        if !self.comparison.is_builtin() {
            self.record_changed_property(&read.path, &request, &after);
        }
        self.check_listed(&request, operation, &after).await;
    }

    /// Returns if a read has a required parameter, such as a tenant, for which neither the document nor the request that created the
    /// resource has a value. A generated value may select other resources.
    pub fn has_guessed_parameter(&self, read: &Operation, creation: &Request) -> bool {
        let Some(read) = self.operations.iter().find(|operation| operation.spec.id == read.id) else { return false };
        let is_sent = |argument: &Argument| match argument.location {
            ArgumentLocation::Query => creation.query.iter().any(|(name, _)| *name == argument.name),
            ArgumentLocation::Header => creation.headers.iter().any(|(name, _)| argument.is_header(name)),
            _ => true,
        };
        read.arguments
            .iter()
            .any(|argument| argument.required && argument.valid_example(read.spec).is_none() && !is_sent(argument))
    }

    /// Checks that the list of a collection contains a resource as it is read, after the request that created it.
    async fn check_listed(&mut self, creation: &Request, read: &Operation, resource: &Value) {
        let Some(operation) = self.find_read_operation(&creation.path) else { return };
        if operation.path != self.operation.spec.path || first_tag(operation) != first_tag(self.operation.spec) {
            return;
        }
        let Some(list) = &self.read_request(&creation.path, creation) else { return };
        // Another required parameter may be a filter that the resource doesn't match.
        let is_selected = |(name, value): &(String, String)| {
            let is_declared = |operation: &Operation| operation.parameters.iter().any(|parameter| parameter.name == *name);
            let is_query = |parameter: &Parameter| parameter.location == ParameterLocation::Query && parameter.is_sent_as(name);
            !operation.parameters.iter().any(is_query)
                || is_declared(self.operation.spec)
                || is_declared(read)
                || is_paging(name)
                || to_plain_string(&resource[name]) == *value
        };
        if !list.query.iter().all(is_selected) {
            return;
        }
        let contract = &self.comparison.contract;
        if !is_same(contract, &list.path, resource, resource) {
            return;
        }
        let Some(entries) = read_whole_list(self, list).await else { return };
        let entry = entries.iter().find(|entry| is_same(contract, &list.path, entry, resource));
        let failure = match entry {
            None => Some(self.failure(
                "the list lacks a created resource",
                resource.to_string(),
                format!("{} entries without it", entries.len()),
            )),
            Some(entry) => difference(resource, entry).map(|(path, read, listed)| {
                self.failure(
                    format!("the list shows another value than the resource: {path}"),
                    read.to_string(),
                    listed.to_string(),
                )
            }),
        };
        self.record(Check::Listed, list, failure);
    }

    /// Removes a resource, reads it, looks for it in its list, and removes it again.
    pub async fn check_removal(&mut self) {
        let spec = self.operation.spec;
        if spec.method != "DELETE" {
            return;
        }
        let Ok(pair) = self.valid_requests(None).await else { return };
        let request = pair.target.request;
        let read = self.read_request(&request.path, &request);
        let is_item = is_item(&spec.path);
        let before = match &read {
            Some(read) => {
                self.send_as_owner(read).await.filter(|response| response.status == 200).map(|response| response.json())
            }
            None => None,
        };
        let Some(response) = self.send(&request).await.filter(|response| self.operation.is_success(response)) else { return };
        let before = before.as_ref().zip(read.as_ref());
        if let Some((before, read)) = before.filter(|(before, _)| !is_item && before["self"].is_string()) {
            // An alias, such as `/sessions/active`.
            let Some(after) = self.send(read).await else { return };
            let failure = (after.status == 200 && after.json()["self"] == before["self"])
                .then(|| self.failure("the removed resource can still be read", "404", after.describe()));
            return self.record(Check::Removed, read, failure);
        }
        let is_gone = match before.filter(|_| is_item) {
            Some((before, read)) => self.check_gone(read, before, response.status).await,
            None => false,
        };
        if !is_item || response.status != 204 {
            return;
        }
        let Some(again) = self.send(&request).await else { return };
        self.check_response(&request, &again);
        let is_refused = [404, 409, 410].contains(&again.status) || self.accepts_repeated_removal(&again);
        let failure = self.status_failure("the second removal of a resource", &again, is_refused, "404");
        self.record(Check::Removed, &request, failure);
        let (Some((before, _)), Some(parent)) = (before, parent(&request.path)) else { return };
        let Some(list) = self.read_request(parent, &request) else { return };
        // Some resources are only ended, and stay in the list.
        if again.status != 404 && !is_gone {
            return;
        }
        let Some(entries) = read_whole_list(self, &list).await else { return };
        let failure = entries
            .iter()
            .find(|entry| is_same(&self.comparison.contract, &list.path, entry, before))
            .map(|entry| self.failure("the list still contains a removed resource", "a list without it", entry.to_string()));
        self.record(Check::Removed, &list, failure);
    }

    /// Returns if a success is accepted for the removal of a resource that doesn't exist. DELETE is idempotent (RFC 9110, section
    /// 9.2.2), so the server of another document may send the same response again.
    pub fn accepts_repeated_removal(&mut self, response: &ReceivedResponse) -> bool {
        let spec = self.operation.spec;
        let is_accepted = spec.method == "DELETE" && response.is_success() && !self.comparison.is_builtin();
        if is_accepted && spec.statuses.contains(&404) {
            let (id, status) = (&spec.id, response.status);
            self.notes.insert(format!(
                "{id} returns {status} for a resource that doesn't exist, although it declares 404. It may: DELETE is idempotent."
            ));
        }
        is_accepted
    }

    /// Checks that a removed resource can't be read as before. Returns if it can't be read at all.
    async fn check_gone(&mut self, read: &Request, before: &Value, status: u16) -> bool {
        // Resources of the built-in document are checked after each removal. 202 means that the removal comes later.
        if self.comparison.is_builtin() || status == 202 {
            return false;
        }
        let Some(after) = self.send_as_owner(read).await else { return false };
        // A resource that is only ended may still be read, with another state.
        let is_read = after.status == 200 && {
            let (first, second) = (after.json(), self.read(read).await.unwrap_or_default());
            // A read may change properties, such as a counter of reads.
            let same = |resource: &Value| without_differences(resource, &first, &second);
            first == *before || second.is_object() && same(&first) == same(before)
        };
        let failure = is_read.then(|| self.failure("the removed resource can still be read", "404", after.describe()));
        self.record(Check::Removed, read, failure);
        [404, 410].contains(&after.status)
    }

    /// Sends a request that reads something with its own key or, if it is refused, with the comparison's key.
    pub async fn send_as_owner(&mut self, request: &Request) -> Option<ReceivedResponse> {
        let response = self.send(request).await?;
        if ![401, 403].contains(&response.status) {
            return Some(response);
        }
        let read = self.find_read_operation(&request.path)?;
        let operation = self.operations.iter().find(|operation| operation.spec.id == read.id)?;
        self.send(&operation.with_key(request, Some(&self.comparison.target.key))).await
    }
}

/// Returns if two representations are of the same resource of a collection.
fn is_same(contract: &Contract, collection: &str, one: &Value, other: &Value) -> bool {
    match (one["self"].as_str(), other["self"].as_str()) {
        (Some(one), Some(other)) => one == other || one.ends_with(other) || other.ends_with(one),
        _ => {
            let [one, other] = [one, other].map(|resource| identifier(contract, collection, resource));
            one.is_some() && one == other
        }
    }
}
