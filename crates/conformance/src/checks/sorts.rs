//! Checks of the sorts of a list: entries are in the order of a property, ascending and descending.

use std::cmp::Ordering;

use serde_json::{Value, json};

use super::lists::read_whole_list;
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
            self.record_sort(&ascending, name, &up, false, &names);
            self.record_sort(&descending, name, &down, true, &names);
        }
    }

    fn record_sort(&mut self, request: &Request, name: &str, entries: &[Value], is_descending: bool, names: &[String]) {
        let Some(first) = entries.first().and_then(Value::as_object) else { return };
        let direction = if is_descending { "descending" } else { "ascending" };
        let property = |name: &str| entries.iter().map(|entry| entry[name].clone()).collect::<Vec<_>>();
        let failure = match first.contains_key(name) {
            true => (!is_sorted(&property(name), is_descending)).then(|| name.to_owned()),
            // Its name says little about the property: one of them must be in this order.
            false => {
                let candidates: Vec<_> = first
                    .iter()
                    .filter(|(property, value)| value.is_string() && *property != "self" && !names.contains(property))
                    .map(|(name, _)| property(name))
                    .filter(|values| values.iter().any(|value| *value != values[0]))
                    .collect();
                let is_any_sorted = candidates.iter().any(|values| is_sorted(values, is_descending));
                (!candidates.is_empty() && !is_any_sorted).then(|| "any property".to_owned())
            }
        };
        let failure = failure.map(|property| {
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
