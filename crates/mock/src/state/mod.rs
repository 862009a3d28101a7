//! State of a mock with `--stateful`: a resource that was posted to a collection can be read, listed, changed and deleted.
//!
//! A collection is a path with a POST and with items below it: `/things` and `/things/{id}`. It is seeded from the document's
//! examples, so that every resource in a response can also be read. Singletons that can be changed, such as an account's
//! preferences, are stored too. All other operations respond as without state. A path below an item (`/things/{id}/parts`)
//! returns 404 once the item is deleted, and its `self` URIs contain the requested item.

mod list;
mod page;
mod resource;
mod seed;
mod store;

use std::collections::{HashMap, HashSet};

use boxoffice_http::error::Error;
use boxoffice_openapi::response::{BodyContent, essence};
use boxoffice_openapi::{Contract, Operation, ParsedRequest, Schema};
use page::PageNumbers;
use parking_lot::Mutex;
use percent_encoding::percent_decode_str;
use resource::{
    Alphabet, ID_PROPERTIES, assign_id, identifier_property, identity, merge, project_to_schema, rebase, violation_count,
    with_other_variant,
};
use serde_json::{Map, Value};
use slog::warn;
use store::{Resource, ResourceStore};

use crate::responses::{OperationResponses, RenderContext, SelectedResponse};

/// Maximum number of attempts per alphabet to find an identifier for a new resource that is unused and valid.
const MAX_ID_ATTEMPTS: u64 = 100;

/// The stateful part of a mock: the collections of a document and their resources. All paths are those of the document, without a
/// slash at their end.
pub struct MockStore {
    collection_paths: HashSet<String>,
    /// Paths of items, and other paths in their `self`: `/events/{event}/sections/{section}` and `/sections/{section}`.
    item_paths: HashSet<String>,
    /// The prefix of such a shorter path, by item path: `/sections`.
    short_prefixes: HashMap<String, String>,
    /// Paths of resources that can be read and changed, but neither created nor listed, with what a GET returns before the first
    /// change. Null if that can't be generated.
    singletons: HashMap<String, Value>,
    /// The first example of an item, by item path.
    item_examples: HashMap<String, Value>,
    resources: Mutex<ResourceStore>,
}

/// A request with the response that it would get without state.
pub struct MockRequest<'a> {
    /// The requested operation.
    pub operation: &'a Operation,
    /// Its path, without the server's prefix.
    pub path: &'a str,
    /// The server's prefix.
    pub prefix: &'a str,
    /// Its arguments.
    pub arguments: &'a ParsedRequest,
    /// The selected response.
    pub selected: &'a SelectedResponse<'a>,
    /// The document and the log.
    pub context: &'a RenderContext<'a>,
    /// The seed of generated data.
    pub seed: u64,
}

/// A response's body from the store.
pub struct MockBody {
    /// The body.
    pub value: Value,
    /// The path of a created resource, without the server's prefix.
    pub location: Option<String>,
    /// The numbers of a page, for headers such as `X-Total-Count`.
    pub numbers: Option<PageNumbers>,
}

