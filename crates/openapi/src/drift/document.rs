//! Reading an OpenAPI document: its operations, and what its references lead to.

use std::collections::BTreeMap;

use serde_json::Value;

/// The keys of a path item that are operations; its others are parameters and prose.
const METHODS: [&str; 8] = ["get", "put", "post", "delete", "options", "head", "patch", "trace"];

/// What only people read.
const PROSE: [&str; 6] = ["summary", "description", "title", "example", "examples", "externalDocs"];

/// The names of what may be left out but not blanked: the only extension that says what a request must look like.
pub(super) const NOT_BLANK: &str = "x-not-blank";

/// Keywords that are false where they are absent.
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

/// More references in a row than any sensible document has: beyond it they lead in a circle.
const MAX_HOPS: usize = 16;

/// What a node says of itself, by keyword.
pub(super) type Keywords<'a> = BTreeMap<&'a str, &'a Value>;

/// One side's whole OpenAPI document.
#[derive(Clone, Copy)]
pub(super) struct Document<'a>(pub(super) &'a Value);

/// One operation of a document.
pub(super) struct Operation<'a> {
    method: &'a str,
    path: &'a str,
    /// The parameters of the path item, which all its operations share.
    shared_parameters: &'a Value,
    pub(super) node: &'a Value,
}

impl<'a> Document<'a> {
    /// All operations, in the order in which they are written.
    pub(super) fn operations(self) -> Vec<Operation<'a>> {
        let mut operations = Vec::new();
        for (path, item) in self.0["paths"].as_object().into_iter().flatten() {
            for (method, node) in item.as_object().into_iter().flatten() {
                if METHODS.contains(&method.as_str()) {
                    operations.push(Operation { method, path, shared_parameters: &item["parameters"], node });
                }
            }
        }
        operations
    }

    /// The parameters of an operation by place and name (`query.page`), those of its own before those of its path.
    pub(super) fn parameters(self, operation: &Operation<'a>) -> BTreeMap<String, &'a Value> {
        let lists = [operation.shared_parameters, &operation.node["parameters"]];
        let all = lists.into_iter().filter_map(Value::as_array).flatten();
        all.map(|parameter| self.resolve(parameter)).map(|parameter| (place_of(parameter), parameter)).collect()
    }

    /// What an operation asks a caller to prove itself with: its own, or else the whole document's.
    pub(super) fn security(self, operation: &Operation<'a>) -> Option<&'a Value> {
        operation.node.get("security").or_else(|| self.0.get("security"))
    }

    /// The headers of a response; their names in lower case, because HTTP doesn't tell the cases apart.
    pub(super) fn headers(self, response: &'a Value) -> BTreeMap<String, &'a Value> {
        let all = response["headers"].as_object().into_iter().flatten();
        all.map(|(name, header)| (name.to_lowercase(), self.resolve(header))).collect()
    }

    /// Follows references until something else is found; one that leads nowhere is given back itself.
    pub(super) fn resolve(self, node: &'a Value) -> &'a Value {
        let mut node = node;
        for _ in 0..MAX_HOPS {
            match self.target(node) {
                Some(target) => node = target,
                None => break,
            }
        }
        node
    }

    /// What a schema says once its references are followed.
    ///
    /// A wrapper around a single schema (`allOf: [{$ref: …}]`) is how both sides add a keyword to a reference, so what
    /// it holds is read as part of it. Beside a `$ref` itself, OpenAPI 3.0 ignores everything, and so does this.
    pub(super) fn flatten(self, schema: &'a Value) -> Keywords<'a> {
        let mut keywords = Keywords::new();
        let mut node = schema;
        for _ in 0..MAX_HOPS {
            if let Some(target) = self.target(node) {
                node = target;
                continue;
            }
            let wrapped = single(&node["allOf"]);
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

    /// Where a node leads, if it is a reference to something that exists.
    fn target(self, node: &'a Value) -> Option<&'a Value> {
        self.0.pointer(node.get("$ref")?.as_str()?.strip_prefix('#')?)
    }
}

impl<'a> Operation<'a> {
    /// Method and path: `GET /orders/{order}`.
    pub(super) fn name(&self) -> String {
        format!("{} {}", self.method.to_uppercase(), self.path)
    }

    /// What makes it the same operation on both sides: method, and path without the names of its variables.
    pub(super) fn shape(&self) -> String {
        let segments = self.path.split('/').map(|segment| if is_variable(segment) { "{}" } else { segment });
        format!("{} {}", self.method, segments.collect::<Vec<_>>().join("/"))
    }

    /// The variables of the path, in order.
    pub(super) fn variables(&self) -> impl Iterator<Item = &'a str> {
        self.path.split('/').filter(|segment| is_variable(segment))
    }
}

/// What a node says of itself, without prose, most extensions and what is the same as saying nothing.
pub(super) fn keywords_of(node: &Value) -> Keywords<'_> {
    let all = node.as_object().into_iter().flatten();
    all.filter(|(keyword, value)| !is_prose(keyword) && !says_nothing(keyword, value))
        .map(|(keyword, value)| (keyword.as_str(), value))
        .collect()
}

fn is_prose(keyword: &str) -> bool {
    PROSE.contains(&keyword) || (keyword.starts_with("x-") && keyword != NOT_BLANK)
}

fn says_nothing(keyword: &str, value: &Value) -> bool {
    FLAGS.contains(&keyword) && *value == Value::Bool(false)
}

fn is_variable(segment: &str) -> bool {
    segment.starts_with('{')
}

fn place_of(parameter: &Value) -> String {
    let place = parameter["in"].as_str().unwrap_or_default();
    let name = parameter["name"].as_str().unwrap_or_default();
    if place == "header" { format!("{place}.{}", name.to_lowercase()) } else { format!("{place}.{name}") }
}

fn single(list: &Value) -> Option<&Value> {
    match list.as_array().map(Vec::as_slice) {
        Some([only]) => Some(only),
        _ => None,
    }
}
