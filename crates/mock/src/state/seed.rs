//! Seeding of the store from the document's examples.

use std::collections::HashMap;

use boxoffice_openapi::{Contract, ParameterLocation};
use serde_json::Value;

use super::resource::{identity, path_segment, violation_count};
use super::store::ResourceStore;
use super::{MockStore, find_operation, last_variable, list, parent, self_path};
use crate::responses::{OperationResponses, SelectedResponse};

impl MockStore {
    /// Adds the examples of a collection and its items to the store.
    pub(super) fn seed_collection(
        &mut self,
        contract: &Contract,
        responses: &HashMap<String, OperationResponses>,
        item_path: &str,
    ) {
        let examples = |method: &str, path: &str| -> Vec<Value> {
            let selected = find_operation(contract, method, path)
                .and_then(|operation| responses.get(&operation.pointer)?.select(operation, None, None).ok());
            selected.iter().flat_map(SelectedResponse::examples).cloned().collect()
        };
        let Some(collection) = self.example_path(contract, parent(item_path)) else { return };
        let id_name = last_variable(item_path).unwrap_or_default();
        let (lists, items) = (examples("GET", parent(item_path)), examples("GET", item_path));
        let created = examples("POST", parent(item_path));
        let entries = lists.first().map(list::entries).unwrap_or_default();
        // A POST may return the resource above the collection, such as the order of a return.
        let is_above = |path: &str| item_path.starts_with(&format!("{path}/"));
        let linked = entries.iter().chain(&items).chain(&created).filter_map(|value| self_path(contract, value));
        for (operation, _) in linked.filter(|(operation, _)| !is_above(&operation.path)) {
            if operation.path != item_path && !parent(&operation.path).contains('{') {
                self.short_prefixes.insert(item_path.to_owned(), parent(&operation.path).to_owned());
            }
            self.item_paths.insert(operation.path.clone());
        }
        self.item_examples.extend(items.first().map(|value| (item_path.to_owned(), value.clone())));
        let entries = entries.iter().map(|value| (value, false));
        for (value, is_complete) in entries.chain(items.iter().rev().map(|value| (value, true))) {
            let Some(id) = identity(value, id_name) else { continue };
            let paths = self.lookup_paths(contract, item_path, &collection, &id, value);
            let resources = self.resources_mut();
            match resources.get_mut(&format!("{collection}/{id}")) {
                Some(stored) if is_complete => stored.value = value.clone(),
                Some(_) => {}
                None => resources.add(collection.clone(), paths, value.clone()),
            }
        }
        // The path with the document's example values leads to the first example.
        let example_path = self.example_path(contract, item_path);
        let resources = self.resources_mut();
        let first = items.first().and_then(|value| resources.number(&format!("{collection}/{}", identity(value, id_name)?)));
        if let (Some(number), Some(path)) = (first, example_path)
            && !resources.contains(&path)
        {
            resources.add_path(number, path);
        }
    }

    /// Adds resources that are nested in other examples, such as the sender of a transfer. Summaries, which lack required
    /// properties of the item, are skipped.
    pub(super) fn seed_nested(&mut self, contract: &Contract) {
        let responses = contract.operations().flat_map(|operation| &operation.responses);
        let successes = responses.filter(|response| (200..300).contains(response.statuses.start()));
        let examples = successes.flat_map(|response| &response.contents).flat_map(|content| content.examples.values());
        for value in examples.flat_map(nested_resources) {
            let Some((operation, path)) = self_path(contract, value) else { continue };
            let content = operation.response_for(200).and_then(|response| response.contents.first());
            if !self.item_paths.contains(&operation.path)
                || self.resources_mut().contains(&path)
                || violation_count(content.and_then(|content| content.schema.as_deref()), value) > 0
            {
                continue;
            }
            let mut prefixes = self.short_prefixes.iter();
            let long = prefixes.find(|(_, prefix)| *prefix == parent(&operation.path)).map(|(item_path, _)| item_path.as_str());
            let item_path = long.unwrap_or(&operation.path);
            let collection = match long {
                Some(item_path) => self.example_path(contract, parent(item_path)),
                None => Some(parent(&path).to_owned()),
            };
            if let (Some(collection), Some(id)) = (collection, identity(value, last_variable(item_path).unwrap_or_default())) {
                let paths = self.lookup_paths(contract, item_path, &collection, &id, value);
                self.resources_mut().add(collection, paths, value.clone());
            }
        }
    }

    /// Replaces the variables of a path with their examples in the document, or else with the identifier of a stored resource.
    fn example_path(&self, contract: &Contract, template: &str) -> Option<String> {
        let is_below = |path: &str| path == template || path.starts_with(&format!("{template}/"));
        let parameters =
            || contract.operations().filter(|operation| is_below(&operation.path)).flat_map(|operation| &operation.parameters);
        let resources = self.resources.lock();
        let mut path = String::new();
        for segment in template.split('/').filter(|segment| !segment.is_empty()) {
            let value = match last_variable(&format!("/{segment}")) {
                None => segment.to_owned(),
                Some(name) => {
                    let mut variables =
                        parameters().filter(|parameter| parameter.location == ParameterLocation::Path && parameter.name == name);
                    let example = variables.find_map(|parameter| {
                        path_segment(parameter.examples.values().next().or_else(|| parameter.schema.resolved.get("example"))?)
                    });
                    let stored_id = || {
                        let resource = resources.list(&path).next()?;
                        resource.paths.first()?.rsplit('/').next().map(str::to_owned)
                    };
                    example.or_else(stored_id)?
                }
            };
            path = format!("{path}/{value}");
        }
        Some(path)
    }

    fn resources_mut(&mut self) -> &mut ResourceStore {
        self.resources.get_mut()
    }
}

/// Returns every object in a value that has a `self`.
fn nested_resources(value: &Value) -> Vec<&Value> {
    let own = Some(value).filter(|value| value["self"].is_string());
    let parts: Vec<&Value> = match value {
        Value::Array(items) => items.iter().collect(),
        Value::Object(object) => object.values().collect(),
        _ => Vec::new(),
    };
    own.into_iter().chain(parts.into_iter().flat_map(nested_resources)).collect()
}
