//! The properties and headers of a list about the requested page: numbers, and the position of the next page.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use boxoffice_openapi::paging::{
    CURSOR_NAMES, NEXT_NAMES, OFFSET_NAMES, PAGE_COUNT_NAMES, PAGE_NAMES, SIZE_NAMES, TOTAL_NAMES, has_name, normalize_name,
};
use boxoffice_openapi::{Parameter, Schema, escape, to_plain_string};
use serde_json::{Map, Value, json};

use super::MockRequest;
use super::resource::{identity, path_segment, violation_count};

/// The beginning of a decoded cursor, before the number of entries.
const CURSOR_PREFIX: &str = "entries:";

/// The numbers of a page.
#[derive(Debug, Clone, Copy)]
pub struct PageNumbers {
    /// The number of all entries.
    pub total: usize,
    /// The number of entries on this page.
    pub count: usize,
    /// The number of this page.
    pub page: usize,
    /// The maximum number of entries on a page; `usize::MAX` if there is none.
    pub size: usize,
    /// The number of entries before this page.
    pub offset: usize,
}

impl PageNumbers {
    /// Returns the number that a property or header has by its name, apart from separators and case; `None` for other names.
    pub fn find(&self, name: &str) -> Option<usize> {
        match name {
            name if TOTAL_NAMES.contains(&name) => Some(self.total),
            name if PAGE_NAMES.contains(&name) => Some(self.page),
            name if SIZE_NAMES.contains(&name) && self.size < usize::MAX => Some(self.size),
            name if OFFSET_NAMES.contains(&name) => Some(self.offset),
            name if PAGE_COUNT_NAMES.contains(&name) => Some(self.total.div_ceil(self.size)),
            _ => None,
        }
    }

    /// Returns the number of a header, such as `X-Total-Count`.
    pub fn of_header(&self, name: &str) -> Option<usize> {
        let name = normalize_name(name);
        self.find(name.strip_prefix('x').unwrap_or(&name))
    }

    fn has_next(&self) -> bool {
        self.offset.saturating_add(self.count) < self.total
    }
}

/// Returns the parameter for the position of the next page that only the server can interpret.
pub fn cursor_parameter<'a>(request: &MockRequest<'a>) -> Option<&'a Parameter> {
    // `before` leads backwards.
    let is_cursor = |parameter: &&Parameter| has_name(&CURSOR_NAMES, &parameter.name) && !has_name(&["before"], &parameter.name);
    request.operation.parameters.iter().find(is_cursor)
}

/// Returns the number of entries before the page of a cursor: one that the mock has sent, or the identifier of the entry before the
/// page. `None` for another text. A number is a cursor if the parameter allows no other one.
pub fn decode_cursor(parameter: &Parameter, cursor: &Value, entries: &[&Value]) -> Option<usize> {
    let text = path_segment(cursor)?;
    let decoded = URL_SAFE_NO_PAD.decode(&text).ok().and_then(|bytes| String::from_utf8(bytes).ok());
    let offset = decoded.and_then(|decoded| decoded.strip_prefix(CURSOR_PREFIX)?.parse().ok());
    let after_entry = || Some(entries.iter().position(|entry| identity(entry, "").as_deref() == Some(text.as_str()))? + 1);
    let as_number = || {
        let offset: usize = text.parse().ok()?;
        let last = entries.get(offset.saturating_sub(1)).or(entries.last()).copied();
        (cursors(parameter, offset, last).first() == Some(&json!(offset))).then_some(offset)
    };
    offset.or_else(after_entry).or_else(as_number)
}

/// Returns the values that a parameter may have to request the page after an entry, the preferred one first.
fn cursors(parameter: &Parameter, offset: usize, last: Option<&Value>) -> Vec<Value> {
    let opaque = URL_SAFE_NO_PAD.encode(format!("{CURSOR_PREFIX}{offset}"));
    let id = last.and_then(|last| identity(last, "")).unwrap_or_default();
    let numeric_id = id.parse::<u64>().ok().map(Value::from);
    let candidates = [Some(json!(opaque)), Some(json!(id)), numeric_id, Some(json!(offset))].into_iter().flatten();
    candidates.filter(|value| *value != json!("") && parameter.schema.violations(value).is_empty()).collect()
}

