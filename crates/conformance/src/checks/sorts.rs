//! Checks of the sorts of a list: entries are in the order of a property, ascending and descending.

use std::cmp::Ordering;

use serde_json::{Value, json};

use super::list_reader::read_whole_list;
use crate::argument::{Argument, ArgumentLocation};
use crate::http_client::Request;
use crate::model::Check;
use crate::operation_run::OperationRun;

impl OperationRun<'_> {
    /// Checks each value of `sort` with each value of `order`. Without `order`, `-name` is the descending order of `name`.
    pub async fn check_sorts(&mut self, list: &Request) {
        let find = |name: &str| {
            let is_it = |argument: &&Argument| argument.location == ArgumentLocation::Query && argument.name == name;
            self.operation.arguments.iter().find(is_it)
        };
        let Some(sort) = find("sort") else { return };
        let mut names: Vec<String> = serde_json::from_value(sort.schema["enum"].clone()).unwrap_or_default();
        let order = match find("order") {
            Some(order) => match (direction(&order.schema, "asc"), direction(&order.schema, "desc")) {
                (Some(up), Some(down)) => Some((order, up, down)),
                _ => return,
            },
            None => None,
        };
        if order.is_none() {
            let has_descending = |name: &String| names.contains(&format!("-{name}"));
            names = names.iter().filter(|name| has_descending(name)).cloned().collect();
        }
        for name in &names {
            let spec = self.operation.spec;
            let sorted = |name: &str| sort.set(list, spec, Some(&json!(name)));
            let (ascending, descending) = match &order {
                Some((order, up, down)) => (order.set(&sorted(name), spec, Some(up)), order.set(&sorted(name), spec, Some(down))),
                None => (sorted(name), sorted(&format!("-{name}"))),
            };
            let Some(up) = read_whole_list(self, &ascending).await else { return };
            let Some(down) = read_whole_list(self, &descending).await else { return };
            self.record_sort([&ascending, &descending], name, [&up, &down], &names);
        }
    }

    /// Records if a property is ascending in the first list, and descending in the second.
    fn record_sort(&mut self, requests: [&Request; 2], name: &str, [up, down]: [&[Value]; 2], names: &[String]) {
        let Some(first) = up.first().and_then(Value::as_object) else { return };
        let values = |entries: &[Value], name: &str| entries.iter().map(|entry| entry[name].clone()).collect::<Vec<_>>();
        let is_builtin = self.comparison.is_builtin();
        let order =
            |name: &str| [is_sorted(&values(up, name), false, is_builtin), is_sorted(&values(down, name), true, is_builtin)];
        let (property, [is_ascending, is_descending]) = match first.contains_key(name) {
            true => (name, order(name)),
            // Its name says little about the property: one of them must be in this order.
            false => {
                let is_candidate = |property: &str, value: &Value| {
                    let all = values(up, property);
                    value.is_string()
                        && property != "self"
                        && !names.iter().any(|name| name == property)
                        && all.iter().any(|other| *other != all[0])
                };
                let candidates: Vec<_> =
                    first.iter().filter(|(name, value)| is_candidate(name, value)).map(|(name, _)| order(name)).collect();
                let is_any_sorted = candidates.is_empty() || candidates.contains(&[true, true]);
                ("any property", [is_any_sorted, is_any_sorted])
            }
        };
        for (request, is_in_order, direction, entries) in
            [(requests[0], is_ascending, "ascending", up), (requests[1], is_descending, "descending", down)]
        {
            let failure = (!is_in_order).then(|| {
                let values: Vec<_> = entries.iter().map(|entry| entry.get(name).unwrap_or(&entry["self"]).to_string()).collect();
                self.failure(
                    format!("the sort {name} is not {direction} by {property}"),
                    format!("{direction} by {property}"),
                    values.join(", "),
                )
            });
            self.record(Check::Sort, request, failure);
        }
    }
}

/// Returns the value of the parameter with the schema `order` for a direction, `asc` or `desc`. Its enumeration may have another
/// spelling, such as `ASC` or `descending`.
fn direction(order: &Value, name: &str) -> Option<Value> {
    let Some(values) = order["enum"].as_array() else { return Some(json!(name)) };
    values.iter().find(|value| value.as_str().is_some_and(|text| text.to_lowercase().starts_with(name))).cloned()
}

