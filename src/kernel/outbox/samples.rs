//! Sample values of every mail, with which the templates are checked at the start.

use serde_json::{Value, json};

use super::template::MailTemplate;

/// A time: 2025-12-20T19:00:00Z.
const TIME: i64 = 1_766_257_200_000_000;

/// Returns sample values of a mail: one set for each of its forms.
pub(super) fn values(template: MailTemplate) -> Vec<Value> {
    let mut all = forms(template);
    for values in all.iter_mut().filter_map(Value::as_object_mut) {
        values.entry("name").or_insert_with(|| "Ama".into());
    }
    all
}

fn forms(template: MailTemplate) -> Vec<Value> {
    match template {
        MailTemplate::VerificationCode | MailTemplate::PasswordReset => vec![json!({ "code": "123456", "expires": TIME })],
        MailTemplate::CredentialsChanged => {
            let form = |changed: &str, by: &str| json!({ "changed": changed, "by": by, "number": "GH-4K7QW2MZ", "time": TIME });
            vec![form("password", "code"), form("email", "staff"), form("both", "owner")]
        }
        MailTemplate::DeletionRequested => {
            vec![json!({ "number": "GH-4K7QW2MZ", "uri": "https://boxoffice.example/accounts/GH-4K7QW2MZ" })]
        }
        MailTemplate::ReviewDecision => {
            let form = |kind: &str, path: &str, approved: bool, reason: &str| json!({ "kind": kind, "title": "Harmattan Jazz Night", "path": path, "approved": approved, "reason": reason });
            vec![
                form("event", "/events/17630000000001", true, ""),
                form("venue", "/venues/17630000000002", false, "The address is incomplete."),
                form("advertisement", "/advertisements/17630000000003", true, ""),
            ]
        }
        MailTemplate::OrderConfirmation => {
            let form = |(tickets, guest)| json!({ "tickets": tickets, "guest": guest, "order": order(), "events": [event()] });
            [(0, false), (1, true), (3, false)].map(form).into()
        }
        MailTemplate::OrderCancelled => {
            let form = |because: &str, has_payment: bool, items: Value| {
                let mut order = order();
                order["has_payment"] = has_payment.into();
                order["items"] = items;
                json!({ "because": because, "order": order, "events": [event()] })
            };
            let items = order()["items"].take();
            vec![form("customer", true, items.clone()), form("customer", false, json!([])), form("event", false, items)]
        }
        MailTemplate::TicketsReturned => {
            let form = |returned: i64, amount: i64, reason: &str| {
                let items = json!([{ "event": event()["title"], "section": "Stalls", "quantity": returned }]);
                json!({ "returned": returned, "returned_items": items, "amount": amount, "reason": reason, "order": order(), "events": [event()] })
            };
            vec![form(1, 0, ""), form(2, 24_398, "The event was cancelled.")]
        }
        MailTemplate::OrderVoided => ["", "Paid with a stolen card."]
            .map(|reason| json!({ "reason": reason, "order": order(), "events": [event()] }))
            .into(),
        MailTemplate::TicketsVoided => [1, 2].map(|voided| json!({ "voided": voided, "events": [event()] })).into(),
        MailTemplate::Refund => vec![json!({ "amount": 24_398, "order": order(), "events": [event()] })],
        MailTemplate::EventChanged => {
            let form = |before: Value, now: Value| {
                let mut event = event();
                event["ends"] = now.clone();
                event["admission_from"] = now;
                json!({ "event": event, "before": before })
            };
            let time = json!(TIME);
            let before = |starts: i64, ends: &Value, venue: &str| json!({ "starts": starts, "ends": ends, "admission_from": ends, "venue": venue });
            let mut moved = before(TIME, &time, "National Theatre");
            moved["address"] = "High Street, Accra".into();
            vec![
                form(moved, time.clone()),
                form(before(TIME, &time, "Old Theatre"), time.clone()),
                form(before(TIME - 1, &time, "National Theatre"), time.clone()),
                form(before(TIME - 1, &Value::Null, "Old Theatre"), time.clone()),
                form(before(TIME, &time, "National Theatre"), Value::Null),
            ]
        }
        MailTemplate::EventCancelled => vec![json!({ "event": event() })],
        MailTemplate::PlacesOffered => {
            [1, 2].map(|quantity| json!({ "quantity": quantity, "section": "VIP", "expires": TIME, "events": [event()] })).into()
        }
        MailTemplate::TransferReceived | MailTemplate::TransferClaimed => [0, 1, 2]
            .map(|tickets| {
                let (sender, transfer) = ("Kofi Asante", "17630000000005");
                let guest = tickets == 1;
                json!({ "sender": sender, "transfer": transfer, "tickets": tickets, "accepted": tickets, "guest": guest, "events": [event()] })
            })
            .into(),
    }
}

fn order() -> Value {
    json!({
        "number": "17630000000004", "fees": 798, "total": 24_798, "has_payment": true,
        "items": [{ "event": "Harmattan Jazz Night", "section": "VIP", "quantity": 2, "amount": 24_000 }],
    })
}

fn event() -> Value {
    json!({
        "number": "17630000000001", "title": "Harmattan Jazz Night", "starts": TIME, "venue": "National Theatre",
        "address": "Liberia Road, Accra",
    })
}
