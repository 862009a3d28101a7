//! Drift: the differences between the OpenAPI document and the server's code.
//!
//! The document (`spec/openapi.yaml`) is written by hand and takes precedence. The server's side is the document that dropshot
//! generates from the endpoints, extended with the headers and errors that the server adds to each of them. A difference means that
//! the server violates the document, or that the document was changed and the server has yet to follow. The policies of a document,
//! such as `x-scopes`, are compared with those of the contract that is built into the server ([`compare_policies`]).
//!
//! There is no list of exceptions. `rules` contains one named rule for each thing that dropshot and schemars can't express.
//! Everything else must be equal in both directions.
//!
//! All references are followed, so that a schema may be a shared component in one document and inline in the other. Prose is not
//! compared, because only the written document has it: summaries, descriptions, titles, examples and other `x-*` extensions.
//!
//! ```text
//! compare ── operations ─┬─ operation: id, tags, path variables, security
//!                        ├─ parameters ───────────┐
//!                        ├─ request body ─────────┼─ schemas (schema.rs), down to every property
//!                        └─ responses: headers,   │
//!                           bodies ───────────────┘
//! ```

pub(crate) mod document;
mod rules;
mod schema;

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fmt;

use serde::Serialize;
use serde_json::{Value, json};

use self::document::{Document, DocumentOperation, POLICIES, keywords_of};

/// Shown for a side without a value.
const ABSENT: &str = "absent";
/// The counterpart of [`ABSENT`] for a part without a value to show, such as an operation.
const PRESENT: &str = "present";

/// A difference between the document and the server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// Method and path, as written in the document: `POST /orders`.
    pub operation: String,
    /// The location in the operation: `body.items[].quantity`, `query.page`, `409.code`; empty for the operation itself.
    #[serde(rename = "place")]
    pub location: String,
    /// The keyword or part that differs: `maximum`, `property`, `media type` …
    #[serde(rename = "what")]
    pub keyword: String,
    /// The value in the document, or `absent`.
    pub document: String,
    /// The value in the server, or `absent`.
    pub server: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.operation)?;
        if !self.location.is_empty() {
            write!(f, " {}", self.location)?;
        }
        write!(f, ": {} is {} in the document, {} in the server", self.keyword, self.document, self.server)
    }
}

/// Compares the document with the one that the server generates. Returns all differences, by operation in the document's order.
#[must_use]
pub fn compare(document: &Value, server: &Value) -> Vec<Difference> {
    let mut comparison = DriftComparison::new(document, server);
    comparison.compare_operations();
    comparison.differences
}

/// Compares what the server takes from the contract that is built into it: the addresses of `servers`, and for each operation
/// `x-scopes`, `x-guessing` and `x-secret`. The server follows these declarations directly, so its endpoints don't repeat them.
#[must_use]
pub fn compare_policies(document: &Value, contract: &Value) -> Vec<Difference> {
    let mut comparison = DriftComparison::new(document, contract);
    comparison.compare_servers();
    let declared = Document(contract).operations().into_iter().map(|operation| (operation.shape(), operation));
    let declared: BTreeMap<_, _> = declared.collect();
    for operation in Document(document).operations() {
        let Some(served) = declared.get(&operation.shape()) else { continue };
        comparison.operation = operation.name();
        for policy in POLICIES {
            comparison.compare_values("", policy, operation.policy(policy).as_ref(), served.policy(policy).as_ref());
        }
    }
    comparison.differences
}

/// A schema of the document and one of the server, by address.
type Pair = (*const Value, *const Value);

/// The state of a comparison.
struct DriftComparison<'a> {
    document: Document<'a>,
    server: Document<'a>,
    /// The name of the operation being compared, see [`Difference::operation`].
    operation: String,
    /// The schemas being compared, outermost first. A recursive schema appears inside itself.
    in_progress: Vec<Pair>,
    /// The schemas found equal, so that shared schemas are compared once. A schema inside a recursive one may be listed although the
    /// recursive one differs. The difference is then reported for the recursive one.
    known_equal: HashSet<Pair>,
    differences: Vec<Difference>,
}

