//! Admissions: redeeming tickets, each once.

mod gate_lists;
mod offline;
mod offline_gate;
mod refusals;
mod undo;

use std::collections::BTreeSet;
use std::time::Duration;

use futures::future::{join, join_all};
use serde_json::{Value, json};

use crate::support::{Response, TestApp, entries_of, id_of, rejection, section, test_on};
use crate::tickets::set_status;
use crate::tokens::{create_token, global_token, redeemer_key};

/// Returns the serials in a response.
fn admitted(response: &Response) -> Vec<&str> {
    let admissions = response.body.get("entries").unwrap_or(&response.body).as_array().unwrap();
    admissions.iter().map(|admission| admission["ticket"].as_str().unwrap()).collect()
}

/// Returns the refused serials in a response, with their reasons.
fn reasons(response: &Response) -> Vec<(&str, &str)> {
    let refused = response.body["refused"].as_array().unwrap_or_else(|| panic!("{response:?}"));
    refused.iter().map(|ticket| (ticket["serial"].as_str().unwrap(), ticket["reason"].as_str().unwrap())).collect()
}

#[test_on(sqlite, postgres)]
async fn admits_tickets_in_serial_order(app: TestApp) {
    let (_, ama, event) = app.create_sale(&[section("VIP", 0.0, 10), section("Floor", 0.0, 10)]).await;
    let esi = app.sign_up("esi").await;
    let hers = ama.order_free_tickets(&event.sections[0], 2).await;
    let other = esi.order_free_tickets(&event.sections[1], 1).await;
    let key = redeemer_key(&app, &global_token(&event).await).await;
    app.advance_clock(Duration::from_secs(60));

    let serials = [&hers[1], &other[0], &hers[0], &hers[1]];
    let body = json!({ "serials": serials, "redeemer": "Yaw", "device": "Gate A" });
    let path = format!("{}/admissions", event.uri);
    let response = app.post(&key, &path, &body).await;

    assert_eq!((response.status, response.header("location")), (201, ""), "{response:?}");
    assert_eq!(admitted(&response), [&hers[1], &other[0], &hers[0]], "each once");
    let first = &response.body[0];
    assert_eq!((&first["redeemer"], &first["device"]), (&json!("Yaw"), &json!("Gate A")));
    assert_eq!((&first["patron"]["number"], &first["section"]["self"]), (&json!(ama.number), &json!(event.sections[0])));
    assert_eq!(
        (&response.body[1]["patron"]["number"], &response.body[1]["section"]["self"]),
        (&json!(esi.number), &json!(event.sections[1]))
    );
    let wallet = app.get(&ama.key, &format!("/accounts/{}/tickets", ama.number)).await;
    for ticket in entries_of(&wallet.body) {
        assert_eq!((&ticket["status"], &ticket["redeemed"]), (&json!("Redeemed"), &first["admitted"]));
        assert_ne!(ticket["issued"], ticket["redeemed"]);
    }
    let list = app.get(&key, &path).await;
    assert_eq!((&list.body["total"], &list.body["entries"]), (&json!(3), &response.body));
}

#[test_on(sqlite, postgres)]
async fn skips_tickets_that_cannot_be_admitted(app: TestApp) {
    let (kofi, ama, event) = app.create_sale(&[section("VIP", 0.0, 10), section("Floor", 0.0, 10)]).await;
    let other = app.create_listed_event(&event.host, &[section("Floor", 0.0, 10)]).await;
    let [good, pending, void, redeemed] = ama.order_free_tickets(&event.sections[0], 4).await.try_into().unwrap();
    let other_section = ama.order_free_tickets(&event.sections[1], 1).await.remove(0);
    let other_event = ama.order_free_tickets(&other.sections[0], 1).await.remove(0);
    set_status(&app, &pending, "Pending").await;
    set_status(&app, &void, "Void").await;
    assert_eq!(app.admit(&kofi.key, &event, [&redeemed]).await.status, 201);
    let key = redeemer_key(&app, &create_token(&event, &[&event.sections[0]]).await).await;
    let long = "9".repeat(1000);
    let malformed = ["ZZZZZZ-ZZZZZZZZZZZZ", "scribble", "Ünleserlich", "", " ", "\r\n", "\u{1d}]C1", &long];
    let bad = [&[pending.as_str(), &void, &redeemed, &other_section, &other_event][..], &malformed].concat();

    for &serial in &bad {
        assert_eq!(rejection(&app.admit(&key, &event, [serial]).await), (400, "admission.none"), "{serial}");
    }
    // As a scanner ends it.
    let scanned = format!("\u{1d}\t{}\r\n", good.to_lowercase());
    let response = app.admit(&key, &event, [&bad[..], &[scanned.as_str()]].concat()).await;

    assert_eq!((response.status, admitted(&response)), (201, vec![good.as_str()]));
    let host_admits = app.admit(&kofi.key, &event, [&other_section]).await;
    assert_eq!((host_admits.status, admitted(&host_admits)), (201, vec![other_section.as_str()]), "the host admits everywhere");
}

