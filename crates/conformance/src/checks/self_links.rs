//! Checks of links: `self` and `Location` lead to their resources, and identifiers match the patterns of the document.

use boxoffice_openapi::Operation;
use http::header::LOCATION;
use percent_encoding::percent_decode_str;
use serde_json::Value;

use super::persistence::is_example;
use crate::argument::{Argument, ArgumentLocation};
use crate::comparison::Comparison;
use crate::model::Check;
use crate::operation_run::{Exchange, OperationRun};
use crate::recorder::CheckFailure;
use crate::server_kind::ServerKind;

/// Number of `self` links to follow in a response.
const MAX_FOLLOWED_LINKS: usize = 4;

impl<'a> OperationRun<'a> {
    /// Checks all identifiers in a response, and follows `Location` and some `self` links. In other documents than the built-in one, a
    /// text elsewhere than on the server is not followed: `self` may also be a name, and the server's public address may be another.
    pub async fn check_self_links(&mut self, exchange: &Exchange) {
        let Exchange { request, response } = exchange;
        self.check_identifiers(exchange);
        let body = response.json();
        let comparison = self.comparison;
        let base_url = comparison.target.client.base_url.as_str();
        let is_here = |uri: &&str| comparison.is_builtin() || uri.starts_with('/') || uri.starts_with(base_url);
        if let Some(uri) = body["self"].as_str().filter(is_here).filter(|_| request.method == "GET") {
            // A path without an identifier at its end is an alias, such as `/sessions/active`.
            let is_item = |path: &str| path.ends_with('}');
            let leads_to_item = self.find_read_operation(uri).is_some_and(|operation| operation.path.contains('{'));
            let is_other = leads_to_item && is_item(&self.operation.spec.path) && !is_same_resource(uri, &request.path);
            let summary = "the self link of the requested resource names another resource";
            let failure = is_other.then(|| self.failure(summary, &request.path, uri));
            self.record(Check::SelfLink, request, failure);
        }
        let own = own_links(&body);
        for uri in self_links(&body).into_iter().filter(is_here).take(MAX_FOLLOWED_LINKS) {
            self.follow(exchange, uri, "a self link", own.contains(&uri) || self.comparison.target.client.has_created(uri)).await;
        }
        // A stateless mock generates a URI if the document has no example.
        let is_generated = !comparison.is_builtin() && comparison.kind() == ServerKind::StatelessMock;
        let is_creation = response.status == 201 && !is_generated;
        // A document without an operation that reads the resource says nothing about its URI.
        let is_readable = |uri: &&str| comparison.is_builtin() || self.reads_items() || self.find_read_operation(uri).is_some();
        if let Some(location) = response.header(LOCATION).filter(is_here).filter(is_readable).filter(|_| is_creation) {
            self.follow(exchange, location, "Location", true).await;
        }
    }

    /// Checks that the identifier at the end of each `self` link matches the schema of the path's variable.
    pub fn check_identifiers(&mut self, exchange: &Exchange) {
        let body = exchange.response.json();
        for uri in self_links(&body) {
            let Some(spec) = self.find_read_operation(uri) else { continue };
            let Some(operation) = self.operations.iter().find(|operation| operation.spec.id == spec.id) else { continue };
            let segments = spec.path.split('/').zip(self.document_path(uri).split('/'));
            let invalid = segments.filter_map(|(template, text)| {
                let name = template.strip_prefix('{')?.strip_suffix('}')?;
                let is_variable = |argument: &&Argument| argument.location == ArgumentLocation::Path && argument.name == name;
                let argument = operation.arguments.iter().find(is_variable)?;
                (!argument.allows(&percent_decode_str(text).decode_utf8_lossy())).then_some(argument)
            });
            let failure = invalid.last().map(|argument| CheckFailure {
                pointer: argument.pointer.clone(),
                summary: format!("the identifier in a self link is not valid for {}", argument.name),
                expected: argument.schema.to_string(),
                actual: uri.to_owned(),
            });
            self.record(Check::Identifier, &exchange.request, failure);
        }
    }