impl<'a> DriftComparison<'a> {
    fn new(document: &'a Value, server: &'a Value) -> Self {
        Self {
            document: Document(document),
            server: Document(server),
            operation: String::new(),
            in_progress: Vec::new(),
            known_equal: HashSet::new(),
            differences: Vec::new(),
        }
    }

    fn compare_operations(&mut self) {
        let by_shape = |operation: DocumentOperation<'a>| (operation.shape(), operation);
        let mut served: BTreeMap<_, _> = self.server.operations().into_iter().map(by_shape).collect();
        for operation in self.document.operations() {
            self.operation = operation.name();
            match served.remove(&operation.shape()) {
                Some(other) => self.compare_operation(&operation, &other),
                None => self.report_one_sided("", "operation", true),
            }
        }
        for operation in served.values() {
            self.operation = operation.name();
            self.report_one_sided("", "operation", false);
        }
    }

    /// Compares the addresses of the servers, in their order.
    fn compare_servers(&mut self) {
        let addresses = |document: &Value| {
            let servers = document["servers"].as_array().into_iter().flatten();
            json!(servers.map(|server| (&server["url"], &server["variables"])).collect::<Vec<_>>())
        };
        let (documented, served) = (addresses(self.document.0), addresses(self.server.0));
        self.operation = "servers".to_owned();
        self.compare_values("", "addresses", Some(&documented), Some(&served));
    }

    fn compare_operation(&mut self, document: &DocumentOperation<'a>, server: &DocumentOperation<'a>) {
        self.compare_keywords("", document.node, server.node, &["parameters", "requestBody", "responses", "security"]);
        self.compare_values("", "security", self.document.security(document), self.server.security(server));
        self.compare_path_variables(document, server);
        self.compare_parameters(document, server);
        self.compare_request_body(document.node.get("requestBody"), server.node.get("requestBody"));
        self.compare_responses(document.node, server.node);
    }

    /// Compares the names of the path variables. Both paths have the same number of them, because their shapes are equal.
    fn compare_path_variables(&mut self, document: &DocumentOperation, server: &DocumentOperation) {
        for (documented, served) in document.variables().zip(server.variables()) {
            if documented != served {
                self.report("path", "variable", format!("{{{documented}}}"), format!("{{{served}}}"));
            }
        }
    }

    fn compare_parameters(&mut self, document: &DocumentOperation<'a>, server: &DocumentOperation<'a>) {
        let documented = self.document.parameters(document);
        let served = self.server.parameters(server);
        for (location, documented, served) in aligned(&documented, &served) {
            match (documented, served) {
                (Some(documented), Some(served)) => self.compare_value_with_schema(location, documented, served),
                _ => self.report_one_sided(location, "parameter", documented.is_some()),
            }
        }
    }

    /// Compares two parameters or response headers.
    fn compare_value_with_schema(&mut self, location: &str, document: &'a Value, server: &'a Value) {
        self.compare_keywords(location, document, server, &["name", "in", "schema", "style"]);
        let style = |node: &'a Value| node["style"].as_str().unwrap_or_else(|| default_style(node));
        if style(document) != style(server) {
            self.report(location, "style", style(document), style(server));
        }
        let nothing = &Value::Null;
        let schema = |node: &'a Value| node.get("schema").unwrap_or(nothing);
        if rules::is_optional(server) {
            self.compare_optional_value(location, schema(document), schema(server));
        } else {
            self.compare_schema(location, schema(document), schema(server));
        }
    }

    fn compare_request_body(&mut self, document: Option<&'a Value>, server: Option<&'a Value>) {
        match (document, server) {
            (Some(document), Some(server)) => {
                let document = self.document.resolve(document);
                let server = self.server.resolve(server);
                self.compare_keywords("body", document, server, &["content"]);
                self.compare_contents("body", document, server);
            }
            (None, None) => {}
            _ => self.report_one_sided("body", "request body", document.is_some()),
        }
    }

    /// Compares the statuses, headers and bodies of responses. A body that several statuses share is compared once.
    fn compare_responses(&mut self, document: &'a Value, server: &'a Value) {
        let documented = responses(self.document, document);
        let served = responses(self.server, server);
        let mut compared = Vec::new();
        for (status, documented, served) in aligned(&documented, &served) {
            let (Some(documented), Some(served)) = (documented, served) else {
                self.report_one_sided(status, "status", documented.is_some());
                continue;
            };
            self.compare_headers(status, documented, served);
            let bodies = (schemas(documented), schemas(served));
            if !compared.contains(&bodies) {
                self.compare_contents(status, documented, served);
                compared.push(bodies);
            }
        }
    }