#[test_on(sqlite, postgres)]
async fn changes_nothing_if_no_ticket_can_be_admitted(app: TestApp) {
    let (kofi, ama, event) = app.create_sale(&[section("VIP", 0.0, 10), section("Floor", 0.0, 10)]).await;
    let floor = ama.order_free_tickets(&event.sections[1], 1).await;
    let key = redeemer_key(&app, &create_token(&event, &[&event.sections[0]]).await).await;
    let tickets = async || app.get(&kofi.key, &format!("{}/tickets", event.uri)).await.body;
    let before = tickets().await;

    let rejected = app.admit(&key, &event, [&floor[0]]).await;

    assert_eq!(rejection(&rejected), (400, "admission.none"));
    assert_eq!(tickets().await, before);
    let admissions = app.get(&kofi.key, &format!("{}/admissions", event.uri)).await;
    assert_eq!(admissions.body["total"], 0);
}

#[test_on(sqlite, postgres)]
async fn second_scan_does_not_admit_again(app: TestApp) {
    let (kofi, ama, event) = app.create_sale(&[section("Floor", 0.0, 20)]).await;
    let serials = ama.order_free_tickets(&event.sections[0], 12).await;
    let global = global_token(&event).await;
    let keys = join_all((0..6).map(|_| redeemer_key(&app, &global))).await;

    // All redeemers scan all tickets at once, each starting with another one.
    let (app, event, serials) = (&app, &event, &serials);
    let scans = keys.iter().enumerate().flat_map(|(gate, key)| {
        let scan = move |at: usize| async move { app.admit(key, event, [&serials[(at + 2 * gate) % 12]]).await };
        (0..12).map(scan)
    });
    let responses = join_all(scans).await;

    let won: Vec<&str> = responses.iter().filter(|response| response.status == 201).flat_map(admitted).collect();
    assert_eq!(won.len(), serials.len(), "each ticket admits exactly once");
    assert_eq!(won.iter().collect::<BTreeSet<_>>().len(), serials.len());
    assert!(responses.iter().filter(|response| response.status != 201).all(|response| response.code() == "admission.none"));
    let list = app.get(&kofi.key, &format!("{}/admissions", event.uri)).await;
    assert_eq!(list.body["total"], serials.len());
}

#[test_on(sqlite, postgres, two_servers)]
async fn concurrent_scans_admit_each_ticket_once(app: TestApp) {
    let (_, ama, event) = app.create_sale(&[section("Floor", 0.0, 50)]).await;
    let serials = ama.order_free_tickets(&event.sections[0], 40).await;
    let key = redeemer_key(&app, &global_token(&event).await).await;
    let forth: Vec<&str> = serials.iter().map(String::as_str).collect();
    let back: Vec<&str> = forth.iter().rev().copied().collect();

    let responses = join_all([&forth, &back, &forth, &back].map(|batch| app.admit(&key, &event, batch))).await;

    let won: Vec<&str> = responses.iter().filter(|response| response.status == 201).flat_map(admitted).collect();
    assert_eq!(won.len(), serials.len());
    assert_eq!(won.into_iter().collect::<BTreeSet<_>>(), forth.into_iter().collect());
    assert!(responses.iter().all(|response| response.status == 201 || response.code() == "admission.none"), "{responses:?}");
}

#[test_on(sqlite, postgres)]
async fn admission_names_redeemer(app: TestApp) {
    let (kofi, ama, event) = app.create_sale(&[section("Floor", 0.0, 10)]).await;
    let serials = ama.order_free_tickets(&event.sections[0], 3).await;
    let token = create_token(&event, &[&event.sections[0]]).await;
    let gate = redeemer_key(&app, &token).await;

    let by_token = app.admit(&gate, &event, [&serials[0]]).await;
    let by_host = app.admit(&kofi.key, &event, [&serials[1]]).await;
    let blank = json!({ "serials": [serials[2]], "redeemer": " ", "device": null });
    let blank = app.post(&gate, &format!("{}/admissions", event.uri), &blank).await;

    assert_eq!((&by_token.body[0]["redeemer"], &by_token.body[0]["device"]), (&json!(token.self_), &json!("")));
    assert_eq!((&by_host.body[0]["redeemer"], &by_host.body[0]["device"]), (&json!(kofi.number), &json!("")));
    assert_eq!((&blank.body[0]["redeemer"], &blank.body[0]["device"]), (&json!(token.self_), &json!("")));
}

