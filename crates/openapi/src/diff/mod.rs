//! The changes between two versions of an OpenAPI document, by their effect on clients.
//!
//! A change is breaking if a client that conforms to the old document can fail with the new one: a request that was valid is rejected
//! or has another effect, or a response has a form that the old document excludes. So the same change has opposite effects in a
//! request and in a response: a new value of a list widens what the server accepts, but also what a client receives. Lists with
//! `x-extensible-enum` and objects in responses may grow, because clients must accept values and properties that they don't know.
//!
//! `docs/versioning.md` has the rules in words.

mod flat_schema;
mod prose;
mod schema;

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::{fmt, ptr};

use serde::Serialize;
use serde_json::{Value, json};

use crate::drift::document::{Document, DocumentOperation, keywords_of};
use crate::drift::{aligned, default_style};
use crate::response::{essence, matches_range, normalize};
use crate::{base_path, counted, server_urls, subtypes};

/// The effect of a change on clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, strum::Display)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum Impact {
    /// An existing client can fail.
    Breaking,
    /// Existing clients work unchanged.
    NonBreaking,
    /// Only text for readers, such as a description or an example.
    Prose,
}

/// A change from the old document to the new one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Change {
    /// The effect on clients.
    pub impact: Impact,
    /// The operation, the shared component, or the JSON pointer of prose.
    pub place: String,
    /// The change, as a phrase: `the value Paid was added`.
    pub text: String,
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:12} {}: {}", self.impact, self.place, self.text)
    }
}

/// Returns all changes, breaking ones first.
pub fn diff(old: &Value, new: &Value) -> Vec<Change> {
    let mut comparison = DiffComparison { old: Document(old), new: Document(new), compared: HashSet::new(), changes: Vec::new() };
    comparison.compare_servers("servers", old, new);
    comparison.compare_operations("", &old["paths"], &new["paths"], Sent::ByClient);
    comparison.compare_operations("webhook ", &old["webhooks"], &new["webhooks"], Sent::ByServer);
    let mut changes = comparison.changes;
    changes.extend(prose::changes(old, new));
    changes.sort();
    changes.dedup();
    changes
}

/// Longest list of places in the change log.
const LISTED_PLACES: usize = 5;

/// Returns the changes as a section of the change log: breaking changes, then others. Equal changes share a line; prose is only
/// counted.
pub fn to_markdown(changes: &[Change]) -> String {
    let mut text = String::new();
    for (impact, title) in [(Impact::Breaking, "Breaking"), (Impact::NonBreaking, "Compatible")] {
        let mut by_text: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for change in changes.iter().filter(|change| change.impact == impact) {
            by_text.entry(&change.text).or_default().push(&change.place);
        }
        if by_text.is_empty() {
            continue;
        }
        text.push_str(&format!("### {title}\n\n"));
        for (change, places) in by_text {
            let listed = places.iter().take(LISTED_PLACES).map(|place| format!("`{place}`")).collect::<Vec<_>>().join(", ");
            let others = places.len().saturating_sub(LISTED_PLACES);
            let others = if others > 0 { format!(" and {others} more") } else { String::new() };
            text.push_str(&format!("- {listed}{others}: {change}\n"));
        }
        text.push('\n');
    }
    let prose = changes.iter().filter(|change| change.impact == Impact::Prose).count() as u64;
    text.push_str(&counted(prose, "change of descriptions or examples", "changes of descriptions or examples"));
    text.push_str(".\n");
    text
}

/// The direction in which a value is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Sent {
    /// In a request of an operation, or in a response to a webhook or callback.
    ByClient,
    /// In a response of an operation, or in a request of a webhook or callback.
    ByServer,
}

impl Sent {
    /// Returns the impact of accepting or sending more values than before.
    fn widened(self) -> Impact {
        if self == Self::ByClient { Impact::NonBreaking } else { Impact::Breaking }
    }

