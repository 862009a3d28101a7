//! Gates without a connection: uploaded scans, and conflicts.

use std::collections::BTreeSet;
use std::time::Duration;

use boxoffice::kernel::types::clock::Timestamp;
use futures::future::{join, join_all};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde_json::{Value, json};

use super::reasons;
use crate::support::{Event, Response, TestApp, User, entries_of, rejection, section, test_on};
use crate::tickets::set_status;
use crate::tokens::{create_token, global_token, redeemer_key};

/// Formats a time as `2026-11-21T18:30:00.123456Z`.
fn micros(time: Timestamp) -> String {
    chrono::DateTime::from_timestamp_micros(time.0).unwrap().format("%Y-%m-%dT%H:%M:%S%.6fZ").to_string()
}

/// Uploads scans of these serials at these times.
pub async fn upload(app: &TestApp, key: &str, event: &Event, device: &str, scans: &[(&str, Timestamp)]) -> Response {
    let scans: Vec<Value> = scans.iter().map(|(serial, time)| json!({ "serial": serial, "scanned": micros(*time) })).collect();
    app.post(key, &format!("{}/offline-scans", event.uri), json!({ "device": device, "scans": scans })).await
}

async fn conflicts(app: &TestApp, key: &str, event: &Event, device: &str) -> Vec<Value> {
    let path = format!("{}/admission-conflicts?device={}", event.uri, device.replace(' ', "%20"));
    let response = app.get(key, &path).await;
    entries_of(&response.body).to_vec()
}

#[test_on(sqlite, postgres)]
async fn upload_admits_at_the_time_of_the_scan(app: TestApp) {
    let (_, ama, event) = app.create_sale(&[section("VIP", 0.0, 10)]).await;
    let serials = ama.order_free_tickets(&event.sections[0], 2).await;
    let token = global_token(&event).await;
    let key = redeemer_key(&app, &token).await;
    let scanned = app.state.clock.now();
    app.advance_clock(Duration::from_secs(3600));
    let since = micros(app.state.clock.now().minus(Duration::from_secs(1)));
    let later = scanned.plus(Duration::from_secs(60));

    let scans = [(serials[1].as_str(), later), (serials[0].as_str(), scanned), (&serials[1].to_lowercase(), scanned)];
    let uploaded = upload(&app, &key, &event, "Gate B", &scans).await;

    assert_eq!(uploaded.body, json!({ "admitted": 2, "refused": [], "conflicts": [] }), "the earliest scan of a ticket counts");
    let admissions = app.read(&format!("{}/admissions", event.uri)).await;
    for admission in entries_of(&admissions) {
        assert_eq!(admission["admitted"], scanned.format_rfc3339());
        assert_eq!((&admission["device"], &admission["redeemer"]), (&json!("Gate B"), &json!(token.self_)));
    }
    let changed = app.read(&format!("{}/tickets?modified_since={since}", event.uri)).await;
    assert_eq!(changed["total"], 2, "other gates learn of it");
    assert_eq!(changed["entries"][0]["redeemed"], scanned.format_rfc3339());
}

#[test_on(sqlite, postgres)]
async fn refused_scan_has_reason(app: TestApp) {
    let (kofi, ama, event) = app.create_sale(&[section("VIP", 0.0, 10), section("Floor", 0.0, 10)]).await;
    let other = app.create_listed_event(&event.host, &[section("VIP", 0.0, 10)]).await;
    app.advance_clock(Duration::from_secs(3600));
    let [pending, void, early, late, good] = ama.order_free_tickets(&event.sections[0], 5).await.try_into().unwrap();
    let floor = ama.order_free_tickets(&event.sections[1], 1).await.remove(0);
    let other_event = ama.order_free_tickets(&other.sections[0], 1).await.remove(0);
    set_status(&app, &pending, "Pending").await;
    set_status(&app, &void, "Void").await;
    let key = redeemer_key(&app, &create_token(&event, &[&event.sections[0]]).await).await;
    let now = app.state.clock.now();
    let minutes = |minutes: u64| Duration::from_secs(minutes * 60);

    let scans = [
        (pending.as_str(), now),
        (&void, now),
        (&floor, now),
        (&other_event, now),
        ("scribble", now),
        (&early, now.minus(minutes(6))),
        (&late, now.plus(minutes(6))),
        (&good, now.minus(minutes(4))),
    ];
    let uploaded = upload(&app, &key, &event, "Gate B", &scans).await;

    let expected = [
        (pending.as_str(), "pending"),
        (&void, "void"),
        (&floor, "other-section"),
        (&other_event, "unknown"),
        ("scribble", "unknown"),
        (&early, "implausible-time"),
        (&late, "implausible-time"),
    ];
    assert_eq!((uploaded.status, reasons(&uploaded), &uploaded.body["admitted"]), (200, expected.to_vec(), &json!(1)));
    let right = upload(&app, &key, &event, "Gate B", &[(&early, now), (&late, now)]).await;
    assert_eq!(right.body["admitted"], 2, "a refused scan may be uploaded again");
    assert_eq!(app.post_empty(&kofi.key, &format!("{}/cancellations", event.uri)).await.status, 200);
    let later = app.state.clock.now();
    let cancelled = upload(&app, &key, &event, "Gate B", &[(&good, now), (&floor, later), ("scribble", later)]).await;
    let expected = vec![(floor.as_str(), "event-cancelled"), ("scribble", "event-cancelled")];
    assert_eq!((cancelled.status, &cancelled.body["admitted"], reasons(&cancelled)), (200, &json!(1), expected));
}