    /// Reads the resource at a URI, with the key of the exchange or, if its scope is too low, with the comparison's key.
    ///
    /// A resource inside of another one may have been removed since, unless this comparison created it: `is_present`.
    async fn follow(&mut self, exchange: &Exchange, uri: &str, name: &str, is_present: bool) {
        let Some(operation) = self.find_read_operation(uri) else {
            let summary = format!("{name} leads to no operation of the document");
            let failure = self.failure(summary, "the URI of an operation that reads the resource", uri);
            return self.record(Check::SelfLink, &exchange.request, Some(failure));
        };
        let path = self.document_path(uri).to_owned();
        let (location, query) = path.split_once('?').unwrap_or((&path, ""));
        let Some(mut request) = self.read_request(location, &exchange.request) else { return };
        let query: Vec<_> = form_urlencoded::parse(query.as_bytes()).into_owned().collect();
        request.query.retain(|(name, _)| !query.iter().any(|(other, _)| other == name));
        request.query.extend(query);
        let Some(response) = self.send_as_owner(&request).await else { return };
        let body = response.json();
        let is_requested = body["self"].as_str().is_none_or(|found| is_same_resource(found, &path));
        let summary = match response.status {
            // A stateless mock returns its example for every identifier.
            200 if is_requested || is_example(operation, &body) => None,
            200 => Some(format!("{name} leads to another resource")),
            404 | 410 if !is_present => None,
            400..500 if self.has_guessed_parameter(operation, &exchange.request) => None,
            status => Some(format!("{name} is answered with {status}")),
        };
        let failure = summary
            .filter(|_| response.status < 500)
            .map(|summary| self.failure(summary, format!("200 with the self link {path}"), response.describe()));
        self.record(Check::SelfLink, &request, failure);
    }

    /// Returns whether the document has an operation that reads the items of the operation's collection.
    fn reads_items(&self) -> bool {
        let collection = self.operation.spec.path.trim_end_matches('/');
        let is_item = |path: &str| path.strip_prefix(collection).is_some_and(|rest| rest.starts_with("/{"));
        self.comparison.contract.operations().any(|operation| operation.method == "GET" && is_item(&operation.path))
    }

    /// Returns the operation that reads the resource at a URI.
    pub fn find_read_operation(&self, uri: &str) -> Option<&'a Operation> {
        let comparison: &'a Comparison = self.comparison;
        let path = self.document_path(uri).split('?').next().unwrap_or_default();
        comparison.contract.find_ignoring_slashes("GET", path).ok()
    }

    /// Returns the path of a URI without the address and the prefix of the server.
    pub fn document_path<'u>(&self, uri: &'u str) -> &'u str {
        let path = uri.strip_prefix(self.comparison.target.client.base_url.as_str()).unwrap_or(uri);
        self.comparison.contract.without_prefix(path)
    }
}

/// Returns if two paths are the same resource. One may be the short form of the other: `/sections/1` of `/events/2/sections/1`.
fn is_same_resource(one: &str, other: &str) -> bool {
    let [one, other] = [one, other].map(|path| percent_decode_str(path).decode_utf8_lossy());
    let (long, short) = if one.len() >= other.len() { (one, other) } else { (other, one) };
    short.starts_with('/') && long.ends_with(short.as_ref())
}

/// Returns the `self` links of the resource in a body, or of the entries of a list.
fn own_links(body: &Value) -> Vec<&str> {
    let entries = body.as_array().or_else(|| body["entries"].as_array());
    let resources = entries.into_iter().flatten().chain([body]);
    resources.filter_map(|resource| resource["self"].as_str()).collect()
}

/// Returns the distinct `self` links in a body, outer ones first.
fn self_links(body: &Value) -> Vec<&str> {
    fn collect<'a>(value: &'a Value, links: &mut Vec<&'a str>) {
        match value {
            Value::Object(object) => {
                let link = object.get("self").and_then(Value::as_str);
                links.extend(link.filter(|link| !links.contains(link)));
                object.values().for_each(|value| collect(value, links));
            }
            Value::Array(items) => items.iter().for_each(|item| collect(item, links)),
            _ => {}
        }
    }
    let mut links = Vec::new();
    collect(body, &mut links);
    links
}
