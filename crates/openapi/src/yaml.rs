//! Parser of the YAML or JSON of a document.

use std::cell::RefCell;
use std::fmt;

use anyhow::{anyhow, bail};
use serde::de::{DeserializeSeed, Deserializer, EnumAccess, MapAccess, SeqAccess, VariantAccess, Visitor};
use serde_json::{Map, Value};

use crate::json::visit_scalars;
use crate::resolver::escape;

/// Parses YAML or JSON. Also returns the JSON pointers of repeated keys.
pub fn parse(text: &str) -> anyhow::Result<(Value, Vec<String>)> {
    // JSON is also YAML, but the JSON parser is much faster on a large document and its errors are clearer.
    let text = text.trim_start_matches('\u{feff}');
    // A comment is no JSON, and would be a strange mistake in YAML.
    let is_json = ["{", "//", "/*"].iter().any(|start| text.trim_start().starts_with(start));
    let repeated = RefCell::default();
    let root = || Node { pointer: String::new(), repeated: &repeated };
    let mut json = serde_json::Deserializer::from_str(text);
    let value = match root().deserialize(&mut json).and_then(|value| json.end().map(|()| value)) {
        Ok(value) => value,
        // serde_json has no other way to tell this error. Parsing such a text as YAML takes time that grows with its square.
        Err(error) if is_json && error.to_string().starts_with("recursion limit exceeded") => {
            bail!("its objects and arrays are nested more than 127 levels deep")
        }
        Err(json_error) => {
            repeated.borrow_mut().clear();
            let yaml = root().deserialize(serde_yaml_ng::Deserializer::from_str(text));
            yaml.map_err(|yaml_error| if is_json { anyhow!(json_error) } else { explain_tab(yaml_error, text) })?
        }
    };
    Ok((value, repeated.into_inner()))
}

/// Returns an error of the YAML parser with the tab that is its reason, which the parser doesn't mention.
fn explain_tab(error: serde_yaml_ng::Error, text: &str) -> anyhow::Error {
    let line = error.location().and_then(|location| text.lines().nth(location.line().checked_sub(1)?)).unwrap_or_default();
    let indentation = &line[..line.len() - line.trim_start().len()];
    match indentation.contains('\t') {
        true => anyhow!("{error}: the line is indented by a tab, and YAML allows only spaces"),
        false => anyhow!(error),
    }
}

/// A value of YAML or JSON in a document. Unlike `serde_json::Value`, it accepts integers of more than 64 bits, which become
/// floating-point numbers, merge keys (`<<`) and tags.
struct Node<'r> {
    pointer: String,
    /// The pointers of the keys that are in one object more than once.
    repeated: &'r RefCell<Vec<String>>,
}

impl Node<'_> {
    /// Returns the node for a member or an item.
    fn child(&self, step: impl fmt::Display) -> Self {
        Self { pointer: format!("{}/{step}", self.pointer), repeated: self.repeated }
    }
}

impl<'de> DeserializeSeed<'de> for Node<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Node<'_> {
    type Value = Value;

    visit_scalars!();

    fn visit_i128<E>(self, number: i128) -> Result<Value, E> {
        Ok((number as f64).into())
    }

    fn visit_u128<E>(self, number: u128) -> Result<Value, E> {
        Ok((number as f64).into())
    }

    fn visit_f64<E>(self, number: f64) -> Result<Value, E> {
        Ok(number.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut array = Vec::new();
        while let Some(item) = items.next_element_seed(self.child(array.len()))? {
            array.push(item);
        }
        Ok(array.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some(name) = entries.next_key::<String>()? {
            let member = self.child(escape(&name));
            let pointer = member.pointer.clone();
            if object.insert(name, entries.next_value_seed(member)?).is_some() {
                self.repeated.borrow_mut().push(pointer);
            }
        }
        let merged = match object.shift_remove("<<") {
            Some(Value::Array(parents)) => parents,
            Some(parent) => vec![parent],
            None => Vec::new(),
        };
        for parent in merged {
            let Value::Object(parent) = parent else { continue };
            for (name, value) in parent {
                object.entry(name).or_insert(value);
            }
        }
        Ok(object.into())
    }

    /// Drops a tag, such as `!custom`.
    fn visit_enum<A: EnumAccess<'de>>(self, tagged: A) -> Result<Value, A::Error> {
        let (_, content) = tagged.variant::<String>()?;
        content.newtype_variant_seed(self)
    }
}
