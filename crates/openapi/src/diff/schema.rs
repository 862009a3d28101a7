//! Changes of schemas.

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::ptr;

use serde_json::Value;

use super::flat_schema::FlatSchema;
use super::{DiffComparison, Impact, Sent, aligned, component_name, strings};
use crate::drift::document::{Document, Keywords, NOT_BLANK, keywords_of};
use crate::schema::{SubschemaForm, subschema_form};
use crate::{EXTENSIBLE_ENUM, subtypes};

/// Keywords with a lower or upper bound.
const BOUNDS: [&str; 8] =
    ["minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"];
/// Other keywords that exclude values.
const RESTRICTIONS: [&str; 11] = [
    "contains",
    "dependentRequired",
    "dependentSchemas",
    "multipleOf",
    "not",
    "pattern",
    "prefixItems",
    "propertyNames",
    "unevaluatedItems",
    "unevaluatedProperties",
    "uniqueItems",
];
/// Keywords that have a function of their own, besides [`BOUNDS`].
const COMPARED: [&str; 10] = [
    "additionalProperties",
    "anyOf",
    "default",
    "deprecated",
    "discriminator",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "format",
    "oneOf",
    EXTENSIBLE_ENUM,
];

impl<'a> DiffComparison<'a> {
    /// Compares two schemas, which may be references. A shared schema is reported under its own name.
    pub(super) fn compare_schema(&mut self, place: &str, old: &'a Value, new: &'a Value, sent: Sent) {
        self.compare_combined(place, &[old], &[new], sent);
    }

