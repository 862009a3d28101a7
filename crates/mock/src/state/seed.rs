//! What the document's examples show, which a state begins with.

use std::collections::HashMap;
use std::sync::PoisonError;

use serde_json::Value;

use super::resource::{identity, violation_count};
use super::{MockStore, list, parent, self_path, text, variable};
use boxoffice_openapi::{Contract, ParameterLocation};
use crate::responses::{OperationResponses, SelectedResponse};

impl MockStore {
    /// Keeps what the examples show of a collection.
    pub(super) fn show(&mut self, contract: &Contract, answers: &HashMap<String, OperationResponses>, item: &str) {
        let shown = |method: &str, path: &str| -> Vec<Value> {
            let mut operations = contract.operations().filter(|operation| operation.method == method && operation.path == path);
            let choice =
                operations.next().and_then(|operation| answers.get(&operation.pointer)?.choose(operation, None, None).ok());
            choice.iter().flat_map(SelectedResponse::examples).cloned().collect()
        };
        let Some(collection) = self.shown_path(contract, parent(item)) else { return };
        let name = variable(item).unwrap_or_default();
        let (lists, single, posted) = (shown("GET", parent(item)), shown("GET", item), shown("POST", parent(item)));
        let listed = lists.first().map(list::entries).unwrap_or_default();
        for (own, _) in listed.iter().chain(&single).chain(&posted).filter_map(|value| self_path(contract, value)) {
            if own.path != item && !parent(&own.path).contains('{') {
                self.short.insert(item.to_owned(), parent(&own.path).to_owned());
            }
            self.items.insert(own.path.clone());
        }
        self.examples.extend(single.first().map(|value| (item.to_owned(), value.clone())));
        for (value, is_whole) in listed.iter().map(|value| (value, false)).chain(single.iter().rev().map(|value| (value, true))) {
            let Some(id) = identity(value, name) else { continue };
            let paths = self.paths(contract, item, &collection, &id, value);
            let kept = self.kept.get_mut().unwrap_or_else(PoisonError::into_inner);
            match kept.get_mut(&format!("{collection}/{id}")) {
                Some(known) if is_whole => known.value = value.clone(),
                Some(_) => {}
                None => kept.add(collection.clone(), paths, value.clone()),
            }
        }
        // The path that the document itself gives as an example leads to what it shows there.
        let example = self.shown_path(contract, item);
        let kept = self.kept.get_mut().unwrap_or_else(PoisonError::into_inner);
        let first = single.first().and_then(|value| kept.number(&format!("{collection}/{}", identity(value, name)?)));
        if let (Some(number), Some(path)) = (first, example)
            && !kept.has(&path)
        {
            kept.add_path(number, path);
        }
    }

    /// Keeps what stands anywhere in an example and calls itself an item that isn't known yet, such as the sender of a transfer,
    /// where it is all of that item and not a summary.
    pub(super) fn show_parts(&mut self, contract: &Contract) {
        let answers = contract.operations().flat_map(|operation| &operation.answers);
        let successes = answers.filter(|answer| (200..300).contains(answer.statuses.start()));
        let examples = successes.flat_map(|answer| &answer.contents).flat_map(|content| content.examples.values());
        for value in examples.flat_map(resources_in) {
            let Some((own, path)) = self_path(contract, value).filter(|(own, _)| self.items.contains(&own.path)) else {
                continue;
            };
            let content = own.answer(200).and_then(|answer| answer.contents.first());
            let is_known = self.kept.get_mut().unwrap_or_else(PoisonError::into_inner).has(&path);
            if is_known || violation_count(content.and_then(|content| content.schema.as_ref()), value) > 0 {
                continue;
            }
            let long = self.short.iter().find(|(_, before)| *before == parent(&own.path)).map(|(item, _)| item.as_str());
            let item = long.unwrap_or(&own.path);
            let collection = long.map_or_else(|| Some(parent(&path).to_owned()), |item| self.shown_path(contract, parent(item)));
            if let (Some(collection), Some(id)) = (collection, identity(value, variable(item).unwrap_or_default())) {
                let paths = self.paths(contract, item, &collection, &id, value);
                self.kept.get_mut().unwrap_or_else(PoisonError::into_inner).add(collection, paths, value.clone());
            }
        }
    }

    /// A path of the document with the examples of its variables, or, where one has none, what is kept there.
    fn shown_path(&self, contract: &Contract, template: &str) -> Option<String> {
        let below = |path: &str| path == template || path.starts_with(&format!("{template}/"));
        let parameters =
            || contract.operations().filter(|operation| below(&operation.path)).flat_map(|operation| &operation.parameters);
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let mut path = String::new();
        for segment in template.split('/').filter(|segment| !segment.is_empty()) {
            let value = match variable(&format!("/{segment}")) {
                None => segment.to_owned(),
                Some(name) => {
                    let mut named =
                        parameters().filter(|parameter| parameter.place == ParameterLocation::Path && parameter.name == name);
                    let example = named.find_map(|parameter| {
                        text(parameter.examples.values().next().or_else(|| parameter.schema.resolved.get("example"))?)
                    });
                    let kept = || {
                        let resource = kept.list(&path).next()?;
                        resource.paths.first()?.rsplit('/').next().map(str::to_owned)
                    };
                    example.or_else(kept)?
                }
            };
            path = format!("{path}/{value}");
        }
        Some(path)
    }
}

/// Whatever in a value calls itself something.
fn resources_in(value: &Value) -> Vec<&Value> {
    let own = Some(value).filter(|value| value["self"].is_string());
    let parts: Vec<&Value> = match value {
        Value::Array(items) => items.iter().collect(),
        Value::Object(object) => object.values().collect(),
        _ => Vec::new(),
    };
    own.into_iter().chain(parts.into_iter().flat_map(resources_in)).collect()
}