    /// Returns the impact of accepting or sending fewer values than before.
    fn narrowed(self) -> Impact {
        if self == Self::ByClient { Impact::Breaking } else { Impact::NonBreaking }
    }

    /// Returns the direction of the responses to requests with this direction.
    fn reversed(self) -> Self {
        if self == Self::ByClient { Self::ByServer } else { Self::ByClient }
    }
}

/// The state of a comparison.
struct DiffComparison<'a> {
    old: Document<'a>,
    new: Document<'a>,
    /// The pairs of nodes that were compared, by address, and those of schemas that were compared together. Shared ones are compared once
    /// for each direction.
    compared: HashSet<(Vec<*const Value>, Vec<*const Value>, Sent)>,
    changes: Vec<Change>,
}

impl<'a> DiffComparison<'a> {
    fn report(&mut self, impact: Impact, place: &str, text: impl Into<String>) {
        self.changes.push(Change { impact, place: place.to_owned(), text: text.into() });
    }

    /// Reports a part that was added or removed.
    fn report_part(&mut self, place: &str, part: &str, (added, removed): (Impact, Impact), is_added: bool) {
        let (impact, verb) = if is_added { (added, "added") } else { (removed, "removed") };
        self.report(impact, place, format!("{part} was {verb}"));
    }

    /// Compares the servers of two nodes. Clients use the first by default.
    fn compare_servers(&mut self, place: &str, old: &Value, new: &Value) {
        self.compare_server_variables(place, old, new);
        let (old, new) = (server_urls(old), server_urls(new));
        // Without servers, everything is served at `/`.
        let or_default = |urls: Vec<String>| if urls.is_empty() { vec![String::new()] } else { urls };
        let (old, new) = (or_default(old), or_default(new));
        let (old_base, new_base) = (base_path(&old[0]), base_path(&new[0]));
        let is_moved = old_base != new_base;
        if is_moved {
            let text = format!("the base path is now {} instead of {}", or_root(new_base), or_root(old_base));
            self.report(Impact::Breaking, place, text);
        }
        let compared = usize::from(is_moved);
        let is_in = |urls: &[String], url: &String| urls.iter().any(|other| is_same_server(url, other));
        for url in old.iter().skip(compared).filter(|url| !is_in(&new, url)) {
            self.report(Impact::Breaking, place, format!("the server {} was removed", or_root(url)));
        }
        for url in new.iter().skip(compared).filter(|url| !is_in(&old, url)) {
            self.report(Impact::NonBreaking, place, format!("the server {} was added", or_root(url)));
        }
    }

    /// Compares the values of the variables in the addresses that both nodes have.
    fn compare_server_variables(&mut self, place: &str, old: &Value, new: &Value) {
        for ((_, name), old, new) in aligned(&server_variables(old), &server_variables(new)) {
            match (old, new) {
                (Some(Some(old)), Some(Some(new))) => {
                    for value in old.symmetric_difference(new) {
                        let part = format!("the value {value} of the server variable {name}");
                        self.report_part(place, &part, (Impact::NonBreaking, Impact::Breaking), new.contains(value));
                    }
                }
                (Some(None), Some(Some(_))) => {
                    self.report(Impact::Breaking, place, format!("the server variable {name} now has a list of values"));
                }
                (Some(Some(_)), Some(None)) => {
                    let text = format!("the server variable {name} no longer has a list of values");
                    self.report(Impact::NonBreaking, place, text);
                }
                // The addresses differ.
                _ => {}
            }
        }
    }