impl MockStore {
    /// Finds the collections of a document and seeds them from its examples.
    pub fn new(context: &RenderContext<'_>, responses: &HashMap<String, OperationResponses>) -> Self {
        let contract = context.contract;
        let paths: HashSet<&str> = contract.operations().map(|operation| operation.path.as_str()).collect();
        let has = |method: &str, path: &str| find_operation(contract, method, path).is_some();
        let item_paths = paths.iter().filter(|path| last_variable(path).is_some() && has("POST", parent(path)));
        let (mut item_paths, unidentified): (Vec<_>, Vec<_>) =
            item_paths.map(|path| (*path).to_owned()).partition(|path| has_identifier(contract, path));
        for path in unidentified {
            warn!(context.log, "resources posted to {} are not stored: the response has no identifier", parent(&path));
        }
        for path in paths.iter().filter(|path| path.ends_with("}/")) {
            warn!(context.log, "resources at {} are not stored: the path ends with a slash", path);
        }
        // Parents before children.
        item_paths.sort_by_key(|path| (path.matches('/').count(), path.clone()));
        let is_singleton = |operation: &&Operation| {
            let path = template(operation);
            operation.method == "GET" && last_variable(&operation.path).is_none() && (has("PUT", path) || has("PATCH", path))
        };
        let initial_value = |operation: &Operation| {
            let selected = responses.get(&operation.pointer)?.select(operation, None, None).ok()?;
            selected.body_value(context, context.seed).ok()
        };
        let singletons = contract.operations().filter(is_singleton);
        let singletons =
            singletons.map(|operation| (template(operation).to_owned(), initial_value(operation).unwrap_or_default()));
        let mut store = Self {
            singletons: singletons.collect(),
            collection_paths: item_paths.iter().map(|path| parent(path).to_owned()).collect(),
            item_paths: item_paths.iter().cloned().collect(),
            short_prefixes: HashMap::new(),
            item_examples: HashMap::new(),
            resources: Mutex::default(),
        };
        for path in item_paths {
            store.seed_collection(contract, responses, &path);
        }
        store.seed_nested(contract);
        store
    }

    /// Returns the paths that lead to a resource: in its collection, in its `self`, and the shorter one of its item path.
    fn lookup_paths(&self, contract: &Contract, item_path: &str, collection: &str, id: &str, value: &Value) -> Vec<String> {
        let own = self_path(contract, value).map(|(_, path)| path);
        let short = self.short_prefixes.get(item_path).map(|prefix| format!("{prefix}/{id}"));
        [Some(format!("{collection}/{id}")), own, short].into_iter().flatten().collect()
    }

    /// Returns the body of the response; `None` if it doesn't depend on the store.
    ///
    /// # Errors
    /// 404 if the requested item or one of its parents doesn't exist, or a list has no such page.
    pub fn execute(&self, request: &MockRequest<'_>) -> Result<Option<MockBody>, Error> {
        let path = normalize_path(request.path);
        let template = template(request.operation);
        let resources = &mut *self.resources.lock();
        let ends = |path: &str| path.match_indices('/').map(|(end, _)| end).skip(1).chain([path.len()]).collect::<Vec<_>>();
        // A missing parent is 404 only if the document declares that.
        let checks_parents = request.operation.response_for(404).is_some();
        for (template_end, path_end) in ends(template).into_iter().zip(ends(&path)) {
            let is_checked = path_end == path.len() || checks_parents;
            let is_item = self.item_paths.contains(&template[..template_end]);
            if is_checked && is_item && !resources.contains(&path[..path_end]) {
                return Err(Error::NOT_FOUND);
            }
        }
        let is_item = self.item_paths.contains(template);
        let is_collection = self.collection_paths.contains(template);
        let value = match request.operation.method.as_str() {
            "GET" if is_item => resources.get_mut(&path).and_then(|resource| request.project(&resource.value)),
            "PUT" | "PATCH" if is_item => resources.update(template, &path, |resource| request.update(resource)),
            "DELETE" if is_item => resources.remove(&path).and_then(|resource| request.project(&resource.value)),
            "GET" if is_collection => {
                let values: Vec<_> = resources.list(&path).map(|resource| &resource.value).collect();
                let page = list::render_page(request, &values)?;
                return Ok(page.map(|(value, numbers)| MockBody { value, location: None, numbers: Some(numbers) }));
            }
            "GET" | "PUT" | "PATCH" if self.singletons.contains_key(template) => {
                let initial = self.singletons.get(template);
                initial.and_then(|initial| respond_singleton(request, resources, &path, initial))
            }
            "POST" if is_collection && !request.returns_parent() => {
                return Ok(self.item_path(request.operation).and_then(|item| self.create(request, resources, (item, &path))));
            }
            "POST" if !is_collection && self.creates_sibling(request) => {
                return Ok(self.create(request, resources, (parent(template), parent(parent(&path)))));
            }
            "POST" => {
                if is_collection {
                    self.create_entry(request, resources, &path);
                }
                self.apply_action(request, resources, &path).or_else(|| request.rebased_example())
            }
            _ => request.rebased_example(),
        };
        Ok(value.map(|value| MockBody { value, location: None, numbers: None }))
    }

