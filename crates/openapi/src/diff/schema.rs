//! Changes of schemas.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use serde_json::Value;

use super::{Comparison, Impact, Sent, aligned, component_name, members, strings};
use crate::EXTENSIBLE_ENUM;
use crate::drift::document::{Document, Keywords};

/// Keywords with a lower bound: a higher value excludes more.
const LOWER: [&str; 4] = ["minimum", "minLength", "minItems", "minProperties"];
/// Keywords with an upper bound: a lower value excludes more.
const UPPER: [&str; 4] = ["maximum", "maxLength", "maxItems", "maxProperties"];
/// Keywords that exclude values; no order is known between two different values.
const RESTRICTIONS: [&str; 6] = ["pattern", "multipleOf", "uniqueItems", "exclusiveMinimum", "exclusiveMaximum", "not"];
/// Keywords whose changes always affect clients.
const FIXED: [&str; 3] = ["readOnly", "writeOnly", "discriminator"];

impl<'a> Comparison<'a> {
    /// Compares two schemas, which may be references. A shared schema is reported under its own name.
    pub(super) fn compare_schema(&mut self, place: &str, old: &'a Value, new: &'a Value, sent: Sent) {
        let place = component_name(new).unwrap_or_else(|| place.to_owned());
        let (old, new) = (self.old.resolve(old), self.new.resolve(new));
        if !self.compared.insert((old, new, sent)) {
            return;
        }
        let (old, new) = (self.old.flatten(old), self.new.flatten(new));
        self.compare_type(&place, &old, &new, sent);
        self.compare_values(&place, &old, &new, sent);
        self.compare_bounds(&place, &old, &new, sent);
        self.compare_properties(&place, &old, &new, sent);
        for (keyword, suffix) in [("items", "[]"), ("additionalProperties", "{}")] {
            match (old.get(keyword).copied(), new.get(keyword).copied()) {
                (Some(old), Some(new)) if old.is_object() && new.is_object() => {
                    self.compare_schema(&format!("{place}{suffix}"), old, new, sent);
                }
                (old, new) if old != new => {
                    let impact = match openness(old).cmp(&openness(new)) {
                        Ordering::Less => sent.widened(),
                        Ordering::Greater => sent.narrowed(),
                        // An object and a list of anything are as open as no keyword at all.
                        Ordering::Equal => Impact::NonBreaking,
                    };
                    self.report(impact, &place, format!("{keyword} has changed"));
                }
                _ => {}
            }
        }
        for keyword in ["oneOf", "anyOf", "allOf"] {
            self.compare_branches(&place, keyword, &old, &new, sent);
        }
    }

    fn compare_type(&mut self, place: &str, old: &Keywords<'a>, new: &Keywords<'a>, sent: Sent) {
        let text =
            |keywords: &Keywords<'a>, keyword: &str| keywords.get(keyword).and_then(|value| value.as_str()).map(str::to_owned);
        match (text(old, "type"), text(new, "type")) {
            (old, new) if old == new => {}
            (Some(old), Some(new)) => {
                let impact = match (old.as_str(), new.as_str()) {
                    ("integer", "number") => sent.widened(),
                    ("number", "integer") => sent.narrowed(),
                    _ => Impact::Breaking,
                };
                self.report(impact, place, format!("the type is now {new} instead of {old}"));
            }
            (_, new) => {
                let impact = if new.is_none() { sent.widened() } else { sent.narrowed() };
                self.report(impact, place, "the type was added or removed");
            }
        }
        match (text(old, "format"), text(new, "format")) {
            (old, new) if old == new => {}
            (old, new) => {
                let impact = match (old.as_deref(), new.as_deref()) {
                    // The same JSON, with more digits in generated code.
                    (Some("float"), Some("double")) => Impact::NonBreaking,
                    (Some("int32"), Some("int64")) | (Some(_), None) => sent.widened(),
                    (Some("int64"), Some("int32")) | (None, Some(_)) => sent.narrowed(),
                    _ => Impact::Breaking,
                };
                let name = |format: Option<String>| format.unwrap_or_else(|| "absent".to_owned());
                self.report(impact, place, format!("the format is now {} instead of {}", name(new), name(old)));
            }
        }
        match (old.contains_key("nullable"), new.contains_key("nullable")) {
            (false, true) => self.report(sent.widened(), place, "it can now be null"),
            (true, false) => self.report(sent.narrowed(), place, "it can no longer be null"),
            _ => {}
        }
        for keyword in FIXED.into_iter().filter(|keyword| old.get(keyword) != new.get(keyword)) {
            self.report(Impact::Breaking, place, format!("{keyword} has changed"));
        }
        if sent == Sent::ByClient && old.get("default") != new.get("default") {
            self.report(Impact::Breaking, place, "the default has changed");
        }
        if old.contains_key("deprecated") != new.contains_key("deprecated") {
            self.report(Impact::NonBreaking, place, "deprecated has changed");
        }
    }

