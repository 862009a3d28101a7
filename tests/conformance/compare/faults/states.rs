//! Faults of states: an action has no effect, another one, or can be repeated.

use serde_json::{Value, json};

use super::proxy::{Fault, Memory, fault};

/// The action is answered as before, and a later read shows the state before it.
fn stays(
    name: &'static str,
    operations: &'static [&'static str],
    read: &'static str,
    from: &'static str,
    to: &'static str,
) -> Fault {
    fault("states", name).affects(operations).json(read, move |body, _| {
        for resource in resources(body) {
            if resource["status"] == to {
                resource["status"] = json!(from);
            }
        }
    })
}

fn resources(body: &mut Value) -> Vec<&mut Value> {
    if body.get("entries").is_some() {
        return body["entries"].as_array_mut().into_iter().flatten().collect();
    }
    vec![body]
}

/// The action succeeds a second time, with the response of the first.
fn repeatable(name: &'static str, action: &'static str) -> Fault {
    fault("states", name).response(action, |call, answer, memory: &mut Memory| {
        let key = call.path.clone();
        if answer.is_success() {
            memory.insert(key, json!([answer.status, answer.json()]));
        } else if answer.status == 409
            && let Some(first) = memory.get(&key)
        {
            let (status, body) = (first[0].as_u64().unwrap(), first[1].clone());
            answer.replace(u16::try_from(status).unwrap(), &body);
        }
    })
}

pub fn table() -> Vec<Fault> {
    vec![
        stays("order: stays Placed after its cancellation", &["order_cancellation_create"], "order_get", "Placed", "Cancelled"),
        stays("order: stays Placed after its payment", &["order_payment_create"], "order_get", "Placed", "Fulfilled"),
        stays("order: stays Fulfilled after its return", &["order_return_create"], "order_get", "Fulfilled", "Returned"),
        stays("order: stays Fulfilled after its voiding", &["order_void_create"], "order_get", "Fulfilled", "Voided"),
        stays("event: stays Listed after its cancellation", &["event_cancellation_create"], "event_get", "Listed", "Cancelled"),
        stays("event: stays Listed after its withdrawal", &["event_withdrawal_create"], "event_get", "Listed", "Draft"),
        stays("event: stays Draft after its submission", &["event_submission_create"], "event_get", "Draft", "Under Review"),
        stays("transfer: stays Pending after its claim", &["transfer_claim_create"], "transfer_get", "Pending", "Claimed"),
        stays(
            "transfer: stays Pending after its rejection",
            &["transfer_rejection_create"],
            "transfer_get",
            "Pending",
            "Rejected",
        ),
        stays(
            "advertisement: stays Listed after its cancellation",
            &["advertisement_cancellation_create"],
            "advertisement_get",
            "Listed",
            "Cancelled",
        ),
        stays(
            "ticket: stays Issued after its admission",
            &["event_admission_create"],
            "ticket_get account_ticket_list event_ticket_list",
            "Issued",
            "Redeemed",
        ),
        fault("states", "order: response to cancellation says Placed")
            .json("order_cancellation_create", |body, _| body["status"] = json!("Placed")),
        fault("states", "account: toggle has no effect")
            .affects(&["account_toggle_create"])
            .json("account_get", |body, _| body["activated"] = json!(true)),
        fault("states", "account: deletion has no effect")
            .affects(&["account_deletion_create"])
            .json("account_get", |body, _| body["activated"] = json!(true)),
        repeatable("order: can be cancelled twice", "order_cancellation_create"),
        repeatable("event: can be cancelled twice", "event_cancellation_create"),
        repeatable("event: can be submitted twice", "event_submission_create"),
        repeatable("transfer: can be claimed twice", "transfer_claim_create"),
        repeatable("order: can be returned twice", "order_return_create"),
        repeatable("advertisement: can be cancelled twice", "advertisement_cancellation_create"),
        fault("states", "session: is still active after its end")
            .request("session_active_delete", |call, _| {
                call.become_read();
                None
            })
            .response_with("session_active_delete", 200, |answer| {
                answer.empty(204);
            }),
        fault("states", "order: can't be cancelled twice, but with 400").response_with(
            "order_cancellation_create",
            409,
            |answer| {
                answer.replace(400, &json!({"error": "It is not open.", "code": "arguments.invalid", "fields": []}));
            },
        ),
    ]
}