    /// Compares two lists of schemas. A value must be valid by all schemas of a list.
    fn compare_combined(&mut self, place: &str, old_schemas: &[&'a Value], new_schemas: &[&'a Value], sent: Sent) {
        let place = only_name(new_schemas).unwrap_or_else(|| place.to_owned());
        let nodes = |document: Document<'a>, schemas: &[&'a Value]| {
            schemas.iter().map(|schema| ptr::from_ref(document.resolve(schema))).collect()
        };
        if !self.compared.insert((nodes(self.old, old_schemas), nodes(self.new, new_schemas), sent)) {
            return;
        }
        let (old, new) = (FlatSchema::new(self.old, old_schemas), FlatSchema::new(self.new, new_schemas));
        if let Some(same) = alternative(self.new, &new, old_schemas, &old) {
            self.report(sent.widened(), &place, "there are now alternatives");
            return self.compare_combined(&place, old_schemas, &[same], sent);
        }
        if let Some(same) = alternative(self.old, &old, new_schemas, &new) {
            self.report(sent.narrowed(), &place, "there are no longer alternatives");
            return self.compare_combined(&place, &[same], new_schemas, sent);
        }
        self.compare_types(&place, &old, &new, sent);
        self.compare_format(&place, &old.keywords, &new.keywords, sent);
        self.compare_flags(&place, &old, &new, sent);
        self.compare_values(&place, &old, &new, sent);
        self.compare_bounds(&place, &old.keywords, &new.keywords, sent);
        self.compare_discriminator(&place, &old, &new, sent);
        self.compare_other_keywords(&place, &old.keywords, &new.keywords, sent);
        self.compare_properties(&place, &old, &new, sent);
        self.compare_subschemas(&place, ("items", "[]"), &old.items, &new.items, sent);
        let [old_additional, new_additional] =
            [&old, &new].map(|schema| Vec::from_iter(schema.keywords.get("additionalProperties").copied()));
        self.compare_subschemas(&place, ("additionalProperties", "{}"), &old_additional, &new_additional, sent);
        for keyword in ["oneOf", "anyOf"] {
            self.compare_branches(&place, keyword, &old.branches(keyword), &new.branches(keyword), sent);
        }
        self.compare_branches(&place, "allOf", &old.parts, &new.parts, sent);
    }

    /// Compares a keyword with a schema or a boolean. Of several, each applies.
    fn compare_subschemas(
        &mut self,
        place: &str,
        (keyword, suffix): (&str, &str),
        old: &[&'a Value],
        new: &[&'a Value],
        sent: Sent,
    ) {
        let has_schemas = |schemas: &[&Value]| !schemas.is_empty() && schemas.iter().all(|schema| schema.is_object());
        if has_schemas(old) && has_schemas(new) {
            return self.compare_combined(&format!("{place}{suffix}"), old, new, sent);
        }
        if old == new {
            return;
        }
        let impact = match openness(old).cmp(&openness(new)) {
            // Clients ignore properties that they don't know.
            Ordering::Less if keyword == "additionalProperties" && openness(old) == Openness::Nothing => Impact::NonBreaking,
            Ordering::Less => sent.widened(),
            Ordering::Greater => sent.narrowed(),
            // An object and a list of anything are as open as no keyword at all.
            Ordering::Equal => Impact::NonBreaking,
        };
        self.report(impact, place, format!("{keyword} has changed"));
    }

    fn compare_types(&mut self, place: &str, old: &FlatSchema<'a>, new: &FlatSchema<'a>, sent: Sent) {
        if old.types == new.types {
            return;
        }
        let (Some(old), Some(new)) = (&old.types, &new.types) else {
            let impact = if new.types.is_none() { sent.widened() } else { sent.narrowed() };
            return self.report(impact, place, "the type was added or removed");
        };
        // An integer is also a number.
        let is_in = |kind: &&str, types: &BTreeSet<&str>| types.contains(kind) || *kind == "integer" && types.contains("number");
        let impact = match (old.iter().all(|kind| is_in(kind, new)), new.iter().all(|kind| is_in(kind, old))) {
            (true, _) => sent.widened(),
            (_, true) => sent.narrowed(),
            _ => Impact::Breaking,
        };
        let text = |types: &BTreeSet<&str>| types.iter().copied().collect::<Vec<_>>().join(" or ");
        self.report(impact, place, format!("the type is now {} instead of {}", text(new), text(old)));
    }

    fn compare_format(&mut self, place: &str, old: &Keywords<'a>, new: &Keywords<'a>, sent: Sent) {
        // A password is any text: the format is a hint for forms.
        let format = |keywords: &Keywords<'a>| keywords.get("format")?.as_str().filter(|format| *format != "password");
        let impact = match (format(old), format(new)) {
            (old, new) if old == new => return,
            // The same JSON, with more digits in generated code.
            (Some("float"), Some("double")) => Impact::NonBreaking,
            (Some("int32"), Some("int64")) | (Some(_), None) => sent.widened(),
            (Some("int64"), Some("int32")) | (None, Some(_)) => sent.narrowed(),
            _ => Impact::Breaking,
        };
        let name = |keywords: &Keywords<'a>| format(keywords).unwrap_or("absent");
        self.report(impact, place, format!("the format is now {} instead of {}", name(new), name(old)));
    }

    fn compare_flags(&mut self, place: &str, old: &FlatSchema<'a>, new: &FlatSchema<'a>, sent: Sent) {
        match (old.is_nullable, new.is_nullable) {
            (false, true) => self.report(sent.widened(), place, "it can now be null"),
            (true, false) => self.report(sent.narrowed(), place, "it can no longer be null"),
            _ => {}
        }
        let (old, new) = (&old.keywords, &new.keywords);
        if sent == Sent::ByClient && old.get("default") != new.get("default") {
            self.report(Impact::Breaking, place, "the default has changed");
        }
        if old.contains_key("deprecated") != new.contains_key("deprecated") {
            self.report(Impact::NonBreaking, place, "deprecated has changed");
        }
    }

    /// Compares lists of values: closed ones, and those that may grow.
    fn compare_values(&mut self, place: &str, old: &FlatSchema<'a>, new: &FlatSchema<'a>, sent: Sent) {
        let open = |schema: &FlatSchema<'a>| schema.keywords.get(EXTENSIBLE_ENUM).and_then(|values| values.as_array());
        match (&old.values, &new.values) {
            (Some(old), Some(new)) => self.compare_lists(place, old, new, (sent.widened(), sent.narrowed())),
            (None, Some(_)) => self.report(sent.narrowed(), place, "the list of values is now closed"),
            (Some(_), None) => self.report(sent.widened(), place, "the list of values is no longer closed"),
            (None, None) => {
                let [old, new] = [open(old), open(new)].map(|values| values.into_iter().flatten().collect::<Vec<_>>());
                self.compare_lists(place, &old, &new, (Impact::NonBreaking, Impact::NonBreaking));
            }
        }
    }

    fn compare_lists(&mut self, place: &str, old: &[&Value], new: &[&Value], impacts: (Impact, Impact)) {
        let added = new.iter().filter(|value| !old.contains(value)).map(|value| (value, true));
        let removed = old.iter().filter(|value| !new.contains(value)).map(|value| (value, false));
        for (value, is_added) in added.chain(removed) {
            self.report_part(place, &format!("the value {}", crate::to_plain_string(value)), impacts, is_added);
        }
    }

    fn compare_bounds(&mut self, place: &str, old: &Keywords<'a>, new: &Keywords<'a>, sent: Sent) {
        for keyword in BOUNDS {
            let (old_bound, new_bound) = (strictness(old, keyword), strictness(new, keyword));
            if old_bound == new_bound {
                continue;
            }
            let impact = if new_bound > old_bound { sent.narrowed() } else { sent.widened() };
            for keyword in [Some(keyword), exclusive(keyword)].into_iter().flatten() {
                if old.get(keyword) != new.get(keyword) {
                    let value = new.get(keyword).map_or_else(|| "absent".to_owned(), ToString::to_string);
                    self.report(impact, place, format!("{keyword} is now {value}"));
                }
            }
        }
    }

    fn compare_discriminator(&mut self, place: &str, old: &FlatSchema<'a>, new: &FlatSchema<'a>, sent: Sent) {
        let property = |schema: &FlatSchema<'a>| schema.keywords.get("discriminator").map(|node| &node["propertyName"]);
        if property(old) != property(new) {
            return self.report(Impact::Breaking, place, "discriminator has changed");
        }
        for (name, old, new) in aligned(&old.discriminator_names(), &new.discriminator_names()) {
            match (old, new) {
                (Some(old), Some(new)) if old == new => {}
                (Some(_), Some(_)) => self.report(Impact::Breaking, place, format!("the mapping of {name} has changed")),
                _ => {
                    let impacts = (sent.widened(), sent.narrowed());
                    self.report_part(place, &format!("the mapping of {name}"), impacts, new.is_some());
                }
            }
        }
    }

    /// Compares the keywords that have no function of their own.
    fn compare_other_keywords(&mut self, place: &str, old: &Keywords<'a>, new: &Keywords<'a>, sent: Sent) {
        let has_function = |keyword: &str| [&COMPARED[..], &BOUNDS[..], &[NOT_BLANK]].iter().any(|all| all.contains(&keyword));
        for (keyword, old, new) in aligned(old, new).filter(|(keyword, ..)| !has_function(keyword)) {
            if let Some(pairs) = old.zip(new).and_then(|(old, new)| pair_subschemas(keyword, old, new)) {
                for (old, new) in pairs {
                    self.compare_schema(&format!("{place} {keyword}"), old, new, sent);
                }
                continue;
            }
            let impact = match (old, new) {
                (old, new) if old == new => continue,
                (Some(old), None) if *keyword == "unevaluatedProperties" && **old == false => Impact::NonBreaking,
                (Some(old), Some(new)) if *keyword == "multipleOf" && is_multiple(old, new) => sent.widened(),
                (Some(old), Some(new)) if *keyword == "multipleOf" && is_multiple(new, old) => sent.narrowed(),
                (None, Some(_)) if RESTRICTIONS.contains(keyword) => sent.narrowed(),
                (Some(_), None) if RESTRICTIONS.contains(keyword) => sent.widened(),
                _ => Impact::Breaking,
            };
            self.report(impact, place, format!("{keyword} has changed"));
        }
    }

    fn compare_properties(&mut self, place: &str, old: &FlatSchema<'a>, new: &FlatSchema<'a>, sent: Sent) {
        let not_blank = |schema: &FlatSchema<'a>| schema.keywords.get(NOT_BLANK).map(|names| strings(names)).unwrap_or_default();
        let (old_not_blank, new_not_blank) = (not_blank(old), not_blank(new));
        let (old_required, new_required) = (&old.required, &new.required);
        let (old_properties, new_properties) = (&old.properties, &new.properties);
        let (old_excluded, new_excluded) = (&old.excluded, &new.excluded);
        // Properties with this keyword are not sent in this direction.
        let unsent = if sent == Sent::ByClient { "readOnly" } else { "writeOnly" };
        for (name, old, new) in aligned(old_properties, new_properties) {
            if old.is_none() && old_excluded.contains(name) || new.is_none() && new_excluded.contains(name) {
                continue;
            }
            let is_unsent = |document: Document<'a>, schemas: &Vec<&'a Value>| {
                schemas.iter().any(|schema| document.flatten(schema).get(unsent).is_some_and(|flag| **flag == true))
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
            self.compare_combined(&place, old, new, sent);
        }
        for name in old_excluded.symmetric_difference(new_excluded) {
            let (impact, text) = match new_excluded.contains(name) {
                // As if it was removed.
                true if old_properties.contains_key(name) => (Impact::Breaking, "the property is now excluded"),
                true => (sent.narrowed(), "the property is now excluded"),
                false => (sent.widened(), "the property is no longer excluded"),
            };
            self.report(impact, &format!("{place}.{name}"), text);
        }
        // Another part of an `allOf` may have the property, or none.
        let is_undeclared = |name: &&&str| !old_properties.contains_key(**name) && !new_properties.contains_key(**name);
        for name in old_required.symmetric_difference(new_required).filter(is_undeclared) {
            let (impact, text) = match new_required.contains(name) {
                true => (sent.narrowed(), "it is now required"),
                false => (sent.widened(), "it is no longer required"),
            };
            self.report(impact, &format!("{place}.{name}"), text);
        }
        if sent == Sent::ByClient {
            for name in old_not_blank.symmetric_difference(&new_not_blank) {
                let text = if new_not_blank.contains(name) { "it must no longer be blank" } else { "it can now be blank" };
                let impact = if new_not_blank.contains(name) { sent.narrowed() } else { sent.widened() };
                self.report(impact, &format!("{place}.{name}"), text);
            }
        }
    }

    /// Compares the branches of `oneOf` or `anyOf`, or the parts of `allOf` that can't be merged.
    fn compare_branches(&mut self, place: &str, keyword: &str, old: &[&'a Value], new: &[&'a Value], sent: Sent) {
        if old.is_empty() != new.is_empty() {
            // Without branches, every value is allowed.
            let impact = if old.is_empty() { sent.narrowed() } else { sent.widened() };
            self.report(impact, place, format!("{keyword} has {} instead of {} branches", new.len(), old.len()));
            return;
        }
        let (old, new) = match keyword {
            "anyOf" => without_other_names(old, new),
            _ => (old.to_vec(), new.to_vec()),
        };
        let (old, new) = &match (has_names(&old), has_names(&new)) {
            (false, true) | (true, false) => (without_implied_names(&old), without_implied_names(&new)),
            _ => (old, new),
        };
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
fn pair_branches<'a>(old: &[&'a Value], new: &[&'a Value]) -> Vec<(Option<&'a Value>, Option<&'a Value>)> {
    let mut remaining = old.to_vec();
    let mut take_same = |new: &Value| {
        let same = |old: &&Value| *old == new || component_name(new).is_some_and(|name| component_name(old) == Some(name));
        remaining.iter().position(same).map(|index| remaining.remove(index))
    };
    let mut pairs: Vec<(Option<&Value>, Option<&Value>)> = new.iter().map(|new| (take_same(new), Some(*new))).collect();
    let mut remaining = remaining.into_iter();
    for (old, _) in pairs.iter_mut().filter(|(old, _)| old.is_none()) {
        *old = remaining.next();
    }
    pairs.extend(remaining.map(|old| (Some(old), None)));
    pairs
}

/// Returns old and new branches without those for the names of no subtype, if both have one. They follow from the other branches.
fn without_other_names<'a>(old: &[&'a Value], new: &[&'a Value]) -> (Vec<&'a Value>, Vec<&'a Value>) {
    let without = |branches: &[&'a Value]| -> Vec<&'a Value> {
        branches.iter().copied().filter(|branch| !subtypes::excludes_names(branch)).collect()
    };
    let (old_named, new_named) = (without(old), without(new));
    let both_exclude = old_named.len() < old.len() && new_named.len() < new.len();
    if both_exclude { (old_named, new_named) } else { (old.to_vec(), new.to_vec()) }
}

/// Returns whether a discriminator has restricted one of the branches to its names.
fn has_names(branches: &[&Value]) -> bool {
    branches.iter().any(|branch| subtypes::restricted(branch).is_some())
}

/// Returns the branches without the restriction to the name that a discriminator has for them even without a mapping.
fn without_implied_names<'a>(branches: &[&'a Value]) -> Vec<&'a Value> {
    let without = |branch: &&'a Value| match subtypes::restricted(branch) {
        Some((subtype, names)) if names.iter().all(|name| Some(name.as_str()) == component_name(subtype).as_deref()) => subtype,
        _ => *branch,
    };
    branches.iter().map(without).collect()
}