    /// Creates a resource from the document's example and the request's body; several if the response is a list.
    fn create(
        &self,
        request: &MockRequest<'_>,
        resources: &mut ResourceStore,
        (item_path, collection): (&str, &str),
    ) -> Option<MockBody> {
        let schema = request.selected.schema();
        let example = request.rebase_uris(request.selected.body_value(request.context, request.seed).ok()?);
        let mut create = |schema: Option<&Schema>, example: &Value| {
            self.create_resource(request, resources, (item_path, collection), schema, example)
        };
        let Value::Array(examples) = &example else {
            let (id, value) = create(schema, &example)?;
            return Some(MockBody { value, location: Some(format!("{collection}/{id}")), numbers: None });
        };
        let schema = schema.and_then(|schema| list::entry_schema(schema, None));
        let created: Option<Vec<_>> = examples.iter().map(|example| Some(create(schema.as_ref(), example)?.1)).collect();
        Some(MockBody { value: created?.into(), location: None, numbers: None })
    }

    /// Creates the entry of a collection whose POST returns the resource above it, such as a return of an order. It is the document's
    /// example of an entry with the properties of the request's body.
    fn create_entry(&self, request: &MockRequest<'_>, resources: &mut ResourceStore, collection: &str) -> Option<()> {
        let item_path = self.item_path(request.operation)?;
        let example = request.rebase_uris(self.item_examples.get(item_path)?.clone());
        let schema = success_schema(request.context.contract, item_path);
        self.create_resource(request, resources, (item_path, collection), schema, &example).map(|_| ())
    }

    /// Returns whether a POST below an item returns another item of the same collection, such as a copy of an event.
    fn creates_sibling(&self, request: &MockRequest<'_>) -> bool {
        let item_path = parent(template(request.operation));
        let contract = request.context.contract;
        let own = self.item_examples.get(item_path).and_then(|example| self_path(contract, example));
        let returned = request.selected.examples().next().and_then(|example| self_path(contract, example));
        own.zip(returned).is_some_and(|((_, own), (operation, returned))| operation.path == item_path && own != returned)
    }

    /// Returns the path of the items of a collection; the first by name, if the document has more than one.
    fn item_path(&self, collection: &Operation) -> Option<&str> {
        self.item_paths.iter().map(String::as_str).filter(|path| parent(path) == template(collection)).min()
    }

