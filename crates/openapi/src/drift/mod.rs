//! Drift: every way in which the contract document and the server as written disagree.
//!
//! The document (`spec/openapi.yaml`) is written by hand and decides. The server's side is what dropshot emits for the
//! endpoints as they are, with what the front door reads, refuses and adds for each of them. So a difference means that
//! either the server doesn't keep the contract or that the contract was changed and the server is still to follow. There
//! is no list of exceptions: what dropshot and schemars can't say is in `rules`, one named rule each, and everything else
//! has to be equal, in both directions.
//!
//! Both sides are read with all references followed, so that it doesn't matter what is a shared component on one side
//! and inline on the other. Prose is not compared, because only the document has it: summaries, descriptions, titles,
//! examples and `x-*` extensions.
//!
//! ```text
//! compare ── operations ─┬─ operation: id, tags, path variables, security
//!                        ├─ parameters ───────────┐
//!                        ├─ request body ─────────┼─ schemas (schema.rs), down to every property
//!                        └─ responses: headers,   │
//!                           bodies ───────────────┘
//! ```

mod document;
mod rules;
mod schema;

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fmt;

use serde::Serialize;
use serde_json::Value;

use self::document::{Document, Operation, keywords_of};

/// What a side is said to have where it has nothing.
const ABSENT: &str = "absent";
/// The counterpart of [`ABSENT`], for what has no value to show.
const PRESENT: &str = "present";

/// One disagreement between the document and the server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// Method and path as the document writes them: `POST /orders`.
    pub operation: String,
    /// Where in the operation: `body.items[].quantity`, `query.page`, `409.code`; empty for the operation itself.
    pub location: String,
    /// What differs there: `maximum`, `property`, `media type` …
    pub keyword: String,
    /// What the document says, or `absent`.
    pub document: String,
    /// What the server says, or `absent`.
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

/// Every difference between the document and the one that the server emits, by operation in the document's order; none when they
/// agree.
#[must_use]
pub fn compare(document: &Value, server: &Value) -> Vec<Difference> {
    let mut comparison = Comparison {
        document: Document(document),
        server: Document(server),
        operation: String::new(),
        in_progress: Vec::new(),
        known_equal: HashSet::new(),
        found: Vec::new(),
    };
    comparison.operations();
    comparison.found
}

/// A schema of the document and one of the server, by address.
type Pair = (*const Value, *const Value);

/// A comparison under way.
struct Comparison<'a> {
    document: Document<'a>,
    server: Document<'a>,
    /// The operation being compared, as a [`Difference`] names it.
    operation: String,
    /// The schemas being compared, outermost first: one that is met again inside itself is recursive.
    in_progress: Vec<Pair>,
    /// The schemas found equal, so that what many operations share is walked once. Those inside a recursive schema
    /// count as equal apart from the schema around them, whose differences are found where it is compared itself.
    known_equal: HashSet<Pair>,
    found: Vec<Difference>,
}

impl<'a> Comparison<'a> {
    fn operations(&mut self) {
        let by_shape = |operation: Operation<'a>| (operation.shape(), operation);
        let mut served: BTreeMap<_, _> = self.server.operations().into_iter().map(by_shape).collect();
        for operation in self.document.operations() {
            self.operation = operation.name();
            match served.remove(&operation.shape()) {
                Some(other) => self.one_operation(&operation, &other),
                None => self.one_sided("", "operation", true),
            }
        }
        for operation in served.values() {
            self.operation = operation.name();
            self.one_sided("", "operation", false);
        }
    }

    fn one_operation(&mut self, document: &Operation<'a>, server: &Operation<'a>) {
        self.keywords("", document.node, server.node, &["parameters", "requestBody", "responses", "security"]);
        self.values("", "security", self.document.security(document), self.server.security(server));
        self.path_variables(document, server);
        self.parameters(document, server);
        self.request_body(document.node.get("requestBody"), server.node.get("requestBody"));
        self.responses(document.node, server.node);
    }

    /// The two paths have the same shape here, so that their variables can be compared one by one.
    fn path_variables(&mut self, document: &Operation, server: &Operation) {
        for (documented, served) in document.variables().zip(server.variables()) {
            if documented != served {
                self.differ("path", "variable", documented, served);
            }
        }
    }

    fn parameters(&mut self, document: &Operation<'a>, server: &Operation<'a>) {
        let documented = self.document.parameters(document);
        let served = self.server.parameters(server);
        for (place, documented, served) in aligned(&documented, &served) {
            match (documented, served) {
                (Some(documented), Some(served)) => self.value_with_schema(place, documented, served),
                _ => self.one_sided(place, "parameter", documented.is_some()),
            }
        }
    }

    /// What parameters and response headers have in common.
    fn value_with_schema(&mut self, place: &str, document: &'a Value, server: &'a Value) {
        self.keywords(place, document, server, &["name", "in", "schema", "style"]);
        let style = |node: &'a Value| node["style"].as_str().unwrap_or_else(|| default_style(node));
        if style(document) != style(server) {
            self.differ(place, "style", style(document), style(server));
        }
        let nothing = &Value::Null;
        let schema = |node: &'a Value| node.get("schema").unwrap_or(nothing);
        if rules::is_optional(server) {
            self.optional_value(place, schema(document), schema(server));
        } else {
            self.schema(place, schema(document), schema(server));
        }
    }

