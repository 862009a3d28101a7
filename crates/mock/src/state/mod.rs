//! What `--stateful` keeps: what is posted to a collection can then be read, listed, changed and deleted.
//!
//! A collection is a path that can be posted to and has items below it: `/things` and `/things/{id}`. It begins with what the
//! document's examples show, so that whatever the mock shows can be read as well. What is one of its kind and can be changed, such
//! as somebody's preferences, is kept where it is. All the rest is answered as without state; but
//! what stands below an item (`/things/{id}/parts`) is there only as long as the item is, and calls itself by what is asked for.

mod store;
mod list;
mod resource;
mod seed;

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, PoisonError};

use percent_encoding::percent_decode_str;
use serde_json::{Map, Value};
use slog::warn;

use super::responses::{OperationResponses, RenderContext, SelectedResponse};
use boxoffice_openapi::response::Content;
use boxoffice_openapi::{Contract, Operation, ParsedRequest, Schema};
use boxoffice_http::error::Error;
use store::{Resource, ResourceStore};
use resource::{NAMES, identified, identity, merge, project_to_schema, rebase, violation_count};

/// So many identifiers are tried for a new resource until one is free, and valid by its schema.
const TRIES: u64 = 100;

/// The collections of a document, and what is in them.
pub struct MockStore {
    /// Their paths, as the document has them.
    collections: HashSet<String>,
    /// The paths of their items, and others under which items call themselves: `/events/{event}/sections/{section}` and
    /// `/sections/{section}`.
    items: HashSet<String>,
    /// What stands before the identifier in those others, by the path of the items: `/sections`.
    short: HashMap<String, String>,
    /// The paths of what is one of its kind: it can be read and changed, and neither posted nor listed.
    singles: HashSet<String>,
    /// The first example of an item, by the path of the items.
    examples: HashMap<String, Value>,
    kept: Mutex<ResourceStore>,
}

/// A request, and the answer that is given to it without state.
pub struct MockRequest<'a> {
    /// What it asks for.
    pub operation: &'a Operation,
    /// Its path, without that of the server.
    pub path: &'a str,
    /// What it says.
    pub arguments: &'a ParsedRequest,
    /// What is answered.
    pub choice: &'a SelectedResponse<'a>,
    /// What data are made from.
    pub making: &'a RenderContext<'a>,
    /// What they follow from.
    pub seed: u64,
}

/// What is kept, as the body of an answer.
pub struct MockBody {
    /// The body.
    pub value: Value,
    /// The path of a resource that is new, without that of the server.
    pub location: Option<String>,
}

impl MockStore {
    /// The collections of a document, with what its examples show.
    pub fn new(making: &RenderContext<'_>, answers: &HashMap<String, OperationResponses>) -> Self {
        let contract = making.contract;
        let paths: HashSet<&str> = contract.operations().map(|operation| operation.path.as_str()).collect();
        let has = |method: &str, path: &str| contract.operations().any(|other| other.method == method && other.path == path);
        let item_paths = paths.iter().filter(|path| variable(path).is_some() && has("POST", parent(path)));
        let (mut items, lost): (Vec<_>, Vec<_>) =
            item_paths.map(|path| (*path).to_owned()).partition(|item| is_identified(contract, item));
        for item in lost {
            let collection = parent(&item);
            warn!(making.log, "what is posted to {} is not kept: the answer has no property that identifies it", collection);
        }
        for path in paths.iter().filter(|path| path.ends_with("}/")) {
            warn!(making.log, "what is at {} is not kept: the path ends in a slash", path);
        }
        // What stands above is there before what stands below it.
        items.sort_by_key(|path| (path.matches('/').count(), path.clone()));
        let singles = paths.iter().filter(|path| has("GET", path) && (has("PUT", path) || has("PATCH", path)));
        let mut state = Self {
            singles: singles.filter(|path| variable(path).is_none()).map(|path| (*path).to_owned()).collect(),
            collections: items.iter().map(|path| parent(path).to_owned()).collect(),
            items: items.iter().cloned().collect(),
            short: HashMap::new(),
            examples: HashMap::new(),
            kept: Mutex::default(),
        };
        for item in items {
            state.show(contract, answers, &item);
        }
        state.show_parts(contract);
        state
    }