#[test_on(sqlite, postgres)]
async fn redeemer_sees_admissions_of_own_sections(app: TestApp) {
    let (kofi, ama, event) = app.create_sale(&[section("VIP", 0.0, 10), section("Floor", 0.0, 10)]).await;
    let vip = ama.order_free_tickets(&event.sections[0], 1).await;
    let floor = ama.order_free_tickets(&event.sections[1], 2).await;
    let path = format!("{}/admissions", event.uri);
    let vip_gate = redeemer_key(&app, &create_token(&event, &[&event.sections[0]]).await).await;
    let main_gate = redeemer_key(&app, &global_token(&event).await).await;
    let empty = app.get(&vip_gate, &path).await;
    assert_eq!(empty.body, json!({ "total": 0, "page": 1, "records": 25, "entries": [] }));

    app.admit(&main_gate, &event, [&floor[1], &vip[0]]).await;
    app.admit(&main_gate, &event, [&floor[0]]).await;

    let list = async |key: &str, query: &str| app.get(key, &format!("{path}{query}")).await;
    assert_eq!(admitted(&list(&vip_gate, "").await), [&vip[0]]);
    for key in [&main_gate, &kofi.key, &app.staff.key] {
        assert_eq!(admitted(&list(key, "").await), [&floor[1], &vip[0], &floor[0]]);
    }
    let second = list(&main_gate, "?records=2&page=2").await;
    assert_eq!((admitted(&second), &second.body["total"]), (vec![floor[0].as_str()], &json!(3)));
}

#[test_on(sqlite, postgres)]
async fn filters_admissions(app: TestApp) {
    let (kofi, ama, event) = app.create_sale(&[section("VIP", 0.0, 10), section("Floor", 0.0, 10)]).await;
    let esi = app.sign_up("esi").await;
    let other = app.create_listed_event(&event.host, &[section("Floor", 0.0, 10)]).await;
    let hers = ama.order_free_tickets(&event.sections[0], 1).await.remove(0);
    let other_hers = esi.order_free_tickets(&event.sections[1], 1).await.remove(0);
    let path = format!("{}/admissions", event.uri);
    for (serial, redeemer, device) in [(&hers, "Yaw & Sons", "Gate A"), (&other_hers, "Adwoa", "Gate B")] {
        let body = json!({ "serials": [serial], "redeemer": redeemer, "device": device });
        assert_eq!(app.post(&kofi.key, &path, &body).await.status, 201);
    }
    let list = async |query: &str| app.get(&kofi.key, &format!("{path}?{query}")).await;
    let (vip, elsewhere) = (event.sections[0].as_str(), other.sections[0].as_str());
    let (short, id) = (vip.strip_prefix(&event.uri).unwrap(), id_of(vip));

    for query in [
        "redeemer=Yaw%20%26%20Sons".to_owned(),
        "device=Gate+A".to_owned(),
        format!("ticket={hers}"),
        format!("patron={}", ama.number),
        format!("patron=/accounts/{}", ama.number),
        format!("patron=/v3/accounts/{}", ama.number),
        format!("section={vip}"),
        format!("section=/v3{vip}"),
        format!("section={short}"),
        format!("section={id}"),
        "section=VIP".to_owned(),
        "section=vip%20".to_owned(),
        format!("redeemer=Yaw%20%26%20Sons&device=Gate%20A&ticket={hers}&patron={}&section={id}", ama.number),
    ] {
        let found = list(&query).await;
        assert_eq!((admitted(&found), &found.body["total"]), (vec![hers.as_str()], &json!(1)), "{query}");
    }
    for query in [
        "redeemer=Yaw".to_owned(),
        "device=gate%20a".to_owned(),
        "ticket=ZZZZZZ-ZZZZZZZZZZZZ".to_owned(),
        format!("patron={}", kofi.number),
        "patron=ZZ-ZZZZZZZZ".to_owned(),
        format!("patron={}&device=Gate%20B", ama.number),
    ] {
        let found = list(&query).await;
        assert_eq!((found.status, &found.body["entries"]), (200, &json!([])), "{query}");
    }
    for section in [elsewhere, &vip.replace(&event.id, &other.id), "nothing", "VI P"] {
        let unknown = list(&format!("section={section}")).await;
        assert_eq!((unknown.status, unknown.invalid_arguments()), (400, vec!["section".to_owned()]), "{section}");
    }
    let by_name = app.client(&kofi.key).event_admission_list().event(event.id.as_str()).section("floor").send().await.unwrap();
    assert_eq!((by_name.total, by_name.entries[0].ticket.as_str()), (1, other_hers.as_str()));
}

