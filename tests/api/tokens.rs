//! Admission tokens: creation, scope, and their keys.

use std::time::Duration;

use futures::join;
use serde_json::{Value, json};

use crate::support::{Client, DAY, Event, Rejection, TestApp, id_of, rejection, section, test_on, types};

/// Creates a token for these sections.
pub async fn create_token(event: &Event, sections: &[&str]) -> types::Token {
    let sections = serde_json::from_value::<types::TokenCreate>(json!({ "sections": sections })).unwrap();
    event.host.owner.client.event_token_create().event(&event.id).body(sections).send().await.unwrap().into_inner()
}

/// Returns an event's global token.
pub async fn global_token(event: &Event) -> types::Token {
    let tokens = event.host.owner.client.event_token_list().event(&event.id).global(true).send().await.unwrap();
    tokens.entries[0].clone()
}

/// Exchanges a token's code for a key.
pub async fn redeemer_key(app: &TestApp, token: &types::Token) -> String {
    app.public_client.token_authentication_get().code(token.code.as_str()).send().await.unwrap().key.to_string()
}

/// Creates a client with a token's key.
pub async fn redeemer_client(app: &TestApp, token: &types::Token) -> Client {
    app.client(&redeemer_key(app, token).await)
}

fn token_id(token: &types::Token) -> &str {
    id_of(&token.self_)
}

#[test_on(sqlite, postgres)]
async fn every_event_has_global_token_for_all_sections(app: TestApp) {
    let (kofi, event) = app.sign_up_host_with_draft("kofi").await;

    let before = global_token(&event).await;
    let vip = app.add_section(&event, &section("VIP", 0.0, 10)).await;
    let floor = app.add_section(&event, &section("Floor", 0.0, 10)).await;
    let door = create_token(&event, &[&floor]).await;
    let after = global_token(&event).await;

    assert!(before.global && before.sections.is_empty());
    assert_eq!((&after.self_, &after.code), (&before.self_, &before.code));
    assert_eq!(after.sections, [vip, floor]);
    let all = kofi.client.event_token_list().event(&event.id).send().await.unwrap();
    assert_eq!((all.total, &all.entries), (2, &vec![after.clone(), door.clone()]));
    let others = kofi.client.event_token_list().event(&event.id).global(false).send().await.unwrap();
    assert_eq!((others.total, &others.entries), (1, &vec![door]));
    let second_page = kofi.client.event_token_list().event(&event.id).records(1).page(2).send().await.unwrap();
    assert_eq!(second_page.entries, others.entries);
    let past_the_end = kofi.client.event_token_list().event(&event.id).page(2).send().await;
    assert_eq!(past_the_end.rejection(), (404, "page.past-end".to_owned()));
}

#[test_on(sqlite, postgres)]
async fn token_covers_its_sections_in_either_form(app: TestApp) {
    let (kofi, event) = app.sign_up_host("kofi", &[section("VIP", 0.0, 10), section("Floor", 0.0, 10)]).await;
    let short = event.sections[0].strip_prefix(&event.uri).unwrap();

    let given = json!({ "sections": [event.sections[1], short, format!("/v3{short}"), event.sections[0]], "code": "ignored" });
    let path = format!("/events/{}/tokens", event.id);
    let created = app.post(&kofi.key, &path, given).await;

    assert_eq!(created.status, 201);
    assert_eq!(created.body["sections"], json!(event.sections), "each once, the oldest first, in the long form");
    assert_eq!(created.body["global"], false);
    assert_eq!(created.header("location"), created.body["self"]);
    let read = app.get(&kofi.key, created.header("location")).await;
    assert_eq!((read.status, &read.body), (200, &created.body));
}