    /// Where a resource can be found: in its collection, under its `self`, and where others of its kind have theirs.
    fn paths(&self, contract: &Contract, item: &str, collection: &str, id: &str, value: &Value) -> Vec<String> {
        let short = self.short.get(item).map(|before| format!("{before}/{id}"));
        let own = self_path(contract, value).map(|(_, path)| path);
        [Some(format!("{collection}/{id}")), own, short].into_iter().flatten().collect()
    }

    /// The body to answer with; `None` where the request has nothing to do with what is kept.
    ///
    /// # Errors
    /// When what is asked for, or an item above it, is not there, or a list has no such page.
    pub fn answer(&self, asked: &MockRequest<'_>) -> Result<Option<MockBody>, Error> {
        let path = key(asked.path);
        let template = asked.operation.path.as_str();
        let kept = &mut *self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let ends = |text: &str| text.match_indices('/').map(|(at, _)| at).skip(1).chain([text.len()]).collect::<Vec<_>>();
        // What is below an item is missed only where the document says that it may be.
        let is_missed_below = asked.operation.answer(404).is_some();
        for (of_template, of_path) in ends(template).into_iter().zip(ends(&path)) {
            let is_asked = of_path == path.len() || is_missed_below;
            if is_asked && self.items.contains(&template[..of_template]) && !kept.has(&path[..of_path]) {
                return Err(Error::NOT_FOUND);
            }
        }
        let body = |value| Some(MockBody { value, location: None });
        match asked.operation.method.as_str() {
            "GET" if self.items.contains(template) => {
                Ok(kept.get_mut(&path).and_then(|resource| asked.project(&resource.value)).and_then(body))
            }
            "PUT" | "PATCH" if self.items.contains(template) => {
                Ok(kept.change(&path, |resource| asked.change(resource)).and_then(body))
            }
            "DELETE" if self.items.contains(template) => {
                Ok(kept.remove(&path).and_then(|resource| asked.project(&resource.value)).and_then(body))
            }
            "GET" if self.collections.contains(template) => {
                let values: Vec<_> = kept.list(&path).map(|resource| &resource.value).collect();
                Ok(list::page(asked, &values)?.and_then(body))
            }
            "GET" | "PUT" | "PATCH" if self.singles.contains(template) => Ok(singleton(asked, kept, &path).and_then(body)),
            "POST" if self.collections.contains(template) => Ok(self.create(asked, kept, &path)),
            "POST" => Ok(self.apply_action(asked, kept, &path).or_else(|| asked.shown()).and_then(body)),
            _ => Ok(asked.shown().and_then(body)),
        }
    }

    /// Keeps what is new: what the document shows, with what the request says of it. Several may be made at once.
    fn create(&self, asked: &MockRequest<'_>, kept: &mut ResourceStore, collection: &str) -> Option<MockBody> {
        // The first by name, where the document has more than one.
        let item = self.items.iter().filter(|item| parent(item) == asked.operation.path).min()?;
        let schema = asked.choice.schema();
        let shown = asked.rebase_uris(asked.choice.value(asked.making, asked.seed).ok()?);
        let mut keep = |schema: Option<&Schema>, shown| self.keep(asked, kept, (item, collection), schema, shown);
        let Value::Array(several) = &shown else {
            let (id, value) = keep(schema, &shown)?;
            return Some(MockBody { value, location: Some(format!("{collection}/{id}")) });
        };
        let schema = schema.and_then(|schema| list::entry(schema, None));
        let made: Option<Vec<_>> = several.iter().map(|shown| Some(keep(schema.as_ref(), shown)?.1)).collect();
        Some(MockBody { value: made?.into(), location: None })
    }