/// Those who were let in before are inside.
#[test_on(sqlite, postgres)]
async fn scan_from_before_the_cancellation_is_admitted(app: TestApp) {
    let (kofi, ama, event) = app.create_sale(&[section("VIP", 10.0, 10)]).await;
    let order = ama.order(&event.sections[0], 3).await.unwrap();
    ama.pay(&order).await.unwrap();
    let serials: Vec<String> =
        app.wallet(&ama).await.iter().map(|ticket| ticket["serial"].as_str().unwrap().to_owned()).collect();
    let [before, after, unused] = serials.try_into().unwrap();
    let key = redeemer_key(&app, &global_token(&event).await).await;
    app.advance_clock(Duration::from_secs(60));
    let scanned = app.state.clock.now();
    app.advance_clock(Duration::from_secs(60));
    assert_eq!(app.post_empty(&kofi.key, &format!("{}/cancellations", event.uri)).await.status, 200);

    let later = app.state.clock.now();
    let uploaded = upload(&app, &key, &event, "Gate B", &[(&before, scanned), (&after, later)]).await;
    let online = app.admit(&key, &event, [&unused]).await;
    // As if the clock of the server that cancelled the event had been ahead.
    app.execute_sql("update events set revised = revised + 18000000000").await;
    let unclear = upload(&app, &key, &event, "Gate B", &[(&unused, scanned)]).await;
    let returned = app.return_tickets(&kofi.key, &order.self_, json!({})).await;

    let expected = vec![(after.as_str(), "event-cancelled")];
    assert_eq!(
        (uploaded.status, &uploaded.body["admitted"], reasons(&uploaded)),
        (200, &json!(1), expected),
        "{}",
        uploaded.body
    );
    assert_eq!(rejection(&online).0, 400);
    assert_eq!(reasons(&unclear), [(unused.as_str(), "event-cancelled")]);
    assert_eq!(returned.status, 200, "{}", returned.body);
    let statuses: Vec<Value> = app.wallet(&ama).await.iter().map(|ticket| ticket["status"].clone()).collect();
    assert_eq!(statuses, ["Redeemed", "Void", "Void"]);
}