    /// Stores a new resource and returns it with its new identifier. Returns `None` if the example has no identifier.
    fn create_resource(
        &self,
        request: &MockRequest<'_>,
        resources: &mut ResourceStore,
        (item_path, collection): (&str, &str),
        schema: Option<&Schema>,
        example: &Value,
    ) -> Option<(String, Value)> {
        let id_name = last_variable(item_path)?;
        let mut body = request.described_body();
        let example_id = identity(example, id_name)?;
        let without_id = |body: &Value| {
            let mut body = body.clone();
            if let (Some(body), Some(name)) = (body.as_object_mut(), identifier_property(example, id_name, &example_id)) {
                body.shift_remove(name);
            }
            body
        };
        let parents = merge(schema, example.clone(), &request.parents(schema));
        let variant = schema.and_then(|schema| with_other_variant(schema, &parents, &without_id(&body)));
        let example = &variant.unwrap_or(parents);
        let merged = merge(schema, example.clone(), &body);
        let requested_id = identity(&merged, id_name).filter(|id| *id != example_id && !id.contains('/'));
        let last_number = resources.last_number;
        let is_unused = |id: &str| !resources.contains(&format!("{collection}/{id}"));
        let (id, value) = match requested_id.filter(|id| is_unused(id)) {
            Some(id) => (id, merged),
            None => {
                let alphabets = [Alphabet::OfIdentifier, Alphabet::All];
                let attempts = alphabets.iter().flat_map(|alphabet| (1..=MAX_ID_ATTEMPTS).map(|number| (*alphabet, number)));
                let mut generated = attempts.map(|(alphabet, number)| {
                    let mut value = example.clone();
                    (assign_id(&mut value, id_name, last_number + number, alphabet), value)
                });
                let allowed_violations = violation_count(schema, example);
                let found = generated.find(|(id, value)| is_unused(id) && violation_count(schema, value) <= allowed_violations);
                let Some((id, value)) = found else {
                    warn!(request.context.log, "resource not stored: no unused identifier was found"; "collection" => collection);
                    return None;
                };
                body = without_id(&body);
                (id, merge(schema, value, &body))
            }
        };
        let paths = self.lookup_paths(request.context.contract, item_path, collection, &id, &value);
        resources.create(item_path, collection.to_owned(), paths, request.merge_into_item(item_path, &value, body));
        Some((id, value))
    }

    /// Applies an action (a POST below an item) and returns the item; `None` if the response is no such item. The change consists
    /// of the properties in which the action's example differs from the item's example.
    fn apply_action(&self, request: &MockRequest<'_>, resources: &mut ResourceStore, path: &str) -> Option<Value> {
        let schema = request.selected.schema()?;
        let resource = resources.get_mut(parent(path)).filter(|resource| violation_count(Some(schema), &resource.value) == 0)?;
        let item_path = parent(template(request.operation));
        let id_name = last_variable(item_path)?;
        let examples = self.item_examples.get(item_path).zip(request.selected.examples().next());
        if let Some((before, after)) = examples.filter(|(before, after)| identity(before, id_name) == identity(after, id_name)) {
            let is_changed = |(name, value): &(&String, &Value)| {
                *name != "self" && !value.is_array() && !value.is_object() && before.get(*name) != Some(*value)
            };
            let changes = after.as_object().into_iter().flatten().filter(is_changed);
            let changes: Map<_, _> = changes.map(|(name, value)| (name.clone(), value.clone())).collect();
            resource.value = merge(Some(schema), resource.value.clone(), &changes.into());
        }
        Some(resource.value.clone())
    }
}

