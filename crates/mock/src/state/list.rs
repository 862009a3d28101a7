//! Lists of what is kept: the page that is asked for, in the envelope that the document shows.

use serde_json::Value;

use super::MockRequest;
use super::resource::{project_to_schema, violation_count};
use boxoffice_openapi::Schema;
use boxoffice_http::error::{Code, Error};
use crate::responses::normalize_name;

/// What lists call the number of all entries.
const TOTAL: [&str; 5] = ["total", "totalcount", "totalitems", "totalrecords", "totalelements"];
/// What they call the number of a page, from 1 on.
const PAGE: [&str; 3] = ["page", "pagenumber", "currentpage"];
/// What they call the number of entries that a page has at the most.
const SIZE: [&str; 5] = ["records", "limit", "perpage", "pagesize", "size"];
/// What they call the number of entries before the page.
const OFFSET: [&str; 2] = ["offset", "skip"];
/// What they call the number of pages.
const PAGES: [&str; 3] = ["pages", "totalpages", "pagecount"];

/// The entries of a list: itself, or the first of its properties that is an array, rather one of objects.
pub fn entries(list: &Value) -> &[Value] {
    let array = match list {
        Value::Object(object) => property(list).and_then(|name| object.get(name)),
        _ => Some(list),
    };
    array.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

fn property(list: &Value) -> Option<&str> {
    let arrays = list.as_object()?.iter().filter_map(|(name, value)| Some((name, value.as_array()?)));
    arrays.min_by_key(|(_, items)| !items.iter().any(Value::is_object)).map(|(name, _)| name.as_str())
}

/// The page that a request asks for; `None` where the answer is no list.
///
/// # Errors
/// When it is past the last one, and the document says that this may be told.
pub fn page(asked: &MockRequest<'_>, values: &[&Value]) -> Result<Option<Value>, Error> {
    let (Some(schema), Ok(mut list)) = (asked.choice.schema(), asked.choice.value(asked.making, asked.seed)) else {
        return Ok(None);
    };
    let name = property(&list).map(str::to_owned);
    if name.is_none() && !list.is_array() {
        return Ok(None);
    }
    let parameter = |names: &[&str]| {
        asked.operation.parameters.iter().find(|parameter| names.contains(&normalize_name(&parameter.name).as_str()))
    };
    let given = |names: &[&str]| {
        let parameter = parameter(names)?;
        let value = asked.arguments.query.get(&parameter.name).or_else(|| parameter.schema.resolved.get("default"))?;
        value.as_u64().and_then(|number| usize::try_from(number).ok())
    };
    let shown = |names: &[&str]| {
        let mut properties =
            list.as_object().into_iter().flatten().filter(|(name, _)| names.contains(&normalize_name(name).as_str()));
        properties.find_map(|(_, value)| value.as_u64()).and_then(|number| usize::try_from(number).ok())
    };
    let size = parameter(&SIZE).map(|_| given(&SIZE).or_else(|| shown(&SIZE)).unwrap_or(25)).unwrap_or(usize::MAX).max(1);
    let values: Vec<&Value> = values.iter().copied().filter(|value| is_wanted(asked, value)).collect();
    let page = given(&PAGE).unwrap_or(1).max(1);
    let offset = given(&OFFSET).unwrap_or_else(|| (page - 1).saturating_mul(size));
    if page > 1 && offset >= values.len() && asked.operation.statuses.contains(&404) {
        return Err(Code::PagePastEnd.into());
    }
    let on_page: Vec<Value> = values.iter().skip(offset).take(size).map(|value| (*value).clone()).collect();
    let count = on_page.len();
    let first = entries(&list).first().cloned();
    put(&mut list, name.as_deref(), on_page);
    if violation_count(Some(schema), &list) > 0
        && let Some(entry) = entry(schema, name.as_deref())
    {
        let on_page = values.iter().skip(offset).take(size);
        let on_page = on_page.filter_map(|value| project_to_schema(&entry, value, || first.clone())).collect();
        put(&mut list, name.as_deref(), on_page);
    }
    let has_total = list.as_object().is_some_and(|list| list.keys().any(|name| TOTAL.contains(&normalize_name(name).as_str())));
    let total = values.len();
    for (name, value) in list.as_object_mut().into_iter().flatten().filter(|(_, value)| value.is_u64()) {
        let name = normalize_name(name);
        let is = |names: &[&str]| names.contains(&name.as_str());
        let number = match () {
            () if is(&TOTAL) => total,
            () if name == "count" => {
                if has_total {
                    count
                } else {
                    total
                }
            }
            () if is(&PAGE) => page,
            () if is(&SIZE) && size < usize::MAX => size,
            () if is(&OFFSET) => offset,
            () if is(&PAGES) => total.div_ceil(size),
            () => continue,
        };
        *value = number.into();
    }
    Ok(Some(list))
}

/// Whether an entry is as the arguments have it that are named as its properties: the same value, the identifier that a URI ends
/// in, or, where the document allows any text, a part of it. What others mean it doesn't say.
fn is_wanted(asked: &MockRequest<'_>, entry: &Value) -> bool {
    let parameters = asked.operation.parameters.iter().filter(|parameter| {
        let name = normalize_name(&parameter.name);
        ![&PAGE[..], &SIZE, &OFFSET].iter().any(|names| names.contains(&name.as_str()))
    });
    let mut given = parameters.filter_map(|each| Some((each, entry.get(&each.name)?, asked.arguments.query.get(&each.name)?)));
    given.all(|(parameter, own, wanted)| {
        let (Some(text), Some(wanted)) = (own.as_str(), wanted.as_str()) else {
            return own == wanted || own.is_object() || own.is_array();
        };
        let is_any = ["enum", "pattern", "format"].iter().all(|keyword| parameter.schema.resolved.get(keyword).is_none());
        let has_part = || text.to_lowercase().contains(&wanted.to_lowercase());
        text == wanted || text.ends_with(&format!("/{wanted}")) || (is_any && has_part())
    })
}

fn put(list: &mut Value, name: Option<&str>, entries: Vec<Value>) {
    match name {
        Some(name) => list[name] = entries.into(),
        None => *list = entries.into(),
    }
}

/// The schema of a list's entries, whatever the list's own is put together from.
pub fn entry(schema: &Schema, name: Option<&str>) -> Option<Schema> {
    let array = match name {
        Some(name) => schema.resolved["properties"].get(name).map(|array| schema.part(array).resolved),
        None => Some(schema.resolved.clone()),
    };
    let items = array.and_then(|array| array.get("items").map(|items| schema.part(items)));
    items.or_else(|| {
        let parts = schema.resolved["allOf"].as_array().into_iter().flatten();
        parts.map(|part| schema.part(part)).find_map(|part| entry(&part, name))
    })
}