    fn compare_headers(&mut self, status: &str, document: &'a Value, server: &'a Value) {
        let documented = self.document.headers(document);
        let served = self.server.headers(server);
        for (name, documented, served) in aligned(&documented, &served) {
            let location = format!("{status}.headers.{name}");
            match (documented, served) {
                (Some(documented), Some(served)) => self.compare_value_with_schema(&location, documented, served),
                _ => self.report_one_sided(&location, "header", documented.is_some()),
            }
        }
    }

    /// Compares the media types of a body, and the schema of each.
    fn compare_contents(&mut self, location: &str, document: &'a Value, server: &'a Value) {
        let documented = schemas(document);
        let served = schemas(server);
        if rules::is_raw_body(server) && rules::may_be_raw(&documented) {
            return;
        }
        for (media_type, documented, served) in aligned(&documented, &served) {
            match (documented, served) {
                (Some(documented), Some(served)) => self.compare_schema(location, documented, served),
                _ => self.report_one_sided(location, &format!("media type {media_type}"), documented.is_some()),
            }
        }
    }

    /// Compares the keywords of two nodes, except prose and the `excluded` ones, which are compared elsewhere.
    fn compare_keywords(&mut self, location: &str, document: &'a Value, server: &'a Value, excluded: &[&str]) {
        let documented = keywords_of(document);
        let served = keywords_of(server);
        for (keyword, documented, served) in aligned(&documented, &served) {
            if !excluded.contains(keyword) {
                self.compare_values(location, keyword, documented.copied(), served.copied());
            }
        }
    }

    fn compare_values(&mut self, location: &str, keyword: &str, document: Option<&Value>, server: Option<&Value>) {
        let is_same = match (document, server) {
            (Some(document), Some(server)) => rules::same_value(document, server),
            (None, None) => true,
            _ => false,
        };
        if !is_same {
            let to_text = |value: Option<&Value>| value.map_or(ABSENT.to_owned(), Value::to_string);
            self.report(location, keyword, to_text(document), to_text(server));
        }
    }

    /// Reports a part that only one side has.
    fn report_one_sided(&mut self, location: &str, keyword: &str, in_document: bool) {
        let (document, server) = if in_document { (PRESENT, ABSENT) } else { (ABSENT, PRESENT) };
        self.report(location, keyword, document, server);
    }

    fn report(&mut self, location: &str, keyword: &str, document: impl Into<String>, server: impl Into<String>) {
        self.differences.push(Difference {
            operation: self.operation.clone(),
            location: location.to_owned(),
            keyword: keyword.to_owned(),
            document: document.into(),
            server: server.into(),
        });
    }
}

/// Iterates over the keys of two maps, with the value of each map.
pub(crate) fn aligned<'m, K: Ord, D, S>(
    document: &'m BTreeMap<K, D>,
    server: &'m BTreeMap<K, S>,
) -> impl Iterator<Item = (&'m K, Option<&'m D>, Option<&'m S>)> {
    let keys: BTreeSet<&K> = document.keys().chain(server.keys()).collect();
    keys.into_iter().map(|key| (key, document.get(key), server.get(key)))
}

/// Returns the responses of an operation, by status.
fn responses<'a>(side: Document<'a>, operation: &'a Value) -> BTreeMap<&'a str, &'a Value> {
    let all = operation["responses"].as_object().into_iter().flatten();
    all.map(|(status, response)| (status.as_str(), side.resolve(response))).collect()
}

/// Returns the schema of each media type of a request body or response.
fn schemas(body: &Value) -> BTreeMap<&str, &Value> {
    let content = body["content"].as_object().into_iter().flatten();
    content.map(|(media_type, media)| (media_type.as_str(), &media["schema"])).collect()
}

/// Returns OpenAPI's default style of a parameter or header.
pub(crate) fn default_style(node: &Value) -> &'static str {
    match node["in"].as_str() {
        Some("query" | "cookie") => "form",
        _ => "simple",
    }
}