/// Sets what the envelope of a list says about the next page: a cursor, a number, a link or a flag. On the last page, a flag is false
/// and everything else is null or absent, as far as the schema allows it. `entries` is the name of the property with the entries.
pub fn set_next(
    request: &MockRequest<'_>,
    schema: &Schema,
    list: &mut Value,
    entries: Option<&str>,
    numbers: &PageNumbers,
    last: Option<&Value>,
) {
    let Some(envelope) = list.as_object() else { return };
    let mut pointers = next_pointers(envelope, entries);
    let declared = schema.properties();
    let absent = declared.iter().filter(|(name, _)| has_name(&NEXT_NAMES, name) && !envelope.contains_key(*name));
    pointers.extend(absent.filter(|_| numbers.has_next()).map(|(name, _)| format!("/{}", escape(name))));
    for pointer in pointers {
        let name = normalize_name(pointer.rsplit('/').next().unwrap_or_default());
        let current = list.pointer(&pointer).cloned().unwrap_or_default();
        let candidates = match numbers.has_next() {
            has_next if ["hasmore", "hasnext"].contains(&name.as_str()) || current.is_boolean() => vec![Some(json!(has_next))],
            true => next_values(request, numbers, last, &current).into_iter().map(Some).collect(),
            false => vec![Some(Value::Null), None, Some(json!(""))],
        };
        let allowed_violations = violation_count(Some(schema), list);
        let is_valid = |changed: &Value| violation_count(Some(schema), changed) <= allowed_violations;
        let changed = candidates.into_iter().filter_map(|value| with_value(list, &pointer, value)).find(is_valid);
        if let Some(changed) = changed {
            *list = changed;
        }
    }
}

/// Returns the values with which an envelope can refer to the next page, the preferred one first. A text in the document's example that
/// is a link is replaced by a link.
fn next_values(request: &MockRequest<'_>, numbers: &PageNumbers, last: Option<&Value>, current: &Value) -> Vec<Value> {
    let query_parameter = |names: &[&str]| request.operation.parameters.iter().find(|parameter| has_name(names, &parameter.name));
    let offset = numbers.offset.saturating_add(numbers.count);
    let (parameter, values) = if let Some(parameter) = cursor_parameter(request) {
        (parameter, cursors(parameter, offset, last))
    } else if let Some(parameter) = query_parameter(&PAGE_NAMES) {
        (parameter, vec![json!(numbers.page.saturating_add(1))])
    } else if let Some(parameter) = query_parameter(&OFFSET_NAMES) {
        (parameter, vec![json!(offset)])
    } else {
        return Vec::new();
    };
    let link = values.first().map(|value| link(request, parameter, value)).unwrap_or_default();
    let text = current.as_str().unwrap_or_default();
    if let Some((scheme, rest)) = text.split_once("://") {
        let host = rest.split(['/', '?']).next().unwrap_or_default();
        return vec![json!(format!("{scheme}://{host}{link}")), json!(link)];
    }
    if text.contains(['/', '?']) {
        return vec![json!(link)];
    }
    let texts = values.iter().map(|value| json!(to_plain_string(value)));
    values.iter().cloned().chain(texts).chain([json!(link)]).collect()
}

/// Returns the path and query of the request with another value of a parameter.
fn link(request: &MockRequest<'_>, changed: &Parameter, value: &Value) -> String {
    let mut query = form_urlencoded::Serializer::new(String::new());
    for parameter in &request.operation.parameters {
        let value = if parameter.name == changed.name { Some(value) } else { request.arguments.query.get(&parameter.name) };
        query.extend_pairs(value.into_iter().flat_map(|value| parameter.serialize(value)));
    }
    format!("{}{}?{}", request.prefix, request.path, query.finish())
}

/// Returns the pointers of the properties of an envelope that refer to the next page, also of those in objects such as `meta`.
fn next_pointers(envelope: &Map<String, Value>, entries: Option<&str>) -> Vec<String> {
    let mut pointers = Vec::new();
    for (name, value) in envelope.iter().filter(|(name, _)| Some(name.as_str()) != entries) {
        match value {
            Value::Object(part) if part.contains_key("self") => {}
            Value::Object(part) => {
                let inner = next_pointers(part, None).into_iter();
                pointers.extend(inner.map(|pointer| format!("/{}{pointer}", escape(name))));
            }
            Value::Array(_) => {}
            _ if has_name(&NEXT_NAMES, name) => pointers.push(format!("/{}", escape(name))),
            _ => {}
        }
    }
    pointers
}

/// Returns a copy of a value with another value at a pointer, or without one.
fn with_value(value: &Value, pointer: &str, new: Option<Value>) -> Option<Value> {
    let (parent, name) = pointer.rsplit_once('/')?;
    let name = name.replace("~1", "/").replace("~0", "~");
    let mut copy = value.clone();
    let parent = copy.pointer_mut(parent)?.as_object_mut()?;
    match new {
        Some(new) => drop(parent.insert(name, new)),
        None => drop(parent.shift_remove(&name)),
    }
    Some(copy)
}
