//! Identifiers and paths of the resources of a collection.

use std::collections::BTreeMap;

use boxoffice_openapi::{Contract, Operation, ParameterLocation, RouteError, segments, to_plain_string};
use http::header::LOCATION;
use percent_encoding::utf8_percent_encode;
use reqwest::Url;
use serde_json::Value;

use super::argument::PATH_ESCAPES;
use super::http_client::ReceivedResponse;

/// Names of properties that are identifiers, whatever the path of a resource calls them.
pub const IDENTIFIERS: [&str; 4] = ["id", "_id", "uuid", "number"];

/// The resources that POST requests created, and no DELETE deleted.
#[derive(Debug, Clone, Default)]
pub struct CreatedResources {
    /// Their paths, the oldest first.
    pub paths: Vec<String>,
    /// The number of responses that don't identify what they created, by the path in the document.
    pub unidentified: BTreeMap<String, usize>,
}

impl CreatedResources {
    /// Adds what a successful POST created.
    pub fn add(&mut self, contract: &Contract, base_url: &str, path: &str, response: &ReceivedResponse) {
        if let Some(created) = new_path(contract, base_url, path, response) {
            if !self.paths.contains(&created) {
                self.paths.push(created);
            }
            return;
        }
        let is_creation = response.status == 201 || item_operation(contract, path).is_some();
        if is_creation && created_path(contract, base_url, path, response).is_none() {
            let template = contract.find_ignoring_slashes("POST", path).map_or(path, |operation| &operation.path);
            *self.unidentified.entry(template.to_owned()).or_default() += 1;
        }
    }

    /// Removes what a successful DELETE deleted.
    pub fn remove(&mut self, path: &str) {
        self.paths.retain(|created| !segments(created).eq(segments(path)));
    }
}

/// Returns an operation of the items of a collection, such as `GET /pets/{petId}` for `/pets` or `/pets/{petId}/photos/{id}` for
/// `/pets/7/photos`.
pub fn item_operation<'c>(contract: &'c Contract, collection: &str) -> Option<&'c Operation> {
    let item: Vec<_> = segments(collection).chain(["item"]).collect();
    contract.operations().find(|operation| is_item(&operation.path) && operation.template.matches(&item))
}

/// Returns if a path of the document ends with a variable, apart from a slash.
pub fn is_item(path: &str) -> bool {
    path.trim_end_matches('/').ends_with('}')
}

/// Returns a path without its last segment, and without a slash at the end. `None` if there is no segment.
pub fn parent(path: &str) -> Option<&str> {
    path.trim_end_matches('/').rsplit_once('/').map(|(parent, _)| parent)
}

/// Returns a path of an operation, with a slash at the end if the document declares one, and without one otherwise. Some servers
/// redirect requests to the other form, or don't find it.
pub fn with_declared_slash(operation: &Operation, path: &str) -> String {
    let slash = if operation.path.len() > 1 && operation.path.ends_with('/') { "/" } else { "" };
    format!("{}{slash}", path.trim_end_matches('/'))
}

/// Returns the identifier in a resource of a collection: the property with the name of the variable in the path of an item, or else one
/// that is usually an identifier. `None` if there is none, or the path can't have it.
pub fn identifier(contract: &Contract, collection: &str, resource: &Value) -> Option<Value> {
    let variable = item_operation(contract, collection).and_then(|item| {
        let name = item.path.trim_end_matches('/').rsplit('/').next()?.strip_prefix('{')?.strip_suffix('}')?;
        item.parameters.iter().find(|each| each.location == ParameterLocation::Path && each.name == name)
    });
    let names = variable.map(|variable| variable.name.as_str()).into_iter().chain(IDENTIFIERS);
    let identifier = names.filter_map(|name| resource.get(name)).find(|value| value.is_string() || value.is_number())?;
    let is_allowed = variable.is_none_or(|variable| variable.accepts(&variable.serialize(identifier)));
    is_allowed.then(|| identifier.clone())
}

/// Returns the path of the resource that a response to a POST identifies by `Location`, its self link, or its identifier.
pub fn created_path(contract: &Contract, base_url: &str, path: &str, response: &ReceivedResponse) -> Option<String> {
    let body = response.json();
    let self_link = || body["self"].as_str().filter(|link| link.starts_with('/') || link.contains("://"));
    if let Some(link) = response.header(LOCATION).or_else(self_link) {
        return linked_path(contract, base_url, path, link);
    }
    let identifier = to_plain_string(&identifier(contract, path, &body)?);
    let created = format!("{}/{}", path.trim_end_matches('/'), utf8_percent_encode(&identifier, PATH_ESCAPES));
    Some(item_operation(contract, path).map_or(created.clone(), |item| with_declared_slash(item, &created)))
}

/// Returns the path of a link in the response to a request, without the prefix of the server. The host may be the server's public name.
/// A relative link that leads to no path of the document begins at the path of the request.
pub fn linked_path(contract: &Contract, base_url: &str, path: &str, link: &str) -> Option<String> {
    let base_url = Url::parse(base_url).ok()?;
    let prefix = base_url.path().trim_end_matches('/');
    let find = |link: &str| {
        let url = base_url.join(&format!("{prefix}{path}")).ok()?.join(link).ok()?;
        let path = url.path().strip_prefix(prefix).filter(|rest| rest.starts_with('/')).unwrap_or(url.path());
        Some(contract.without_prefix(path).to_owned())
    };
    let found = find(link)?;
    let is_unknown = matches!(contract.find_ignoring_slashes("GET", &found), Err(RouteError::NotFound));
    let is_relative = !link.starts_with('/') && !link.contains("://");
    if is_unknown && is_relative { find(&format!("{prefix}{}/{link}", path.trim_end_matches('/'))) } else { Some(found) }
}

/// Returns the path of the resource that a successful POST created. `None` for an action, which returns the resource that it changed.
pub fn new_path(contract: &Contract, base_url: &str, path: &str, response: &ReceivedResponse) -> Option<String> {
    let created = created_path(contract, base_url, path, response)?;
    let starts_with = |path: &str, start: &str| {
        let start: Vec<_> = segments(start).collect();
        segments(path).take(start.len()).eq(start)
    };
    let is_in_collection = parent(&created).is_some_and(|parent| segments(parent).eq(segments(path)));
    // An action such as `/users/{id}/block` returns the resource that it changed.
    let is_known = response.header(LOCATION).is_some() || item_operation(contract, path).is_some();
    ((response.status == 201 || is_in_collection && is_known) && !starts_with(path, &created)).then_some(created)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use bytes::Bytes;
    use http::HeaderMap;
    use serde_json::json;

    use super::*;

    #[test]
    fn action_creates_no_resource() {
        let post = json!({ "post": { "responses": { "200": {} } } });
        let document = json!({ "openapi": "3.0.3", "paths": {
            "/users": post, "/users/{id}": { "get": {} }, "/users/{id}/block": post,
        } });
        let contract = Contract::new(document).unwrap();
        let response = ReceivedResponse { status: 200, headers: HeaderMap::new(), body: Bytes::from(r#"{"id": "7"}"#) };
        let created = |path| new_path(&contract, "http://localhost", path, &response);
        assert_eq!(created("/users").as_deref(), Some("/users/7"));
        assert_eq!(created("/users/7/block"), None);
    }
}