    /// Compares the operations of path items, which are the members of a node. `sent` is the direction of their requests.
    fn compare_operations(&mut self, prefix: &str, old: &'a Value, new: &'a Value, sent: Sent) {
        let by_shape = |operation: DocumentOperation<'a>| (operation.shape(), operation);
        let old: BTreeMap<_, _> = self.old.operations_of(old).into_iter().map(by_shape).collect();
        let new: BTreeMap<_, _> = self.new.operations_of(new).into_iter().map(by_shape).collect();
        for (_, old, new) in aligned(&old, &new) {
            let place = format!("{prefix}{}", new.or(old).map(DocumentOperation::name).unwrap_or_default());
            match (old, new) {
                (Some(old), Some(new)) => self.compare_operation(&place, old, new, sent),
                _ => self.report_part(&place, "the operation", (Impact::NonBreaking, Impact::Breaking), new.is_some()),
            }
        }
    }

    fn compare_operation(&mut self, place: &str, old: &DocumentOperation<'a>, new: &DocumentOperation<'a>, sent: Sent) {
        if old.node["operationId"] != new.node["operationId"] {
            self.report(Impact::Breaking, place, format!("the operationId is now {}", new.node["operationId"]));
        }
        if old.variables().ne(new.variables()) {
            self.report(Impact::Breaking, place, "the path's variables have other names");
        }
        self.compare_own_servers(place, old, new);
        self.compare_scopes(place, &old.node["x-scopes"], &new.node["x-scopes"]);
        self.compare_security(place, old, new);
        self.compare_deprecation(place, old.node, new.node);
        for keyword in ["tags", "x-deprecated-since", "x-sunset"] {
            if old.node[keyword] != new.node[keyword] {
                self.report(Impact::NonBreaking, place, format!("{keyword} is now {}", new.node[keyword]));
            }
        }
        self.compare_parameters(place, old, new, sent);
        self.compare_request_body(place, &old.node["requestBody"], &new.node["requestBody"], sent);
        self.compare_responses(place, &old.node["responses"], &new.node["responses"], sent.reversed());
        self.compare_callbacks(place, &old.node["callbacks"], &new.node["callbacks"], sent.reversed());
    }

    /// Compares the servers of an operation if the old or the new document has other ones for it than for the whole document.
    fn compare_own_servers(&mut self, place: &str, old: &DocumentOperation<'a>, new: &DocumentOperation<'a>) {
        let (old, new) = (old.node_with_servers(), new.node_with_servers());
        if old.is_some() || new.is_some() {
            self.compare_servers(place, old.unwrap_or(self.old.0), new.unwrap_or(self.new.0));
        }
    }

    fn compare_callbacks(&mut self, place: &str, old: &'a Value, new: &'a Value, sent: Sent) {
        let nothing = &Value::Null;
        for (name, old, new) in aligned(&members(old), &members(new)) {
            let old = self.old.resolve(old.copied().unwrap_or(nothing));
            let new = self.new.resolve(new.copied().unwrap_or(nothing));
            self.compare_operations(&format!("{place} callback {name} "), old, new, sent);
        }
    }

    /// Compares the alternative security requirements, which have no order.
    fn compare_security(&mut self, place: &str, old: &DocumentOperation<'a>, new: &DocumentOperation<'a>) {
        let (old, new) = (requirements(self.old, old), requirements(self.new, new));
        let has_same =
            |list: &[Requirement], one: &Requirement| list.iter().any(|other| is_implied(one, other) && is_implied(other, one));
        if old.iter().all(|one| has_same(&new, one)) && new.iter().all(|one| has_same(&old, one)) {
            return;
        }
        // A client that satisfies an old alternative must satisfy a new one.
        let is_accepted = |old: &Requirement| new.iter().any(|new| is_implied(new, old));
        let impact = if old.iter().all(is_accepted) { Impact::NonBreaking } else { Impact::Breaking };
        self.report(impact, place, "the security requirements have changed");
    }

    fn compare_scopes(&mut self, place: &str, old: &'a Value, new: &'a Value) {
        let (old, new) = (strings(old), strings(new));
        for scope in old.symmetric_difference(&new) {
            let part = format!("the scope {scope}");
            self.report_part(place, &part, (Impact::NonBreaking, Impact::Breaking), new.contains(scope));
        }
    }

