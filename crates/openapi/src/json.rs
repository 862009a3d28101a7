//! Parser of untrusted JSON. serde_json limits the nesting to 128 levels.

use std::cell::Cell;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::map::Entry;
use serde_json::{Map, Value};

use crate::error::{RequestError, Result};

/// Maximum number of characters of a property name in an error message.
const NAME_LIMIT: usize = 64;
/// Maximum number of values in a body, including nested ones. A value of two bytes takes up to forty times as much memory, so the
/// size limit alone doesn't limit the memory. The limit is documented in the built-in document.
const VALUE_LIMIT: usize = 100_000;

/// Integers up to this size are represented exactly as floating-point numbers.
const EXACT_INTEGER_LIMIT: f64 = 9_007_199_254_740_992.0;

/// Parses a request body. A number without a fraction is returned as an integer, in every notation: `1`, `1.0`, `1e2`. A number
/// that is too large for 64 bits, such as `1e999`, becomes the largest one; see [`is_out_of_range`].
///
/// Rejects duplicate property names: parsers disagree on them (RFC 8259, section 4), so a proxy in front of
/// the server could check one value and the server use the other. Also rejects more than 100,000 values.
///
/// # Errors
/// [`RequestError::MalformedBody`] with the position.
pub fn parse(bytes: &[u8]) -> Result<Value> {
    match parse_strictly(bytes) {
        Err(ParseError::Malformed(error)) if error.to_string().starts_with(OUT_OF_RANGE) => {
            parse_strictly(&limit_numbers(bytes)).map_err(RequestError::from)
        }
        parsed => parsed.map_err(RequestError::from),
    }
}

/// Returns the first property name that an object of a JSON text repeats, at most 64 characters of it. Returns `None` if the text is
/// not JSON or has more than 100,000 values.
pub fn repeated_name(text: &str) -> Option<String> {
    let Err(ParseError::Malformed(error)) = parse_strictly(text.as_bytes()) else { return None };
    Some(error.to_string().split_once(REPEATED)?.0.trim_matches('"').to_owned())
}

/// The error for a repeated property name, after the name.
const REPEATED: &str = " is in one object more than once";

/// Returns whether an error of serde_json is about a text that is JSON but has no value here: a number that is too large for 64 bits,
/// half of a surrogate pair, or more than 128 levels of nesting.
pub fn is_unreadable(error: &serde_json::Error) -> bool {
    let text = error.to_string();
    [OUT_OF_RANGE, "recursion limit exceeded", "lone leading surrogate", "unexpected end of hex escape"]
        .iter()
        .any(|start| text.starts_with(start))
}

/// Returns whether a value is, or contains, a number that was too large to be parsed.
pub fn is_out_of_range(value: &Value) -> bool {
    match value {
        Value::Number(number) => number.as_f64().is_some_and(|number| number.abs() == f64::MAX),
        Value::Array(items) => items.iter().any(is_out_of_range),
        Value::Object(object) => object.values().any(is_out_of_range),
        _ => false,
    }
}

/// The beginning of serde_json's message for a number that is too large. The error has no other mark of its kind.
const OUT_OF_RANGE: &str = "number out of range";

enum ParseError {
    TooManyValues,
    Malformed(serde_json::Error),
}

impl From<ParseError> for RequestError {
    fn from(error: ParseError) -> Self {
        match error {
            ParseError::TooManyValues => too_many_values(),
            ParseError::Malformed(error) => malformed(error),
        }
    }
}

fn parse_strictly(bytes: &[u8]) -> Result<Value, ParseError> {
    let mut deserializer = serde_json::Deserializer::from_slice(bytes);
    let remaining = Cell::new(Some(VALUE_LIMIT));
    let value = StrictValue { remaining: &remaining }.deserialize(&mut deserializer);
    let value = value.and_then(|value| deserializer.end().map(|()| value));
    value.map_err(|error| if remaining.get().is_none() { ParseError::TooManyValues } else { ParseError::Malformed(error) })
}

