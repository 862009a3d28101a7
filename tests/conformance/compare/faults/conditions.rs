//! Faults of conditional requests and of idempotency keys.

use serde_json::json;

use super::proxy::{Answer, Fault, fault};

const REGION: &[&str] = &["region_get", "region_update", "region_delete"];

fn tag_faults() -> Vec<Fault> {
    vec![
        fault("conditions", "tag stays the same after an update").affects(REGION).response(
            "region_get region_update",
            |_, answer, _| {
                if answer.headers.contains_key("etag") {
                    answer.set_header("etag", "\"AAAAAAAAAAAAAAAAAAAAAA\"");
                }
            },
        ),
        fault("conditions", "tag changes with each request").affects(REGION).response("region_get", |_, answer, memory| {
            let count = memory.get("count").and_then(serde_json::Value::as_u64).unwrap_or_default() + 1;
            memory.insert("count".to_owned(), json!(count));
            if answer.headers.contains_key("etag") {
                answer.set_header("etag", &format!("\"{count:022}\""));
            }
        }),
        fault("conditions", "If-Match is ignored by PUT").affects(REGION).without_header("region_update", "if-match"),
        fault("conditions", "If-Match is ignored by DELETE").affects(REGION).without_header("region_delete", "if-match"),
        fault("conditions", "If-Match is ignored by the event")
            .affects(&["event_update", "event_get"])
            .without_header("event_update", "if-match"),
        fault("conditions", "If-Match is always refused").affects(REGION).valid_request("region_update", |call, _| {
            let has = call.headers.contains_key("if-match");
            has.then(|| changed(412))
        }),
        fault("conditions", "stale If-Match is 409").affects(REGION).response("region_update", |call, answer, _| {
            if answer.status == 412 && call.headers.contains_key("if-match") {
                answer.replace(409, &json!({"error": "Another region has this name.", "code": "region.taken"}));
            }
        }),
        fault("conditions", "stale If-Match is refused and carried out")
            .affects(REGION)
            .valid_request("region_update", |call, memory| {
                memory.insert("had".to_owned(), json!(call.header("if-match")));
                call.headers.remove("if-match");
                None
            })
            .response("region_update", |_, answer, memory| {
                let had = memory.get("had").and_then(serde_json::Value::as_str);
                if had.is_some() && answer.status == 200 {
                    let refusal = changed(412);
                    (answer.status, answer.headers, answer.body) = (refusal.status, refusal.headers, refusal.body);
                }
            }),
        fault("conditions", "If-None-Match is ignored").affects(REGION).without_header("region_get", "if-none-match"),
        fault("conditions", "If-None-Match is always 304").affects(&["region_get", "region_update"]).valid_request(
            "region_get",
            |call, _| {
                let tag = call.header("if-none-match")?.to_owned();
                let mut answer = changed(304);
                answer.empty(304);
                answer.set_header("etag", &tag);
                Some(answer)
            },
        ),
        fault("conditions", "304 lacks the tag").affects(REGION).response_with("region_get", 304, |answer| {
            answer.headers.remove("etag");
        }),
        fault("conditions", "304 has another tag").affects(REGION).response_with("region_get", 304, |answer| {
            answer.set_header("etag", "\"BBBBBBBBBBBBBBBBBBBBBB\"");
        }),
        fault("conditions", "tag of PUT differs from the tag of GET").affects(REGION).response_with(
            "region_update",
            200,
            |answer| {
                answer.set_header("etag", "\"CCCCCCCCCCCCCCCCCCCCCC\"");
            },
        ),
        fault("conditions", "If-None-Match of a list is ignored").without_header("region_list", "if-none-match"),
    ]
}

fn changed(status: u16) -> Answer {
    Answer::new(status, &json!({"error": "The resource has changed. Read it again.", "code": "resource.changed"}))
}

fn repeat_faults() -> Vec<Fault> {
    vec![
        fault("repeats", "host: Idempotency-Key is ignored").without_header("host_create", "idempotency-key"),
        fault("repeats", "zone: Idempotency-Key is ignored").without_header("zone_create", "idempotency-key"),
        fault("repeats", "order: Idempotency-Key is ignored").without_header("order_create", "idempotency-key"),
        fault("repeats", "zone: another body is carried out").valid_request("zone_create", |call, memory| {
            let key = call.header("idempotency-key")?.to_owned();
            let body = String::from_utf8_lossy(&call.body).into_owned();
            let known = memory.entry(key).or_insert_with(|| json!(body.clone()));
            if *known != json!(body) {
                call.headers.remove("idempotency-key");
            }
            None
        }),
        fault("repeats", "zone: another body is 409").response_with("zone_create", 422, |answer| {
            answer.replace(409, &json!({"error": "It is under way.", "code": "idempotency.under-way"}));
        }),
        fault("repeats", "zone: replay has another body").response("zone_create", |_, answer, _| {
            if answer.headers.contains_key("idempotency-replayed")
                && let Some(mut body) = answer.json()
            {
                body["name"] = json!("Another");
                answer.set_json(&body);
            }
        }),
        fault("repeats", "zone: replay has another status").response("zone_create", |_, answer, _| {
            if answer.headers.contains_key("idempotency-replayed") && answer.status == 201 {
                answer.status = 409;
                answer.replace(409, &json!({"error": "It is under way.", "code": "idempotency.under-way"}));
            }
        }),
    ]
}

pub fn table() -> Vec<Fault> {
    [tag_faults(), repeat_faults()].into_iter().flatten().collect()
}
