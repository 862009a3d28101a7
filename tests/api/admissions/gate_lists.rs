//! Signed lists of the tickets that a gate without a connection may admit.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use aws_lc_rs::signature::{ED25519, UnparsedPublicKey};
use boxoffice::kernel::types::clock::Timestamp;
use data_encoding::BASE64URL_NOPAD;
use futures::future::join3;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::offline::upload;
use crate::support::{CONTRACT, TestApp, section, test_on};
use crate::tickets::set_status;
use crate::tokens::{create_token, global_token, redeemer_key};

/// The digest of a serial in a gate list, as the contract describes it.
fn digest(serial: &str) -> String {
    BASE64URL_NOPAD.encode(&Sha256::digest(serial)[..16])
}

fn decode(text: &str) -> Vec<u8> {
    BASE64URL_NOPAD.decode(text.as_bytes()).unwrap()
}

/// Returns the header and the content of a signed list.
fn parts(list: &str) -> [Value; 2] {
    let parts: Vec<Value> = list.split('.').take(2).map(|part| serde_json::from_slice(&decode(part)).unwrap()).collect();
    parts.try_into().unwrap()
}

/// Requests a page of the gate list, checks its signature, and returns the response with the signed content.
async fn gate_list(app: &TestApp, key: &str, path: &str) -> (Value, Value) {
    let response = app.get(key, path).await;
    assert_eq!(response.status, 200, "{response:?}");
    let list = response.body["list"].as_str().unwrap();
    let [header, content] = parts(list);
    let (signed, signature) = list.rsplit_once('.').unwrap();
    assert_eq!(header["alg"], "EdDSA");
    let keys = app.request("GET", "/ticket-keys").no_key().send().await;
    let key = keys.body["keys"].as_array().unwrap().iter().find(|key| key["kid"] == header["kid"]).unwrap();
    UnparsedPublicKey::new(&ED25519, decode(key["x"].as_str().unwrap())).verify(signed.as_bytes(), &decode(signature)).unwrap();
    (response.body, content)
}

/// Returns the status of each digest in the content of a list.
fn statuses(content: &Value) -> BTreeMap<String, String> {
    let groups = content["tickets"].as_array().unwrap().iter();
    let digests =
        groups.flat_map(|group| group["digests"].as_array().unwrap().iter().map(move |digest| (digest, &group["status"])));
    digests.map(|(digest, status)| (digest.as_str().unwrap().to_owned(), status.as_str().unwrap().to_owned())).collect()
}

#[test_on(sqlite, postgres)]
async fn gate_list_is_signed_and_has_own_sections(app: TestApp) {
    let (kofi, ama, event) = app.create_sale(&[section("VIP", 0.0, 10), section("Floor", 0.0, 10)]).await;
    let [vip, pending, void] = ama.order_free_tickets(&event.sections[0], 3).await.try_into().unwrap();
    let floor = ama.order_free_tickets(&event.sections[1], 1).await.remove(0);
    set_status(&app, &pending, "Pending").await;
    set_status(&app, &void, "Void").await;
    let token = create_token(&event, &[&event.sections[0]]).await;
    let key = redeemer_key(&app, &token).await;
    let path = format!("{}/gate-list", event.uri);

    let (page, content) = gate_list(&app, &key, &path).await;
    let (_, of_host) = gate_list(&app, &kofi.key, &path).await;

    let issued = |serial: &str, status: &str| (digest(serial), status.to_owned());
    assert_eq!(statuses(&content), BTreeMap::from([issued(&vip, "Issued"), issued(&pending, "Pending")]));
    assert_eq!((&page["next"], &content["modifiedSince"]), (&Value::Null, &Value::Null));
    assert_eq!((&content["event"], &content["status"]), (&json!(event.uri), &json!("Listed")));
    assert_eq!(content.get("admissionFrom"), Some(&Value::Null));
    assert_eq!((&content["token"], &content["sections"]), (&json!(token.self_), &json!([event.sections[0]])));
    assert_eq!(content["tickets"][0]["section"], event.sections[0]);
    assert!(!page["list"].as_str().unwrap().contains(&vip), "a stolen list makes no ticket");
    let example = CONTRACT.document["components"]["examples"]["GateList"]["value"]["list"].as_str().unwrap();
    let names = |list: &str| parts(list).map(|part| part.as_object().unwrap().keys().cloned().collect::<Vec<_>>());
    assert_eq!(names(page["list"].as_str().unwrap()), names(example), "sign the contract's example again");
    let all: BTreeSet<String> = [&vip, &pending, &floor].into_iter().map(|serial| digest(serial)).collect();
    assert_eq!(statuses(&of_host).into_keys().collect::<BTreeSet<_>>(), all);
    assert_eq!((&of_host["token"], of_host["sections"].as_array().unwrap().len()), (&Value::Null, 2));
}