#[test_on(sqlite, postgres)]
async fn token_has_a_name_that_refusals_show(app: TestApp) {
    let (kofi, ama, event) = app.create_sale(&[section("VIP", 0.0, 10)]).await;
    let send = async |method: &str, path: &str, body: Value| app.request(method, path).key(&kofi.key).json(&body).send().await;
    let body = json!({ "sections": event.sections, "name": "North gate" });
    let created = send("POST", &format!("{}/tokens", event.uri), body).await;
    assert_eq!((created.status, &created.body["name"]), (201, &json!("North gate")));
    let uri = created.uri();

    let authenticated = app.request("GET", &format!("/tokens/{}", created.body["code"].as_str().unwrap())).send().await.body;
    let key = authenticated["key"].as_str().unwrap();
    let serials = ama.order_free_tickets(&event.sections[0], 1).await;
    let scan = async || {
        let scanned = app.post(key, &format!("{}/scans", event.uri), json!({ "serials": serials })).await;
        scanned.body["refused"][0]["admission"]["tokenName"].clone()
    };
    assert_eq!((scan().await, scan().await), (Value::Null, json!("North gate")));

    let renamed = send("PUT", uri, json!({ "name": "South gate" })).await;
    assert_eq!((&renamed.body["name"], &renamed.body["sections"]), (&json!("South gate"), &json!(event.sections)));
    assert_eq!(scan().await, "South gate");
    assert_eq!(send("PUT", uri, json!({ "sections": event.sections })).await.body["name"], "South gate");
    assert_eq!(send("PUT", uri, json!({ "name": "" })).await.body["name"], "");
    let long = send("PUT", uri, json!({ "name": "x".repeat(101) })).await;
    assert_eq!(long.invalid_arguments(), ["name"]);
    let list = app.read(&format!("{}/tokens", event.uri)).await;
    assert_eq!((&list["entries"][0]["name"], &list["entries"][1]["name"]), (&json!(""), &json!("")));
}

#[test_on(sqlite, postgres)]
async fn rejects_sections_of_other_events(app: TestApp) {
    let (kofi, event) = app.sign_up_host("kofi", &[section("Floor", 0.0, 10)]).await;
    let other = app.create_listed_event(&event.host, &[section("Floor", 0.0, 10)]).await;
    let token = create_token(&event, &[&event.sections[0]]).await;
    let mine = event.sections[0].as_str();
    let strange = other.sections[0].as_str();
    let (collection, path) = (format!("{}/tokens", event.uri), token.self_.as_str());

    for sections in [
        json!([strange]),
        json!([mine, strange]),
        json!([strange.strip_prefix(&other.uri).unwrap()]),
        json!([strange.replace(&other.uri, &event.uri)]),
        json!([mine.replace(&event.uri, &other.uri)]),
        json!(["/sections/17637000000001"]),
        json!(["/sections/x"]),
        json!([]),
        json!(["Floor"]),
        json!([7]),
        json!(mine),
    ] {
        let body = json!({ "sections": sections });
        let created = app.post(&kofi.key, &collection, &body).await;
        let changed = app.put(&kofi.key, path, &body).await;
        assert_eq!(created.invalid_arguments(), ["sections"], "{sections}");
        assert_eq!(changed.invalid_arguments(), ["sections"], "{sections}");
    }

    let tokens = kofi.client.event_token_list().event(&event.id).global(false).send().await.unwrap();
    assert_eq!(tokens.entries, [token]);
}

#[test_on(sqlite, postgres)]
async fn token_belongs_to_one_event(app: TestApp) {
    let (kofi, ama, event) = app.create_sale(&[section("Floor", 0.0, 10)]).await;
    let other = app.create_listed_event(&event.host, &[section("Floor", 0.0, 10)]).await;
    let token = create_token(&event, &[&event.sections[0]]).await.self_;

    for method in ["GET", "PUT", "DELETE"] {
        for (key, path) in [(&kofi.key, token.replace(&event.id, &other.id)), (&ama.key, format!("{}/tokens/nothing", event.uri))]
        {
            let response = app.request(method, &path).key(key).json(&json!({})).send().await;
            assert_eq!(rejection(&response), (404, "resource.not-found"), "{method} {path}");
        }
    }
}

