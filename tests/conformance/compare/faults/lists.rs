//! Faults of lists: filters, sorts and pages.

use serde_json::{Value, json};

use super::proxy::{Fault, fault};

fn ignores(group: &'static str, name: &'static str, operation: &'static str, parameter: &'static str) -> Fault {
    fault(group, name).valid_request(operation, move |call, _| {
        call.remove_query(parameter);
        None
    })
}

fn empties(name: &'static str, operation: &'static str, parameter: &'static str) -> Fault {
    fault("filters", name).json(operation, move |body, call| {
        if call.query(parameter).is_some() {
            body["total"] = json!(0);
            body["entries"] = json!([]);
        }
    })
}

fn filter_faults() -> Vec<Fault> {
    vec![
        ignores("filters", "venues: name is ignored", "venue_list", "name"),
        ignores("filters", "venues: region is ignored", "venue_list", "region"),
        ignores("filters", "accounts: username is ignored", "account_list", "username"),
        ignores("filters", "accounts: email is ignored", "account_list", "email"),
        ignores("filters", "accounts: number is ignored", "account_list", "number"),
        ignores("filters", "hosts: account is ignored", "host_list", "account"),
        ignores("filters", "regions: active is ignored", "region_list", "active"),
        ignores("filters", "events: status is ignored", "event_list", "status"),
        ignores("filters", "events: title is ignored", "event_list", "title"),
        ignores("filters", "events: host is ignored", "event_list", "host"),
        ignores("filters", "events: public is ignored", "event_list", "public"),
        ignores("filters", "events: region is ignored", "event_list", "region"),
        ignores("filters", "orders: status is ignored", "order_list", "status"),
        ignores("filters", "orders: customer is ignored", "order_list", "customer"),
        ignores("filters", "orders: number is ignored", "order_list", "number"),
        ignores("filters", "tokens: global is ignored", "event_token_list", "global"),
        ignores("filters", "submissions: type is ignored", "submission_list", "type"),
        ignores("filters", "transactions: type is ignored", "transaction_list", "type"),
        ignores("filters", "audit: operation is ignored", "audit_list", "operation"),
        ignores("filters", "audit: outcome is ignored", "audit_list", "outcome"),
        ignores("filters", "transfers: direction is ignored", "account_transfer_list", "direction"),
        ignores("filters", "admissions: device is ignored", "event_admission_list", "device"),
        ignores("filters", "advertisements: status is ignored", "advertisement_list", "status"),
        empties("venues: name finds nothing", "venue_list", "name"),
        empties("events: status finds nothing", "event_list", "status"),
        empties("orders: customer finds nothing", "order_list", "customer"),
        fault("filters", "events: status finds the others").valid_request("event_list", |call, _| {
            for (name, value) in &mut call.query {
                if name == "status" {
                    *value = if value == "Listed" { "Draft" } else { "Listed" }.to_owned();
                }
            }
            None
        }),
        fault("filters", "orders: status finds the others").valid_request("order_list", |call, _| {
            for (name, value) in &mut call.query {
                if name == "status" {
                    *value = if value == "Fulfilled" { "Placed" } else { "Fulfilled" }.to_owned();
                }
            }
            None
        }),
    ]
}

fn sort_faults() -> Vec<Fault> {
    vec![
        ignores("sorts", "events: sort is ignored", "event_list", "sort"),
        ignores("sorts", "events: order is ignored", "event_list", "order"),
        ignores("sorts", "orders: sort is ignored", "order_list", "sort"),
        ignores("sorts", "orders: order is ignored", "order_list", "order"),
        ignores("sorts", "host's events: order is ignored", "host_event_list", "order"),
        fault("sorts", "events: desc and asc are exchanged").valid_request("event_list", |call, _| {
            let sorts = call.query("sort").is_some();
            let order = call.query("order").unwrap_or("asc").to_owned();
            if sorts {
                call.remove_query("order");
                call.query.push(("order".to_owned(), if order == "desc" { "asc" } else { "desc" }.to_owned()));
            }
            None
        }),
        fault("sorts", "events: alphabetical sorts by start").valid_request("event_list", |call, _| {
            for (name, value) in &mut call.query {
                if name == "sort" && value == "alphabetical" {
                    *value = "popularity".to_owned();
                }
            }
            None
        }),
    ]
}

fn page_faults() -> Vec<Fault> {
    vec![
        ignores("pages", "regions: page is ignored", "region_list", "page"),
        ignores("pages", "regions: records is ignored", "region_list", "records"),
        ignores("pages", "orders: records is ignored", "order_list", "records"),
        fault("pages", "zones: pages overlap by one").json("zone_list", |body, call| {
            if call.query("page").is_some_and(|page| page != "1") {
                repeat_first(body);
            }
        }),
        fault("pages", "events: total is one too many").json("event_list", |body, _| {
            body["total"] = json!(body["total"].as_u64().unwrap() + 1);
        }),
        fault("pages", "hosts: last page lacks an entry").json("host_list", |body, _| {
            if body["total"].as_u64().unwrap() > 1
                && let Some(entries) = body["entries"].as_array_mut()
            {
                entries.pop();
            }
        }),
        fault("pages", "regions: order changes between requests").response("region_list", |_, answer, memory| {
            let turn = memory.get("turn").and_then(Value::as_bool).unwrap_or_default();
            memory.insert("turn".to_owned(), json!(!turn));
            if let Some(mut body) = answer.json().filter(|_| turn && answer.status == 200) {
                body["entries"].as_array_mut().unwrap().reverse();
                answer.set_json(&body);
            }
        }),
        fault("pages", "venues: a page past the end is the last").valid_request("venue_list", |call, _| {
            if call.query("page").and_then(|page| page.parse::<u64>().ok()).is_some_and(|page| page > 1) {
                for (name, value) in &mut call.query {
                    if name == "page" {
                        *value = "1".to_owned();
                    }
                }
            }
            None
        }),
        fault("pages", "accounts: page is always 1").json("account_list", |body, _| body["page"] = json!(1)),
    ]
}

fn repeat_first(body: &mut Value) {
    if let Some(first) = body["entries"].as_array_mut().and_then(|entries| entries.first_mut()) {
        first["self"] = json!("/zones/17637000000001");
    }
}

pub fn table() -> Vec<Fault> {
    [filter_faults(), sort_faults(), page_faults()].into_iter().flatten().collect()
}
