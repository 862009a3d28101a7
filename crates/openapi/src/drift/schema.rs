//! Comparison of two schemas, down to every property.

use std::collections::BTreeSet;
use std::ptr;

use serde_json::Value;

use super::document::Keywords;
use super::{DriftComparison, aligned, rules};

/// Keywords that contain schemas or unordered values. All others are compared by value.
const STRUCTURAL: [&str; 9] =
    ["properties", "required", "enum", "items", "additionalProperties", "not", "oneOf", "anyOf", "allOf"];

impl<'a> DriftComparison<'a> {
    /// Compares two schemas, which may be references.
    pub(super) fn compare_schema(&mut self, location: &str, document: &'a Value, server: &'a Value) {
        let (document, server) = (self.document.resolve(document), self.server.resolve(server));
        let pair = (ptr::from_ref(document), ptr::from_ref(server));
        if self.in_progress.contains(&pair) || self.known_equal.contains(&pair) {
            return;
        }
        let count_before = self.differences.len();
        self.in_progress.push(pair);
        self.compare_flat_schema(location, self.document.flatten(document), self.server.flatten(server));
        self.in_progress.pop();
        if self.differences.len() == count_before {
            self.known_equal.insert(pair);
        }
    }

    /// Compares the schemas of an optional value that can't be null: a parameter, a header, or a property that must not be blank.
    pub(super) fn compare_optional_value(&mut self, location: &str, document: &'a Value, server: &'a Value) {
        let mut served = self.server.flatten(server);
        rules::drop_nullable(&mut served);
        self.compare_flat_schema(location, self.document.flatten(document), served);
    }

    /// Compares the keywords of two schemas after their references were followed.
    fn compare_flat_schema(&mut self, location: &str, mut documented: Keywords<'a>, mut served: Keywords<'a>) {
        let not_blank = rules::extract_not_blank(&mut documented);
        let documented_values = rules::extract_enum(&mut documented);
        let served_values = rules::extract_enum(&mut served);
        for value in documented_values.symmetric_difference(&served_values) {
            self.report_one_sided(location, &format!("enum value {value}"), documented_values.contains(value));
        }
        for (keyword, documented, served) in aligned(&documented, &served) {
            if !STRUCTURAL.contains(keyword) {
                self.compare_values(location, keyword, documented.copied(), served.copied());
            }
        }
        self.compare_properties(location, &not_blank, &documented, &served);
        self.compare_subschema(&format!("{location}[]"), "items", &documented, &served);
        self.compare_subschema(&format!("{location}{{}}"), "additionalProperties", &documented, &served);
        self.compare_subschema(&format!("{location}!"), "not", &documented, &served);
        for keyword in ["oneOf", "anyOf", "allOf"] {
            self.compare_branches(location, keyword, &documented, &served);
        }
    }

    fn compare_properties(
        &mut self,
        location: &str,
        not_blank: &BTreeSet<&str>,
        documented: &Keywords<'a>,
        served: &Keywords<'a>,
    ) {
        let properties = |side: &Keywords<'a>| -> Keywords<'a> {
            let all = side.get("properties").and_then(|properties| properties.as_object());
            all.into_iter().flatten().map(|(name, schema)| (name.as_str(), schema)).collect()
        };
        for (name, documented, served) in aligned(&properties(documented), &properties(served)) {
            let location = format!("{location}.{name}");
            match (documented, served) {
                (Some(documented), Some(served)) if not_blank.contains(name) => {
                    self.compare_optional_value(&location, documented, served);
                }
                (Some(documented), Some(served)) => self.compare_schema(&location, documented, served),
                _ => self.report_one_sided(&location, "property", documented.is_some()),
            }
        }
        let documented = required(documented);
        let served = required(served);
        for name in documented.symmetric_difference(&served) {
            self.report_one_sided(&format!("{location}.{name}"), "required", documented.contains(name));
        }
    }

    /// Compares a subschema. `additionalProperties` may also be a boolean.
    fn compare_subschema(&mut self, location: &str, keyword: &str, documented: &Keywords<'a>, served: &Keywords<'a>) {
        let (documented, served) = (documented.get(keyword).copied(), served.get(keyword).copied());
        match (documented, served) {
            (Some(documented), Some(served)) if documented.is_object() && served.is_object() => {
                self.compare_schema(location, documented, served);
            }
            _ => self.compare_values(location, keyword, documented, served),
        }
    }

    /// Compares the branches of `oneOf`, `anyOf` or `allOf` in order, because they have no names.
    fn compare_branches(&mut self, location: &str, keyword: &str, documented: &Keywords<'a>, served: &Keywords<'a>) {
        let branches = |side: &Keywords<'a>| side.get(keyword).and_then(|list| list.as_array()).map_or(&[][..], Vec::as_slice);
        let (documented, served) = (branches(documented), branches(served));
        if documented.len() != served.len() {
            self.report(location, keyword, documented.len().to_string(), served.len().to_string());
        }
        for (number, (documented, served)) in documented.iter().zip(served).enumerate() {
            self.compare_schema(&format!("{location}|{number}"), documented, served);
        }
    }
}

/// Returns the names of the required properties.
fn required<'a>(keywords: &Keywords<'a>) -> BTreeSet<&'a str> {
    let names = keywords.get("required").and_then(|names| names.as_array());
    names.into_iter().flatten().filter_map(Value::as_str).collect()
}