    fn compare_parameters(&mut self, place: &str, old: &DocumentOperation<'a>, new: &DocumentOperation<'a>, sent: Sent) {
        let by_name = |document: Document<'a>, operation: &DocumentOperation<'a>| -> BTreeMap<String, &'a Value> {
            let parameters = document.parameters(operation).into_iter();
            // Names of variables are compared with the path.
            parameters.filter(|(_, parameter)| parameter["in"] != "path").collect()
        };
        for (name, old, new) in aligned(&by_name(self.old, old), &by_name(self.new, new)) {
            let Some(parameter) = new.or(old) else { continue };
            let (Some(old), Some(new)) = (old, new) else {
                let added = if parameter["required"] == true { sent.narrowed() } else { Impact::NonBreaking };
                self.report_part(place, &format!("the parameter {name}"), (added, Impact::Breaking), new.is_some());
                continue;
            };
            self.compare_parameter(&format!("{place} {name}"), old, new, sent);
        }
        let path = |document: Document<'a>, operation: &DocumentOperation<'a>| -> Vec<&'a Value> {
            let all = document.parameters(operation);
            operation.variables().filter_map(|name| all.get(&format!("path.{name}")).copied()).collect()
        };
        for (old, new) in path(self.old, old).into_iter().zip(path(self.new, new)) {
            self.compare_parameter(&format!("{place} {}", new["name"].as_str().unwrap_or_default()), old, new, sent);
        }
    }

    /// Compares two parameters or headers.
    fn compare_parameter(&mut self, place: &str, old: &'a Value, new: &'a Value, sent: Sent) {
        self.compare_required(place, old, new, sent);
        self.compare_deprecation(place, old, new);
        for ((keyword, old), (_, new)) in serialization(old).into_iter().zip(serialization(new)) {
            if old != new {
                self.report(Impact::Breaking, place, format!("{keyword} is now {new}"));
            }
        }
        match (old["allowEmptyValue"] == true, new["allowEmptyValue"] == true) {
            (false, true) => self.report(sent.widened(), place, "it can now be empty"),
            (true, false) => self.report(sent.narrowed(), place, "it can no longer be empty"),
            _ => {}
        }
        match (old["content"].is_null(), new["content"].is_null()) {
            (true, true) => self.compare_schema(place, &old["schema"], &new["schema"], sent),
            (false, false) => self.compare_contents(place, old, new, sent),
            (is_added, _) => self.report_part(place, "content", (Impact::Breaking, Impact::Breaking), is_added),
        }
    }

    /// Compares the flag `deprecated` of an operation, a parameter or a header.
    fn compare_deprecation(&mut self, place: &str, old: &Value, new: &Value) {
        match (old["deprecated"] == true, new["deprecated"] == true) {
            (false, true) => self.report(Impact::NonBreaking, place, "it is now deprecated"),
            (true, false) => self.report(Impact::NonBreaking, place, "it is no longer deprecated"),
            _ => {}
        }
    }

    /// Compares the flag `required` of a parameter, a header or a body.
    fn compare_required(&mut self, place: &str, old: &Value, new: &Value, sent: Sent) {
        match (old["required"] == true, new["required"] == true) {
            (false, true) => self.report(sent.narrowed(), place, "it is now required"),
            (true, false) => self.report(sent.widened(), place, "it is no longer required"),
            _ => {}
        }
    }

    fn compare_request_body(&mut self, place: &str, old: &'a Value, new: &'a Value, sent: Sent) {
        let (old, new) = (self.old.resolve(old), self.new.resolve(new));
        match (old.is_null(), new.is_null()) {
            (true, true) => {}
            (false, false) => {
                let place = format!("{place} body");
                self.compare_required(&place, old, new, sent);
                self.compare_contents(&place, old, new, sent);
            }
            (is_added, _) => {
                let added = if new["required"] == true { sent.narrowed() } else { Impact::NonBreaking };
                self.report_part(place, "the request body", (added, Impact::Breaking), is_added);
            }
        }
    }

    fn compare_responses(&mut self, place: &str, old: &'a Value, new: &'a Value, sent: Sent) {
        for (status, old, new) in aligned(&members(old), &members(new)) {
            let is_success = status.starts_with('2');
            let (Some(old), Some(new)) = (old, new) else {
                let impacts = match sent {
                    Sent::ByClient => (sent.widened(), sent.narrowed()),
                    Sent::ByServer if is_success => (Impact::Breaking, Impact::Breaking),
                    Sent::ByServer => (Impact::NonBreaking, Impact::NonBreaking),
                };
                self.report_part(place, &format!("the response {status}"), impacts, new.is_some());
                continue;
            };
            let place = component_name(new).unwrap_or_else(|| format!("{place} {status}"));
            let (old, new) = (self.old.resolve(old), self.new.resolve(new));
            if self.compared.insert((vec![ptr::from_ref(old)], vec![ptr::from_ref(new)], sent)) {
                self.compare_headers(&place, old, new, sent);
                self.compare_contents(&place, old, new, sent);
            }
        }
    }

    fn compare_headers(&mut self, place: &str, old: &'a Value, new: &'a Value, sent: Sent) {
        for (name, old, new) in aligned(&self.old.headers(old), &self.new.headers(new)) {
            let (Some(old), Some(new)) = (old, new) else {
                let is_required = old.or(new).is_some_and(|header| header["required"] == true);
                let optional = (Impact::NonBreaking, Impact::NonBreaking);
                let impacts = if is_required { (sent.narrowed(), sent.widened()) } else { optional };
                self.report_part(place, &format!("the header {name}"), impacts, new.is_some());
                continue;
            };
            self.compare_parameter(&format!("{place} {name}"), old, new, sent);
        }
    }

    /// Compares the media types of a body or parameter, and the schema of each.
    fn compare_contents(&mut self, place: &str, old: &'a Value, new: &'a Value, sent: Sent) {
        let (old_contents, new_contents) = (contents(old), contents(new));
        for (media_type, old, new) in aligned(&old_contents, &new_contents) {
            // A range such as `image/*` accepts the media types that were declared before.
            let range = || new_contents.iter().find(|(range, _)| matches_range(range, essence(media_type)));
            let accepted = new.or_else(|| range().filter(|_| sent == Sent::ByClient).map(|(_, content)| content));
            if let (Some(old), Some(new)) = (old, accepted) {
                self.compare_schema(place, &old["schema"], &new["schema"], sent);
                self.compare_encodings(place, &old["encoding"], &new["encoding"]);
            } else {
                let impacts = (Impact::NonBreaking, Impact::Breaking);
                self.report_part(place, &format!("the media type {media_type}"), impacts, new.is_some());
            }
        }
    }

    /// Compares the encodings of a form's properties.
    fn compare_encodings(&mut self, place: &str, old: &'a Value, new: &'a Value) {
        for (name, old, new) in aligned(&members(old), &members(new)) {
            let keywords = |encoding: Option<&&'a Value>| encoding.map(|encoding| keywords_of(encoding)).unwrap_or_default();
            if keywords(old) != keywords(new) {
                self.report(Impact::Breaking, place, format!("the encoding of {name} has changed"));
            }
        }
    }
}

