//! Detection of repeated keys in a JSON text, of which parsers use the first or the last.

use std::collections::HashSet;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};

/// Prefix of the error for a repeated key.
const REPEATED: &str = "repeated key ";

/// A JSON value whose objects have no repeated keys.
struct UniqueKeys;

impl<'de> Deserialize<'de> for UniqueKeys {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(UniqueKeysVisitor)
    }
}

struct UniqueKeysVisitor;

impl<'de> Visitor<'de> for UniqueKeysVisitor {
    type Value = UniqueKeys;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a JSON value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<UniqueKeys, A::Error> {
        let mut seen = HashSet::new();
        while let Some(key) = map.next_key::<String>()? {
            map.next_value::<UniqueKeys>()?;
            if let Some(key) = seen.replace(key) {
                return Err(A::Error::custom(format!("{REPEATED}{key}")));
            }
        }
        Ok(UniqueKeys)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<UniqueKeys, A::Error> {
        while items.next_element::<UniqueKeys>()?.is_some() {}
        Ok(UniqueKeys)
    }

    fn visit_bool<E>(self, _: bool) -> Result<UniqueKeys, E> {
        Ok(UniqueKeys)
    }

    fn visit_i64<E>(self, _: i64) -> Result<UniqueKeys, E> {
        Ok(UniqueKeys)
    }

    fn visit_u64<E>(self, _: u64) -> Result<UniqueKeys, E> {
        Ok(UniqueKeys)
    }

    fn visit_f64<E>(self, _: f64) -> Result<UniqueKeys, E> {
        Ok(UniqueKeys)
    }

    fn visit_str<E>(self, _: &str) -> Result<UniqueKeys, E> {
        Ok(UniqueKeys)
    }

    fn visit_unit<E>(self) -> Result<UniqueKeys, E> {
        Ok(UniqueKeys)
    }
}

/// Returns the first key that an object of a JSON text repeats. Returns `None` if the text is not JSON.
pub fn repeated_key(text: &str) -> Option<String> {
    let error = serde_json::from_str::<UniqueKeys>(text).err()?.to_string();
    let key = error.strip_prefix(REPEATED)?;
    Some(key.split(" at line ").next().unwrap_or(key).to_owned())
}

#[cfg(test)]
mod tests {
    use super::repeated_key;

    #[test]
    fn finds_repeated_key_at_any_depth() {
        assert_eq!(repeated_key(r#"{"a": 1, "b": [{"c": 1.5, "c": null}]}"#).as_deref(), Some("c"));
        assert_eq!(repeated_key(r#"{"a": {"a": "x"}, "b": {"a": true}}"#), None);
        assert_eq!(repeated_key("{"), None);
    }
}