    /// Keeps one new resource, with an identifier of its own, which is given too. What has none in the document is not kept.
    fn keep(
        &self,
        asked: &MockRequest<'_>,
        kept: &mut ResourceStore,
        (item, collection): (&str, &str),
        schema: Option<&Schema>,
        shown: &Value,
    ) -> Option<(String, Value)> {
        let name = variable(item)?;
        let request = asked.described_body();
        let said = merge(schema, shown.clone(), &request);
        let old = identity(shown, name)?;
        let own = identity(&said, name).filter(|id| *id != old && !id.contains('/')).map(|id| (id, said.clone()));
        let first = kept.next;
        let others = (1..=TRIES).map(|number| {
            let mut value = said.clone();
            (identified(&mut value, name, &old, first + number), value)
        });
        let is_free = |id: &str| !kept.has(&format!("{collection}/{id}"));
        let (id, value) = own
            .into_iter()
            .chain(others)
            .find(|(id, value)| is_free(id) && violation_count(schema, value) <= violation_count(schema, shown))?;
        let paths = self.paths(asked.making.contract, item, collection, &id, &value);
        kept.post(item, collection.to_owned(), paths, asked.merge_into_item(item, &value, request));
        Some((id, value))
    }

    /// What is done to an item is answered with the item, where its kind is what is answered. It is left as the document shows
    /// it: with what stands there otherwise than in the item's own example.
    fn apply_action(&self, asked: &MockRequest<'_>, kept: &mut ResourceStore, path: &str) -> Option<Value> {
        let schema = asked.choice.schema()?;
        let resource = kept.get_mut(parent(path)).filter(|resource| violation_count(Some(schema), &resource.value) == 0)?;
        let above = parent(&asked.operation.path);
        let name = variable(above)?;
        let shown = self.examples.get(above).zip(asked.choice.examples().next());
        if let Some((item, done)) = shown.filter(|(item, done)| identity(item, name) == identity(done, name)) {
            let is_changed = |(name, value): &(&String, &Value)| {
                *name != "self" && !value.is_array() && !value.is_object() && item.get(*name) != Some(*value)
            };
            let changed = done.as_object().into_iter().flatten().filter(is_changed);
            let changed: Map<_, _> = changed.map(|(name, value)| (name.clone(), value.clone())).collect();
            resource.value = merge(Some(schema), resource.value.clone(), &changed.into());
        }
        Some(resource.value.clone())
    }
}

impl MockRequest<'_> {
    /// What the document shows below a path with variables, under the path that is asked for.
    fn shown(&self) -> Option<Value> {
        let is_below = self.operation.path.contains('{');
        self.choice.examples().next().filter(|_| is_below).map(|example| self.rebase_uris(example.clone()))
    }

    /// What the document shows, with URIs that begin as the path that is asked for, as far as it is the same to the document.
    fn rebase_uris(&self, mut shown: Value) -> Value {
        let own = |value| self_path(self.making.contract, value);
        let Some((operation, path)) = own(&shown).or_else(|| list::entries(&shown).iter().find_map(own)) else { return shown };
        let of_both = operation.path.split('/').zip(self.operation.path.split('/'));
        let length = of_both.take_while(|(own, asked)| own == asked).count();
        let asked = key(self.path);
        // What is inside goes first: afterwards it isn't where it was.
        for length in (1..=length).rev() {
            let [old, new] = [&path, &asked].map(|path| path.split('/').take(length).collect::<Vec<_>>().join("/"));
            if old != new {
                rebase(&mut shown, &old, &new);
            }
        }
        shown
    }

    /// A value as the answer has it; `None` where the answer has no body.
    fn project(&self, value: &Value) -> Option<Value> {
        let schema = self.choice.schema()?;
        project_to_schema(schema, value, || self.choice.value(self.making, self.seed).ok())
    }

    /// Changes what the request names of a resource, but for its identifier, and gives it as the answer has it.
    fn change(&self, resource: &mut Resource) -> Option<Value> {
        let id = resource.paths.first().and_then(|path| path.rsplit('/').next()).unwrap_or_default();
        let mut change = self.described_body();
        if let Some(change) = change.as_object_mut() {
            change.retain(|name, _| text(&resource.value[name]).as_deref() != Some(id));
        }
        let Some(shaped) = self.project(&resource.value) else {
            let whole = answered(self.making.contract, "GET", &self.operation.path).and_then(|content| content.schema.as_ref());
            resource.value = merge(whole, resource.value.take(), &change);
            return None;
        };
        let shaped = merge(self.choice.schema(), shaped, &change);
        if let (Value::Object(kept), Value::Object(shaped)) = (&mut resource.value, &shaped) {
            kept.extend(shaped.clone());
        }
        Some(shaped)
    }

    /// What the request says of a resource: the properties that its body is described to have, if it is described at all. The
    /// others are ignored, and so is what only the server says: `readOnly` (OpenAPI 3.0, Schema Object), and `self`.
    fn described_body(&self) -> Value {
        let contents = self.operation.body.iter().flat_map(|body| &body.contents);
        let described: Vec<_> = contents.filter_map(|content| content.schema.as_ref()).flat_map(Schema::properties).collect();
        let mut said = self.arguments.body.clone();
        if let Some(said) = said.as_object_mut() {
            said.retain(|name, _| {
                let mut own = described.iter().filter(|(known, _)| known == name).peekable();
                let is_known = described.is_empty() || own.peek().is_some();
                name != "self" && is_known && own.all(|(_, property)| property["readOnly"] != true)
            });
        }
        said
    }

    /// A new resource as it is kept: what is answered, with what else the request says of it and the item may have.
    fn merge_into_item(&self, item: &str, made: &Value, mut said: Value) -> Value {
        let schema = answered(self.making.contract, "GET", item).and_then(|content| content.schema.as_ref());
        if schema.is_none() {
            return made.clone();
        }
        if let Some(said) = said.as_object_mut() {
            said.retain(|name, _| made.get(name).is_none());
        }
        merge(schema, made.clone(), &said)
    }
}