/// A gate loads the complete list only if the sections have changed.
#[test_on(sqlite, postgres, two_servers)]
async fn gate_list_has_tickets_of_its_sections(app: TestApp) {
    let (kofi, ama, event) = app.create_sale(&[section("VIP", 0.0, 10), section("Floor", 0.0, 10)]).await;
    for section in &event.sections {
        ama.order_free_tickets(section, 2).await;
    }
    let token = create_token(&event, &[&event.sections[0]]).await;
    let key = redeemer_key(&app, &token).await;
    let path = format!("{}/gate-list", event.uri);
    let changes = async {
        for round in 1..30 {
            let body = json!({ "sections": [event.sections[round % 2]] });
            assert_eq!(app.put(&kofi.key, &token.self_, body).await.status, 200);
        }
    };
    let reads = async || {
        for _ in 0..30 {
            let (_, content) = gate_list(&app, &key, &path).await;
            let of_tickets: Vec<&Value> = content["tickets"].as_array().unwrap().iter().map(|group| &group["section"]).collect();
            let sections: Vec<&Value> = content["sections"].as_array().unwrap().iter().collect();
            assert_eq!(of_tickets, sections, "{content}");
        }
    };

    join3(changes, reads(), reads()).await;
}

#[test_on(sqlite, postgres)]
async fn gate_list_has_changes(app: TestApp) {
    let (kofi, ama, event) = app.create_sale(&[section("VIP", 0.0, 10)]).await;
    let [kept, used, returned] = ama.order_free_tickets(&event.sections[0], 3).await.try_into().unwrap();
    app.advance_clock(Duration::from_secs(120));
    let path = format!("{}/gate-list", event.uri);
    let since = gate_list(&app, &kofi.key, &path).await.0["modifiedSince"].as_str().unwrap().to_owned();

    assert_eq!(app.admit(&kofi.key, &event, [&used]).await.status, 201);
    let order = app.wallet(&ama).await[0]["order"].as_str().unwrap().to_owned();
    let body = json!({ "tickets": [returned] });
    assert_eq!(app.return_tickets(&kofi.key, &order, body).await.status, 200);
    let new = ama.order_free_tickets(&event.sections[0], 1).await.remove(0);
    let (_, changes) = gate_list(&app, &kofi.key, &format!("{path}?modified_since={since}")).await;

    let expected = [(&used, "Redeemed"), (&returned, "Void"), (&new, "Issued")];
    assert_eq!(statuses(&changes), expected.map(|(serial, status)| (digest(serial), status.to_owned())).into());
    assert_eq!(changes["modifiedSince"], since);
    assert!(!statuses(&changes).contains_key(&digest(&kept)));
    assert_eq!(app.post_empty(&kofi.key, &format!("{}/cancellations", event.uri)).await.status, 200);
    assert_eq!(gate_list(&app, &kofi.key, &path).await.1["status"], "Cancelled");
}

