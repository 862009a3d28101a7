//! JSON as a stranger sends it. It nests 128 levels deep at the most, which serde_json sees to, and its numbers are finite.

use std::cell::Cell;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::map::Entry;
use serde_json::{Map, Value};

use crate::error::{RequestError, Result};

/// The most characters of a name that an error repeats.
const SHOWN: usize = 64;
/// The most values of a body, those within others included. One of two bytes takes up to forty times as many in memory, so that
/// the size of a body alone doesn't bound what it costs. The contract tells of it.
const MOST_VALUES: usize = 100_000;

/// Reads a body. A name that stands in one object twice makes it malformed: of two readers one would take the first value and the
/// other the last (RFC 8259, section 4), and one of them may be what guards this server. More than 100,000 values do, too.
///
/// # Errors
/// [`RequestError::MalformedBody`], with where.
pub fn read(bytes: &[u8]) -> Result<Value> {
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let left = Cell::new(Some(MOST_VALUES));
    let value = StrictValue { left: &left }.deserialize(&mut reader).and_then(|value| reader.end().map(|()| value));
    value.map_err(|error| if left.get().is_none() { too_many() } else { malformed(error) })
}

fn too_many() -> RequestError {
    RequestError::MalformedBody(format!("The request's body has more than {MOST_VALUES} values. Send fewer at once."))
}

fn malformed(error: serde_json::Error) -> RequestError {
    if error.is_data() {
        return RequestError::MalformedBody(format!("The request's body is not valid JSON: {error}."));
    }
    let (line, column) = (error.line(), error.column());
    RequestError::MalformedBody(format!("The request's body is not valid JSON: line {line}, column {column}."))
}

/// Any value, in whose objects each name stands once.
#[derive(Clone, Copy)]
struct StrictValue<'a> {
    /// How many values may still come; none once there was one too many.
    left: &'a Cell<Option<usize>>,
}

impl<'de> DeserializeSeed<'de> for StrictValue<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        self.left.set(self.left.get().and_then(|left| left.checked_sub(1)));
        if self.left.get().is_none() {
            return Err(D::Error::custom("too many values"));
        }
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for StrictValue<'_> {
    type Value = Value;

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

    fn visit_f64<E>(self, number: f64) -> Result<Value, E> {
        Ok(number.into())
    }

    fn visit_str<E>(self, text: &str) -> Result<Value, E> {
        Ok(text.into())
    }

    fn visit_string<E>(self, text: String) -> Result<Value, E> {
        Ok(text.into())
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
                Entry::Vacant(place) => place.insert(entries.next_value_seed(self)?),
                Entry::Occupied(known) => {
                    let name: String = known.key().chars().take(SHOWN).collect();
                    return Err(A::Error::custom(format!("{name:?} stands in one object more than once")));
                }
            };
        }
        Ok(object.into())
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn text_of(error: Error) -> String {
        match error {
            RequestError::MalformedBody(text) => text,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_name_stands_in_an_object_once() {
        for body in [r#"{"a":1,"b":2,"a":3}"#, r#"{"a":1,"\u0061":1}"#, r#"[{"b":{"a":null,"a":null}}]"#] {
            let text = text_of(read(body.as_bytes()).unwrap_err());
            assert!(text.contains(r#""a" stands in one object more than once at line 1 column"#), "{text}");
        }
        let long = format!(r#"{{"{0}":1,"{0}":2}}"#, "\\u202e".repeat(5000));
        assert!(text_of(read(long.as_bytes()).unwrap_err()).len() < 1000);
        assert!(read(br#"{"a":{"a":1},"A":2,"a ":3}"#).is_ok());
    }

    #[test]
    fn it_nests_a_hundred_levels_and_no_thousand() {
        let nested = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
        assert!(read(nested(100).as_bytes()).is_ok());
        for body in [nested(1000), "[".repeat(1 << 20), r#"{"a":"#.repeat(1 << 18)] {
            assert!(text_of(read(body.as_bytes()).unwrap_err()).contains("line 1, column"));
        }
    }

    #[test]
    fn it_has_a_hundred_thousand_values_at_the_most() {
        let list = |count: usize| format!("[{}0]", "0,".repeat(count - 1));
        let object = |count: usize| {
            let members: Vec<_> = (0..count).map(|name| format!(r#""{name}":[]"#)).collect();
            format!("{{{}}}", members.join(","))
        };
        // The list or object itself is one of them.
        assert!(read(list(99_999).as_bytes()).is_ok());
        assert!(read(object(99_999).as_bytes()).is_ok());
        for body in [list(100_000), object(100_000), format!("[{}]", vec![list(10); 9_999].join(","))] {
            let text = text_of(read(body.as_bytes()).unwrap_err());
            assert_eq!(text, "The request's body has more than 100000 values. Send fewer at once.");
        }
    }

    fn values() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<u64>().prop_map(Value::from),
            any::<f64>().prop_filter("finite", |number| number.is_finite()).prop_map(Value::from),
            any::<String>().prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 64, 8, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..8).prop_map(Value::from),
                prop::collection::vec((any::<String>(), inner), 0..8).prop_map(|all| Value::Object(all.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn what_serde_json_writes_is_read_alike(value in values()) {
            let text = serde_json::to_vec(&value).unwrap();
            prop_assert_eq!(read(&text).unwrap(), serde_json::from_slice::<Value>(&text).unwrap());
        }
    }
}