/// What is one of its kind: as the document shows it, until it is changed.
fn singleton(asked: &MockRequest<'_>, kept: &mut ResourceStore, path: &str) -> Option<Value> {
    let is_read = asked.operation.method == "GET";
    if !kept.has(path) {
        let shown = asked.rebase_uris(asked.choice.value(asked.making, asked.seed).ok()?);
        if is_read {
            return Some(shown);
        }
        kept.post(&asked.operation.path, path.to_owned(), vec![path.to_owned()], shown);
    }
    if is_read { asked.project(&kept.get_mut(path)?.value) } else { kept.change(path, |resource| asked.change(resource)) }
}

/// The body that a method's success at a path of the document has, where it is JSON.
fn answered<'a>(contract: &'a Contract, method: &str, path: &str) -> Option<&'a Content> {
    let operation = contract.operations().find(|operation| operation.method == method && operation.path == path)?;
    let successes = operation.answers.iter().filter(|answer| (200..300).contains(answer.statuses.start()));
    let answer = successes.min_by_key(|answer| *answer.statuses.start())?;
    answer.contents.iter().find(|content| content.is_json())
}

/// Whether what is posted to an item's collection is answered with something that can identify it.
fn is_identified(contract: &Contract, item: &str) -> bool {
    let (Some(content), Some(variable)) = (answered(contract, "POST", parent(item)), variable(item)) else { return false };
    let is_described = |schema: &Schema| {
        let entry = list::entry(schema, None);
        let properties = entry.as_ref().unwrap_or(schema).properties();
        properties.iter().any(|(name, _)| ["self", variable].contains(name) || NAMES.contains(name))
    };
    content.schema.as_ref().is_some_and(is_described)
        || content.examples.values().any(|example| identity(example, variable).is_some())
}

/// The path by which a resource calls itself in `self`, and the operation that reads it.
fn self_path<'a>(contract: &'a Contract, value: &Value) -> Option<(&'a Operation, String)> {
    let uri = value["self"].as_str()?;
    let path = uri.split_once("://").map_or(uri, |(_, rest)| rest.find('/').map_or("", |slash| &rest[slash..]));
    let path = contract.without_prefix(path);
    Some((contract.find("GET", path).ok()?, key(path)))
}

/// A path as it is kept: decoded, but for what would part it otherwise, without slashes that mean nothing.
fn key(path: &str) -> String {
    let segments = path.split('/').filter(|segment| !segment.is_empty());
    segments.map(|segment| format!("/{}", percent_decode_str(segment).decode_utf8_lossy().replace('/', "%2F"))).collect()
}

/// A path without its last segment.
fn parent(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(parent, _)| parent)
}

/// The variable that a path of the document ends in.
fn variable(path: &str) -> Option<&str> {
    let (_, last) = path.rsplit_once('/')?;
    last.strip_prefix('{')?.strip_suffix('}').filter(|name| !name.contains(['{', '}']))
}

/// A text or a number as a path has it.
fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}
