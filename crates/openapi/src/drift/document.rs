//! Access to an OpenAPI document for the comparison: operations, keywords, and references.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::{EXTENSIBLE_ENUM, MAX_REFERENCE_CHAIN, METHODS, UNSUPPORTED_METHODS, resolver, server_urls};

/// Keywords for human readers.
pub(crate) const PROSE: [&str; 6] = ["summary", "description", "title", "example", "examples", "externalDocs"];

/// Extension that names the optional properties of a request that must not be blank.
pub(crate) const NOT_BLANK: &str = "x-not-blank";

/// Extensions of an operation that the server follows: who may call it, and the protection of secrets.
pub(super) const POLICIES: [&str; 3] = ["x-scopes", "x-guessing", "x-secret"];

/// Keywords with the default `false`.
const FLAGS: [&str; 10] = [
    "required",
    "nullable",
    "deprecated",
    "readOnly",
    "writeOnly",
    "uniqueItems",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "allowReserved",
    "allowEmptyValue",
];

/// The keywords of a node, with their values.
pub(crate) type Keywords<'a> = BTreeMap<&'a str, &'a Value>;

/// One of the two OpenAPI documents.
#[derive(Clone, Copy)]
pub(crate) struct Document<'a>(pub(crate) &'a Value);

/// An operation of a document.
pub(crate) struct DocumentOperation<'a> {
    method: &'a str,
    path: &'a str,
    /// The path item, with the parameters and servers that all its operations share.
    item: &'a Value,
    pub(crate) node: &'a Value,
}

