//! Faults of access: keys and scopes.

use serde_json::json;

use super::proxy::{Fault, fault};

pub fn table() -> Vec<Fault> {
    vec![
        fault("access", "region: key is not needed").response_with("region_list", 401, |answer| {
            answer.replace(200, &json!({"total": 0, "page": 1, "records": 25, "entries": []}));
        }),
        fault("access", "order: unknown key is accepted").response_with("order_get", 403, |answer| {
            answer.status = 200;
        }),
        fault("access", "order: another account may read it").response("order_get", |_, answer, _| {
            if answer.status == 403 && answer.json().is_some_and(|body| body["code"] == "resource.not-yours") {
                answer.status = 200;
            }
        }),
        fault("access", "account: another account may change it").response("account_update", |_, answer, _| {
            if answer.status == 403 && answer.json().is_some_and(|body| body["code"] == "resource.not-yours") {
                answer.status = 200;
            }
        }),
        fault("access", "transaction: scope is not checked").response_with("transaction_list", 403, |answer| {
            answer.replace(200, &json!({"total": 0, "page": 1, "records": 25, "entries": []}));
        }),
    ]
}
