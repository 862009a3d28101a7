//! Comparing two schemas, down to every property.

use std::collections::BTreeSet;
use std::ptr;

use serde_json::Value;

use super::document::Keywords;
use super::{Comparison, aligned, rules};

/// Keywords with schemas in them or with members in no order; the others are compared by value.
const STRUCTURAL: [&str; 9] =
    ["properties", "required", "enum", "items", "additionalProperties", "not", "oneOf", "anyOf", "allOf"];

impl<'a> Comparison<'a> {
    /// Compares two schemas as written, references and all.
    pub(super) fn schema(&mut self, place: &str, document: &'a Value, server: &'a Value) {
        let (document, server) = (self.document.resolve(document), self.server.resolve(server));
        let pair = (ptr::from_ref(document), ptr::from_ref(server));
        if self.in_progress.contains(&pair) || self.known_equal.contains(&pair) {
            return;
        }
        let found_before = self.found.len();
        self.in_progress.push(pair);
        self.flat_schema(place, self.document.flatten(document), self.server.flatten(server));
        self.in_progress.pop();
        if self.found.len() == found_before {
            self.known_equal.insert(pair);
        }
    }

    /// The schema of what may be left out, but never null: a parameter, a header, or a property that must not be blank.
    pub(super) fn optional_value(&mut self, place: &str, document: &'a Value, server: &'a Value) {
        let mut served = self.server.flatten(server);
        rules::drop_nullable(&mut served);
        self.flat_schema(place, self.document.flatten(document), served);
    }

    /// Compares what two schemas say once their references are followed.
    fn flat_schema(&mut self, place: &str, mut documented: Keywords<'a>, mut served: Keywords<'a>) {
        let not_blank = rules::extract_not_blank(&mut documented);
        let documented_values = rules::extract_enum(&mut documented);
        let mut served_values = rules::extract_enum(&mut served);
        rules::add_null_variant(&served, &mut served_values);
        for value in documented_values.symmetric_difference(&served_values) {
            self.one_sided(place, &format!("enum value {value}"), documented_values.contains(value));
        }
        for (keyword, documented, served) in aligned(&documented, &served) {
            if !STRUCTURAL.contains(keyword) {
                self.values(place, keyword, documented.copied(), served.copied());
            }
        }
        self.properties(place, &not_blank, &documented, &served);
        self.inner(&format!("{place}[]"), "items", &documented, &served);
        self.inner(&format!("{place}{{}}"), "additionalProperties", &documented, &served);
        self.inner(&format!("{place}!"), "not", &documented, &served);
        for keyword in ["oneOf", "anyOf", "allOf"] {
            self.arms(place, keyword, &documented, &served);
        }
    }

    fn properties(&mut self, place: &str, not_blank: &BTreeSet<&str>, documented: &Keywords<'a>, served: &Keywords<'a>) {
        let properties = |side: &Keywords<'a>| -> Keywords<'a> {
            let all = side.get("properties").and_then(|properties| properties.as_object());
            all.into_iter().flatten().map(|(name, schema)| (name.as_str(), schema)).collect()
        };
        for (name, documented, served) in aligned(&properties(documented), &properties(served)) {
            let place = format!("{place}.{name}");
            match (documented, served) {
                (Some(documented), Some(served)) if not_blank.contains(name) => {
                    self.optional_value(&place, documented, served);
                }
                (Some(documented), Some(served)) => self.schema(&place, documented, served),
                _ => self.one_sided(&place, "property", documented.is_some()),
            }
        }
        let documented = required(documented);
        let served = required(served);
        for name in documented.symmetric_difference(&served) {
            self.one_sided(&format!("{place}.{name}"), "required", documented.contains(name));
        }
    }

    /// A schema within a schema. `additionalProperties` may be true or false as well.
    fn inner(&mut self, place: &str, keyword: &str, documented: &Keywords<'a>, served: &Keywords<'a>) {
        let (documented, served) = (documented.get(keyword).copied(), served.get(keyword).copied());
        match (documented, served) {
            (Some(documented), Some(served)) if documented.is_object() && served.is_object() => {
                self.schema(place, documented, served);
            }
            _ => self.values(place, keyword, documented, served),
        }
    }

    /// Alternatives are compared in order, because nothing else says which belong together.
    fn arms(&mut self, place: &str, keyword: &str, documented: &Keywords<'a>, served: &Keywords<'a>) {
        let arms = |side: &Keywords<'a>| side.get(keyword).and_then(|arms| arms.as_array()).map_or(&[][..], Vec::as_slice);
        let (documented, served) = (arms(documented), arms(served));
        if documented.len() != served.len() {
            self.differ(place, keyword, documented.len().to_string(), served.len().to_string());
        }
        for (number, (documented, served)) in documented.iter().zip(served).enumerate() {
            self.schema(&format!("{place}|{number}"), documented, served);
        }
    }
}

/// The names of the required properties.
fn required<'a>(keywords: &Keywords<'a>) -> BTreeSet<&'a str> {
    let names = keywords.get("required").and_then(|names| names.as_array());
    names.into_iter().flatten().filter_map(Value::as_str).collect()
}
