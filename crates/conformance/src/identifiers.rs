//! Identifiers of resources of other documents: of one that was created, or else of one that a list contains.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use boxoffice_openapi::Contract;
use percent_encoding::percent_decode_str;
use serde_json::Value;

use super::checks::list_reader::listed_entries;
use super::http_client::{HttpClient, Request};
use super::operation_under_test::{ArgumentLocation, OperationUnderTest};
use super::resources::{identifier, new_path, with_declared_slash};

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
    /// A request that changes a resource gets one of its own: `is_fresh`.
    pub async fn insert(
        &self,
        client: &HttpClient,
        contract: &Contract,
        key: &str,
        seed: u64,
        operation: &OperationUnderTest<'_>,
        request: Request,
    ) -> Request {
        let is_fresh = operation.spec.method != "GET";
        let mut request = request;
        let parts: Vec<&str> = operation.spec.path.split('/').collect();
        let last_variable = parts.iter().rposition(|part| part.starts_with('{'));
        for (index, part) in parts.iter().enumerate() {
            let Some(name) = part.strip_prefix('{').and_then(|part| part.strip_suffix('}')) else { continue };
            let is_variable = |argument: &&super::operation_under_test::Argument| {
                argument.location == ArgumentLocation::Path && argument.name == name
            };
            let Some(argument) = operation.arguments.iter().find(is_variable) else { continue };
            let collection = request.path.split('/').take(index).collect::<Vec<_>>().join("/");
            let is_own = is_fresh && last_variable == Some(index);
            let found = self.identifier(client, contract, key, seed, &collection, is_own).await;
            let found =
                found.filter(|found| argument.is_valid(found) || found.as_str().is_some_and(|text| argument.allows(text)));
            if let Some(found) = found {
                request = argument.set(&request, operation.spec, Some(&found));
            }
        }
        request
    }

    async fn identifier(
        &self,
        client: &HttpClient,
        contract: &Contract,
        key: &str,
        seed: u64,
        collection: &str,
        is_own: bool,
    ) -> Option<Value> {
        let known = self.shared.lock().unwrap_or_else(PoisonError::into_inner).get(collection).cloned();
        if let Some(known) = known.filter(|_| !is_own) {
            return Some(known);
        }
        let mut found = create(client, contract, key, seed, collection).await;
        if found.is_none() {
            found = first_listed(client, contract, key, seed, collection).await;
        }
        if let Some(found) = found.as_ref().filter(|_| !is_own) {
            self.shared.lock().unwrap_or_else(PoisonError::into_inner).insert(collection.to_owned(), found.clone());
        }
        found
    }
}

/// Creates a resource in a collection, and returns its identifier.
async fn create(client: &HttpClient, contract: &Contract, key: &str, seed: u64, collection: &str) -> Option<Value> {
    let spec = contract.find("POST", collection).ok()?;
    let operation = OperationUnderTest::new(contract, spec);
    let mut request = operation.example_request(contract, key, None, seed).ok()?;
    request.path = with_declared_slash(spec, collection);
    let response = client.send_with_retries(&request).await.ok().filter(|response| response.is_success())?;
    let path = new_path(contract, &client.base_url, &request.path, &response)?;
    let last = percent_decode_str(path.trim_end_matches('/').rsplit('/').next()?).decode_utf8_lossy().into_owned();
    Some(last.into())
}

/// Returns the identifier of the first entry of a list.
async fn first_listed(client: &HttpClient, contract: &Contract, key: &str, seed: u64, collection: &str) -> Option<Value> {
    let spec = contract.find("GET", collection).ok()?;
    let operation = OperationUnderTest::new(contract, spec);
    let mut request = operation.example_request(contract, key, None, seed).ok()?;
    request.path = with_declared_slash(spec, collection);
    let response = client.send_with_retries(&request).await.ok().filter(|response| response.is_success())?;
    let body = response.json();
    let first = listed_entries(spec, &body)?.first()?;
    let from_link = || first["self"].as_str().and_then(|uri| uri.trim_end_matches('/').rsplit('/').next()).map(Value::from);
    identifier(contract, collection, first).or_else(from_link)
}