    fn request_body(&mut self, document: Option<&'a Value>, server: Option<&'a Value>) {
        match (document, server) {
            (Some(document), Some(server)) => {
                let document = self.document.resolve(document);
                let server = self.server.resolve(server);
                self.keywords("body", document, server, &["content"]);
                self.contents("body", document, server);
            }
            (None, None) => {}
            _ => self.one_sided("body", "request body", document.is_some()),
        }
    }

    /// The responses: their statuses, headers and bodies. What most errors share is compared once for the operation.
    fn responses(&mut self, document: &'a Value, server: &'a Value) {
        let documented = responses(self.document, document);
        let served = responses(self.server, server);
        let mut compared = Vec::new();
        for (status, documented, served) in aligned(&documented, &served) {
            let (Some(documented), Some(served)) = (documented, served) else {
                self.one_sided(status, "status", documented.is_some());
                continue;
            };
            self.headers(status, documented, served);
            let bodies = (schemas(documented), schemas(served));
            if !compared.contains(&bodies) {
                self.contents(status, documented, served);
                compared.push(bodies);
            }
        }
    }

    fn headers(&mut self, status: &str, document: &'a Value, server: &'a Value) {
        let documented = self.document.headers(document);
        let served = self.server.headers(server);
        for (name, documented, served) in aligned(&documented, &served) {
            let place = format!("{status}.headers.{name}");
            match (documented, served) {
                (Some(documented), Some(served)) => self.value_with_schema(&place, documented, served),
                _ => self.one_sided(&place, "header", documented.is_some()),
            }
        }
    }

    /// The media types of a body, and the schema of each.
    fn contents(&mut self, place: &str, document: &'a Value, server: &'a Value) {
        let documented = schemas(document);
        let served = schemas(server);
        if rules::is_raw_body(server) && rules::may_be_raw(&documented) {
            return;
        }
        for (media_type, documented, served) in aligned(&documented, &served) {
            match (documented, served) {
                (Some(documented), Some(served)) => self.schema(place, documented, served),
                _ => self.one_sided(place, &format!("media type {media_type}"), documented.is_some()),
            }
        }
    }

    /// Compares what two nodes say of themselves, apart from prose and from what is `handled` elsewhere.
    fn keywords(&mut self, place: &str, document: &'a Value, server: &'a Value, handled: &[&str]) {
        let documented = keywords_of(document);
        let served = keywords_of(server);
        for (keyword, documented, served) in aligned(&documented, &served) {
            if !handled.contains(keyword) {
                self.values(place, keyword, documented.copied(), served.copied());
            }
        }
    }

    fn values(&mut self, place: &str, what: &str, document: Option<&Value>, server: Option<&Value>) {
        let same = match (document, server) {
            (Some(document), Some(server)) => rules::same_value(document, server),
            (None, None) => true,
            _ => false,
        };
        if !same {
            let shown = |value: Option<&Value>| value.map_or(ABSENT.to_owned(), Value::to_string);
            self.differ(place, what, shown(document), shown(server));
        }
    }

    /// Notes something that only one side has.
    fn one_sided(&mut self, place: &str, what: &str, in_document: bool) {
        let (document, server) = if in_document { (PRESENT, ABSENT) } else { (ABSENT, PRESENT) };
        self.differ(place, what, document, server);
    }

    fn differ(&mut self, place: &str, what: &str, document: impl Into<String>, server: impl Into<String>) {
        self.found.push(Difference {
            operation: self.operation.clone(),
            location: place.to_owned(),
            keyword: what.to_owned(),
            document: document.into(),
            server: server.into(),
        });
    }
}

/// Walks two maps side by side: each key once, with what either map has for it.
fn aligned<'m, K: Ord, D, S>(
    document: &'m BTreeMap<K, D>,
    server: &'m BTreeMap<K, S>,
) -> impl Iterator<Item = (&'m K, Option<&'m D>, Option<&'m S>)> {
    let keys: BTreeSet<&K> = document.keys().chain(server.keys()).collect();
    keys.into_iter().map(|key| (key, document.get(key), server.get(key)))
}

/// The responses of an operation by status.
fn responses<'a>(side: Document<'a>, operation: &'a Value) -> BTreeMap<&'a str, &'a Value> {
    let all = operation["responses"].as_object().into_iter().flatten();
    all.map(|(status, response)| (status.as_str(), side.resolve(response))).collect()
}

/// The schema of each media type of a request body or response.
fn schemas(body: &Value) -> BTreeMap<&str, &Value> {
    let content = body["content"].as_object().into_iter().flatten();
    content.map(|(media_type, media)| (media_type.as_str(), &media["schema"])).collect()
}

/// The style that OpenAPI gives a parameter or header that names none.
fn default_style(node: &Value) -> &'static str {
    match node["in"].as_str() {
        Some("query" | "cookie") => "form",
        _ => "simple",
    }
}