#[test_on(sqlite, postgres)]
async fn conflict_is_reported_to_both_gates_once(app: TestApp) {
    let (kofi, ama, event) = app.create_sale(&[section("VIP", 0.0, 10), section("Floor", 0.0, 10)]).await;
    let serial = ama.order_free_tickets(&event.sections[0], 1).await.remove(0);
    let token = global_token(&event).await;
    let key = redeemer_key(&app, &token).await;
    let scanned = app.state.clock.now();
    app.advance_clock(Duration::from_secs(60));
    let body = json!({ "serials": [serial], "device": "Gate A", "redeemer": "Yaw" });
    let online = app.post(&key, &format!("{}/admissions", event.uri), &body).await;

    let uploaded = upload(&app, &key, &event, "Gate B", &[(&serial, scanned)]).await;
    app.advance_clock(Duration::from_secs(60));
    // The response was lost. The gate has also scanned the ticket again.
    let later = scanned.plus(Duration::from_secs(30));
    let again = upload(&app, &key, &event, "Gate B", &[(&serial, scanned), (&serial, later)]).await;

    assert_eq!((uploaded.status, &uploaded.body["admitted"], &uploaded.body["refused"]), (200, &json!(0), &json!([])));
    assert_eq!(again.body, uploaded.body);
    let conflict = &uploaded.body["conflicts"][0];
    assert_eq!((&conflict["ticket"], &conflict["section"]), (&json!(serial), &json!(event.sections[0])));
    let admission = json!({
        "self": online.body[0]["self"], "admitted": online.body[0]["admitted"], "redeemer": "Yaw", "device": "Gate A",
        "token": token.self_, "tokenName": "",
    });
    assert_eq!(conflict["admission"], admission);
    let scan = json!({
        "scanned": scanned.format_rfc3339(), "redeemer": token.self_, "device": "Gate B", "token": token.self_,
    });
    assert_eq!(conflict["scan"], scan);
    for device in ["Gate A", "Gate B"] {
        assert_eq!(conflicts(&app, &key, &event, device).await, std::slice::from_ref(conflict), "{device}");
    }
    assert_eq!(conflicts(&app, &key, &event, "Gate C").await, [] as [Value; 0]);
    let third = upload(&app, &kofi.key, &event, "Gate B", &[(&serial, later)]).await;
    assert_eq!(third.body["conflicts"].as_array().unwrap().len(), 1, "another key is another gate");
    assert_eq!(conflicts(&app, &key, &event, "Gate A").await.len(), 2);
    app.advance_clock(Duration::from_secs(1));
    let since = micros(app.state.clock.now());
    let path = format!("{}/admission-conflicts?modified_since={since}", event.uri);
    assert_eq!(app.get(&key, &path).await.body["total"], 0);
    let floor = redeemer_key(&app, &create_token(&event, &[&event.sections[1]]).await).await;
    assert_eq!(conflicts(&app, &floor, &event, "Gate A").await, [] as [Value; 0], "of another section");
    assert_eq!(app.read(&format!("{}/admissions", event.uri)).await["total"], 1);
}

#[test_on(sqlite, postgres)]
async fn upload_after_lost_response_is_no_conflict(app: TestApp) {
    let (_, ama, event) = app.create_sale(&[section("VIP", 0.0, 10)]).await;
    let serials = ama.order_free_tickets(&event.sections[0], 2).await;
    let key = redeemer_key(&app, &global_token(&event).await).await;
    for (device, serial) in [("Gate B", &serials[0]), (" Gate C ", &serials[1])] {
        let body = json!({ "serials": [serial], "device": device });
        let online = app.post(&key, &format!("{}/admissions", event.uri), body).await;
        assert_eq!(online.status, 201, "{online:?}");

        // The gate did not get that response, and has admitted the ticket by its list.
        let scans = [(serial.as_str(), app.state.clock.now())];
        let uploaded = upload(&app, &key, &event, device, &scans).await;

        assert_eq!(uploaded.body, json!({ "admitted": 1, "refused": [], "conflicts": [] }), "{device:?}");
        let admissions = app.read(&format!("{}/admissions?ticket={serial}", event.uri)).await;
        assert_eq!(admissions["entries"], online.body);
        assert_eq!(app.delete(&key, online.body[0]["self"].as_str().unwrap()).await.status, 204);
        assert_eq!(reasons(&upload(&app, &key, &event, device, &scans).await), [(serial.as_str(), "undone")], "{device:?}");
    }
}

/// The gate's token was replaced after a response was lost.
#[test_on(sqlite, postgres)]
async fn upload_with_another_token_has_the_same_outcome(app: TestApp) {
    let (_, ama, event) = app.create_sale(&[section("VIP", 0.0, 10)]).await;
    let [admitted, copied] = ama.order_free_tickets(&event.sections[0], 2).await.try_into().unwrap();
    let former = redeemer_key(&app, &global_token(&event).await).await;
    let key = redeemer_key(&app, &create_token(&event, &[&event.sections[0]]).await).await;
    assert_eq!(app.admit(&former, &event, [&copied]).await.status, 201);
    let scanned = app.state.clock.now();
    let scans = [(admitted.as_str(), scanned), (&copied, scanned)];

    let uploaded = upload(&app, &former, &event, "Gate B", &scans).await;
    let again = upload(&app, &key, &event, "Gate B", &scans).await;
    let later = upload(&app, &key, &event, "Gate B", &[(&admitted, scanned.plus(Duration::from_secs(1)))]).await;

    assert_eq!((uploaded.status, &uploaded.body["admitted"], &uploaded.body["refused"]), (200, &json!(1), &json!([])));
    assert_eq!(uploaded.body["conflicts"][0]["ticket"], copied);
    assert_eq!(again.body, uploaded.body);
    assert_eq!(later.body["conflicts"][0]["ticket"], admitted, "another scan with another token is that of another gate");
    assert_eq!(conflicts(&app, &key, &event, "Gate B").await.len(), 2);
}