/// Returns the name of the shared component, if only one of the schemas has an effect.
fn only_name(schemas: &[&Value]) -> Option<String> {
    let mut effective = schemas.iter().filter(|schema| !keywords_of(schema).is_empty());
    effective.next().filter(|_| effective.next().is_none()).and_then(|schema| component_name(schema))
}

/// Returns the alternative of a schema that is the same as other schemas together: it has the same name or the same content.
fn alternative<'a>(
    document: Document<'a>,
    schema: &FlatSchema<'a>,
    others: &[&Value],
    flat_others: &FlatSchema,
) -> Option<&'a Value> {
    let has_same_name = |branch: &Value| component_name(branch).is_some_and(|name| only_name(others) == Some(name));
    let is_same = |branch: &&'a Value| has_same_name(branch) || FlatSchema::new(document, &[branch]) == *flat_others;
    schema.alternatives().into_iter().find(is_same)
}

/// Returns how much a bound excludes: a greater value excludes more. `None` if there is no bound. The second component is true if the
/// bound itself is excluded, as `true` in OpenAPI 3.0 or as a bound of its own in OpenAPI 3.1.
fn strictness(keywords: &Keywords, keyword: &str) -> Option<(f64, bool)> {
    let sign = if keyword.starts_with("max") { -1.0 } else { 1.0 };
    let bound = |keyword: &str| keywords.get(keyword)?.as_f64().map(|bound| sign * bound);
    let is_excluded = exclusive(keyword).and_then(|keyword| keywords.get(keyword)).is_some_and(|flag| **flag == true);
    let inclusive = bound(keyword).map(|bound| (bound, is_excluded));
    let exclusive = exclusive(keyword).and_then(bound).map(|bound| (bound, true));
    // Without a lower bound, a count is at least 0.
    let implied = ["minLength", "minItems", "minProperties"].contains(&keyword).then_some((0.0, false));
    [inclusive, exclusive, implied].into_iter().fold(None, |strictest, bound| if bound > strictest { bound } else { strictest })
}