#[test_on(sqlite, postgres)]
async fn admission_is_readable_by_redeemers_host_and_staff(app: TestApp) {
    let (kofi, ama, event) = app.create_sale(&[section("VIP", 0.0, 10), section("Floor", 0.0, 10)]).await;
    let other = app.create_listed_event(&event.host, &[section("Floor", 0.0, 10)]).await;
    let vip = ama.order_free_tickets(&event.sections[0], 1).await;
    let vip_gate = redeemer_key(&app, &create_token(&event, &[&event.sections[0]]).await).await;
    let main_gate = redeemer_key(&app, &global_token(&event).await).await;
    let created: Value = app.admit(&vip_gate, &event, [&vip[0]]).await.body[0].clone();
    let uri = created["self"].as_str().unwrap();
    let read = async |key: &str, uri: &str| app.get(key, uri).await;

    for key in [&vip_gate, &main_gate, &kofi.key, &app.staff.key] {
        let response = read(key, uri).await;
        assert_eq!((response.status, &response.body), (200, &created));
    }
    for unknown in [uri.replace(&event.id, &other.id), format!("{}/admissions/nothing", event.uri)] {
        assert_eq!(rejection(&read(&kofi.key, &unknown).await), (404, "resource.not-found"));
    }
}

#[test_on(sqlite, postgres)]
async fn cancelled_event_admits_nobody(app: TestApp) {
    let (kofi, ama, event) = app.create_sale(&[section("Floor", 0.0, 10)]).await;
    let other = app.create_listed_event(&event.host, &[section("Floor", 0.0, 10)]).await;
    let serials = ama.order_free_tickets(&event.sections[0], 2).await;
    let others = ama.order_free_tickets(&other.sections[0], 1).await;
    let gate = redeemer_key(&app, &global_token(&event).await).await;
    assert_eq!(app.admit(&gate, &event, [&serials[0]]).await.status, 201);

    assert_eq!(app.post_empty(&kofi.key, &format!("{}/cancellations", event.uri)).await.status, 200);

    for key in [&gate, &kofi.key, &app.staff.key] {
        let rejected = app.admit(key, &event, [&serials[1]]).await;
        assert_eq!(rejection(&rejected), (400, "admission.none"));
        assert!(rejected.body["error"].as_str().unwrap().contains("cancelled"), "{}", rejected.body);
    }
    assert_eq!(rejection(&app.admit(&ama.key, &event, [&serials[1]]).await), (403, "resource.not-yours"));
    let list = app.get(&gate, &format!("{}/admissions", event.uri)).await;
    assert_eq!(admitted(&list), [&serials[0]], "the earlier admission stays");
    assert_eq!(app.wallet(&ama).await[1]["status"], "Issued", "it can still be returned");
    // Another event of the same batch is not affected.
    let (rejected, accepted) =
        futures::future::join(app.admit(&kofi.key, &event, [&serials[1]]), app.admit(&kofi.key, &other, [&others[0]])).await;
    assert_eq!((rejected.status, accepted.status), (400, 201));
}

#[test_on(sqlite, postgres)]
async fn event_that_is_cancelled_while_a_scan_waits_admits_nobody(app: TestApp) {
    app.stop_jobs().await;
    let (_, ama, event) = app.create_sale(&[section("Floor", 0.0, 10)]).await;
    let serials = ama.order_free_tickets(&event.sections[0], 1).await;
    let key = redeemer_key(&app, &global_token(&event).await).await;
    let mut cancellation = app.begin_with_lock("select id from tickets for update").await;
    cancellation.query("update events set status = 'Cancelled'").execute().await.unwrap();

    let (scanned, ()) = join(app.admit(&key, &event, [&serials[0]]), app.commit_when_awaited(cancellation, 1)).await;

    assert_eq!(rejection(&scanned), (400, "admission.none"), "{}", scanned.body);
    assert_eq!(scanned.body["refused"][0]["reason"], "event-cancelled");
    assert_eq!(app.wallet(&ama).await[0]["status"], "Issued");
}

