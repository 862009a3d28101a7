//! JSON objects of the built-in document, with its rules for blank values.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::charset_policy::{AllowedCharacters, is_invisible};
use crate::error::{FieldError, RequestError, Result};
use crate::json;
use crate::request_body::{OUT_OF_RANGE, detail, is_empty, split_pointer};
use crate::schema::{Schema, counted};

/// Maximum number of places in one property, such as the items of an array, whose errors are reported.
const MAX_DETAILS: usize = 10;

/// Validator of a JSON object of the built-in document. A blank value counts as missing if the property is required. Otherwise it
/// counts as absent unless the schema allows it.
#[derive(Debug)]
pub(crate) struct ObjectValidator {
    /// Required properties first, then the others in the document's order.
    properties: Vec<Property>,
    /// The schema without its top-level `required`, which is checked here.
    schema: Schema,
}

/// A property of the body, with the checks that precede the schema's.
#[derive(Debug)]
struct Property {
    name: String,
    presence: Presence,
    /// Maximum number of items or entries. A longer value isn't validated further, so that invalid items don't cause an error each.
    count_limit: Option<u64>,
    /// Number of steps in 1, if the values are multiples of a decimal fraction: 100 for amounts with two decimals.
    steps_in_one: Option<f64>,
    /// Error message for an amount that is not whole; `None` if decimals are allowed.
    whole_message: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Presence {
    Required,
    /// May be absent, but not blank, because the resource can't exist without it (`x-not-blank`).
    NotBlank,
    /// May be absent. A null or a blank value clears it, and reaches the endpoint as a null (`x-cleared-by-null`).
    Clearable,
    Optional,
}

impl Presence {
    /// Returns whether a blank value counts as absent if the schema rejects it.
    fn may_be_blank(self) -> bool {
        self == Self::Optional
    }
}

impl ObjectValidator {
    /// Creates a validator. Its messages show values of `example`, an example of the body.
    pub(crate) fn new(mut schema: Schema, example: Option<&Value>) -> Self {
        let required = string_list(&schema.resolved["required"]);
        let not_blank = string_list(&schema.resolved["x-not-blank"]);
        let cleared_by_null = string_list(&schema.resolved["x-cleared-by-null"]);
        let names = schema.resolved["properties"].as_object().into_iter().flat_map(Map::keys);
        let optional = names.filter(|name| !required.contains(name)).map(|name| {
            let presence = if not_blank.contains(name) {
                Presence::NotBlank
            } else if cleared_by_null.contains(name) {
                Presence::Clearable
            } else {
                Presence::Optional
            };
            (name, presence)
        });
        let properties = required.iter().map(|name| (name, Presence::Required)).chain(optional).map(|(name, presence)| {
            let property = &schema.resolved["properties"][name];
            let count_limit = property["maxItems"].as_u64().or_else(|| property["maxProperties"].as_u64());
            let steps_in_one = property["multipleOf"].as_f64().filter(|step| *step < 1.0).map(|step| (1.0 / step).round());
            Property { name: name.clone(), presence, count_limit, steps_in_one, whole_message: None }
        });
        let properties = properties.collect();
        if let Some(resolved) = schema.resolved.as_object_mut() {
            resolved.remove("required");
            let properties = resolved.get_mut("properties").and_then(Value::as_object_mut);
            for (name, property) in properties.into_iter().flatten() {
                let Some(property) = property.as_object_mut() else { continue };
                if let Some(example) = example.and_then(|example| example.get(name)) {
                    property.entry("example").or_insert_with(|| example.clone());
                }
                // `parse` handles nulls itself. A schema that isn't nullable yields simpler error messages.
                property.remove("nullable");
                if let Some(values) = property.get_mut("enum").and_then(Value::as_array_mut) {
                    values.retain(|value| !value.is_null());
                }
            }
        }
        Self { properties, schema }
    }

    /// See [`Contract::require_whole_amounts`](crate::Contract::require_whole_amounts).
    pub(crate) fn require_whole_amounts(&mut self, message: &str) {
        let amounts = self.properties.iter_mut().filter(|property| property.steps_in_one.is_some());
        amounts.for_each(|amount| amount.whole_message = Some(message.to_owned()));
    }

    /// Parses and validates the body. An empty body counts as `{}`.
    pub(crate) fn parse(&self, bytes: &[u8], errors: &mut Vec<FieldError>) -> Result<Value> {
        let value = if is_empty(bytes) { Value::Object(Map::new()) } else { json::parse(bytes)? };
        let Value::Object(mut object) = value else {
            return Err(RequestError::MalformedBody("The request's body must be a JSON object.".to_owned()));
        };
        let (mut field_errors, mut ignored, mut cleared) = (BTreeMap::new(), Vec::new(), Vec::new());
        for property in &self.properties {
            match property.check(&self.schema.resolved["properties"][&property.name], &mut object) {
                PropertyCheck::Passed => {}
                PropertyCheck::Failed(error) => drop(field_errors.insert(property.name.as_str(), error)),
                PropertyCheck::Ignored => ignored.push(property.name.as_str()),
                PropertyCheck::Cleared => cleared.push(property.name.clone()),
            }
        }
        let mut value = Value::Object(object);
        for (name, details) in self.schema_errors(&value, &mut ignored)? {
            field_errors.entry(name).or_insert_with(|| FieldError::invalid(name, details));
        }
        if let Some(object) = value.as_object_mut() {
            // An invalid blank leaves an optional property unset, so that a client may send a resource back as it was read.
            object.retain(|name, _| !ignored.contains(&name.as_str()));
            object.extend(cleared.into_iter().map(|name| (name, Value::Null)));
        }
        errors.extend(self.properties.iter().filter_map(|property| field_errors.remove(property.name.as_str())));
        Ok(value)
    }

