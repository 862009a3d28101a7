//! Faults of values that the server computes: amounts, counters and times.

use boxoffice_openapi::parse_date_time;
use serde_json::{Value, json};

use super::proxy::{Fault, fault};
use crate::support::id_of;

/// Every read of an order.
const ORDERS: &str =
    "order_create order_get order_list account_order_list order_cancellation_create order_return_create order_void_create";
const SECTIONS: &str = "section_create section_get section_update section_shorthand_get section_shorthand_update";

/// Changes each order in a response.
fn order(name: &'static str, change: fn(&mut Value)) -> Fault {
    fault("amounts", name).affects(&["order_create", "order_get", "order_list"]).json(ORDERS, move |body, _| {
        match body.get_mut("entries").and_then(Value::as_array_mut) {
            Some(entries) => entries.iter_mut().for_each(change),
            None => change(body),
        }
    })
}

fn add(value: &mut Value, delta: f64) {
    if let Some(number) = value.as_f64() {
        *value = json!(number + delta);
    }
}

fn amount_faults() -> Vec<Fault> {
    vec![
        order("order: total is off by 0.01", |order| add(&mut order["total"], 0.01)),
        order("order: total lacks the fees", |order| order["total"] = order["subtotal"].clone()),
        order("order: fees are doubled", |order| {
            let fees = order["fees"].as_f64().unwrap_or_default();
            order["fees"] = json!(fees * 2.0);
        }),
        order("order: fees are zero", |order| order["fees"] = json!(0.0)),
        order("order: subtotal is off", |order| {
            add(&mut order["subtotal"], 5.0);
            add(&mut order["total"], 5.0);
        }),
        order("order: total has float noise", |order| add(&mut order["total"], 0.000_000_000_1)),
        order("order: subtotal has three decimals", |order| {
            add(&mut order["subtotal"], 0.005);
            add(&mut order["total"], 0.005);
        }),
        order("order: unit price is off", |order| {
            for item in order.get_mut("items").and_then(Value::as_array_mut).into_iter().flatten() {
                add(&mut item["unitPrice"], 1.0);
            }
        }),
        order("order: quantities are off", |order| {
            for item in order.get_mut("items").and_then(Value::as_array_mut).into_iter().flatten() {
                let quantity = item["quantity"].as_i64().unwrap_or_default();
                item["quantity"] = json!(quantity + 1);
            }
        }),
        order("order: amounts are in cents", |order| {
            for name in ["subtotal", "fees", "total"] {
                let amount = order[name].as_f64().unwrap_or_default();
                order[name] = json!((amount * 100.0).round());
            }
        }),
        fault("amounts", "payment: amount is off")
            .affects(&["order_payment_create", "order_payment_list", "order_payment_get"])
            .json("order_payment_create order_payment_get", |body, _| add(&mut body["amount"], -1.0)),
        fault("amounts", "payment: amount has float noise")
            .json("order_payment_create order_payment_get", |body, _| add(&mut body["amount"], 0.000_000_000_1)),
        fault("amounts", "section: base price is off")
            .affects(&["section_create", "section_update"])
            .json(SECTIONS, |body, _| add(&mut body["price"]["base"], 0.5)),
        fault("amounts", "section: price is negative")
            .affects(&["section_create", "section_get"])
            .json(SECTIONS, |body, _| body["price"]["current"] = json!(-1.0)),
        fault("amounts", "transaction: amount has three decimals")
            .affects(&["transaction_list", "transaction_get"])
            .json("transaction_get", |body, _| add(&mut body["amount"], 0.001)),
        fault("amounts", "sales: sum differs from the breakdown")
            .json("event_sales_get", |body, _| add(&mut body["sales"], 10.0)),
        fault("amounts", "sales: units differ from the breakdown").json("event_sales_get", |body, _| {
            body["units"] = json!(body["units"].as_i64().unwrap_or_default() + 1);
        }),
    ]
}

