//! Checks of what the document declares about values beyond JSON Schema: sums, decimals and times.
//!
//! - `x-sum` of an object schema: the properties that are sums, each with its terms: `total: [subtotal, fees]`. A term may be
//!   negative (`-sold`), a product (`items[].quantity * items[].unitPrice`), and range over the members of an array or a map (`[]`).
//!   With the term `or 0`, the property may be 0 instead.
//! - `x-decimals` of a number: the largest number of decimals.
//! - `x-now` of a time: `true` if it is the time of the response; `creation` if it is the time at which the resource was created.

use boxoffice_openapi::parse_date_time;
use chrono::DateTime;
use http::header::DATE;
use serde_json::Value;

use crate::http_client::{ReceivedResponse, Request};
use crate::model::Check;
use crate::operation_run::OperationRun;
use crate::server_kind::ServerKind;

/// The term of a sum that may be 0 instead.
const OR_ZERO: &str = "or 0";
/// Largest difference between a declared sum and the value, because of the binary representation of amounts.
const MAX_DIFFERENCE: f64 = 0.000_001;
/// Largest difference between a declared time and the clock of the server, in seconds.
const MAX_SKEW: i64 = 300;

impl OperationRun<'_> {
    /// Checks the declared values of a successful response.
    pub fn check_declared_values(&mut self, request: &Request, response: &ReceivedResponse) {
        // The examples of a mock are older than the request, and change with what was sent.
        if !response.is_success() || self.comparison.kind() != ServerKind::Real {
            return;
        }
        let (comparison, operation) = (self.comparison, self.operation);
        let Some(spec) = operation.spec.response_for(response.status) else { return };
        let Some(schema) = spec.contents.iter().find(|content| content.is_json()).and_then(|content| content.schema.as_deref())
        else {
            return;
        };
        let date = response.header(DATE).and_then(|date| DateTime::parse_from_rfc2822(date).ok()).map(|date| date.timestamp());
        let mut walk = Walk {
            document: &comparison.contract.document,
            date,
            is_creation: response.status == 201,
            problems: Vec::new(),
            made: 0,
        };
        walk.value(&schema.raw, &response.json(), "");
        let (problems, made) = (walk.problems, walk.made);
        if made > 0 && problems.is_empty() {
            self.record(Check::DeclaredValue, request, None);
        }
        for (summary, expected, actual) in problems {
            let failure = self.failure(summary, expected, actual);
            self.record(Check::DeclaredValue, request, Some(failure));
        }
    }
}

struct Walk<'a> {
    document: &'a Value,
    /// Time of the response.
    date: Option<i64>,
    is_creation: bool,
    /// Summary, expected and actual value.
    problems: Vec<(String, String, String)>,
    made: usize,
}