impl MockRequest<'_> {
    /// Returns whether the response to a POST is the resource above the collection, such as the order to which a return was added.
    fn returns_parent(&self) -> bool {
        let example = self.selected.examples().next();
        let found = example.and_then(|example| self_path(self.context.contract, example));
        found.is_some_and(|(operation, _)| operation.path == parent(template(self.operation)))
    }

    /// Returns the example of a path with variables, with the requested path in its URIs.
    fn rebased_example(&self) -> Option<Value> {
        let has_variable = self.operation.path.contains('{');
        self.selected.examples().next().filter(|_| has_variable).map(|example| self.rebase_uris(example.clone()))
    }

    /// Replaces the beginning of the example's URIs with that of the requested path, as far as both have the same template.
    fn rebase_uris(&self, mut example: Value) -> Value {
        let find_self = |value| self_path(self.context.contract, value);
        let Some((operation, example_path)) = find_self(&example).or_else(|| list::entries(&example).iter().find_map(find_self))
        else {
            return example;
        };
        let segments = operation.path.split('/').zip(self.operation.path.split('/'));
        let common = segments.take_while(|(own, requested)| own == requested).count();
        let requested_path = normalize_path(self.path);
        // The longest prefix first: a shorter one changes the beginning of the longer ones.
        for length in (1..=common).rev() {
            let [old, new] =
                [&example_path, &requested_path].map(|path| path.split('/').take(length).collect::<Vec<_>>().join("/"));
            if old != new {
                rebase(&mut example, &old, &new);
            }
        }
        example
    }

    /// Returns a value in the shape of the response; `None` if the response has no body.
    fn project(&self, value: &Value) -> Option<Value> {
        let schema = self.selected.schema()?;
        project_to_schema(schema, value, || self.selected.body_value(self.context, self.seed).ok())
    }

    /// Applies the request's body, except for the identifier, to a resource and returns it in the shape of the response.
    fn update(&self, resource: &mut Resource) -> Option<Value> {
        let id = resource.paths.first().and_then(|path| path.rsplit('/').next()).unwrap_or_default();
        let mut changes = self.described_body();
        let variable = last_variable(&self.operation.path).unwrap_or_default();
        if let (Some(changes), Some(name)) = (changes.as_object_mut(), identifier_property(&resource.value, variable, id)) {
            changes.shift_remove(name);
        }
        if self.is_merge_patch() {
            let changes = changes.as_object_mut().into_iter().flatten();
            changes.for_each(|(name, change)| *change = merge_patch(&resource.value[name], change));
        }
        // The response may be another value than the resource, such as `{"success": true}`.
        let schema = success_schema(self.context.contract, template(self.operation));
        let changed = schema.and_then(|schema| with_other_variant(schema, &resource.value, &changes));
        resource.value = changed.unwrap_or_else(|| merge(schema, resource.value.take(), &changes));
        Some(merge(self.selected.schema(), self.project(&resource.value)?, &changes))
    }

    /// Returns whether a body changes the members of objects inside the resource (RFC 7396), instead of replacing these objects.
    fn is_merge_patch(&self) -> bool {
        let mut contents = self.operation.body.iter().flat_map(|body| &body.contents);
        contents.any(|content| essence(&content.media_type).eq_ignore_ascii_case("application/merge-patch+json"))
    }

    /// Returns the variables of the path that are properties of the created resource, such as `region` of `POST /{region}/shops`. The
    /// built-in document has URIs in properties with the names of variables.
    fn parents(&self, schema: Option<&Schema>) -> Value {
        let properties = schema.map(Schema::properties).unwrap_or_default();
        let variables = self.arguments.path.iter().filter(|_| !self.operation.is_builtin);
        let variables = variables.filter(|(name, _)| properties.iter().any(|(property, _)| property == name));
        variables.map(|(name, value)| (name.clone(), value.clone())).collect()
    }

    /// Returns the request's body without undeclared properties, if the document declares any. Properties that only the server
    /// sets are removed too: `readOnly` ones (OpenAPI 3.0, Schema Object) and `self`.
    fn described_body(&self) -> Value {
        let contents = self.operation.body.iter().flat_map(|body| &body.contents);
        let declared: Vec<_> = contents.filter_map(|content| content.schema.as_deref()).flat_map(Schema::properties).collect();
        let mut body = self.arguments.body.clone();
        if let Some(body) = body.as_object_mut() {
            body.retain(|name, _| {
                let mut declarations = declared.iter().filter(|(declared, _)| declared == name).peekable();
                let is_declared = declared.is_empty() || declarations.peek().is_some();
                name != "self" && is_declared && declarations.all(|(_, property)| property["readOnly"] != true)
            });
        }
        body
    }

    /// Returns a created resource in the shape of its item: the response's value, with further properties of the request's body.
    fn merge_into_item(&self, item_path: &str, created: &Value, mut body: Value) -> Value {
        let schema = success_schema(self.context.contract, item_path);
        if schema.is_none() {
            return created.clone();
        }
        if let Some(body) = body.as_object_mut() {
            body.retain(|name, _| created.get(name).is_none());
        }
        merge(schema, created.clone(), &body)
    }
}