#[test_on(sqlite, postgres)]
async fn undone_scan_stays_undone(app: TestApp) {
    let (_, ama, event) = app.create_sale(&[section("VIP", 0.0, 10)]).await;
    let serial = ama.order_free_tickets(&event.sections[0], 1).await.remove(0);
    let key = redeemer_key(&app, &global_token(&event).await).await;
    let scanned = app.state.clock.now();
    assert_eq!(upload(&app, &key, &event, "Gate B", &[(&serial, scanned)]).await.body["admitted"], 1);
    let admission = app.read(&format!("{}/admissions", event.uri)).await["entries"][0]["self"].clone();

    let undone = app.delete(&key, admission.as_str().unwrap()).await;
    assert_eq!(undone.status, 204, "{undone:?}");

    let again = upload(&app, &key, &event, "Gate B", &[(&serial, scanned)]).await;
    assert_eq!(reasons(&again), [(serial.as_str(), "undone")]);
    app.advance_clock(Duration::from_secs(60));
    let new = upload(&app, &key, &event, "Gate B", &[(&serial, app.state.clock.now())]).await;
    assert_eq!(new.body["admitted"], 1, "another scan admits");
}

#[test_on(sqlite, postgres)]
async fn undone_scan_of_fast_clock_stays_undone(app: TestApp) {
    let (_, ama, event) = app.create_sale(&[section("VIP", 0.0, 10)]).await;
    let serial = ama.order_free_tickets(&event.sections[0], 1).await.remove(0);
    let key = redeemer_key(&app, &global_token(&event).await).await;
    let scanned = app.state.clock.now().plus(Duration::from_secs(4 * 60));
    assert_eq!(upload(&app, &key, &event, "Gate B", &[(&serial, scanned)]).await.body["admitted"], 1);
    let admission = app.read(&format!("{}/admissions", event.uri)).await["entries"][0]["self"].clone();
    assert_eq!(app.delete(&key, admission.as_str().unwrap()).await.status, 204);

    let again = upload(&app, &key, &event, "Gate B", &[(&serial, scanned)]).await;

    assert_eq!(reasons(&again), [(serial.as_str(), "undone")]);
    let later = scanned.plus(Duration::from_secs(30));
    let new = upload(&app, &key, &event, "Gate B", &[(&serial, later)]).await;
    assert_eq!(new.body["admitted"], 1, "another scan admits");
}

#[test_on(sqlite, postgres)]
async fn refused_scan_does_not_hide_later_one(app: TestApp) {
    let (_, ama, event) = app.create_sale(&[section("VIP", 0.0, 10)]).await;
    app.advance_clock(Duration::from_secs(3600));
    let [undone, early] = ama.order_free_tickets(&event.sections[0], 2).await.try_into().unwrap();
    let key = redeemer_key(&app, &global_token(&event).await).await;
    let first = app.state.clock.now();
    assert_eq!(upload(&app, &key, &event, "Gate B", &[(&undone, first)]).await.body["admitted"], 1);
    let admission = app.read(&format!("{}/admissions", event.uri)).await["entries"][0]["self"].clone();
    assert_eq!(app.delete(&key, admission.as_str().unwrap()).await.status, 204);
    app.advance_clock(Duration::from_secs(60));
    let second = first.plus(Duration::from_secs(60));
    let before_issue = first.minus(Duration::from_secs(1800));

    let scans = [(undone.as_str(), first), (&early, before_issue), (&undone, second), (&early, second)];
    let uploaded = upload(&app, &key, &event, "Gate B", &scans).await;
    let again = upload(&app, &key, &event, "Gate B", &scans).await;

    let expected = json!({ "admitted": 2, "refused": [], "conflicts": [] });
    assert_eq!((&uploaded.body, &again.body), (&expected, &expected));
    let admissions = app.read(&format!("{}/admissions", event.uri)).await;
    for admission in admissions["entries"].as_array().unwrap() {
        assert_eq!(admission["admitted"], second.format_rfc3339());
    }
    let refused = upload(&app, &key, &event, "Gate B", &[(&undone, first), (&undone, before_issue)]).await;
    assert_eq!(reasons(&refused), [(undone.as_str(), "implausible-time")], "the reason is that of the earliest scan");
}

