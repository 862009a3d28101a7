//! Lists of stored resources: the requested page, in the envelope of the document's example.

use boxoffice_http::error::{Code, Error};
use boxoffice_openapi::Schema;
use serde_json::Value;

use super::MockRequest;
use super::resource::{project_to_schema, violation_count};
use crate::responses::normalize_name;

/// Names of the total number of entries.
const TOTAL: [&str; 5] = ["total", "totalcount", "totalitems", "totalrecords", "totalelements"];
/// Names of the page number, which starts at 1.
const PAGE: [&str; 3] = ["page", "pagenumber", "currentpage"];
/// Names of the page size.
const SIZE: [&str; 5] = ["records", "limit", "perpage", "pagesize", "size"];
/// Names of the number of entries before the page.
const OFFSET: [&str; 2] = ["offset", "skip"];
/// Names of the number of pages.
const PAGES: [&str; 3] = ["pages", "totalpages", "pagecount"];

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

fn entries_property(list: &Value) -> Option<&str> {
    let arrays = list.as_object()?.iter().filter_map(|(name, value)| Some((name, value.as_array()?)));
    arrays.min_by_key(|(_, items)| !items.iter().any(Value::is_object)).map(|(name, _)| name.as_str())
}

/// Returns the requested page; `None` if the response is no list.
///
/// # Errors
/// 404 if the page is past the last one and the document declares this status.
pub fn render_page(request: &MockRequest<'_>, values: &[&Value]) -> Result<Option<Value>, Error> {
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
        let mut sizes = list.as_object().into_iter().flatten().filter(|(name, _)| has_name(&SIZE, name));
        sizes.find_map(|(_, value)| to_number(value))
    };
    let size = match parameter(&SIZE) {
        Some(_) => argument(&SIZE).or_else(example_size).unwrap_or(DEFAULT_SIZE).max(1),
        None => usize::MAX,
    };
    let values: Vec<&Value> = values.iter().copied().filter(|value| matches_query(request, value)).collect();
    let page = argument(&PAGE).unwrap_or(1).max(1);
    let offset = argument(&OFFSET).unwrap_or_else(|| (page - 1).saturating_mul(size));
    if page > 1 && offset >= values.len() && request.operation.statuses.contains(&404) {
        return Err(Code::PagePastEnd.into());
    }
    let on_page = || values.iter().copied().skip(offset).take(size);
    let count = on_page().count();
    let example = entries(&list).first().cloned();
    set_entries(&mut list, property.as_deref(), on_page().cloned().collect());
    if violation_count(Some(schema), &list) > 0
        && let Some(entry_schema) = entry_schema(schema, property.as_deref())
    {
        let projected = on_page().filter_map(|value| project_to_schema(&entry_schema, value, || example.clone()));
        set_entries(&mut list, property.as_deref(), projected.collect());
    }
    let has_total = list.as_object().is_some_and(|list| list.keys().any(|name| has_name(&TOTAL, name)));
    let total = values.len();
    for (name, value) in list.as_object_mut().into_iter().flatten().filter(|(_, value)| value.is_u64()) {
        let number = match normalize_name(name).as_str() {
            name if TOTAL.contains(&name) => total,
            "count" if has_total => count,
            "count" => total,
            name if PAGE.contains(&name) => page,
            name if SIZE.contains(&name) && size < usize::MAX => size,
            name if OFFSET.contains(&name) => offset,
            name if PAGES.contains(&name) => total.div_ceil(size),
            _ => continue,
        };
        *value = number.into();
    }
    Ok(Some(list))
}

fn has_name(names: &[&str], name: &str) -> bool {
    names.contains(&normalize_name(name).as_str())
}

/// Returns whether an entry matches the query parameters that are named like its properties. It matches if the value is equal, is
/// the identifier at the end of a URI, or, for unrestricted text, is contained in the property. Other parameters are ignored,
/// because the document doesn't define their meaning.
fn matches_query(request: &MockRequest<'_>, entry: &Value) -> bool {
    let paging = [&PAGE[..], &SIZE, &OFFSET].concat();
    let parameters = request.operation.parameters.iter().filter(|parameter| !has_name(&paging, &parameter.name));
    let mut filters = parameters
        .filter_map(|parameter| Some((parameter, entry.get(&parameter.name)?, request.arguments.query.get(&parameter.name)?)));
    filters.all(|(parameter, value, filter)| {
        let (Some(text), Some(filter_text)) = (value.as_str(), filter.as_str()) else {
            return value == filter || value.is_object() || value.is_array();
        };
        let is_free_text = ["enum", "pattern", "format"].iter().all(|keyword| parameter.schema.resolved.get(keyword).is_none());
        let contains = || text.to_lowercase().contains(&filter_text.to_lowercase());
        text == filter_text || text.ends_with(&format!("/{filter_text}")) || (is_free_text && contains())
    })
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