#[test_on(sqlite, postgres)]
async fn token_update_changes_scope_of_its_keys(app: TestApp) {
    let (kofi, ama, event) = app.create_sale(&[section("VIP", 0.0, 10), section("Floor", 0.0, 10)]).await;
    let vip_ticket = ama.order_free_tickets(&event.sections[0], 1).await;
    let floor_ticket = ama.order_free_tickets(&event.sections[1], 1).await;
    let token = create_token(&event, &[&event.sections[0]]).await;
    let gate = redeemer_client(&app, &token).await;
    let tickets = async || {
        let tickets = gate.event_ticket_list().event(&event.id).send().await.unwrap();
        tickets.entries.iter().map(|ticket| ticket.serial.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(tickets().await, vip_ticket);

    let sections = serde_json::from_value::<types::TokenUpdate>(json!({ "sections": [event.sections[1]] })).unwrap();
    let update = kofi.client.event_token_update().event(&event.id).token(token_id(&token)).body(sections);
    let changed = update.send().await.unwrap().into_inner();

    assert_eq!(changed.sections, [event.sections[1].clone()]);
    assert_eq!((&changed.self_, &changed.code), (&token.self_, &token.code));
    assert_eq!(tickets().await, floor_ticket);
    let unchanged = app.put(&kofi.key, &token.self_, json!({})).await;
    assert_eq!((unchanged.status, &unchanged.body["sections"]), (200, &json!([event.sections[1]])));
}

#[test_on(sqlite, postgres)]
async fn global_token_is_immutable(app: TestApp) {
    let (kofi, event) = app.sign_up_host("kofi", &[section("Floor", 0.0, 10)]).await;
    let global = global_token(&event).await;

    for key in [&kofi.key, &app.staff.key] {
        let body = json!({ "sections": event.sections });
        assert_eq!(rejection(&app.put(key, &global.self_, &body).await), (409, "token.global"));
        assert_eq!(rejection(&app.delete(key, &global.self_).await), (409, "token.global"));
    }
    assert_eq!(global_token(&event).await, global);
}

#[test_on(sqlite, postgres)]
async fn deleted_token_revokes_its_keys(app: TestApp) {
    let (kofi, ama, event) = app.create_sale(&[section("Floor", 0.0, 10)]).await;
    let serials = ama.order_free_tickets(&event.sections[0], 2).await;
    let token = create_token(&event, &[&event.sections[0]]).await;
    let keys = [redeemer_key(&app, &token).await, redeemer_key(&app, &token).await];
    let admitted = app.admit(&keys[0], &event, &serials[..1]).await;
    assert_eq!(admitted.status, 201);

    let removed = app.delete(&kofi.key, &token.self_).await;

    assert_eq!(removed.status, 204);
    for key in &keys {
        let response = app.admit(key, &event, &serials[1..]).await;
        assert_eq!(rejection(&response), (403, "key.refused"));
    }
    let exchanged = app.public_client.token_authentication_get().code(token.code.as_str()).send().await;
    assert_eq!(exchanged.rejection(), (404, "resource.not-found".to_owned()));
    for method in ["GET", "DELETE"] {
        assert_eq!(rejection(&app.request(method, &token.self_).key(&kofi.key).send().await), (404, "resource.not-found"));
    }
    let kept = app.get(&kofi.key, &format!("{}/admissions", event.uri)).await;
    assert_eq!(kept.body["entries"], admitted.body, "its admissions stay");
}

/// A request that has passed the check of its key just before the token is removed is either served or refused.
#[test_on(sqlite, postgres, two_servers)]
async fn removal_of_token_refuses_its_requests(app: TestApp) {
    let (kofi, ama, event) = app.create_sale(&[section("VIP", 0.0, 50)]).await;
    let serials = ama.order_free_tickets(&event.sections[0], 45).await;
    let paths = ["scans", "offline-scans", "tickets", "gate-list"];
    let [scans, offline_scans, tickets, gate_list] = paths.map(|name| format!("{}/{name}", event.uri));
    for serials in serials.chunks(3) {
        let token = create_token(&event, &[&event.sections[0]]).await;
        let key = redeemer_key(&app, &token).await;
        let scan = json!({ "serial": serials[2], "scanned": "2025-01-01T00:00:00Z" });

        let (removed, admitted, scanned, uploaded, listed, list) = join!(
            app.delete(&kofi.key, &token.self_),
            app.admit(&key, &event, [&serials[0]]),
            app.post(&key, &scans, json!({ "serials": [serials[1]] })),
            app.post(&key, &offline_scans, json!({ "device": "Gate A", "scans": [scan] })),
            app.get(&key, &tickets),
            app.get(&key, &gate_list),
        );

        assert_eq!(removed.status, 204);
        for (response, is_complete) in [
            (&admitted, admitted.body[0]["ticket"] == serials[0].as_str()),
            (&scanned, scanned.body["admitted"][0]["ticket"] == serials[1].as_str()),
            (&uploaded, uploaded.body["refused"][0]["reason"] != "other-section"),
            (&listed, listed.body["total"] == 45),
            (&list, list.status == 200),
        ] {
            assert!(is_complete || rejection(response) == (403, "key.refused"), "{response:?}");
        }
    }
}

#[test_on(sqlite, postgres)]
async fn new_code_ends_the_keys_of_the_previous_one(app: TestApp) {
    let (kofi, ama, event) = app.create_sale(&[section("Floor", 0.0, 10)]).await;
    let serials = ama.order_free_tickets(&event.sections[0], 1).await;
    let admissions = format!("{}/admissions", event.uri);
    let body = json!({ "serials": serials });
    let exchange = |code: String| app.public_client.token_authentication_get().code(code).send();
    for token in [global_token(&event).await, create_token(&event, &[&event.sections[0]]).await] {
        let key = redeemer_key(&app, &token).await;
        let path = format!("{}/codes", token.self_);

        let replaced = app.post_empty(&kofi.key, &path).await;

        assert_eq!(replaced.status, 200, "{}", replaced.body);
        let code = replaced.body["code"].as_str().unwrap();
        assert_ne!(code, token.code.as_str());
        let mut expected = serde_json::to_value(&token).unwrap();
        expected["code"] = json!(code);
        assert_eq!((&replaced.body, &app.get(&kofi.key, &token.self_).await.body), (&expected, &expected));
        assert_eq!(rejection(&app.post(&key, &admissions, &body).await), (403, "key.refused"));
        assert_eq!(exchange(token.code.to_string()).await.rejection(), (404, "resource.not-found".to_owned()));
        assert!(exchange(code.to_owned()).await.is_ok());
    }
}

#[test_on(sqlite, postgres)]
async fn code_is_exchanged_for_new_key_each_time(app: TestApp) {
    let (kofi, event) = app.sign_up_host("kofi", &[section("VIP", 0.0, 10), section("Floor", 0.0, 10)]).await;
    let global = global_token(&event).await;
    let token = create_token(&event, &[&event.sections[1]]).await;

    let of = async |client: &Client, token: &types::Token| {
        client.token_authentication_get().code(token.code.as_str()).send().await.unwrap().into_inner()
    };
    let (first, second) = (of(&app.public_client, &token).await, of(&kofi.client, &token).await);

    assert_eq!((&first.event, &first.sections), (&event.uri, &vec![event.sections[1].clone()]));
    assert_ne!(first.key, second.key);
    assert_eq!(of(&app.public_client, &global).await.sections, event.sections);
    for key in [&first.key, &second.key] {
        let own_event = app.client(key).event_get().event(&event.id).send().await.unwrap();
        assert_eq!(own_event.self_, event.uri);
    }
    let with_a_redeemers_key = app.client(&first.key).token_authentication_get().code(token.code.as_str()).send().await;
    assert_eq!(with_a_redeemers_key.rejection(), (403, "key.refused".to_owned()));
    assert_eq!(rejection(&app.request("GET", "/tokens/ZZZZZZZZ").send().await), (404, "resource.not-found"));
    assert_eq!(rejection(&app.request("GET", "/tokens/short").send().await), (404, "resource.not-found"));
}

#[test_on(sqlite, postgres)]
async fn token_has_a_maximum_of_keys(app: TestApp) {
    let (_, event) = app.sign_up_host("kofi", &[section("Floor", 0.0, 10)]).await;
    let token = global_token(&event).await;
    let (used, unused) = (redeemer_key(&app, &token).await, redeemer_key(&app, &token).await);
    let status = async |key: &str| app.get(key, &event.uri).await.status;
    assert_eq!(status(&used).await, 200);
    // As if the code had been exchanged 998 times since.
    app.execute_sql(
        "insert into api_keys (id, hash, kind, name, role, token_id, created)
         with recursive numbers (n) as (select 1 union all select n + 1 from numbers where n < 998)
         select k.id + n, 'hash ' || n, k.kind, k.name, k.role, k.token_id, k.created
         from numbers, (select * from api_keys where token_id is not null order by id desc limit 1) k",
    )
    .await;

    let newest = redeemer_key(&app, &token).await;

    assert_eq!(app.scalar::<i64>("select count(*) from api_keys where token_id is not null").await, 1000);
    assert_eq!([status(&used).await, status(&newest).await, status(&unused).await], [200, 200, 403]);
}

#[test_on(sqlite, postgres)]
async fn key_expiry_follows_event_end(app: TestApp) {
    let (kofi, event) = app.sign_up_host("kofi", &[section("Floor", 0.0, 10)]).await;
    let ends_in = async |days: u32| {
        let now = app.state.clock.now();
        let times = json!({ "start": now.format_minutes(), "end": now.plus(DAY * days).format_minutes() });
        assert_eq!(app.put(&kofi.key, &event.uri, &times).await.status, 200);
    };
    ends_in(1).await;
    let code = global_token(&event).await.code.to_string();
    let key = app.public_client.token_authentication_get().code(code).send().await.unwrap().key.to_string();
    let status = async || app.get(&key, &format!("{}/tickets", event.uri)).await.status;

    ends_in(3).await;
    app.advance_clock(DAY * 2);
    assert_eq!(status().await, 200, "it was put off");
    app.end_event(&event).await;
    assert_eq!(status().await, 403, "it was long ago");
}

#[test_on(sqlite, postgres)]
async fn keys_and_codes_expire_twelve_hours_after_event(app: TestApp) {
    let (kofi, event) = app.sign_up_host("kofi", &[section("Floor", 0.0, 10)]).await;
    let (now, hour) = (app.state.clock.now(), Duration::from_secs(60 * 60));
    let times = json!({ "start": now.format_minutes(), "end": now.plus(hour).format_minutes() });
    let moved = app.put(&kofi.key, &event.uri, &times).await;
    assert_eq!(moved.status, 200, "{moved:?}");
    let token = create_token(&event, &[&event.sections[0]]).await;
    let exchange = async || app.request("GET", &format!("/tokens/{}", token.code.as_str())).send().await;
    let tickets = format!("{}/tickets", event.uri);
    let key = redeemer_key(&app, &token).await;

    app.advance_clock(12 * hour + hour / 2);
    assert_eq!(exchange().await.status, 200, "half an hour before that");
    assert_eq!(app.get(&key, &tickets).await.status, 200);

    app.advance_clock(hour / 2);
    assert_eq!(rejection(&exchange().await), (404, "resource.not-found"));
    assert_eq!(rejection(&app.get(&key, &tickets).await), (403, "key.refused"));
}