/// A security requirement: schemes, with the scopes that each must have. A request must satisfy all of them.
type Requirement<'a> = Vec<(BTreeSet<&'a str>, [String; 4])>;

/// Returns the alternative security requirements of an operation. The names of the schemes have no meaning.
fn requirements<'a>(document: Document<'a>, operation: &DocumentOperation<'a>) -> Vec<Requirement<'a>> {
    let alternatives = document.security(operation).and_then(Value::as_array).into_iter().flatten();
    let schemes = &document.0["components"]["securitySchemes"];
    let scheme = |(name, scopes): (&'a String, &'a Value)| (strings(scopes), credential(document.resolve(&schemes[name])));
    let mut alternatives: Vec<Requirement> =
        alternatives.map(|all| all.as_object().into_iter().flatten().map(scheme).collect()).collect();
    if alternatives.is_empty() {
        // An empty alternative allows requests without a credential, as no alternative does.
        alternatives.push(Vec::new());
    }
    alternatives
}

/// Returns the members of a security scheme that determine what a client sends. The others tell how to get a credential.
fn credential(scheme: &Value) -> [String; 4] {
    let text = |key: &str| scheme[key].as_str().unwrap_or_default().to_owned();
    [text("type"), text("in"), text("name"), text("scheme").to_lowercase()]
}