/// Returns the value of a property after a change. An object keeps the members that the change doesn't have (RFC 7396).
fn merge_patch(current: &Value, change: &Value) -> Value {
    let (Value::Object(members), Value::Object(changes)) = (current, change) else { return change.clone() };
    let mut members = members.clone();
    for (name, change) in changes {
        if change.is_null() {
            members.shift_remove(name);
        } else {
            members.insert(name.clone(), merge_patch(&current[name], change));
        }
    }
    members.into()
}

/// Reads or updates a singleton. It is `initial`, the document's example, until the first update.
fn respond_singleton(request: &MockRequest<'_>, resources: &mut ResourceStore, path: &str, initial: &Value) -> Option<Value> {
    let is_read = request.operation.method == "GET";
    if !resources.contains(path) {
        let example = request.rebase_uris(initial.clone());
        if is_read {
            return request.project(&example);
        }
        resources.create(template(request.operation), path.to_owned(), vec![path.to_owned()], example);
    }
    if is_read {
        request.project(&resources.get_mut(path)?.value)
    } else {
        resources.update(template(request.operation), path, |resource| request.update(resource))
    }
}

/// Returns an operation's path without the slash at its end: `/things/` is the collection of `/things/{id}`.
fn template(operation: &Operation) -> &str {
    operation.path.trim_end_matches('/')
}

/// Returns the operation at a path without a slash at its end.
fn find_operation<'a>(contract: &'a Contract, method: &str, path: &str) -> Option<&'a Operation> {
    contract.operations().find(|operation| operation.method == method && template(operation) == path)
}

/// Returns the JSON content of an operation's lowest success.
fn success_content<'a>(contract: &'a Contract, method: &str, path: &str) -> Option<&'a BodyContent> {
    let operation = find_operation(contract, method, path)?;
    let successes = operation.responses.iter().filter(|response| (200..300).contains(response.statuses.start()));
    let response = successes.min_by_key(|response| *response.statuses.start())?;
    response.contents.iter().find(|content| content.is_json())
}

/// Returns the schema of a successful GET.
fn success_schema<'a>(contract: &'a Contract, path: &str) -> Option<&'a Schema> {
    success_content(contract, "GET", path)?.schema.as_deref()
}

/// Returns whether the response to a POST to an item's collection identifies the created resource.
fn has_identifier(contract: &Contract, item_path: &str) -> bool {
    let (Some(content), Some(id_name)) = (success_content(contract, "POST", parent(item_path)), last_variable(item_path)) else {
        return false;
    };
    let declares_identifier = |schema: &Schema| {
        let entry = list::entry_schema(schema, None);
        let properties = entry.as_ref().unwrap_or(schema).properties();
        properties.iter().any(|(name, _)| ["self", id_name].contains(name) || ID_PROPERTIES.contains(name))
    };
    content.schema.as_deref().is_some_and(declares_identifier)
        || content.examples.values().any(|example| identity(example, id_name).is_some())
}

/// Returns the path in a resource's `self`, and the operation that reads it.
fn self_path<'a>(contract: &'a Contract, value: &Value) -> Option<(&'a Operation, String)> {
    let uri = value["self"].as_str()?;
    let path = uri.split_once("://").map_or(uri, |(_, rest)| rest.find('/').map_or("", |slash| &rest[slash..]));
    let path = contract.without_prefix(path);
    Some((contract.find("GET", path).ok()?, normalize_path(path)))
}

/// Returns a path percent-decoded, except for `%2F`, and without empty segments.
fn normalize_path(path: &str) -> String {
    let segments = path.split('/').filter(|segment| !segment.is_empty());
    segments.map(|segment| format!("/{}", percent_decode_str(segment).decode_utf8_lossy().replace('/', "%2F"))).collect()
}

/// Returns a path without its last segment.
fn parent(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(parent, _)| parent)
}

/// Returns the name of the variable at the end of a path of the document.
fn last_variable(path: &str) -> Option<&str> {
    let (_, last) = path.rsplit_once('/')?;
    last.strip_prefix('{')?.strip_suffix('}').filter(|name| !name.contains(['{', '}']))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test may panic")]
mod tests;
