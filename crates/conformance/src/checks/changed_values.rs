//! Changed values of arguments, for requests that must have a visible effect.

use boxoffice_openapi::{Direction, Sampler, parse_date_time};
use chrono::{NaiveDateTime, TimeDelta};
use serde_json::{Value, json};

use crate::argument::Argument;

/// Texts to append to a text, in the order of preference: with characters that careless servers lose or escape.
const SUFFIXES: [&str; 3] = [" é漢🎟 O'Neil & Co", " B", "b"];

/// Returns valid values that differ from the current one, the most revealing first.
///
/// `is_constrained` means that the valid values depend on a state: the changed value then stays close to the current one.
pub fn changed_values(document: &Value, argument: &Argument, current: &Value, is_constrained: bool) -> Vec<Value> {
    let mut values = Vec::new();
    match current {
        Value::Bool(flag) => values.push(json!(!flag)),
        Value::Number(number) => {
            let number = number.as_f64().unwrap_or_default();
            let is_integer = argument.schema["type"] == "integer";
            let next = [number + 1.0, number - 1.0, number * 2.0];
            match is_integer {
                true => values.extend(next.map(|number| json!(number as i64))),
                false => values
                    .extend([-number - 0.25, number + 0.25, number - 0.25].into_iter().chain(next).map(|number| json!(number))),
            }
        }
        // Of the same host: the server may send requests there.
        Value::String(text) if text.contains("://") && argument.schema["format"] == "uri" => {
            values.push(json!(format!("{text}/b")))
        }
        Value::String(text) => values.extend(changed_texts(text).into_iter().map(Value::String)),
        Value::Array(items) if items.iter().all(Value::is_string) && argument.schema["items"].get("format").is_none() => {
            let is_reference = items.iter().any(|item| item.as_str().is_some_and(|text| text.starts_with('/')));
            if !is_reference {
                values.push(items.iter().cloned().chain([json!("Zither"), json!("Accordion")]).collect());
                values.push(items.iter().skip(1).cloned().chain([json!("Accordion")]).collect());
            }
        }
        Value::Null if argument.schema["type"] == "integer" => values.push(json!(137)),
        Value::Null if argument.schema["type"] == "number" => values.push(json!(137.5)),
        _ => {}
    }
    values.extend(argument.schema["enum"].as_array().into_iter().flatten().cloned());
    let has_meaning = is_constrained || argument.schema.get("format").is_some();
    if !has_meaning
        && values.is_empty()
        && let Ok(sampler) = Sampler::new(document, &argument.schema, Direction::Request)
    {
        values.extend((0..3).filter_map(|seed| sampler.sample(seed).ok()));
    }
    values.retain(|value| value != current && argument.is_valid(value));
    values
}

fn changed_texts(text: &str) -> Vec<String> {
    // A time stays near the old one, because others may have to be before or after it.
    for format in ["%Y-%m-%dT%H:%M", "%Y-%m-%d %H:%M"] {
        if let Ok(time) = NaiveDateTime::parse_from_str(text, format) {
            let next = time.checked_add_signed(TimeDelta::minutes(1));
            let previous = time.checked_sub_signed(TimeDelta::minutes(1));
            return [previous, next].into_iter().flatten().map(|time| time.format(format).to_string()).collect();
        }
    }
    if parse_date_time(text).is_some() || text.starts_with('/') || text.contains("://") || text.contains('@') {
        return Vec::new();
    }
    SUFFIXES.iter().map(|suffix| format!("{text}{suffix}")).collect()
}

/// Returns if a value that was read is the one that was sent, possibly in another representation: an instant, or the identifier
/// at the end of a URI.
pub fn is_same_value(sent: &Value, read: &Value) -> bool {
    match (sent, read) {
        (Value::String(sent), Value::String(read)) => {
            sent == read
                || sent.ends_with(&format!("/{read}"))
                || read.ends_with(&format!("/{sent}"))
                || minute(sent).is_some_and(|time| minute(read) == Some(time))
        }
        (Value::Number(sent), Value::Number(read)) => sent.as_f64() == read.as_f64(),
        (Value::Array(sent), Value::Array(read)) => {
            sent.len() == read.len() && sent.iter().zip(read).all(|(sent, read)| is_same_value(sent, read))
        }
        (Value::String(sent), Value::Object(read)) => {
            read.get("self").and_then(Value::as_str).is_none_or(|read| read == sent || read.ends_with(&format!("/{sent}")))
        }
        // The server may add members.
        (Value::Object(sent), Value::Object(read)) => {
            sent.iter().all(|(name, sent)| read.get(name).is_none_or(|read| is_same_value(sent, read)))
        }
        (Value::Object(_), _) | (_, Value::Object(_)) => true,
        _ => sent == read,
    }
}

/// Returns the minute of a time, with or without a zone.
fn minute(text: &str) -> Option<i64> {
    let time = parse_date_time(text)?;
    Some(time.timestamp() / 60)
}

/// Returns a representation of a resource without the properties that differ between two others.
pub fn without_differences(value: &Value, one: &Value, other: &Value) -> Value {
    fn same(value: &Value, one: &Value, other: &Value) -> Option<Value> {
        match (value, one, other) {
            (Value::Object(members), Value::Object(one), Value::Object(other)) => {
                let [one, other] = [one, other].map(|members| |name: &str| members.get(name).unwrap_or(&Value::Null));
                let members = members.iter();
                let members = members.filter_map(|(name, member)| Some((name.clone(), same(member, one(name), other(name))?)));
                Some(members.collect())
            }
            _ if one == other => Some(value.clone()),
            _ => None,
        }
    }
    same(value, one, other).unwrap_or_default()
}

/// Returns the first difference between two representations of a resource: the path of the property, and both values.
///
/// Properties that only one of them has, and the property `self`, which may be an alias, are not compared.
pub fn difference(one: &Value, other: &Value) -> Option<(String, Value, Value)> {
    fn find(path: &str, one: &Value, other: &Value) -> Option<(String, Value, Value)> {
        match (one, other) {
            (Value::Object(left), Value::Object(right)) => left
                .iter()
                .filter(|(name, _)| *name != "self")
                .find_map(|(name, value)| find(&format!("{path}/{name}"), value, right.get(name)?)),
            (Value::Array(left), Value::Array(right)) if left.len() == right.len() => {
                left.iter().zip(right).find_map(|(left, right)| find(&format!("{path}/*"), left, right))
            }
            (Value::Number(left), Value::Number(right)) if left.as_f64() == right.as_f64() => None,
            _ if one == other => None,
            _ => Some((path.to_owned(), one.clone(), other.clone())),
        }
    }
    find("", one, other)
}