fn counter_faults() -> Vec<Fault> {
    const SECTION: &[&str] = &["section_get", "order_create", "order_cancellation_create"];
    vec![
        fault("counters", "section: remaining is constant")
            .affects(SECTION)
            .json(SECTIONS, |body, _| body["remaining"] = json!(7)),
        fault("counters", "section: reserved is constant").affects(SECTION).json(SECTIONS, |body, _| body["reserved"] = json!(3)),
        fault("counters", "section: sold is constant")
            .affects(&["section_get", "order_payment_create"])
            .json(SECTIONS, |body, _| body["sold"] = json!(1)),
        fault("counters", "section: capacity is off")
            .affects(&["section_create", "section_update"])
            .json(SECTIONS, |body, _| body["capacity"] = json!(5)),
        fault("counters", "section: all three counters are frozen").affects(SECTION).response(SECTIONS, |_, answer, memory| {
            let Some(mut body) = answer.json().filter(|body| answer.is_success() && body["capacity"].is_u64()) else { return };
            let seen = memory.entry(id_of(body["self"].as_str().unwrap()).to_owned()).or_insert_with(|| body.clone());
            for name in ["remaining", "reserved", "sold"] {
                if seen["capacity"] == body["capacity"] {
                    body[name] = seen[name].clone();
                }
            }
            answer.set_json(&body);
        }),
    ]
}

/// Shifts a time without a zone, such as `2026-12-20T19:00`, by an hour.
fn shift_minutes(value: &mut Value) {
    if let Some(time) = value.as_str().and_then(|text| chrono::NaiveDateTime::parse_from_str(text, "%Y-%m-%dT%H:%M").ok()) {
        *value = json!((time + chrono::TimeDelta::hours(1)).format("%Y-%m-%dT%H:%M").to_string());
    }
}

/// Shifts a time with a zone by hours.
fn shift_time(value: &mut Value, hours: i64) {
    if let Some(time) = value.as_str().and_then(parse_date_time) {
        *value = json!((time + chrono::TimeDelta::hours(hours)).to_rfc3339());
    }
}

fn time_faults() -> Vec<Fault> {
    const SECTION: &[&str] = &["section_create", "section_update"];
    vec![
        fault("times", "section: start of sales is shifted")
            .affects(SECTION)
            .json(SECTIONS, |body, _| shift_minutes(&mut body["salesStart"])),
        fault("times", "section: end of sales is shifted")
            .affects(SECTION)
            .json(SECTIONS, |body, _| shift_minutes(&mut body["salesEnd"])),
        fault("times", "event: start is shifted")
            .affects(&["event_create", "event_update"])
            .json("event_create event_get event_update", |body, _| shift_minutes(&mut body["start"])),
        fault("times", "event: end is shifted")
            .affects(&["event_create", "event_update"])
            .json("event_create event_get event_update", |body, _| shift_minutes(&mut body["end"])),
        fault("times", "modifier: end is shifted")
            .affects(&["section_modifier_create", "section_modifier_update"])
            .json("section_modifier_create section_modifier_get section_modifier_update", |body, _| {
                shift_minutes(&mut body["availableTo"])
            }),
        fault("times", "order: placed is an hour ahead")
            .json("order_create order_get", |body, _| shift_time(&mut body["placed"], 2)),
        fault("times", "payment: placed is a day ago")
            .affects(&["order_payment_create"])
            .json("order_payment_create order_payment_get", |body, _| shift_time(&mut body["placed"], -24)),
        fault("times", "order: placed differs between creation and reading")
            .affects(&["order_create", "order_get"])
            .json("order_get", |body, _| shift_time(&mut body["placed"], -3)),
        fault("times", "server: time is an hour ahead")
            .json("time_get", |body, _| body["utc"] = json!(body["utc"].as_i64().unwrap() + 7200)),
        fault("times", "server: time is in milliseconds")
            .json("time_get", |body, _| body["utc"] = json!(body["utc"].as_i64().unwrap() * 1000)),
        fault("times", "order: placed is in another zone").json("order_create order_get", |body, _| {
            if let Some(time) = body["placed"].as_str().and_then(|text| text.strip_suffix("+00:00")) {
                body["placed"] = json!(format!("{time}+01:00"));
            }
        }),
    ]
}

pub fn table() -> Vec<Fault> {
    [amount_faults(), counter_faults(), time_faults()].into_iter().flatten().collect()
}
