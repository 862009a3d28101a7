//! The types of the values that the text of an argument can have.

use serde_json::Value;

use crate::charset_policy::NUL;
use crate::json;
use crate::resolver::reference;

/// The type of a value that a text can be converted to. The variants are ordered from specific to general, the order in which they
/// are tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ValueKind {
    /// Serialized JSON, regardless of the style.
    Json,
    Boolean,
    Integer,
    Number,
    Text,
    Array,
    Object,
}

impl ValueKind {
    /// Converts a text to a value of this type. The error is a message for the client.
    pub(crate) fn parse(self, text: &str) -> Result<Value, String> {
        let (value, message) = match self {
            Self::Json => return serde_json::from_str(text).map_err(|error| format!("must be JSON ({error})")),
            Self::Integer => (parse_integer(text), "must be an integer"),
            Self::Number => (text.parse::<f64>().ok().filter(|number| number.is_finite()).map(Value::from), "must be a number"),
            Self::Boolean => (text.parse::<bool>().ok().map(Value::from), "must be true or false"),
            _ => (Some(Value::from(text)), "must be a string"),
        };
        match value {
            None => Err(message.to_owned()),
            Some(_) if text.contains('\0') => Err(NUL.to_owned()),
            Some(value) => Ok(value),
        }
    }
}

/// Parses an integer, also with a zero fraction or an exponent: `7`, `7.0`, `1e2`. One beyond 64 bits becomes a floating-point number,
/// so that the schema rejects it with its bound.
fn parse_integer(text: &str) -> Option<Value> {
    let integer = text.parse::<i64>().ok().map(Value::from);
    let is_whole = |number: &Value| number.as_f64().is_some_and(|number| number.fract() == 0.0);
    integer.or_else(|| json::parse(text.as_bytes()).ok().filter(is_whole))
}

/// Converts a text to the most specific type that the schema allows, or else to a string.
pub(crate) fn coerce(schema: &Value, text: &str) -> Value {
    kinds(schema).into_iter().find_map(|kind| kind.parse(text).ok()).unwrap_or_else(|| Value::from(text))
}

/// Returns the types that a schema allows, the most specific first.
pub(crate) fn kinds(schema: &Value) -> Vec<ValueKind> {
    let mut kinds = Vec::new();
    collect_kinds(schema, &mut kinds);
    kinds.sort();
    kinds.dedup();
    if kinds.is_empty() { vec![ValueKind::Text] } else { kinds }
}

fn collect_kinds(schema: &Value, kinds: &mut Vec<ValueKind>) {
    match schema["type"].as_str() {
        Some("boolean") => kinds.push(ValueKind::Boolean),
        Some("integer") => kinds.push(ValueKind::Integer),
        Some("number") => kinds.push(ValueKind::Number),
        Some("array") => kinds.push(ValueKind::Array),
        Some("object") => kinds.push(ValueKind::Object),
        Some(_) => kinds.push(ValueKind::Text),
        // Recursive schemas are objects in practice.
        None if schema["properties"].is_object() || reference(schema).is_some() => kinds.push(ValueKind::Object),
        None if schema["items"].is_object() => kinds.push(ValueKind::Array),
        None => {
            let branches = |keyword: &str| schema[keyword].as_array().into_iter().flatten();
            branches("allOf").for_each(|branch| collect_kinds(branch, kinds));
            for branch in branches("oneOf").chain(branches("anyOf")) {
                let mut of_branch = Vec::new();
                collect_kinds(branch, &mut of_branch);
                // A branch without a type allows any text.
                kinds.extend(if of_branch.is_empty() { vec![ValueKind::Text] } else { of_branch });
            }
            kinds.extend(schema["enum"].as_array().into_iter().flatten().filter_map(kind_of));
        }
    }
}

/// Returns the type of a value; `None` for null.
fn kind_of(value: &Value) -> Option<ValueKind> {
    Some(match value {
        Value::Null => return None,
        Value::Bool(_) => ValueKind::Boolean,
        Value::Number(number) if number.is_f64() => ValueKind::Number,
        Value::Number(_) => ValueKind::Integer,
        Value::String(_) => ValueKind::Text,
        Value::Array(_) => ValueKind::Array,
        Value::Object(_) => ValueKind::Object,
    })
}
