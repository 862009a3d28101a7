//! Checks of the sorts of a list: entries are in the order of a property, ascending and descending.

use std::cmp::Ordering;

use serde_json::{Value, json};

use super::list_reader::read_whole_list;
use crate::http_client::Request;
use crate::model::Check;
use crate::operation_run::OperationRun;
use crate::operation_under_test::{Argument, ArgumentLocation};

impl OperationRun<'_> {
    /// Checks each value of `sort` with each value of `order`.
    pub async fn check_sorts(&mut self, list: &Request) {
        let find = |name: &str| {
            let is_it = |argument: &&Argument| argument.location == ArgumentLocation::Query && argument.name == name;
            self.operation.arguments.iter().find(is_it)
        };
        let (Some(sort), Some(order)) = (find("sort"), find("order")) else { return };
        let names: Vec<String> = serde_json::from_value(sort.schema["enum"].clone()).unwrap_or_default();
        for name in &names {
            let sorted = sort.set(list, self.operation.spec, Some(&json!(name)));
            let ascending = order.set(&sorted, self.operation.spec, Some(&json!("asc")));
            let descending = order.set(&sorted, self.operation.spec, Some(&json!("desc")));
            let Some(up) = read_whole_list(self, &ascending).await else { return };
            let Some(down) = read_whole_list(self, &descending).await else { return };
            self.record_sort([&ascending, &descending], name, [&up, &down], &names);
        }
    }

    /// Records if a property is ascending in the first list, and descending in the second.
    fn record_sort(&mut self, requests: [&Request; 2], name: &str, [up, down]: [&[Value]; 2], names: &[String]) {
        let Some(first) = up.first().and_then(Value::as_object) else { return };
        let values = |entries: &[Value], name: &str| entries.iter().map(|entry| entry[name].clone()).collect::<Vec<_>>();
        let order = |name: &str| [is_sorted(&values(up, name), false), is_sorted(&values(down, name), true)];
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
                let shown: Vec<_> = entries.iter().map(|entry| entry.get(name).unwrap_or(&entry["self"]).to_string()).collect();
                self.failure(
                    format!("the sort {name} is not {direction} by {property}"),
                    format!("{direction} by {property}"),
                    shown.join(", "),
                )
            });
            self.record(Check::Sort, request, failure);
        }
    }
}

/// Returns if values are in order. Absent ones come last in both directions.
fn is_sorted(values: &[Value], is_descending: bool) -> bool {
    let is_absent = |value: &Value| value.is_null() || value == "";
    let present: Vec<_> = values.iter().take_while(|value| !is_absent(value)).collect();
    let are_last_absent = values[present.len()..].iter().all(is_absent);
    are_last_absent
        && present.windows(2).all(|pair| {
            let order = compare(pair[0], pair[1]);
            order == Ordering::Equal || order == (if is_descending { Ordering::Greater } else { Ordering::Less })
        })
}

fn compare(one: &Value, other: &Value) -> Ordering {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => one.as_f64().partial_cmp(&other.as_f64()).unwrap_or(Ordering::Equal),
        (Value::String(one), Value::String(other)) => one.to_lowercase().cmp(&other.to_lowercase()),
        _ => Ordering::Equal,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::is_sorted;

    #[test]
    fn absent_values_come_last() {
        assert!(is_sorted(&[json!("a"), json!("B"), json!("")], false));
        assert!(is_sorted(&[json!(2), json!(1), json!(null)], true));
        assert!(!is_sorted(&[json!(""), json!("a")], false));
        assert!(!is_sorted(&[json!(2), json!(1)], false));
    }
}