    /// Returns the details of the properties that the schema rejects. Adds those to `ignored` that are blank and may be.
    fn schema_errors<'a>(&'a self, value: &Value, ignored: &mut Vec<&'a str>) -> Result<BTreeMap<&'a str, String>> {
        // The details of each property, with the places in it.
        let mut details: BTreeMap<&str, Vec<(String, String)>> = BTreeMap::new();
        for (pointer, error) in self.schema.errors(value)? {
            let (name, inner) = split_pointer(&pointer);
            let Some(Property { name, presence, .. }) = self.properties.iter().find(|property| property.name == name) else {
                continue;
            };
            if presence.may_be_blank() && is_blank(&value[name]) {
                ignored.push(name.as_str());
                continue;
            }
            let found = details.entry(name).or_default();
            if found.len() < MAX_DETAILS && !found.iter().any(|(place, _)| place == inner) {
                found.push((inner.to_owned(), detail(&self.schema, name, inner, &error)));
            }
        }
        let join = |found: Vec<(String, String)>| found.into_iter().map(|(_, text)| text).collect::<Vec<_>>().join("; ");
        Ok(details.into_iter().map(|(name, found)| (name, join(found))).collect())
    }
}

/// The result of the checks of a property that precede the schema's.
enum PropertyCheck {
    Passed,
    Failed(FieldError),
    /// The value is blank and invalid, and counts as absent.
    Ignored,
    /// The value is to be cleared.
    Cleared,
}

impl Property {
    /// Checks the property of an object, and removes a value that the schema shall not check.
    fn check(&self, schema: &Value, object: &mut Map<String, Value>) -> PropertyCheck {
        let name = &self.name;
        let invalid = |detail: &str| PropertyCheck::Failed(FieldError::invalid(name, detail));
        if let Some((steps_in_one, value)) = self.steps_in_one.zip(object.get_mut(name)) {
            remove_noise(value, steps_in_one);
        }
        let value = object.get(name);
        if value.is_some_and(json::is_out_of_range) {
            return invalid(OUT_OF_RANGE);
        }
        if let Some(message) = &self.whole_message
            && value.and_then(Value::as_f64).is_some_and(|amount| amount.fract() != 0.0)
        {
            return invalid(message);
        }
        let is_absent = value.is_none_or(is_blank);
        let is_missing = match self.presence {
            Presence::Required => is_absent,
            Presence::NotBlank => value.is_some() && is_absent,
            Presence::Clearable | Presence::Optional => false,
        };
        if is_missing {
            return PropertyCheck::Failed(FieldError::missing(name));
        }
        if self.presence == Presence::Clearable && value.is_some() && is_absent {
            object.shift_remove(name);
            return PropertyCheck::Cleared;
        }
        if value.is_some_and(Value::is_null) {
            object.shift_remove(name);
            return PropertyCheck::Passed;
        }
        if let Some(detail) = self.count_limit.zip(value).and_then(|(limit, value)| count_violation(value, limit)) {
            object.shift_remove(name);
            return invalid(&detail);
        }
        match value.and_then(|value| AllowedCharacters::of(schema).violation_of(schema, value)) {
            Some(_) if is_absent && self.presence.may_be_blank() => PropertyCheck::Ignored,
            Some(detail) => invalid(&detail),
            None => PropertyCheck::Passed,
        }
    }
}

fn string_list(names: &Value) -> Vec<String> {
    names.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// Returns whether a value is blank: null, or a string of white space and invisible characters alone. A required argument with such a
/// value is missing.
pub fn is_blank(value: &Value) -> bool {
    value.is_null() || value.as_str().is_some_and(is_blank_text)
}

/// Returns whether a text has only white space and invisible characters.
pub fn is_blank_text(text: &str) -> bool {
    text.chars().all(is_invisible)
}

/// Replaces a number that is a multiple of the step with a rounding error. Many clients compute amounts with floating-point numbers, or
/// have them in single precision: 43.98 may arrive as 43.97999999999999 or 43.97999954223633.
fn remove_noise(value: &mut Value, steps_in_one: f64) {
    let Some(number) = value.as_f64().filter(|_| value.is_f64()) else { return };
    let multiple = (number * steps_in_one).round() / steps_in_one;
    // More than the error of sums in double precision.
    let rounding_error = 1e-4 / steps_in_one;
    let is_multiple = (number - multiple).abs() <= rounding_error || is_equal_in_single_precision(number, multiple, steps_in_one);
    if multiple.is_finite() && is_multiple {
        *value = multiple.into();
    }
}

/// Returns whether a number is this multiple of the step in single precision. Large numbers are not: their single precision is not finer
/// than half a step, so numbers between two multiples would be equal to one of them.
#[expect(clippy::cast_possible_truncation, reason = "rounds to single precision")]
fn is_equal_in_single_precision(number: f64, multiple: f64, steps_in_one: f64) -> bool {
    let single = multiple.abs() as f32;
    let distance = f64::from(single.next_up()) - f64::from(single);
    number.abs() as f32 == single && distance * steps_in_one < 0.5
}

/// Returns an error message if an array or object has more items or entries than the limit.
fn count_violation(value: &Value, limit: u64) -> Option<String> {
    let (count, singular, plural) = match value {
        Value::Array(items) => (items.len(), "item", "items"),
        Value::Object(entries) => (entries.len(), "entry", "entries"),
        _ => return None,
    };
    u64::try_from(count)
        .is_ok_and(|count| count > limit)
        .then(|| format!("must have at most {}", counted(limit, singular, plural)))
}
