//! The locations in a document that a comparison must check.

use std::collections::BTreeSet;

use serde_json::Value;

/// The kind of node at a site.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    Paths,
    PathItem,
    Operation,
    Parameter,
    RequestBody,
    Response,
    Header,
    Schema,
}

/// The part of an operation that a site belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Context {
    Operation,
    Parameter,
    RequestBody,
    Success,
    Error,
}

pub struct Site {
    pub kind: Kind,
    pub context: Context,
    /// The first operation that uses it, such as `get /orders`.
    pub operation: String,
    pub pointer: String,
    /// True if the site is in a wrapper (`allOf` with one schema), whose own keywords hide the site's.
    pub wrapped: bool,
}

/// Returns all sites of a document in order. Shared components appear at their first use.
pub fn of(document: &Value) -> Vec<Site> {
    let mut walk = Walk { document, operation: "paths".to_owned(), seen: BTreeSet::new(), sites: Vec::new() };
    walk.site(Kind::Paths, Context::Operation, "/paths", false);
    for (path, item) in members(document, "/paths") {
        let item_at = child("/paths", path);
        walk.operation.clone_from(path);
        walk.site(Kind::PathItem, Context::Operation, &item_at, false);
        for (method, _) in item.as_object().into_iter().flatten().filter(|(key, _)| is_method(key)) {
            walk.operation = format!("{method} {path}");
            walk.operation(&item_at, method);
        }
    }
    walk.sites
}

/// Returns whether a key of a path item is a method.
pub fn is_method(key: &str) -> bool {
    ["get", "put", "post", "delete", "patch"].contains(&key)
}

struct Walk<'a> {
    document: &'a Value,
    operation: String,
    seen: BTreeSet<(Context, String)>,
    sites: Vec<Site>,
}

impl Walk<'_> {
    fn operation(&mut self, item: &str, method: &str) {
        let operation = child(item, method);
        self.site(Kind::Operation, Context::Operation, &operation, false);
        for list in [child(item, "parameters"), child(&operation, "parameters")] {
            for number in 0..self.node(&list).as_array().map_or(0, Vec::len) {
                self.parameter(&child(&list, &number.to_string()));
            }
        }
        let body = child(&operation, "requestBody");
        if !self.node(&body).is_null() {
            let body = self.resolved(&body);
            self.site(Kind::RequestBody, Context::RequestBody, &body, false);
            self.content(&body, Context::RequestBody);
        }
        for status in self.keys(&child(&operation, "responses")) {
            self.response(&child(&child(&operation, "responses"), &status), &status);
        }
    }

    fn parameter(&mut self, pointer: &str) {
        let pointer = self.resolved(pointer);
        self.site(Kind::Parameter, Context::Parameter, &pointer, false);
        self.schema(&child(&pointer, "schema"), Context::Parameter, false);
    }

    fn response(&mut self, pointer: &str, status: &str) {
        let context = if status.starts_with(['4', '5']) { Context::Error } else { Context::Success };
        let pointer = self.resolved(pointer);
        self.site(Kind::Response, context, &pointer, false);
        self.content(&pointer, context);
        for name in self.keys(&child(&pointer, "headers")) {
            let header = self.resolved(&child(&child(&pointer, "headers"), &name));
            self.site(Kind::Header, context, &header, false);
            self.schema(&child(&header, "schema"), context, false);
        }
    }

    /// Bodies of other media types are raw; their schemas are not compared.
    fn content(&mut self, body: &str, context: Context) {
        if !self.is_raw(body) {
            for media_type in self.keys(&child(body, "content")) {
                self.schema(&child(&child(&child(body, "content"), &media_type), "schema"), context, false);
            }
        }
    }

    fn is_raw(&self, body: &str) -> bool {
        let content = &self.node(body)["content"];
        content.is_object() && content.get("application/json").is_none()
    }

    fn schema(&mut self, pointer: &str, context: Context, wrapped: bool) {
        let pointer = self.resolved(pointer);
        if !self.node(&pointer).is_object() || !self.site(Kind::Schema, context, &pointer, wrapped) {
            return;
        }
        for name in self.keys(&child(&pointer, "properties")) {
            self.schema(&child(&child(&pointer, "properties"), &name), context, false);
        }
        self.schema(&child(&pointer, "items"), context, false);
        self.schema(&child(&pointer, "additionalProperties"), context, false);
        for keyword in ["allOf", "oneOf", "anyOf"] {
            let arms = child(&pointer, keyword);
            for number in 0..self.node(&arms).as_array().map_or(0, Vec::len) {
                self.schema(&child(&arms, &number.to_string()), context, keyword == "allOf");
            }
        }
    }

    /// Adds a site. Returns `false` if it is known in that context.
    fn site(&mut self, kind: Kind, context: Context, pointer: &str, wrapped: bool) -> bool {
        let new = self.seen.insert((context, pointer.to_owned()));
        if new {
            let operation = self.operation.clone();
            self.sites.push(Site { kind, context, operation, pointer: pointer.to_owned(), wrapped });
        }
        new
    }

    fn resolved(&self, pointer: &str) -> String {
        let mut pointer = pointer.to_owned();
        while let Some(reference) = self.node(&pointer)["$ref"].as_str() {
            pointer = reference.trim_start_matches('#').to_owned();
        }
        pointer
    }

    fn node(&self, pointer: &str) -> &Value {
        self.document.pointer(pointer).unwrap_or(&Value::Null)
    }

    fn keys(&self, pointer: &str) -> Vec<String> {
        self.node(pointer).as_object().into_iter().flatten().map(|(key, _)| key.clone()).collect()
    }
}

fn members<'a>(document: &'a Value, pointer: &str) -> impl Iterator<Item = (&'a String, &'a Value)> {
    document.pointer(pointer).and_then(Value::as_object).into_iter().flatten()
}

fn child(pointer: &str, key: &str) -> String {
    format!("{pointer}/{}", key.replace('~', "~0").replace('/', "~1"))
}