#[test_on(sqlite, postgres)]
async fn admission_with_conflict_is_not_undone(app: TestApp) {
    let (kofi, ama, event) = app.create_sale(&[section("VIP", 0.0, 10)]).await;
    let serial = ama.order_free_tickets(&event.sections[0], 1).await.remove(0);
    let online = app.admit(&kofi.key, &event, [&serial]).await;
    let uploaded = upload(&app, &kofi.key, &event, "Gate B", &[(&serial, app.state.clock.now())]).await;
    assert_eq!(uploaded.body["conflicts"].as_array().unwrap().len(), 1);

    let undone = app.delete(&kofi.key, online.body[0]["self"].as_str().unwrap()).await;

    assert_eq!(rejection(&undone), (409, "admission.conflict"));
    assert_eq!(app.admit(&kofi.key, &event, [&serial]).await.body["refused"][0]["reason"], "redeemed");
}

/// The gates of a random test, and their admissions.
struct Gates<'a> {
    app: &'a TestApp,
    kofi: &'a User,
    event: &'a Event,
    serials: Vec<String>,
    /// Earlier uploads, with their devices and scans.
    uploads: Vec<(String, Vec<(String, Timestamp)>)>,
    /// Each device that has admitted a ticket, and was not undone.
    admitted: BTreeSet<(String, String)>,
    undone: usize,
}

impl Gates<'_> {
    async fn online(&mut self, random: &mut StdRng) {
        let (serial, device) = (self.serial(random), device(random));
        let body = json!({ "serials": [serial], "device": device });
        let path = format!("{}/admissions", self.event.uri);
        let response = self.app.post(&self.kofi.key, &path, body).await;
        if response.status == 201 {
            self.admitted.insert((serial, device));
        }
    }

    async fn offline(&mut self, random: &mut StdRng) {
        let device = device(random);
        let now = self.app.state.clock.now();
        let mut scan = || (self.serial(random), now.minus(Duration::from_micros(random.random_range(0..1_000_000))));
        let scans: Vec<(String, Timestamp)> = (0..3).map(|_| scan()).collect();
        self.upload(&device, &scans).await;
        self.uploads.push((device, scans));
    }

    async fn repeat(&mut self, random: &mut StdRng) {
        if self.uploads.is_empty() {
            return;
        }
        let (device, scans) = self.uploads[random.random_range(0..self.uploads.len())].clone();
        self.upload(&device, &scans).await;
    }

    async fn upload(&mut self, device: &str, scans: &[(String, Timestamp)]) {
        let given: Vec<(&str, Timestamp)> = scans.iter().map(|(serial, time)| (serial.as_str(), *time)).collect();
        let response = upload(self.app, &self.kofi.key, self.event, device, &given).await;
        let again = upload(self.app, &self.kofi.key, self.event, device, &given).await;
        assert_eq!((response.status, &response.body), (200, &again.body), "a repeated upload has the same outcome");
        let refused: BTreeSet<&str> = reasons(&response).into_iter().map(|(serial, _)| serial).collect();
        let serials = scans.iter().map(|(serial, _)| serial).filter(|serial| !refused.contains(serial.as_str()));
        self.admitted.extend(serials.map(|serial| (serial.clone(), device.to_owned())));
    }

    async fn undo(&mut self, random: &mut StdRng) {
        let admissions = self.app.read(&format!("{}/admissions?records=100", self.event.uri)).await;
        let entries = entries_of(&admissions);
        if entries.is_empty() {
            return;
        }
        let admission = &entries[random.random_range(0..entries.len())];
        let (serial, device) = (admission["ticket"].as_str().unwrap(), admission["device"].as_str().unwrap());
        let response = self.app.delete(&self.kofi.key, admission["self"].as_str().unwrap()).await;
        if response.status == 204 {
            self.admitted.remove(&(serial.to_owned(), device.to_owned()));
            self.undone += 1;
        } else {
            assert_eq!(rejection(&response), (409, "admission.conflict"));
        }
    }

    fn serial(&self, random: &mut StdRng) -> String {
        self.serials[random.random_range(0..self.serials.len())].clone()
    }

    /// Checks that each ticket counts once, and that each further gate that has admitted it has a conflict.
    async fn check(&self) {
        let admissions = self.app.read(&format!("{}/admissions?records=100", self.event.uri)).await;
        let counted = entries_of(&admissions).iter();
        let counted: Vec<(String, String)> = counted
            .map(|entry| (entry["ticket"].as_str().unwrap().to_owned(), entry["device"].as_str().unwrap().to_owned()))
            .collect();
        let tickets: BTreeSet<&String> = counted.iter().map(|(serial, _)| serial).collect();
        assert_eq!(tickets.len(), counted.len(), "no ticket counts twice");
        let valid = self.app.read(&format!("{}/tickets?records=100", self.event.uri)).await;
        let redeemed = entries_of(&valid).iter().filter(|ticket| ticket["status"] == "Redeemed");
        let redeemed: BTreeSet<String> = redeemed.map(|ticket| ticket["serial"].as_str().unwrap().to_owned()).collect();
        assert_eq!(redeemed.iter().collect::<BTreeSet<_>>(), tickets, "a ticket is Redeemed by its admission");
        let conflicts = self.app.read(&format!("{}/admission-conflicts?records=100", self.event.uri)).await;
        let conflicts = entries_of(&conflicts).iter();
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let in_conflict = conflicts.map(|entry| (text(&entry["ticket"]), text(&entry["scan"]["device"])));
        let known: BTreeSet<(String, String)> = counted.iter().cloned().chain(in_conflict).collect();
        assert_eq!(known, self.admitted, "each gate that has admitted a ticket is in its admission or in a conflict");
    }
}