impl Walk<'_> {
    fn value(&mut self, schema: &Value, value: &Value, path: &str) {
        let document = self.document;
        let target = schema["$ref"].as_str().and_then(|reference| document.pointer(reference.strip_prefix('#')?));
        let schema = target.unwrap_or(schema);
        for part in ["allOf", "anyOf", "oneOf"].iter().filter_map(|keyword| schema[*keyword].as_array()).flatten() {
            self.value(part, value, path);
        }
        for (name, terms) in schema["x-sum"].as_object().into_iter().flatten() {
            self.sum(name, terms, value, path);
        }
        if let Some(decimals) = schema["x-decimals"].as_u64() {
            self.decimals(decimals, value, path);
        }
        if let Some(rule) = schema.get("x-now") {
            self.time(rule, value, path);
        }
        match value {
            Value::Object(members) => {
                for (name, member) in members {
                    match schema["properties"].get(name) {
                        Some(property) => self.value(property, member, &format!("{path}/{name}")),
                        None => self.value(&schema["additionalProperties"], member, &format!("{path}/*")),
                    }
                }
            }
            Value::Array(items) => items.iter().for_each(|item| self.value(&schema["items"], item, &format!("{path}/*"))),
            _ => {}
        }
    }

    fn sum(&mut self, name: &str, terms: &Value, object: &Value, path: &str) {
        let Some(actual) = object[name].as_f64() else { return };
        let terms = || terms.as_array().into_iter().flatten().filter_map(Value::as_str);
        let texts: Vec<&str> = terms().filter(|term| *term != OR_ZERO).collect();
        let expected: f64 = texts.iter().map(|term| term_value(term, object)).sum();
        self.made += 1;
        let is_other_zero = actual == 0.0 && terms().any(|term| term == OR_ZERO);
        if (expected - actual).abs() > MAX_DIFFERENCE && !is_other_zero {
            let expected = format!("{expected} = {}", texts.join(" + "));
            self.problems.push((format!("{path}/{name} is not the declared sum"), expected, object.to_string()));
        }
    }

    fn decimals(&mut self, decimals: u64, value: &Value, path: &str) {
        let Some(number) = value.as_f64() else { return };
        self.made += 1;
        // The shortest text that is this number.
        let text = number.to_string();
        let count = text.split_once('.').map_or(0, |(_, fraction)| fraction.len());
        if count as u64 > decimals {
            self.problems.push((
                format!("{path} has more than {decimals} decimals"),
                format!("at most {decimals} decimals"),
                text,
            ));
        }
    }

    fn time(&mut self, rule: &Value, value: &Value, path: &str) {
        let Some(date) = self.date.filter(|_| rule == true || (rule == "creation" && self.is_creation)) else { return };
        let time = match value {
            Value::Number(seconds) => seconds.as_i64(),
            Value::String(text) => parse_date_time(text).map(|time| time.timestamp()),
            _ => None,
        };
        let Some(time) = time else { return };
        self.made += 1;
        if (time - date).abs() > MAX_SKEW {
            let now = DateTime::from_timestamp(date, 0).map(|now| now.to_rfc3339()).unwrap_or_default();
            self.problems.push((format!("{path} is not the time of the request"), now, value.to_string()));
        }
    }
}

/// Returns the value of a term.
fn term_value(term: &str, object: &Value) -> f64 {
    let (sign, term) = term.strip_prefix('-').map_or((1.0, term), |rest| (-1.0, rest));
    let factors: Vec<&str> = term.split('*').map(str::trim).collect();
    let columns: Vec<Vec<f64>> = factors.iter().map(|factor| numbers(object, factor)).collect();
    let length = columns.iter().map(Vec::len).max().unwrap_or_default();
    let product = |row: usize| columns.iter().map(|column| column.get(row).copied().unwrap_or_default()).product::<f64>();
    sign * (0..length).map(product).sum::<f64>()
}

/// Returns the numbers at a path: `items[].quantity`.
fn numbers(value: &Value, path: &str) -> Vec<f64> {
    if path.is_empty() {
        return value.as_f64().into_iter().collect();
    }
    let (part, rest) = path.split_once('.').unwrap_or((path, ""));
    match part.strip_suffix("[]") {
        Some(name) => match &value[name] {
            Value::Array(items) => items.iter().flat_map(|item| numbers(item, rest)).collect(),
            Value::Object(members) => members.values().flat_map(|member| numbers(member, rest)).collect(),
            _ => Vec::new(),
        },
        None => numbers(&value[part], rest),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::term_value;

    #[test]
    fn terms_are_numbers_products_and_ranges() {
        let order = json!({ "subtotal": 5.0, "items": [{ "quantity": 2, "price": 1.5 }, { "quantity": 1, "price": 2 }], "by": { "a": { "n": 3 }, "b": { "n": 4 } } });
        assert_eq!(term_value("subtotal", &order), 5.0);
        assert_eq!(term_value("-subtotal", &order), -5.0);
        assert_eq!(term_value("items[].quantity * items[].price", &order), 5.0);
        assert_eq!(term_value("by[].n", &order), 7.0);
        assert_eq!(term_value("absent", &order), 0.0);
    }
}
