//! Identifiers of resources of other documents: of one that was created, or else of one that a list contains.

use std::collections::{HashMap, HashSet};

use anyhow::{bail, ensure};
use boxoffice_openapi::{Contract, Operation, segments, to_plain_string};
use parking_lot::Mutex;
use percent_encoding::percent_decode_str;
use serde_json::Value;

use super::argument::{Argument, ArgumentLocation};
use super::checks::list_reader::listed_entries;
use super::http_client::{ReceivedResponse, Request};
use super::operation_under_test::OperationUnderTest;
use super::resources::{IDENTIFIERS, identifier, is_item, item_operation, new_path, parent, with_declared_slash};
use super::target::Target;

/// Number of attempts to create a resource. The texts of the first one may be taken.
const CREATION_ATTEMPTS: usize = 3;

/// Identifiers that a server returned.
#[derive(Debug, Default)]
pub struct Identifiers {
    /// By path of a collection: an identifier for requests that change nothing.
    shared: Mutex<HashMap<String, Value>>,
    /// Held while a shared resource is created, so that concurrent operations don't create one each.
    creation: tokio::sync::Mutex<()>,
    /// The operationIds whose example was a conflict: a text of the body may have to be unique.
    conflicting: Mutex<HashSet<String>>,
}

impl Identifiers {
    /// Replaces the identifiers in the path of a request by those of resources that exist. Identifiers of which the server shows
    /// none stay.
    ///
    /// A request that changes a resource gets one of its own, which was created for it. A mock has no data to protect.
    ///
    /// Also returns if the resource is known to exist.
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
    ) -> anyhow::Result<(Request, bool)> {
        let spec = operation.spec;
        let is_change = spec.method != "GET";
        // A POST to a collection adds a resource to the one that it belongs to, and changes none.
        let is_addition = spec.method == "POST" && item_operation(contract, &request.path).is_some();
        let may_be_listed = is_mock || is_addition || !is_change;
        let mut request = request;
        let mut is_known = !may_be_absent(contract, spec);
        let parts: Vec<&str> = operation.spec.path.split('/').collect();
        let last_variable = parts.iter().rposition(|part| part.contains('{'));
        for (index, part) in parts.iter().enumerate().filter(|(_, part)| part.contains('{')) {
            let is_own = is_change && last_variable == Some(index);
            let name = part.strip_prefix('{').and_then(|part| part.strip_suffix('}'));
            let is_variable =
                |argument: &&Argument| argument.location == ArgumentLocation::Path && Some(argument.name.as_str()) == name;
            let (mut found, mut refusal) = (None, None);
            if let Some(argument) = operation.arguments.iter().find(is_variable) {
                let collection = request.path.split('/').take(index).collect::<Vec<_>>().join("/");
                let is_allowed = |id: &Value| argument.is_valid(id) || id.as_str().is_some_and(|text| argument.allows(text));
                (found, refusal) = self.identifier(target, contract, seed, &collection, is_own, !is_own || may_be_listed).await;
                found = found.filter(is_allowed);
                // An identifier of a collection elsewhere may be one here, too, but need not.
                let other = other_collection(contract, argument, spec).filter(|_| found.is_none() && !is_change);
                let named = match other {
                    Some(other) => self.identifier(target, contract, seed, other, false, true).await.0.filter(is_allowed),
                    None => None,
                };
                if let Some(found) = found.as_ref().or(named.as_ref()) {
                    request = argument.set(&request, spec, Some(found));
                }
            }
            let is_generated = |argument: &Argument| {
                argument.location == ArgumentLocation::Path
                    && argument.valid_example(spec).is_none()
                    && part.contains(&format!("{{{}}}", argument.name))
            };
            is_known &= found.is_some() || !operation.arguments.iter().any(is_generated);
            if is_own && !may_be_listed && found.is_none() {
                let collection = parts[..index].join("/");
                let status = refusal.map(|status| format!(": it was answered with {status}")).unwrap_or_default();
                let has_post = contract.find_ignoring_slashes("POST", &collection).is_ok();
                ensure!(has_post, "no operation creates a resource in {collection}");
                bail!("POST {collection} created no resource of its own{status}");
            }
        }
        let task = if is_known || is_change { None } else { target.client.started_task(contract, spec) };
        Ok((task.map_or(request.clone(), |path| Request { path, ..request }), is_known))
    }

    /// Notes that a valid request of an operation was a conflict.
    pub fn note_conflict(&self, operation: &Operation) {
        self.conflicting.lock().insert(operation.id.clone());
    }

    /// Returns a request with other texts in its body, if an earlier one of the operation was a conflict.
    pub fn avoid_conflict(&self, contract: &Contract, operation: &OperationUnderTest<'_>, request: Request) -> Request {
        let is_conflicting = self.conflicting.lock().contains(&operation.spec.id);
        if is_conflicting { operation.with_other_texts(&contract.document, &request) } else { request }
    }

    /// Returns the identifier of a resource, and the status of a refusal to create one.
    async fn identifier(
        &self,
        target: &Target,
        contract: &Contract,
        seed: u64,
        collection: &str,
        is_own: bool,
        may_be_listed: bool,
    ) -> (Option<Value>, Option<u16>) {
        let _creation = if is_own { None } else { Some(self.creation.lock().await) };
        let known = self.shared.lock().get(collection).cloned();
        if let Some(known) = known.filter(|_| !is_own) {
            return (Some(known), None);
        }
        let (mut found, refusal) = self.create(target, contract, seed, collection).await;
        if found.is_none() && is_own && refusal.is_some() {
            found = self.created_earlier(target, collection);
        }
        if found.is_none() && may_be_listed {
            found = first_listed(target, contract, seed, collection).await;
        }
        if let Some(found) = found.as_ref().filter(|_| !is_own) {
            self.shared.lock().insert(collection.to_owned(), found.clone());
        }
        (found, refusal)
    }

    /// Creates a resource in a collection. Returns its identifier, and the status of a refusal.
    async fn create(&self, target: &Target, contract: &Contract, seed: u64, collection: &str) -> (Option<Value>, Option<u16>) {
        let Ok(spec) = contract.find_ignoring_slashes("POST", collection) else { return (None, None) };
        let operation = OperationUnderTest::new(contract, spec, seed);
        let mut refusal = None;
        for _ in 0..CREATION_ATTEMPTS {
            let Some(request) = example_request(target, contract, &operation, seed, collection) else { break };
            let request = self.avoid_conflict(contract, &operation, request);
            let Ok(response) = target.client.send_with_retries(&request).await else { break };
            if response.is_success() {
                let path = new_path(contract, &target.client.base_url, &request.path, &response);
                return (path.as_deref().and_then(last_segment), None);
            }
            refusal = Some(response.status);
            if response.status != 409 {
                break;
            }
            self.note_conflict(spec);
        }
        (None, refusal)
    }

    /// Returns the identifier of the newest resource that the comparison created in a collection, except the shared one.
    fn created_earlier(&self, target: &Target, collection: &str) -> Option<Value> {
        let shared = self.shared.lock().get(collection).map(to_plain_string);
        let created = target.client.created().paths.into_iter().rev();
        let mut in_collection =
            created.filter(|path| parent(path).is_some_and(|parent| segments(parent).eq(segments(collection))));
        in_collection.find_map(|path| last_segment(&path).filter(|id| shared != Some(to_plain_string(id))))
    }
}