fn device(random: &mut StdRng) -> String {
    format!("Gate {}", ["A", "B", "C"][random.random_range(0..3)])
}

#[test_on(sqlite, postgres)]
async fn random_scans_admit_each_ticket_once(app: TestApp) {
    let (kofi, ama, event) = app.create_sale(&[section("VIP", 0.0, 20)]).await;
    let serials = ama.order_free_tickets(&event.sections[0], 8).await;
    app.advance_clock(Duration::from_secs(60));
    let seed = rand::random::<u64>();
    eprintln!("seed {seed}");
    let mut random = StdRng::seed_from_u64(seed);
    let (uploads, admitted) = (Vec::new(), BTreeSet::new());
    let mut gates = Gates { app: &app, kofi: &kofi, event: &event, serials, uploads, admitted, undone: 0 };

    for _ in 0..40 {
        match random.random_range(0..8) {
            0..3 => gates.online(&mut random).await,
            3..5 => gates.offline(&mut random).await,
            5 => gates.repeat(&mut random).await,
            _ => gates.undo(&mut random).await,
        }
        gates.check().await;
    }
}

#[test_on(sqlite, postgres, two_servers)]
async fn concurrent_gates_admit_each_ticket_once(app: TestApp) {
    let (_, ama, event) = app.create_sale(&[section("VIP", 0.0, 50)]).await;
    let serials = ama.order_free_tickets(&event.sections[0], 20).await;
    let key = redeemer_key(&app, &global_token(&event).await).await;
    let now = app.state.clock.now();
    let (app, event, key) = (&app, &event, &key);
    let scans: Vec<(&str, Timestamp)> = serials.iter().map(|serial| (serial.as_str(), now)).collect();
    let reversed: Vec<(&str, Timestamp)> = scans.iter().rev().copied().collect();

    // Gate A is online. Gates B and C upload, and B uploads again before it has a response.
    let online = async {
        let admitted = serials.iter().map(|serial| async move {
            let body = json!({ "serials": [serial], "device": "Gate A" });
            app.post(key, &format!("{}/admissions", event.uri), &body).await.status == 201
        });
        join_all(admitted).await.into_iter().filter(|is_admitted| *is_admitted).count()
    };
    let uploads = [("Gate B", &scans), ("Gate C", &reversed), ("Gate B", &reversed)];
    let uploads = join_all(uploads.map(|(device, scans)| upload(app, key, event, device, scans)));
    let (by_a, uploads) = join(online, uploads).await;

    let admitted = |response: &Response| usize::try_from(response.body["admitted"].as_u64().unwrap()).unwrap();
    let [b, c, b_again] = uploads.try_into().unwrap();
    assert_eq!(admitted(&b), admitted(&b_again), "one outcome: {b:?} {b_again:?}");
    assert_eq!(by_a + admitted(&b) + admitted(&c), 20);
    for (device, response) in [("Gate B", &b), ("Gate C", &c)] {
        assert_eq!(response.body["conflicts"].as_array().unwrap().len(), 20 - admitted(response), "{device}");
        assert_eq!(response.body["refused"], json!([]));
    }
    let all = app.read(&format!("{}/admission-conflicts?records=100", event.uri)).await;
    assert_eq!(all["total"], 40 - admitted(&b) - admitted(&c), "one for each gate and ticket");
    assert_eq!(app.read(&format!("{}/admissions", event.uri)).await["total"], 20);
}