/// A gate has the time of its last load from a server whose clock was a day ahead.
#[test_on(sqlite, postgres)]
async fn changes_after_a_corrected_clock_are_returned(app: TestApp) {
    const DAY: Duration = Duration::from_secs(24 * 3600);
    let (kofi, ama, event) = app.create_sale(&[section("VIP", 0.0, 10)]).await;
    let [returned, used, copied] = ama.order_free_tickets(&event.sections[0], 3).await.try_into().unwrap();
    app.advance_clock(DAY);
    let path = format!("{}/gate-list", event.uri);
    let since = gate_list(&app, &kofi.key, &path).await.0["modifiedSince"].as_str().unwrap().to_owned();
    app.state.clock.rewind(DAY);

    let order = app.wallet(&ama).await[0]["order"].as_str().unwrap().to_owned();
    assert_eq!(app.return_tickets(&kofi.key, &order, json!({ "tickets": [returned] })).await.status, 200);
    assert_eq!(app.admit(&kofi.key, &event, [&used, &copied]).await.status, 201);
    let new = ama.order_free_tickets(&event.sections[0], 1).await.remove(0);
    let conflict = upload(&app, &kofi.key, &event, "Gate B", &[(&copied, app.state.clock.now())]).await;
    let (next, changes) = gate_list(&app, &kofi.key, &format!("{path}?modified_since={since}")).await;
    let since_then = async |list: &str| app.read(&format!("{}/{list}?modified_since={since}", event.uri)).await;

    let expected = [(&returned, "Void"), (&used, "Redeemed"), (&copied, "Redeemed"), (&new, "Issued")];
    assert_eq!(statuses(&changes), expected.map(|(serial, status)| (digest(serial), status.to_owned())).into());
    assert!(next["modifiedSince"].as_str().unwrap() < since.as_str());
    assert_eq!(since_then("tickets").await["total"], 4);
    assert_eq!(since_then("admission-conflicts").await["entries"], conflict.body["conflicts"]);
}

/// Inserts 10,000 copies of the latest ticket. As many orders would take long.
pub async fn insert_10_000_tickets(app: &TestApp) {
    app.execute_sql(
        "insert into tickets (id, serial, order_id, event_id, section_id, owner_id, status, issued, modified)
         with recursive n (i) as (select 1 union all select i + 1 from n where i < 10000)
         select t.id + i, 'AAAAAA-' || substr(cast(1000000000000 + i as text), 2), t.order_id, t.event_id, t.section_id, t.owner_id,
                t.status, t.issued, t.modified
         from tickets t, n where t.id = (select max(id) from tickets)",
    )
    .await;
    app.execute_sql("update sections set sold = (select count(*) from tickets t where t.section_id = sections.id)").await;
}

#[test_on(sqlite, postgres)]
async fn large_list_has_pages_and_its_scans_are_one_upload(app: TestApp) {
    let (_, ama, event) = app.create_sale(&[section("VIP", 0.0, 20_000)]).await;
    ama.order_free_tickets(&event.sections[0], 1).await;
    insert_10_000_tickets(&app).await;
    let key = redeemer_key(&app, &global_token(&event).await).await;

    let (first, content) = gate_list(&app, &key, &format!("{}/gate-list", event.uri)).await;
    let (last, rest) = gate_list(&app, &key, first["next"].as_str().unwrap()).await;

    let mut digests = statuses(&content);
    assert_eq!((digests.len(), statuses(&rest).len(), &last["next"]), (10_000, 1, &Value::Null));
    digests.extend(statuses(&rest));
    assert_eq!(digests.len(), 10_001, "no ticket is on two pages");
    let bytes = first["list"].as_str().unwrap().len();
    assert!(bytes < 350_000, "{bytes} bytes for 10,000 tickets");

    let now = app.state.clock.now();
    let serials: Vec<String> = (1..=10_000).map(|number| format!("AAAAAA-{number:012}")).collect();
    let scans: Vec<(&str, Timestamp)> = serials.iter().map(|serial| (serial.as_str(), now)).collect();
    let uploaded = upload(&app, &key, &event, "Gate B", &scans).await;
    assert_eq!((uploaded.status, &uploaded.body["admitted"]), (200, &json!(10_000)), "{uploaded:?}");
    let again = upload(&app, &key, &event, "Gate B", &scans).await;
    assert_eq!(again.body, json!({ "admitted": 10_000, "refused": [], "conflicts": [] }));
    assert_eq!(app.read(&format!("{}/admissions", event.uri)).await["total"], 10_000);
    let too_many: Vec<(&str, Timestamp)> = scans.iter().chain(&scans[..1]).copied().collect();
    let rejected = upload(&app, &key, &event, "Gate B", &too_many).await;
    assert_eq!(rejected.invalid_arguments(), ["scans"]);
}