/// Returns the collection whose items have the same variable in their paths as an operation elsewhere, such as `/links` with
/// `/links/{code}` for `/{code}`. None if the variable has a name that all kinds of resources have.
fn other_collection<'c>(contract: &'c Contract, argument: &Argument, spec: &Operation) -> Option<&'c str> {
    if IDENTIFIERS.contains(&argument.name.as_str()) {
        return None;
    }
    let variable = format!("{{{}}}", argument.name);
    let collection = |other: &'c Operation| {
        let (collection, last) = other.path.trim_end_matches('/').rsplit_once('/')?;
        let is_it = last == variable && other.path != spec.path && !collection.is_empty() && !collection.contains('{');
        is_it.then_some(collection)
    };
    contract.operations().find_map(collection)
}

/// Returns if an operation is of a part of a resource that other operations may create or remove, such as the cover of a book.
fn may_be_absent(contract: &Contract, spec: &Operation) -> bool {
    let is_part = spec.path.contains('{') && !is_item(&spec.path) && item_operation(contract, &spec.path).is_none();
    let is_changed = |other: &Operation| other.path == spec.path && ["PUT", "POST", "DELETE"].contains(&other.method.as_str());
    is_part && !["PUT", "POST"].contains(&spec.method.as_str()) && contract.operations().any(is_changed)
}

/// Returns the decoded last segment of a path.
fn last_segment(path: &str) -> Option<Value> {
    let last = path.trim_end_matches('/').rsplit('/').next()?;
    Some(percent_decode_str(last).decode_utf8_lossy().into_owned().into())
}

/// Returns the identifier of the first entry of a list.
async fn first_listed(target: &Target, contract: &Contract, seed: u64, collection: &str) -> Option<Value> {
    let spec = contract.find_ignoring_slashes("GET", collection).ok()?;
    let operation = OperationUnderTest::new(contract, spec, seed);
    let request = example_request(target, contract, &operation, seed, collection)?;
    let response = target.client.send_with_retries(&request).await.ok().filter(ReceivedResponse::is_success)?;
    let body = response.json();
    let first = listed_entries(spec, &body)?.first()?;
    let from_link = || first["self"].as_str().and_then(|uri| uri.trim_end_matches('/').rsplit('/').next()).map(Value::from);
    identifier(contract, collection, first).or_else(from_link)
}

/// Builds the example request of an operation for a collection.
fn example_request(
    target: &Target,
    contract: &Contract,
    operation: &OperationUnderTest<'_>,
    seed: u64,
    collection: &str,
) -> Option<Request> {
    let request = operation.example_request(contract, &target.key, None, seed).ok()?;
    Some(Request { path: with_declared_slash(operation.spec, collection), ..request })
}