/// Returns the keyword that excludes the bound itself.
fn exclusive(keyword: &str) -> Option<&'static str> {
    match keyword {
        "minimum" => Some("exclusiveMinimum"),
        "maximum" => Some("exclusiveMaximum"),
        _ => None,
    }
}

fn is_multiple(number: &Value, of: &Value) -> bool {
    let quotient = number.as_f64().zip(of.as_f64()).map(|(number, of)| number / of);
    quotient.is_some_and(|quotient| (quotient - quotient.round()).abs() < 1e-9)
}

/// Returns the pairs of old and new subschemas of a keyword. `None` if the numbers or names differ, or if a narrower subschema doesn't
/// make the schema narrower.
fn pair_subschemas<'a>(keyword: &str, old: &'a Value, new: &'a Value) -> Option<Vec<(&'a Value, &'a Value)>> {
    match (subschema_form(keyword).filter(|_| !["if", "not"].contains(&keyword))?, old, new) {
        (SubschemaForm::Single, Value::Object(_), Value::Object(_)) => Some(vec![(old, new)]),
        (SubschemaForm::List, Value::Array(old), Value::Array(new)) => {
            (old.len() == new.len()).then(|| old.iter().zip(new).collect())
        }
        (SubschemaForm::Named, Value::Object(old), Value::Object(new)) if old.len() == new.len() => {
            old.iter().map(|(name, old)| Some((old, new.get(name)?))).collect()
        }
        _ => None,
    }
}

/// The values that a keyword for items or further properties allows, in ascending order.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Openness {
    Nothing,
    BySchema,
    Anything,
}

/// Returns what a keyword for items or further properties allows. Of several, each applies.
fn openness(nodes: &[&Value]) -> Openness {
    let of_node = |node: &&Value| match node {
        Value::Bool(true) => Openness::Anything,
        Value::Bool(false) => Openness::Nothing,
        Value::Object(schema) if schema.is_empty() => Openness::Anything,
        _ => Openness::BySchema,
    };
    nodes.iter().map(of_node).min().unwrap_or(Openness::Anything)
}