/// Its end may be unknown, or be moved after the event.
#[test_on(sqlite, postgres)]
async fn event_with_admissions_keeps_its_venue(app: TestApp) {
    let (kofi, ama, event) = app.create_sale(&[section("Floor", 0.0, 10)]).await;
    let serials = ama.order_free_tickets(&event.sections[0], 1).await;
    let admitted = app.admit(&kofi.key, &event, [&serials[0]]).await;

    let moved = app.put(&kofi.key, &event.uri, json!({ "venue": app.create_venue().await })).await;

    assert_eq!((admitted.status, moved.status, moved.code()), (201, 409, "event.over"));
}

#[test_on(sqlite, postgres)]
async fn shorter_copy_has_no_time_of_admission(app: TestApp) {
    let (kofi, event) = app.sign_up_host("kofi", &[section("Floor", 0.0, 10)]).await;
    let times = json!({ "start": "2998-01-03T10:00", "admissionFrom": "2998-01-03T18:00", "end": "2998-01-03T22:00" });
    assert_eq!(app.put(&kofi.key, &event.uri, times).await.status, 200);
    let copy = async |title: &str, end: &str| {
        let body = json!({ "title": title, "start": "2998-02-03T10:00", "end": end });
        app.post(&kofi.key, &format!("{}/copies", event.uri), &body).await
    };

    let (short, long) = (copy("Short", "2998-02-03T16:00").await, copy("Long", "2998-02-03T20:00").await);

    assert_eq!((short.status, &short.body["admissionFrom"]), (201, &json!(null)), "{}", short.body);
    assert_eq!((long.status, &long.body["admissionFrom"]), (201, &json!("2998-02-03T18:00")), "{}", long.body);
}

#[test_on(sqlite, postgres)]
async fn admits_from_the_time_of_the_event_on(app: TestApp) {
    let (kofi, ama, event) = app.create_sale(&[section("Floor", 0.0, 10)]).await;
    let serials = ama.order_free_tickets(&event.sections[0], 2).await;
    let gate = redeemer_key(&app, &global_token(&event).await).await;
    let change = async |from: Value| app.put(&kofi.key, &event.uri, json!({ "admissionFrom": from })).await;
    let from = app.state.clock.now().plus(Duration::from_secs(7200)).format_minutes();
    let end = app.read(&event.uri).await["end"].clone();
    assert_eq!(change(end).await.invalid_arguments(), ["admissionFrom"]);
    assert_eq!(app.read(&event.uri).await["admissionFrom"], Value::Null);
    assert_eq!(change(json!(from)).await.body["admissionFrom"], from);

    for key in [&gate, &kofi.key, &app.staff.key] {
        let rejected = app.admit(key, &event, [&serials[0]]).await;
        assert_eq!(rejection(&rejected), (400, "admission.none"));
        assert_eq!(rejected.body["refused"], json!([{ "serial": serials[0], "reason": "too-early" }]));
        assert!(rejected.body["error"].as_str().unwrap().contains(&from), "{}", rejected.body);
    }
    // A gate without a connection has the time in its list. Its clock may differ by some minutes.
    let scanned = app.state.clock.now().format_rfc3339();
    let body = json!({ "device": "Gate A", "scans": [{ "serial": serials[0], "scanned": scanned }] });
    let uploaded = app.post(&gate, &format!("{}/offline-scans", event.uri), &body).await;
    assert_eq!(uploaded.body["refused"][0]["reason"], "too-early", "{}", uploaded.body);
    let body = json!({ "title": "A day later", "start": "2999-12-21T19:00" });
    let copied = app.post(&kofi.key, &format!("{}/copies", event.uri), &body).await;
    assert_eq!(copied.status, 201, "{}", copied.body);
    assert!(copied.body["admissionFrom"].as_str().unwrap() > from.as_str(), "{}", copied.body);

    app.advance_clock(Duration::from_secs(7200));
    assert_eq!(app.admit(&gate, &event, [&serials[0]]).await.status, 201);
    let from = app.state.clock.now().plus(Duration::from_secs(7200)).format_minutes();
    assert_eq!(change(json!(from)).await.status, 200);
    assert_eq!(app.admit(&gate, &event, [&serials[1]]).await.status, 400);
    assert_eq!(change(Value::Null).await.body["admissionFrom"], Value::Null);
    assert_eq!(app.admit(&gate, &event, [&serials[1]]).await.status, 201);
}
