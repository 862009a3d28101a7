//! Lists of stored resources: the requested page, in the envelope of the document's example.

use boxoffice_http::error::{Code, Error};
use boxoffice_openapi::paging::{
    CURSOR_NAMES, OFFSET_NAMES, PAGE_NAMES, SIZE_NAMES, TOTAL_NAMES, entries_property, first_page, has_name, normalize_name,
};
use boxoffice_openapi::{Parameter, Schema};
use serde_json::{Map, Value};

use super::MockRequest;
use super::page::{PageNumbers, cursor_parameter, decode_cursor, set_next};
use super::resource::{project_to_schema, violation_count};

/// Page size if neither the request nor the document has one.
const DEFAULT_SIZE: usize = 25;

/// Returns the entries of a list: the list itself, or its first property that is an array, preferably of objects.
pub fn entries(list: &Value) -> &[Value] {
    let array = match list {
        Value::Object(object) => entries_property(list).and_then(|name| object.get(name)),
        _ => Some(list),
    };
    array.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

/// Returns the requested page and its numbers; `None` if the response is no list.
///
/// # Errors
/// 404 if the page is past the last one and the document declares this status.
pub fn render_page(request: &MockRequest<'_>, values: &[&Value]) -> Result<Option<(Value, PageNumbers)>, Error> {
    let (Some(schema), Ok(mut list)) = (request.selected.schema(), request.selected.body_value(request.context, request.seed))
    else {
        return Ok(None);
    };
    let property = entries_property(&list).map(str::to_owned);
    if property.is_none() && !list.is_array() {
        return Ok(None);
    }
    let parameter = |names: &[&str]| request.operation.parameters.iter().find(|parameter| has_name(names, &parameter.name));
    let to_number = |value: &Value| value.as_u64().and_then(|number| usize::try_from(number).ok());
    let argument = |names: &[&str]| {
        let parameter = parameter(names)?;
        let value = request.arguments.query.get(&parameter.name).or_else(|| parameter.schema.resolved.get("default"))?;
        to_number(value)
    };
    let example_size = || {
        let mut sizes = list.as_object().into_iter().flatten().filter(|(name, _)| has_name(&SIZE_NAMES, name));
        sizes.find_map(|(_, value)| to_number(value))
    };
    let size = match parameter(&SIZE_NAMES) {
        Some(_) => argument(&SIZE_NAMES).or_else(example_size).unwrap_or(DEFAULT_SIZE).max(1),
        None => usize::MAX,
    };
    let values: Vec<&Value> = values.iter().copied().filter(|value| matches_query(request, value)).collect();
    let first_page = usize::try_from(parameter(&PAGE_NAMES).map_or(1, first_page)).unwrap_or(1);
    let page = argument(&PAGE_NAMES).unwrap_or(first_page).max(first_page);
    let decode = |parameter: &Parameter| decode_cursor(parameter, request.arguments.query.get(&parameter.name)?, &values);
    let offset = cursor_parameter(request).and_then(decode).or_else(|| argument(&OFFSET_NAMES));
    let offset = offset.unwrap_or_else(|| (page - first_page).saturating_mul(size));
    if page > first_page && offset >= values.len() && request.operation.statuses.contains(&404) {
        return Err(Code::PAGE_PAST_END.into());
    }
    let on_page = || values.iter().copied().skip(offset).take(size);
    let count = on_page().count();
    let example = entries(&list).first().cloned();
    set_entries(&mut list, property.as_deref(), on_page().cloned().collect());
    if violation_count(Some(schema), &list) > 0
        && let Some(entry_schema) = entry_schema(schema, property.as_deref())
    {
        let example = |value| example.clone().unwrap_or_else(|| declared_part(&entry_schema, value));
        let projected = on_page().filter_map(|value| project_to_schema(&entry_schema, value, || Some(example(value))));
        set_entries(&mut list, property.as_deref(), projected.collect());
    }
    let numbers = PageNumbers { total: values.len(), count, page, size, offset };
    let envelope = list.as_object_mut().map(numbers_of).unwrap_or_default();
    let has_total = envelope.iter().any(|(name, _)| has_name(&TOTAL_NAMES, name));
    for (name, value) in envelope {
        let number = match normalize_name(name).as_str() {
            "count" if has_total => Some(count),
            "count" => Some(numbers.total),
            name => numbers.find(name),
        };
        if let Some(number) = number {
            *value = number.into();
        }
    }
    set_next(request, schema, &mut list, property.as_deref(), &numbers, on_page().next_back());
    Ok(Some((list, numbers)))
}

/// Returns whether an entry matches the query parameters that are named like its properties. It matches if the value is equal, is
/// the identifier at the end of a URI, or, for unrestricted text, is contained in the property. An array matches if one of its items
/// does. Other parameters are ignored, because the document doesn't define their meaning.
fn matches_query(request: &MockRequest<'_>, entry: &Value) -> bool {
    let paging = [&PAGE_NAMES[..], &SIZE_NAMES, &OFFSET_NAMES, &CURSOR_NAMES].concat();
    let parameters = request.operation.parameters.iter().filter(|parameter| !has_name(&paging, &parameter.name));
    let mut filters = parameters
        .filter_map(|parameter| Some((parameter, entry.get(&parameter.name)?, request.arguments.query.get(&parameter.name)?)));
    filters.all(|(parameter, value, filter)| {
        let schema = &parameter.schema.resolved;
        match filter.as_array() {
            Some(filters) => filters.is_empty() || filters.iter().any(|filter| matches_filter(&schema["items"], value, filter)),
            None => matches_filter(schema, value, filter),
        }
    })
}

/// Returns whether a property matches a query parameter, or an item of one, with this schema.
fn matches_filter(schema: &Value, value: &Value, filter: &Value) -> bool {
    if let Some(items) = value.as_array() {
        return items.iter().any(|item| matches_filter(schema, item, filter));
    }
    let (Some(text), Some(filter_text)) = (value.as_str(), filter.as_str()) else {
        return value == filter || value.is_object();
    };
    let is_free_text = ["enum", "pattern", "format"].iter().all(|keyword| schema.get(keyword).is_none());
    let contains = || text.to_lowercase().contains(&filter_text.to_lowercase());
    text == filter_text || text.ends_with(&format!("/{filter_text}")) || (is_free_text && contains())
}

/// Returns a value with only the properties that a schema declares.
fn declared_part(schema: &Schema, value: &Value) -> Value {
    let declared = schema.properties();
    let mut value = value.clone();
    if let Some(object) = value.as_object_mut() {
        object.retain(|name, _| declared.iter().any(|(other, _)| other == name));
    }
    value
}

/// Returns the whole numbers of an envelope: its own, and those of objects in it such as `meta`. A resource has numbers of its own.
fn numbers_of(envelope: &mut Map<String, Value>) -> Vec<(&String, &mut Value)> {
    let numbers = envelope.iter_mut().flat_map(|(name, value)| match value {
        Value::Object(part) if part.contains_key("self") => Vec::new(),
        Value::Object(part) => numbers_of(part),
        Value::Number(_) => vec![(name, value)],
        _ => Vec::new(),
    });
    numbers.filter(|(_, value)| value.is_u64()).collect()
}

fn set_entries(list: &mut Value, property: Option<&str>, entries: Vec<Value>) {
    match property {
        Some(name) => list[name] = entries.into(),
        None => *list = entries.into(),
    }
}

/// Returns the schema of a list's entries, also if the list's schema is composed with `allOf`.
pub fn entry_schema(schema: &Schema, property: Option<&str>) -> Option<Schema> {
    let array = match property {
        Some(name) => schema.resolved["properties"].get(name).map(|array| schema.part(array).resolved),
        None => Some(schema.resolved.clone()),
    };
    let items = array.and_then(|array| array.get("items").map(|items| schema.part(items)));
    items.or_else(|| {
        let parts = schema.resolved["allOf"].as_array().into_iter().flatten();
        parts.map(|part| schema.part(part)).find_map(|part| entry_schema(&part, property))
    })
}
