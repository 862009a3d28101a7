//! Identifiers of resources of other documents: of one that was created, or else of one that a list contains.

use std::collections::HashMap;

use anyhow::ensure;
use boxoffice_openapi::{Contract, Operation};
use parking_lot::Mutex;
use percent_encoding::percent_decode_str;
use serde_json::Value;

use super::checks::list_reader::listed_entries;
use super::http_client::{ReceivedResponse, Request};
use super::operation_under_test::{ArgumentLocation, OperationUnderTest};
use super::resources::{identifier, item_operation, new_path, with_declared_slash};
use super::target::Target;

/// Identifiers that a server returned.
#[derive(Debug, Default)]
pub struct Identifiers {
    /// By path of a collection: an identifier for requests that change nothing.
    shared: Mutex<HashMap<String, Value>>,
}

impl Identifiers {
    /// Replaces the identifiers in the path of a request by those of resources that exist. Identifiers of which the server shows
    /// none stay.
    ///
    /// A request that changes a resource gets one of its own, which was created for it. A mock has no data to protect.
    ///
    /// # Errors
    /// Fails if the server creates no such resource, so that the request would change one of other clients.
    pub async fn insert(
        &self,
        target: &Target,
        contract: &Contract,
        seed: u64,
        operation: &OperationUnderTest<'_>,
        request: Request,
        is_mock: bool,
    ) -> anyhow::Result<Request> {
        let spec = operation.spec;
        let is_change = spec.method != "GET";
        // A POST to a collection adds a resource to the one that it belongs to, and changes none.
        let is_addition = spec.method == "POST" && item_operation(contract, &request.path).is_some();
        let may_be_listed = is_mock || is_addition || !is_change;
        let mut request = request;
        let parts: Vec<&str> = operation.spec.path.split('/').collect();
        let last_variable = parts.iter().rposition(|part| part.contains('{'));
        for (index, part) in parts.iter().enumerate().filter(|(_, part)| part.contains('{')) {
            let is_own = is_change && last_variable == Some(index);
            let name = part.strip_prefix('{').and_then(|part| part.strip_suffix('}'));
            let is_variable = |argument: &&super::operation_under_test::Argument| {
                argument.location == ArgumentLocation::Path && Some(argument.name.as_str()) == name
            };
            let mut found = None;
            if let Some(argument) = operation.arguments.iter().find(is_variable) {
                let collection = request.path.split('/').take(index).collect::<Vec<_>>().join("/");
                found = self.identifier(target, contract, seed, &collection, is_own, !is_own || may_be_listed).await;
                found = found.filter(|id| argument.is_valid(id) || id.as_str().is_some_and(|text| argument.allows(text)));
                if let Some(found) = &found {
                    request = argument.set(&request, spec, Some(found));
                }
            }
            let collection = parts[..index].join("/");
            ensure!(!is_own || may_be_listed || found.is_some(), "POST {collection} created no resource of its own");
        }
        Ok(request)
    }

    async fn identifier(
        &self,
        target: &Target,
        contract: &Contract,
        seed: u64,
        collection: &str,
        is_own: bool,
        may_be_listed: bool,
    ) -> Option<Value> {
        let known = self.shared.lock().get(collection).cloned();
        if let Some(known) = known.filter(|_| !is_own) {
            return Some(known);
        }
        let mut found = create(target, contract, seed, collection).await;
        if found.is_none() && may_be_listed {
            found = first_listed(target, contract, seed, collection).await;
        }
        if let Some(found) = found.as_ref().filter(|_| !is_own) {
            self.shared.lock().insert(collection.to_owned(), found.clone());
        }
        found
    }
}

/// Creates a resource in a collection, and returns its identifier.
async fn create(target: &Target, contract: &Contract, seed: u64, collection: &str) -> Option<Value> {
    let (spec, response) = send_example(target, contract, seed, "POST", collection).await?;
    let path = new_path(contract, &target.client.base_url, &with_declared_slash(spec, collection), &response)?;
    let last = percent_decode_str(path.trim_end_matches('/').rsplit('/').next()?).decode_utf8_lossy().into_owned();
    Some(last.into())
}

/// Returns the identifier of the first entry of a list.
async fn first_listed(target: &Target, contract: &Contract, seed: u64, collection: &str) -> Option<Value> {
    let (spec, response) = send_example(target, contract, seed, "GET", collection).await?;
    let body = response.json();
    let first = listed_entries(spec, &body)?.first()?;
    let from_link = || first["self"].as_str().and_then(|uri| uri.trim_end_matches('/').rsplit('/').next()).map(Value::from);
    identifier(contract, collection, first).or_else(from_link)
}

/// Sends the example of an operation to a collection. Returns the operation and its response; `None` if it has not succeeded.
async fn send_example<'c>(
    target: &Target,
    contract: &'c Contract,
    seed: u64,
    method: &str,
    collection: &str,
) -> Option<(&'c Operation, ReceivedResponse)> {
    let spec = contract.find_ignoring_slashes(method, collection).ok()?;
    let operation = OperationUnderTest::new(contract, spec, seed);
    let mut request = operation.example_request(contract, &target.key, None, seed).ok()?;
    request.path = with_declared_slash(spec, collection);
    let response = target.client.send_with_retries(&request).await.ok()?;
    response.is_success().then_some((spec, response))
}