/// Replaces each number outside of strings that is too large for 64 bits by the largest one.
fn limit_numbers(bytes: &[u8]) -> Vec<u8> {
    let (mut limited, mut rest) = (Vec::with_capacity(bytes.len()), bytes);
    let (mut is_in_string, mut is_escaped) = (false, false);
    while let Some(&byte) = rest.first() {
        if !is_in_string && (byte == b'-' || byte.is_ascii_digit()) {
            let is_of_number = |byte: &&u8| byte.is_ascii_digit() || b"+-.eE".contains(byte);
            let (number, after) = rest.split_at(rest.iter().take_while(is_of_number).count());
            let parsed = std::str::from_utf8(number).ok().and_then(|number| number.parse::<f64>().ok());
            match parsed.filter(|number| number.is_infinite()) {
                Some(number) => limited.extend_from_slice(format!("{:e}", f64::MAX.copysign(number)).as_bytes()),
                None => limited.extend_from_slice(number),
            }
            rest = after;
            continue;
        }
        is_in_string ^= byte == b'"' && !is_escaped;
        is_escaped = is_in_string && byte == b'\\' && !is_escaped;
        limited.push(byte);
        rest = &rest[1..];
    }
    limited
}

fn too_many_values() -> RequestError {
    RequestError::MalformedBody(format!("The request's body has more than {VALUE_LIMIT} values. Send fewer at once."))
}

fn malformed(error: serde_json::Error) -> RequestError {
    if error.is_data() {
        return RequestError::MalformedBody(format!("The request's body is not valid JSON: {error}."));
    }
    let (line, column) = (error.line(), error.column());
    // serde_json has no other way to tell its limit of 128 levels from a mistake.
    let is_too_deep = error.to_string().starts_with("recursion limit exceeded");
    let problem = if is_too_deep { "has too many levels of arrays and objects" } else { "is not valid JSON" };
    RequestError::MalformedBody(format!("The request's body {problem}: line {line}, column {column}."))
}

/// The methods of a [`Visitor`] for values that any parser returns alike: all but floating-point numbers, arrays and objects.
macro_rules! visit_scalars {
    () => {
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a value")
        }

        fn visit_unit<E>(self) -> Result<Value, E> {
            Ok(Value::Null)
        }

        fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
            Ok(value.into())
        }

        fn visit_i64<E>(self, number: i64) -> Result<Value, E> {
            Ok(number.into())
        }

        fn visit_u64<E>(self, number: u64) -> Result<Value, E> {
            Ok(number.into())
        }

        fn visit_str<E>(self, text: &str) -> Result<Value, E> {
            Ok(text.into())
        }

        fn visit_string<E>(self, text: String) -> Result<Value, E> {
            Ok(text.into())
        }
    };
}
pub(crate) use visit_scalars;

/// Deserializer seed and visitor of any JSON value. Fails on duplicate property names and too many values.
#[derive(Clone, Copy)]
struct StrictValue<'a> {
    /// Number of values that are still allowed; `None` after the limit was exceeded.
    remaining: &'a Cell<Option<usize>>,
}

impl<'de> DeserializeSeed<'de> for StrictValue<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        self.remaining.set(self.remaining.get().and_then(|count| count.checked_sub(1)));
        if self.remaining.get().is_none() {
            return Err(D::Error::custom("too many values"));
        }
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for StrictValue<'_> {
    type Value = Value;

    visit_scalars!();

    fn visit_f64<E>(self, number: f64) -> Result<Value, E> {
        let is_exact_integer = number.fract() == 0.0 && number.abs() < EXACT_INTEGER_LIMIT;
        Ok(if is_exact_integer { (number as i64).into() } else { number.into() })
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut array = Vec::new();
        while let Some(item) = items.next_element_seed(self)? {
            array.push(item);
        }
        Ok(array.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some(name) = entries.next_key::<String>()? {
            match object.entry(name) {
                Entry::Vacant(vacant) => vacant.insert(entries.next_value_seed(self)?),
                Entry::Occupied(occupied) => {
                    let name: String = occupied.key().chars().take(NAME_LIMIT).collect();
                    return Err(A::Error::custom(format!("{name:?}{REPEATED}")));
                }
            };
        }
        Ok(object.into())
    }
}
