//! Checks of the filters of a list: each returns the entries with the value, and no others.

use boxoffice_openapi::paging::{CURSOR_NAMES, OFFSET_NAMES, PAGE_NAMES, SIZE_NAMES, has_name};
use boxoffice_openapi::to_plain_string;
use serde_json::{Value, json};

use super::list_reader::{read_list, read_whole_list};
use crate::argument::{Argument, ArgumentLocation};
use crate::http_client::Request;
use crate::model::Check;
use crate::operation_run::OperationRun;

/// Names of parameters that select an order or the shape of entries. The contract's `past` only changes what a search finds.
const SHAPE_NAMES: [&str; 8] = ["sort", "order", "sortby", "orderby", "fields", "include", "expand", "past"];

impl OperationRun<'_> {
    /// Checks each filter of a list with a value that matches some entries and, if possible, not others.
    pub async fn check_filters(&mut self, list: &Request) {
        let no_filters = [&PAGE_NAMES[..], &SIZE_NAMES, &OFFSET_NAMES, &CURSOR_NAMES, &SHAPE_NAMES];
        let filters: Vec<&Argument> = self
            .operation
            .arguments
            .iter()
            .filter(|argument| argument.location == ArgumentLocation::Query && !argument.required)
            .filter(|argument| !no_filters.iter().any(|names| has_name(names, &argument.name)))
            .collect();
        if filters.is_empty() {
            return;
        }
        let Some((all, is_whole)) = read_list(self, list).await.filter(|(all, _)| !all.is_empty()) else { return };
        for argument in filters {
            let name = property_name(argument, &all);
            match self.distinguishing_value(argument, name, &all) {
                Some(value) => self.check_filter(list, argument, name, &value, (&all, is_whole)).await,
                None => self.check_hidden_filter(list, argument, &all).await,
            }
        }
    }

    /// Returns a value that some entries have, preferably not all.
    fn distinguishing_value(&self, argument: &Argument, name: &str, all: &[Value]) -> Option<Value> {
        let values: Vec<Value> = all.iter().flat_map(|entry| values_of(entry, name)).collect();
        let allows = |value: &Value| match is_list(argument) {
            true => argument.is_valid(&json!([value])),
            false => argument.allows(&to_plain_string(value)),
        };
        let is_usable = |value: &&Value| *value != "" && allows(value);
        let usable = || values.iter().filter(is_usable);
        let is_partial = |value: &&Value| all.iter().any(|entry| !matches(entry, name, value));
        usable().find(is_partial).or_else(|| usable().next()).cloned()
    }

    async fn check_filter(
        &mut self,
        list: &Request,
        argument: &Argument,
        name: &str,
        value: &Value,
        (all, is_whole): (&[Value], bool),
    ) {
        let filter = &argument.name;
        let request = self.filtered(list, argument, value);
        let Some((found, is_all)) = read_list(self, &request).await else { return };
        let wrong = found.iter().find(|entry| !values_of(entry, name).is_empty() && !matches(entry, name, value));
        let missing = all
            .iter()
            .filter(|_| is_whole && is_all)
            .find(|entry| has_value(entry, name, value) && !found.iter().any(|other| is_same(entry, other)));
        let failure = match (wrong, missing) {
            (Some(entry), _) => Some(self.failure(
                format!("the filter {filter} returns an entry with another value"),
                value.to_string(),
                entry.to_string(),
            )),
            (None, Some(entry)) => Some(self.failure(
                format!("the filter {filter} lacks an entry with the value"),
                entry.to_string(),
                format!("{} entries without it", found.len()),
            )),
            (None, None) => None,
        };
        self.record(Check::Filter, &request, failure);
        // If all entries have the value, another value must not return them.
        let is_everywhere = all.iter().all(|entry| has_value(entry, name, value));
        let other = match value {
            Value::Bool(flag) => Some(json!(!flag)),
            _ if value_schema(argument)["enum"].is_array() => {
                value_schema(argument)["enum"].as_array().and_then(|values| values.iter().find(|other| *other != value).cloned())
            }
            _ => argument.unknown_value(list, self.operation.spec),
        };
        if let Some(other) = other.filter(|_| is_everywhere) {
            let request = self.filtered(list, argument, &other);
            let Some((found, _)) = read_list(self, &request).await else { return };
            let wrong = found.iter().find(|entry| has_value(entry, name, value));
            let failure = wrong.map(|entry| {
                self.failure(
                    format!("the filter {filter} returns an entry with another value"),
                    other.to_string(),
                    entry.to_string(),
                )
            });
            self.record(Check::Filter, &request, failure);
        }
    }

    /// Returns the request for the entries with a value.
    fn filtered(&self, list: &Request, argument: &Argument, value: &Value) -> Request {
        let value = if is_list(argument) { json!([value]) } else { value.clone() };
        argument.set(list, self.operation.spec, Some(&value))
    }

    /// Checks a filter by what its entries don't show: not every value may return the whole list. Another document than the built-in one
    /// may have parameters that are no filters.
    async fn check_hidden_filter(&mut self, list: &Request, argument: &Argument, all: &[Value]) {
        if !self.comparison.is_builtin() {
            return;
        }
        let schema = value_schema(argument);
        let values: Vec<Value> = match (schema["type"].as_str(), schema["enum"].as_array()) {
            (Some("boolean"), _) => vec![json!(true), json!(false)],
            (_, Some(values)) => values.clone(),
            (Some("string"), None) if schema.get("format").is_none() => {
                argument.unknown_value(list, self.operation.spec).into_iter().collect()
            }
            _ => return,
        };
        let (mut sent, mut whole) = (0, 0);
        let mut last = None;
        for value in values {
            let request = self.filtered(list, argument, &value);
            let Some(found) = read_whole_list(self, &request).await else { continue };
            sent += 1;
            whole += usize::from(all.iter().all(|entry| found.iter().any(|other| is_same(entry, other))));
            last = Some(request);
        }
        let Some(request) = last else { return };
        let failure = (whole == sent).then(|| {
            let summary = format!("the filter {} is ignored: every value returns the whole list", argument.name);
            self.failure(summary, "fewer entries", format!("{} entries", all.len()))
        });
        self.record(Check::Filter, &request, failure);
    }
}