    /// Compares lists of values: closed ones, and those that may grow.
    fn compare_values(&mut self, place: &str, old: &Keywords<'a>, new: &Keywords<'a>, sent: Sent) {
        let values = |keywords: &Keywords<'a>, keyword: &str| -> Option<BTreeSet<String>> {
            // `nullable` is compared by itself.
            let values = keywords.get(keyword)?.as_array()?.iter().filter(|value| !value.is_null());
            Some(values.map(crate::to_plain_string).collect())
        };
        let (old_closed, new_closed) = (values(old, "enum"), values(new, "enum"));
        let (old_open, new_open) = (values(old, EXTENSIBLE_ENUM), values(new, EXTENSIBLE_ENUM));
        match (&old_closed, &new_closed) {
            (Some(old), Some(new)) => {
                for value in old.symmetric_difference(new) {
                    let impacts = (sent.widened(), sent.narrowed());
                    self.report_part(place, &format!("the value {value}"), impacts, new.contains(value));
                }
            }
            (None, Some(_)) => self.report(sent.narrowed(), place, "the list of values is now closed"),
            (Some(_), None) => self.report(sent.widened(), place, "the list of values is no longer closed"),
            (None, None) => {
                let (old, new) = (old_open.unwrap_or_default(), new_open.unwrap_or_default());
                for value in old.symmetric_difference(&new) {
                    let impacts = (Impact::NonBreaking, Impact::NonBreaking);
                    self.report_part(place, &format!("the value {value}"), impacts, new.contains(value));
                }
            }
        }
    }

    fn compare_bounds(&mut self, place: &str, old: &Keywords<'a>, new: &Keywords<'a>, sent: Sent) {
        for (keyword, is_upper) in LOWER.map(|keyword| (keyword, false)).into_iter().chain(UPPER.map(|keyword| (keyword, true))) {
            let bound = |keywords: &Keywords<'a>| keywords.get(keyword).and_then(|bound| bound.as_f64());
            let is_narrower = match (bound(old), bound(new)) {
                (old, new) if old == new => continue,
                (Some(old), Some(new)) => (new < old) == is_upper,
                (_, new) => new.is_some(),
            };
            let impact = if is_narrower { sent.narrowed() } else { sent.widened() };
            let value = new.get(keyword).map_or_else(|| "absent".to_owned(), ToString::to_string);
            self.report(impact, place, format!("{keyword} is now {value}"));
        }
        for keyword in RESTRICTIONS {
            let impact = match (old.get(keyword), new.get(keyword)) {
                (old, new) if old == new => continue,
                (None, Some(_)) => sent.narrowed(),
                (Some(_), None) => sent.widened(),
                _ => Impact::Breaking,
            };
            self.report(impact, place, format!("{keyword} has changed"));
        }
    }

    fn compare_properties(&mut self, place: &str, old: &Keywords<'a>, new: &Keywords<'a>, sent: Sent) {
        let nothing = &Value::Null;
        let names = |keywords: &Keywords<'a>, keyword: &str| -> BTreeSet<&'a str> {
            keywords.get(keyword).map(|names| strings(names)).unwrap_or_default()
        };
        let properties = |keywords: &Keywords<'a>| members(keywords.get("properties").copied().unwrap_or(nothing));
        let (old_required, new_required) = (names(old, "required"), names(new, "required"));
        let (old_properties, new_properties) = (properties(old), properties(new));
        // Properties with this keyword are not sent in this direction.
        let unsent = if sent == Sent::ByClient { "readOnly" } else { "writeOnly" };
        for (name, old, new) in aligned(&old_properties, &new_properties) {
            let is_unsent = |document: Document<'a>, schema: &&'a Value| {
                document.flatten(schema).get(unsent).is_some_and(|flag| **flag == true)
            };
            if old.is_none_or(|old| is_unsent(self.old, old)) && new.is_none_or(|new| is_unsent(self.new, new)) {
                continue;
            }
            let place = format!("{place}.{name}");
            let (Some(old), Some(new)) = (old, new) else {
                let is_needed = sent == Sent::ByClient && new_required.contains(name) && !old_required.contains(name);
                let added = if is_needed { Impact::Breaking } else { Impact::NonBreaking };
                self.report_part(&place, "the property", (added, Impact::Breaking), new.is_some());
                continue;
            };
            match (old_required.contains(name), new_required.contains(name)) {
                (false, true) => self.report(sent.narrowed(), &place, "it is now required"),
                (true, false) => self.report(sent.widened(), &place, "it is no longer required"),
                _ => {}
            }
            self.compare_schema(&place, old, new, sent);
        }
        // Another part of an `allOf` may have the property, or none.
        let is_undeclared = |name: &&&str| !old_properties.contains_key(**name) && !new_properties.contains_key(**name);
        for name in old_required.symmetric_difference(&new_required).filter(is_undeclared) {
            let (impact, text) = match new_required.contains(name) {
                true => (sent.narrowed(), "it is now required"),
                false => (sent.widened(), "it is no longer required"),
            };
            self.report(impact, &format!("{place}.{name}"), text);
        }
        if sent == Sent::ByClient {
            let (old, new) = (names(old, "x-not-blank"), names(new, "x-not-blank"));
            for name in old.symmetric_difference(&new) {
                let text = if new.contains(name) { "it must no longer be blank" } else { "it can now be blank" };
                let impact = if new.contains(name) { sent.narrowed() } else { sent.widened() };
                self.report(impact, &format!("{place}.{name}"), text);
            }
        }
    }

    /// Compares the branches of `oneOf`, `anyOf` or `allOf`.
    fn compare_branches(&mut self, place: &str, keyword: &str, old: &Keywords<'a>, new: &Keywords<'a>, sent: Sent) {
        let branches = |side: &Keywords<'a>| side.get(keyword).and_then(|list| list.as_array()).map_or(&[][..], Vec::as_slice);
        let (old, new) = (branches(old), branches(new));
        if old.is_empty() != new.is_empty() {
            // Without branches, every value is allowed.
            let impact = if old.is_empty() { sent.narrowed() } else { sent.widened() };
            self.report(impact, place, format!("{keyword} has {} instead of {} branches", new.len(), old.len()));
            return;
        }
        // Another part of `allOf` excludes values; another alternative allows more.
        let (wider, narrower) = (sent.widened(), sent.narrowed());
        let impacts = if keyword == "allOf" { (narrower, wider) } else { (wider, narrower) };
        for (number, pair) in pair_branches(old, new).into_iter().enumerate() {
            match pair {
                (Some(old), Some(new)) => self.compare_schema(&format!("{place}|{number}"), old, new, sent),
                (old, new) => {
                    let name = old.or(new).and_then(component_name);
                    let part =
                        name.map_or_else(|| format!("a branch of {keyword}"), |name| format!("the branch {name} of {keyword}"));
                    self.report_part(place, &part, impacts, new.is_some());
                }
            }
        }
    }
}