impl<'a> Document<'a> {
    /// Returns all operations, in the document's order.
    pub(crate) fn operations(self) -> Vec<DocumentOperation<'a>> {
        self.operations_of(&self.0["paths"])
    }

    /// Returns the operations of path items, which are the members of a node. Those of webhooks have a name instead of a path.
    pub(crate) fn operations_of(self, items: &'a Value) -> Vec<DocumentOperation<'a>> {
        let is_method = |key: &str| METHODS.contains(&key) || UNSUPPORTED_METHODS.contains(&key);
        let mut operations = Vec::new();
        for (path, item) in items.as_object().into_iter().flatten() {
            let item = self.resolve(item);
            let standard = item.as_object().into_iter().flatten().filter(|(key, _)| is_method(key));
            let additional = item["additionalOperations"].as_object().into_iter().flatten();
            operations.extend(standard.chain(additional).map(|(method, node)| DocumentOperation { method, path, item, node }));
        }
        operations
    }

    /// Returns the parameters of an operation by location and name (`query.page`). They override those of the path item.
    pub(crate) fn parameters(self, operation: &DocumentOperation<'a>) -> BTreeMap<String, &'a Value> {
        let lists = [&operation.item["parameters"], &operation.node["parameters"]];
        let all = lists.into_iter().filter_map(Value::as_array).flatten();
        all.map(|parameter| self.resolve(parameter)).map(|parameter| (key_of_parameter(parameter), parameter)).collect()
    }

    /// Returns the security requirements of an operation, or else those of the whole document.
    pub(crate) fn security(self, operation: &DocumentOperation<'a>) -> Option<&'a Value> {
        operation.node.get("security").or_else(|| self.0.get("security"))
    }

    /// Returns the headers of a response, by name in lower case, because header names are case-insensitive.
    pub(crate) fn headers(self, response: &'a Value) -> BTreeMap<String, &'a Value> {
        let all = response["headers"].as_object().into_iter().flatten();
        all.map(|(name, header)| (name.to_lowercase(), self.resolve(header))).collect()
    }

    /// Follows a chain of references to its end. Returns a reference without a target itself.
    pub(crate) fn resolve(self, node: &'a Value) -> &'a Value {
        let mut node = node;
        for _ in 0..MAX_REFERENCE_CHAIN {
            match self.target(node) {
                Some(target) => node = target,
                None => break,
            }
        }
        node
    }

    /// Returns the keywords of a schema after following its references.
    ///
    /// An `allOf` with a single schema is merged: both documents use it to add a keyword to a reference (`allOf: [{$ref: …}]`).
    /// Keywords beside a `$ref` are ignored, as in OpenAPI 3.0.
    pub(crate) fn flatten(self, schema: &'a Value) -> Keywords<'a> {
        let mut keywords = Keywords::new();
        let mut node = schema;
        for _ in 0..MAX_REFERENCE_CHAIN {
            if let Some(target) = self.target(node) {
                node = target;
                continue;
            }
            let wrapped = single_item(&node["allOf"]);
            for (keyword, value) in keywords_of(node) {
                if keyword != "allOf" || wrapped.is_none() {
                    keywords.entry(keyword).or_insert(value);
                }
            }
            match wrapped {
                Some(inner) => node = inner,
                None => break,
            }
        }
        keywords
    }

    /// Returns the direct target of a reference, if it exists.
    fn target(self, node: &'a Value) -> Option<&'a Value> {
        resolver::target(self.0, resolver::reference(node)?).ok()
    }
}

impl<'a> DocumentOperation<'a> {
    /// Returns an extension of the operation. The values of a list have no order.
    pub(super) fn policy(&self, extension: &str) -> Option<Value> {
        let mut value = self.node.get(extension).filter(|value| **value != Value::Bool(false))?.clone();
        if let Value::Array(values) = &mut value {
            values.sort_by_key(Value::to_string);
        }
        Some(value)
    }

    /// Returns method and path: `GET /orders/{order}`.
    pub(crate) fn name(&self) -> String {
        format!("{} {}", self.method.to_uppercase(), self.path)
    }

    /// Returns the operation or else its path item, whichever has servers of its own. `None` if those of the document apply.
    pub(crate) fn node_with_servers(&self) -> Option<&'a Value> {
        [self.node, self.item].into_iter().find(|node| !server_urls(node).is_empty())
    }

    /// Returns the key that identifies an operation in both documents: the method, and the path without names of variables.
    pub(crate) fn shape(&self) -> String {
        let shape = format!("{} {}", self.method, self.path);
        self.variables().fold(shape, |shape, name| shape.replacen(&format!("{{{name}}}"), "{}", 1))
    }

    /// Returns the names of the path's variables, in order.
    pub(crate) fn variables(&self) -> impl Iterator<Item = &'a str> {
        self.path.split('{').skip(1).filter_map(|rest| Some(rest.split_once('}')?.0))
    }
}

/// Returns the keywords of a node, without prose, default values, and extensions other than [`NOT_BLANK`] and [`EXTENSIBLE_ENUM`].
pub(crate) fn keywords_of(node: &Value) -> Keywords<'_> {
    let all = node.as_object().into_iter().flatten();
    all.filter(|(keyword, value)| !is_prose(keyword) && !is_default(keyword, value))
        .map(|(keyword, value)| (keyword.as_str(), value))
        .collect()
}

fn is_prose(keyword: &str) -> bool {
    PROSE.contains(&keyword) || (keyword.starts_with("x-") && ![NOT_BLANK, EXTENSIBLE_ENUM].contains(&keyword))
}

fn is_default(keyword: &str, value: &Value) -> bool {
    FLAGS.contains(&keyword) && *value == Value::Bool(false)
}

/// Returns location and name of a parameter, as in `query.page`.
fn key_of_parameter(parameter: &Value) -> String {
    let location = parameter["in"].as_str().unwrap_or_default();
    let name = parameter["name"].as_str().unwrap_or_default();
    if location == "header" { format!("{location}.{}", name.to_lowercase()) } else { format!("{location}.{name}") }
}

fn single_item(list: &Value) -> Option<&Value> {
    match list.as_array().map(Vec::as_slice) {
        Some([only]) => Some(only),
        _ => None,
    }
}