/// Returns whether a request that satisfies `given` always satisfies `required`.
fn is_implied(required: &Requirement, given: &Requirement) -> bool {
    let is_given = |(scopes, scheme): &(BTreeSet<&str>, [String; 4])| {
        given.iter().any(|(given_scopes, given_scheme)| scheme == given_scheme && scopes.is_subset(given_scopes))
    };
    required.iter().all(is_given)
}

/// Returns the strings of a list.
fn strings(list: &Value) -> BTreeSet<&str> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

/// Returns the keywords for the serialization of a parameter, with their defaults.
fn serialization(parameter: &Value) -> [(&'static str, Value); 3] {
    let style = parameter["style"].as_str().unwrap_or_else(|| default_style(parameter));
    // The style `deepObject` is the same with and without `explode`.
    let explode = style == "deepObject" || parameter["explode"].as_bool().unwrap_or(style == "form");
    [("style", json!(style)), ("explode", json!(explode)), ("allowReserved", json!(parameter["allowReserved"] == true))]
}

/// Returns whether two addresses can belong to the same server. One without a host has the host of the document, which is unknown.
fn is_same_server(one: &str, other: &str) -> bool {
    let is_relative = |url: &str| url.is_empty() || url.starts_with('/');
    one == other || base_path(one) == base_path(other) && (is_relative(one) || is_relative(other))
}

/// Returns the values of the variables in servers, by address and name; `None` for a variable without a list.
fn server_variables(node: &Value) -> BTreeMap<(&str, &str), Option<BTreeSet<&str>>> {
    let servers = node["servers"].as_array().into_iter().flatten();
    let variables = servers.flat_map(|server| {
        let url = server["url"].as_str().unwrap_or_default();
        members(&server["variables"]).into_iter().map(move |(name, variable)| ((url, name), variable.get("enum").map(strings)))
    });
    variables.collect()
}

/// Returns an address or a path, or `/` instead of an empty one.
fn or_root(path: &str) -> &str {
    if path.is_empty() { "/" } else { path }
}

/// Returns the members of an object, by name.
fn members(node: &Value) -> BTreeMap<&str, &Value> {
    node.as_object().into_iter().flatten().map(|(name, member)| (name.as_str(), member)).collect()
}

/// Returns the contents of a body or parameter by media type, in lower case and without a charset, which has no effect on clients.
fn contents(node: &Value) -> BTreeMap<String, &Value> {
    let is_charset = |parameter: &&str| parameter.starts_with("charset=");
    let key = |media_type: &str| {
        let normalized = normalize(media_type);
        normalized.split(';').filter(|parameter| !is_charset(parameter)).collect::<Vec<_>>().join(";")
    };
    members(&node["content"]).into_iter().map(|(media_type, content)| (key(media_type), content)).collect()
}

/// Returns the name of the shared component that a node refers to, also with the name that a discriminator has for it.
fn component_name(node: &Value) -> Option<String> {
    let node = subtypes::restricted(node).map_or(node, |(subtype, _)| subtype);
    Some(node.get("$ref")?.as_str()?.rsplit('/').next()?.to_owned())
}