/// Pairs the old and new branches that refer to the same component or are equal, and the others by their order. Returns them in the
/// order of the new ones, then the removed ones.
fn pair_branches<'a>(old: &'a [Value], new: &'a [Value]) -> Vec<(Option<&'a Value>, Option<&'a Value>)> {
    let mut remaining: Vec<&Value> = old.iter().collect();
    let mut take_same = |new: &Value| {
        let same = |old: &&Value| *old == new || component_name(new).is_some_and(|name| component_name(old) == Some(name));
        remaining.iter().position(same).map(|index| remaining.remove(index))
    };
    let mut pairs: Vec<(Option<&Value>, Option<&Value>)> = new.iter().map(|new| (take_same(new), Some(new))).collect();
    let mut remaining = remaining.into_iter();
    for (old, _) in pairs.iter_mut().filter(|(old, _)| old.is_none()) {
        *old = remaining.next();
    }
    pairs.extend(remaining.map(|old| (Some(old), None)));
    pairs
}

/// The values that a keyword for items or further properties allows, in ascending order.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Openness {
    Nothing,
    BySchema,
    Anything,
}

/// Returns what a keyword for items or further properties allows.
fn openness(node: Option<&Value>) -> Openness {
    match node {
        None | Some(Value::Bool(true)) => Openness::Anything,
        Some(Value::Bool(false)) => Openness::Nothing,
        Some(Value::Object(schema)) if schema.is_empty() => Openness::Anything,
        Some(_) => Openness::BySchema,
    }
}