/// Returns if values are in order.
///
/// In the built-in document, case has no meaning, and absent values come last in both directions. Other documents may order by code
/// points, by a collation or by the numbers in texts, and have the nulls at either end.
fn is_sorted(values: &[Value], is_descending: bool, is_builtin: bool) -> bool {
    let is_absent = |value: &Value| value.is_null() || value == "";
    let end = values.iter().rposition(|value| !is_absent(value)).map_or(0, |last| last + 1);
    let start = values[..end].iter().take_while(|value| is_absent(value)).count();
    let (first, present, last) = (&values[..start], &values[start..end], &values[end..]);
    let is_at_one_end = if is_builtin { start == 0 } else { !(first.contains(&Value::Null) && last.contains(&Value::Null)) };
    let in_order = |compare: fn(&str, &str) -> Ordering| {
        present.windows(2).all(|pair| {
            let order = compare_values(&pair[0], &pair[1], compare);
            order == Ordering::Equal || order == (if is_descending { Ordering::Greater } else { Ordering::Less })
        })
    };
    let ignoring_case = |one: &str, other: &str| one.to_lowercase().cmp(&other.to_lowercase());
    let are_decimals = present.iter().all(|value| value.as_str().is_some_and(|text| text.parse::<f64>().is_ok()));
    let in_any_order = || in_order(str::cmp) || in_order(compare_letters) || are_decimals && in_order(compare_decimals);
    is_at_one_end && !present.iter().any(is_absent) && (in_order(ignoring_case) || !is_builtin && in_any_order())
}

/// Compares the letters and digits of two texts, because collations give punctuation and case the least weight. The order of letters
/// that are not ASCII depends on the language, so texts with them are equal.
fn compare_letters(one: &str, other: &str) -> Ordering {
    let letters = |text: &str| text.chars().filter(|c| c.is_alphanumeric()).collect::<String>().to_lowercase();
    let (one, other) = (letters(one), letters(other));
    if one.is_ascii() && other.is_ascii() { one.cmp(&other) } else { Ordering::Equal }
}

/// Compares two texts as numbers.
fn compare_decimals(one: &str, other: &str) -> Ordering {
    let number = |text: &str| text.parse::<f64>().unwrap_or_default();
    number(one).total_cmp(&number(other))
}

fn compare_values(one: &Value, other: &Value, compare_texts: fn(&str, &str) -> Ordering) -> Ordering {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => one.as_f64().partial_cmp(&other.as_f64()).unwrap_or(Ordering::Equal),
        (Value::String(one), Value::String(other)) => compare_texts(one, other),
        _ => Ordering::Equal,
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use serde_json::json;

    use super::{direction, is_sorted};

    #[test]
    fn absent_values_come_last() {
        assert!(is_sorted(&[json!("a"), json!("B"), json!("")], false, true));
        assert!(is_sorted(&[json!(2), json!(1), json!(null)], true, true));
        assert!(is_sorted(&[json!(null)], false, true));
        assert!(!is_sorted(&[json!(""), json!("a")], false, true));
        assert!(!is_sorted(&[json!("B"), json!("a")], false, true));
        assert!(!is_sorted(&[json!(2), json!(1)], false, true));
    }

    #[test]
    fn direction_is_spelled_as_declared() {
        assert_eq!(direction(&json!({ "type": "string" }), "asc"), Some(json!("asc")));
        assert_eq!(direction(&json!({ "enum": ["DESC", "ASC"] }), "asc"), Some(json!("ASC")));
        assert_eq!(direction(&json!({ "enum": ["up", "down"] }), "desc"), None);
    }

    #[test]
    fn only_clear_disorder_is_found_in_other_documents() {
        for values in [
            json!(["9", "10"]),
            json!(["-1.5", "2", "10.25"]),
            json!(["co-op", "coop", "cooperate"]),
            json!(["coop", "co-op", "cooperate"]),
            json!(["Oakley", "O'Neil", "Opal"]),
            json!(["Zoë", "Élan", "éclair"]),
        ] {
            assert!(is_sorted(values.as_array().unwrap(), false, false), "{values}");
        }
        for values in [json!(["10", "9", "8"]), json!(["Opal", "Oakley", "O'Neil"]), json!(["Élan", "Zoo", "Eva"])] {
            assert!(!is_sorted(values.as_array().unwrap(), false, false), "{values}");
        }
        assert!(!is_sorted(&[json!("9"), json!("10")], false, true));
    }

    #[test]
    fn other_documents_choose_collation_and_place_of_nulls() {
        for values in [json!(["B", "a"]), json!(["a", "B"]), json!([null, 1, 2]), json!([1, 2, null]), json!(["", "a", null])] {
            assert!(is_sorted(values.as_array().unwrap(), false, false), "{values}");
        }
        for values in [json!(["b", "A"]), json!([2, 1]), json!([null, 1, null]), json!([1, null, 2])] {
            assert!(!is_sorted(values.as_array().unwrap(), false, false), "{values}");
        }
    }
}
