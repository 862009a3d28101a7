//! Faults of the operations that prepare a comparison.

use serde_json::{Value, json};

use super::proxy::{Answer, Fault, fault};

fn fails(name: &'static str, operation: &'static str, status: u16, body: fn() -> Value) -> Fault {
    // No selection: the fault must not hide the other operations.
    fault("preparation", name)
        .affects(&["time_get", "event_create", "transfer_create", "session_active_get", "event_ticket_list"])
        .request(operation, move |_, _| Some(Answer::new(status, &body())))
}

fn failed() -> Value {
    json!({"message": "There was a server error.", "code": "server.error"})
}

fn refused() -> Value {
    json!({"message": "You are restricted from accessing this resource.", "code": "key.refused"})
}

fn empty() -> Value {
    json!({})
}

pub fn table() -> Vec<Fault> {
    vec![
        fails("region can't be created", "region_create", 500, failed),
        fails("category can't be created", "category_create", 403, refused),
        fails("venue can't be created", "venue_create", 500, failed),
        fails("account can't be created", "account_create", 403, refused),
        fails("integration returns nothing", "integration_create", 201, empty),
        fails("session can't be created", "session_create", 500, failed),
        fails("event can't be created", "event_create", 500, failed),
        fails("section can't be created", "section_create", 404, empty),
        fails("submission can't be decided", "submission_delete", 500, failed),
        fails("order can't be placed", "order_create", 500, failed),
        fails("payment is declined", "order_payment_create", 402, empty),
        fails("tickets can't be listed", "account_ticket_list", 500, failed),
        fails("transfer can't be created", "transfer_create", 500, failed),
        fails("code is not accepted", "token_authentication_get", 404, empty),
        fails("connection ends at the payment", "order_payment_create", 0, empty),
        fault("preparation", "body of the created event is no JSON")
            .affects(&["time_get", "event_create", "order_create"])
            .response("event_create", |_, answer, _| {
                answer.body = "<html>".into();
            }),
        fault("preparation", "removal fails")
            .affects(&["time_get", "region_create", "region_delete"])
            .request("region_delete", |_, _| Some(Answer::new(500, &failed()))),
    ]
}