/// Returns the property that a filter selects by: that of the same name, or in the singular if the filter takes several values.
fn property_name<'a>(argument: &'a Argument, all: &[Value]) -> &'a str {
    let name = argument.name.as_str();
    let singular =
        name.strip_suffix('s').filter(|_| is_list(argument) && all.iter().all(|entry| values_of(entry, name).is_empty()));
    singular.unwrap_or(name)
}

/// Returns if a filter takes several values.
fn is_list(argument: &Argument) -> bool {
    argument.schema["type"] == "array"
}

/// Returns the schema of one value of a filter.
fn value_schema(argument: &Argument) -> &Value {
    if is_list(argument) { &argument.schema["items"] } else { &argument.schema }
}

/// Returns the values that an entry has for a filter: its property of this name, or one of an object in it.
fn values_of(entry: &Value, name: &str) -> Vec<Value> {
    let own = entry.get(name).or_else(|| entry.as_object()?.values().find_map(|member| member.as_object()?.get(name)));
    match own {
        Some(Value::Object(object)) => object.get("self").and_then(last_segment).into_iter().collect(),
        Some(Value::String(text)) if text.starts_with('/') => last_segment(&json!(text)).into_iter().collect(),
        Some(value @ (Value::String(_) | Value::Bool(_) | Value::Number(_))) => vec![value.clone()],
        _ => Vec::new(),
    }
}

fn last_segment(uri: &Value) -> Option<Value> {
    Some(json!(uri.as_str()?.rsplit('/').next()?))
}

/// Returns if an entry has exactly this value.
fn has_value(entry: &Value, name: &str, value: &Value) -> bool {
    values_of(entry, name).contains(value)
}

/// Returns if an entry has this value, or a text that contains it.
fn matches(entry: &Value, name: &str, value: &Value) -> bool {
    values_of(entry, name).iter().any(|own| match (own, value) {
        (Value::String(own), Value::String(value)) => own.to_lowercase().contains(&value.to_lowercase()),
        _ => own == value,
    })
}

/// Returns if two entries are of the same resource.
pub fn is_same(one: &Value, other: &Value) -> bool {
    if one["self"].is_string() { one["self"] == other["self"] } else { one == other }
}
