//! Transfers of tickets.

mod lists;
mod offers;
mod permissions;
mod races;
mod states;

use std::collections::BTreeSet;
use std::slice::from_ref;
use std::time::Duration;

use boxoffice::kernel::types::clock::Timestamp;
use serde_json::{Value, json};

use crate::support::{Event, Rejection, Response, TestApp, User, id_of, rejection, section, test_on, types};
use crate::tokens::redeemer_key;

/// Ama, who has tickets to an event of Kofi, and Esi, the recipient.
struct Fixture {
    kofi: User,
    ama: User,
    esi: User,
    event: Event,
    /// The serials of Ama's tickets, oldest first.
    serials: Vec<String>,
}

async fn create_fixture(app: &TestApp, tickets: usize) -> Fixture {
    let (kofi, ama, event) = app.create_sale(&[section("Floor", 0.0, 100)]).await;
    let esi = app.sign_up("esi").await;
    let serials = ama.order_free_tickets(&event.sections[0], tickets).await;
    Fixture { kofi, ama, esi, event, serials }
}

impl Fixture {
    /// Creates a transfer of these tickets from Ama to Esi, and returns its URI.
    async fn offer(&self, app: &TestApp, serials: &[String]) -> String {
        let created = offer(app, &self.ama.key, &self.esi, serials).await;
        assert_eq!(created.status, 201, "{}", created.body);
        created.uri().to_owned()
    }

    /// Requests the admission of these tickets as the host.
    async fn admit(&self, app: &TestApp, serials: &[String]) -> Response {
        app.admit(&self.kofi.key, &self.event, serials).await
    }

    /// Returns a key that admits to the whole event.
    async fn gate_key(&self, app: &TestApp) -> String {
        let tokens = self.kofi.client.event_token_list().event(&self.event.id).global(true).send().await.unwrap();
        redeemer_key(app, &tokens.entries[0]).await
    }
}

async fn offer(app: &TestApp, key: &str, recipient: &User, serials: &[String]) -> Response {
    app.post(key, "/transfers", json!({ "recipient": recipient.number, "tickets": serials })).await
}

async fn claim(app: &TestApp, user: &User, transfer: &str) -> Response {
    app.post_empty(&user.key, &format!("{transfer}/claims")).await
}

async fn reject(app: &TestApp, user: &User, transfer: &str) -> Response {
    app.post_empty(&user.key, &format!("{transfer}/rejections")).await
}

async fn read(app: &TestApp, user: &User, transfer: &str) -> Value {
    let response = app.get(&user.key, transfer).await;
    assert_eq!(response.status, 200, "{}", response.body);
    response.body
}

/// Returns the serial and the status of each ticket in a wallet.
async fn wallet(app: &TestApp, user: &User) -> Vec<(String, String)> {
    let ticket = |ticket: &Value| {
        assert_eq!(ticket["owner"]["number"], user.number.as_str());
        (ticket["serial"].as_str().unwrap().to_owned(), ticket["status"].as_str().unwrap().to_owned())
    };
    app.wallet(user).await.iter().map(ticket).collect()
}

/// Returns the serials of the tickets in a wallet.
async fn serials_of(app: &TestApp, user: &User) -> Vec<String> {
    wallet(app, user).await.into_iter().map(|(serial, _)| serial).collect()
}

/// Returns these serials, all with one status.
fn all(serials: &[String], status: &str) -> Vec<(String, String)> {
    serials.iter().map(|serial| (serial.clone(), status.to_owned())).collect()
}

/// The serial, status, owner and last change of every ticket; the id and status of every transfer; the number of tickets in
/// transfers.
type Tables = (Vec<(String, String, i64, i64)>, Vec<(i64, String)>, i64);

/// Returns the stored tickets and transfers, for rejections that must change nothing.
async fn tables(app: &TestApp) -> Tables {
    let tickets = app.rows("select serial, status, owner_id, modified from tickets order by id").await;
    let transfers = app.rows("select id, status from transfers order by id").await;
    let held = app.scalar("select count(*) from transfer_tickets").await;
    (tickets, transfers, held)
}

#[test_on(sqlite, postgres)]
async fn claim_transfers_ownership(app: TestApp) {
    let Fixture { ama, esi, event, serials, .. } = create_fixture(&app, 3).await;

    let sent = offer(&app, &ama.key, &esi, &[serials[2].clone(), serials[0].clone()]).await;

    assert_eq!(sent.status, 201, "{}", sent.body);
    let uri = sent.uri();
    assert_eq!(sent.header("location"), uri);
    assert_eq!(sent.body["status"], "Pending");
    assert_eq!((&sent.body["sender"]["number"], &sent.body["recipient"]["number"]), (&json!(ama.number), &json!(esi.number)));
    let tickets = sent.body["tickets"].as_array().unwrap();
    assert_eq!(tickets.len(), 2);
    for (ticket, serial) in tickets.iter().zip([&serials[0], &serials[2]]) {
        let mut held = app.read(ticket["self"].as_str().unwrap()).await;
        held.as_object_mut().unwrap().remove("order").unwrap();
        assert_eq!(ticket, &held, "the same as the ticket itself, without its order");
        assert_eq!((&ticket["serial"], &ticket["status"]), (&json!(serial), &json!("Pending")));
        assert_eq!(ticket["section"]["self"], event.sections[0].as_str());
        assert_eq!(ticket["owner"]["number"], ama.number.as_str());
    }
    let pending = |serial: &String| (serial.clone(), "Pending".to_owned());
    let issued = |serial: &String| (serial.clone(), "Issued".to_owned());
    assert_eq!(wallet(&app, &ama).await, [pending(&serials[0]), issued(&serials[1]), pending(&serials[2])]);
    assert_eq!(wallet(&app, &esi).await, []);

    let claimed = esi.client.transfer_claim_create().transfer(id_of(uri)).send().await.unwrap().into_inner();

    assert_eq!((claimed.self_.as_str(), claimed.status.clone()), (uri, types::TransferStatus::Claimed));
    assert_eq!((&claimed.sender.number, &claimed.recipient.number), (&ama.number, &esi.number));
    let hers = esi.client.account_ticket_list().number(esi.number.as_str()).send().await.unwrap();
    for (ticket, held) in claimed.tickets.iter().zip(&hers.entries) {
        assert_eq!((&ticket.self_, ticket.serial.as_str(), &ticket.owner), (&held.self_, held.serial.as_str(), &held.owner));
        assert_eq!(ticket.status, types::TransferTicketStatus::Issued);
    }
    assert_eq!(wallet(&app, &ama).await, [issued(&serials[1])]);
    assert_eq!(wallet(&app, &esi).await.len(), 2);
    for user in [&esi, &app.staff] {
        let read = user.client.transfer_get().transfer(id_of(uri)).send().await.unwrap();
        assert_eq!(*read, claimed);
    }
    let ticket = &claimed.tickets[0].self_;
    assert_eq!(esi.client.ticket_get().ticket(id_of(ticket)).send().await.unwrap().owner.number, esi.number);
    let former = ama.client.ticket_get().ticket(id_of(ticket)).send().await;
    assert_eq!(former.rejection(), (403, "resource.not-yours".to_owned()));
}

#[test_on(sqlite, postgres)]
async fn claim_replaces_serials_and_uris(app: TestApp) {
    let fixture = create_fixture(&app, 2).await;
    let uri = fixture.offer(&app, &fixture.serials).await;
    let before = read(&app, &fixture.ama, &uri).await;
    let offered = |at: usize| before["tickets"][at]["self"].as_str().unwrap();

    let claimed = claim(&app, &fixture.esi, &uri).await;

    let received = serials_of(&app, &fixture.esi).await;
    assert!(received.iter().all(|serial| !fixture.serials.contains(serial)), "{received:?}");
    assert_eq!(received.iter().collect::<BTreeSet<_>>().len(), 2);
    for (at, ticket) in claimed.body["tickets"].as_array().unwrap().iter().enumerate() {
        assert_eq!(ticket["serial"], received[at].as_str());
        assert_ne!(ticket["self"], offered(at));
        assert_eq!(app.read(ticket["self"].as_str().unwrap()).await["serial"], received[at].as_str());
        for user in [&fixture.ama, &fixture.esi, &fixture.kofi, &app.staff] {
            assert_eq!(rejection(&app.get(&user.key, offered(at)).await), (404, "resource.not-found"), "{}", user.username);
        }
    }
    assert_eq!(rejection(&claim(&app, &fixture.esi, &uri).await), (409, "transfer.not-open"));
    assert_eq!(serials_of(&app, &fixture.esi).await, received, "a repeated claim changes nothing");

    let old = fixture.admit(&app, &fixture.serials).await;
    assert_eq!(rejection(&old), (400, "admission.none"), "the sender's copy admits nobody");
    let new = fixture.admit(&app, &received).await;
    assert_eq!(new.body.as_array().map(Vec::len), Some(2));
    for serial in &fixture.serials {
        let unknown = app.read(&format!("{}/admissions?ticket={serial}", fixture.event.uri)).await;
        assert_eq!(unknown["total"], 0);
    }
    let events = app.read(&format!("/accounts/{}/events", fixture.ama.number)).await;
    assert_eq!(events["total"], 0);
    assert_eq!(app.read(&fixture.event.uri).await["popularity"], 2);
    assert_eq!(app.sold_and_reserved(&fixture.event.sections[0]).await, (2, 0));
    assert_eq!(app.read(&format!("{}/statistics", fixture.event.uri)).await["tickets"], 2);
}

#[test_on(sqlite, postgres)]
async fn redeemer_learns_of_replaced_serials(app: TestApp) {
    let fixture = create_fixture(&app, 1).await;
    let gate = app.client(&fixture.gate_key(&app).await);
    let uri = fixture.offer(&app, &fixture.serials).await;
    app.advance_clock(Duration::from_secs(3600));
    let since = app.state.clock.now().format_rfc3339();
    let changes = async || {
        let list = gate.event_ticket_list().event(&fixture.event.id).modified_since(since.clone()).send().await.unwrap();
        let entry =
            |ticket: &types::Ticket| (ticket.serial.to_string(), ticket.status.to_string(), ticket.owner.number.to_string());
        list.entries.iter().map(entry).collect::<Vec<_>>()
    };
    assert_eq!(changes().await, []);

    claim(&app, &fixture.esi, &uri).await;

    let new = serials_of(&app, &fixture.esi).await.remove(0);
    let entry = |serial: &str, status: &str, owner: &User| (serial.to_owned(), status.to_owned(), owner.number.clone());
    let old = entry(&fixture.serials[0], "Void", &fixture.ama);
    assert_eq!(changes().await, [old.clone(), entry(&new, "Issued", &fixture.esi)]);
    assert_eq!(fixture.admit(&app, from_ref(&new)).await.status, 201);
    assert_eq!(changes().await, [old, entry(&new, "Redeemed", &fixture.esi)]);
    let valid = gate.event_ticket_list().event(&fixture.event.id).send().await.unwrap();
    assert_eq!((valid.total, valid.entries[0].serial.as_str()), (1, new.as_str()));
}

#[test_on(sqlite, postgres)]
async fn host_returns_claimed_tickets_by_new_serials(app: TestApp) {
    let fixture = create_fixture(&app, 2).await;
    let order = app.read("/orders").await["entries"][0]["self"].as_str().unwrap().to_owned();
    let uri = fixture.offer(&app, &fixture.serials[..1]).await;
    claim(&app, &fixture.esi, &uri).await;
    let new = serials_of(&app, &fixture.esi).await.remove(0);

    let old = app.return_tickets(&fixture.kofi.key, &order, json!({ "tickets": [fixture.serials[0]] })).await;
    assert_eq!(old.invalid_arguments(), ["tickets"]);
    let returned = app.return_tickets(&fixture.kofi.key, &order, json!({ "tickets": [new] })).await;
    assert_eq!((returned.status, &returned.body["status"]), (200, &json!("Fulfilled")));
    let rest = app.return_tickets(&fixture.kofi.key, &order, json!({})).await;
    assert_eq!((rest.status, &rest.body["status"]), (200, &json!("Returned")));
    assert_eq!(wallet(&app, &fixture.esi).await, [(new, "Void".to_owned())]);
    assert_eq!(wallet(&app, &fixture.ama).await, all(&fixture.serials[1..], "Void"));
    assert_eq!(app.sold_and_reserved(&fixture.event.sections[0]).await, (0, 0));
}

#[test_on(sqlite, postgres)]
async fn rejection_leaves_tickets_with_sender(app: TestApp) {
    let fixture = create_fixture(&app, 2).await;
    let uri = fixture.offer(&app, &fixture.serials).await;

    let rejected = reject(&app, &fixture.esi, &uri).await;

    assert_eq!((rejected.status, &rejected.body["status"]), (200, &json!("Rejected")));
    assert_eq!(rejected.body, read(&app, &fixture.esi, &uri).await);
    for ticket in rejected.body["tickets"].as_array().unwrap() {
        assert_eq!((&ticket["status"], &ticket["owner"]["number"]), (&json!("Issued"), &json!(fixture.ama.number)));
    }
    assert_eq!(wallet(&app, &fixture.ama).await, all(&fixture.serials, "Issued"));
    assert_eq!(wallet(&app, &fixture.esi).await, []);
    assert_eq!(fixture.admit(&app, &fixture.serials).await.body[0]["patron"]["number"], fixture.ama.number.as_str());
}

#[test_on(sqlite, postgres)]
async fn either_side_cancels_open_transfer(app: TestApp) {
    let fixture = create_fixture(&app, 2).await;

    for user in [&fixture.ama, &fixture.esi] {
        let uri = fixture.offer(&app, &fixture.serials).await;
        assert_eq!(wallet(&app, &fixture.ama).await, all(&fixture.serials, "Pending"));

        let cancelled = app.delete(&user.key, &uri).await;

        assert_eq!((cancelled.status, &cancelled.body), (204, &Value::Null));
        let transfer = read(&app, user, &uri).await;
        assert_eq!(transfer["status"], "Cancelled");
        assert_eq!((&transfer["tickets"][0]["status"], &transfer["tickets"][1]["status"]), (&json!("Issued"), &json!("Issued")));
        assert_eq!(wallet(&app, &fixture.ama).await, all(&fixture.serials, "Issued"));
        assert_eq!(wallet(&app, &fixture.esi).await, []);
    }
    assert_eq!(fixture.admit(&app, &fixture.serials).await.body.as_array().unwrap().len(), 2);
}

#[test_on(sqlite, postgres)]
async fn transfers_tickets_of_several_events(app: TestApp) {
    let fixture = create_fixture(&app, 1).await;
    let host = app.create_host(&fixture.kofi).await;
    let rock = app.create_listed_event(&host, &[section("VIP", 0.0, 10), section("Floor", 0.0, 10)]).await;
    let vip = fixture.ama.order_free_tickets(&rock.sections[0], 1).await;
    let floor = fixture.ama.order_free_tickets(&rock.sections[1], 1).await;
    let serials = [fixture.serials.clone(), vip, floor].concat();

    let uri = fixture.offer(&app, &serials).await;
    let claimed = claim(&app, &fixture.esi, &uri).await;

    let sections: Vec<_> = claimed.body["tickets"].as_array().unwrap().iter().map(|ticket| &ticket["section"]["self"]).collect();
    assert_eq!(sections, [&fixture.event.sections[0], &rock.sections[0], &rock.sections[1]]);
    assert_eq!(wallet(&app, &fixture.ama).await, []);
    assert_eq!(wallet(&app, &fixture.esi).await.len(), 3);
}

#[test_on(sqlite, postgres)]
async fn pending_tickets_admit_only_after_claim(app: TestApp) {
    let fixture = create_fixture(&app, 2).await;
    let uri = fixture.offer(&app, &fixture.serials[..1]).await;

    assert_eq!(rejection(&fixture.admit(&app, &fixture.serials[..1]).await), (400, "admission.none"));
    let kept = fixture.admit(&app, &fixture.serials).await;
    assert_eq!(kept.body.as_array().unwrap().len(), 1);
    assert_eq!(
        (&kept.body[0]["ticket"], &kept.body[0]["patron"]["number"]),
        (&json!(fixture.serials[1]), &json!(fixture.ama.number))
    );

    assert_eq!(claim(&app, &fixture.esi, &uri).await.status, 200);
    let received = serials_of(&app, &fixture.esi).await;
    let admitted = fixture.admit(&app, &received).await;
    assert_eq!(admitted.body.as_array().unwrap().len(), 1);
    assert_eq!(admitted.body[0]["ticket"], received[0].as_str());
    assert_eq!(admitted.body[0]["patron"]["number"], fixture.esi.number.as_str(), "the new owner is the patron");
}

#[test_on(sqlite, postgres)]
async fn claimed_ticket_can_be_transferred_again(app: TestApp) {
    let fixture = create_fixture(&app, 1).await;
    let yaw = app.sign_up("yaw").await;
    let first = fixture.offer(&app, &fixture.serials).await;
    claim(&app, &fixture.esi, &first).await;

    let former = offer(&app, &fixture.ama.key, &yaw, &fixture.serials).await;
    assert_eq!(former.invalid_arguments(), ["tickets"], "it is Ama's no more");
    let second = offer(&app, &fixture.esi.key, &yaw, &serials_of(&app, &fixture.esi).await).await;
    let second = second.uri();
    assert_eq!(claim(&app, &yaw, second).await.status, 200);
    let back = offer(&app, &yaw.key, &fixture.ama, &serials_of(&app, &yaw).await).await;
    assert_eq!(claim(&app, &fixture.ama, back.uri()).await.status, 200);

    let came_back = serials_of(&app, &fixture.ama).await;
    assert_eq!(wallet(&app, &fixture.ama).await, all(&came_back, "Issued"));
    assert_ne!(came_back, fixture.serials, "with another serial");
    assert_eq!(fixture.admit(&app, &fixture.serials).await.status, 400);
    assert_eq!((wallet(&app, &fixture.esi).await, wallet(&app, &yaw).await), (vec![], vec![]));
}

#[test_on(sqlite, postgres)]
async fn redeemer_sees_every_status_change(app: TestApp) {
    let fixture = create_fixture(&app, 2).await;
    let gate = app.client(&fixture.gate_key(&app).await);
    // The changes of the last half hour. The next step follows an hour later.
    let changes = async || {
        let since = Timestamp(app.state.clock.now().0 - 1_800_000_000);
        let changed = gate.event_ticket_list().event(&fixture.event.id).modified_since(since.format_rfc3339());
        let changed = changed.send().await.unwrap().into_inner().entries;
        app.advance_clock(Duration::from_secs(3600));
        changed.iter().map(|ticket| (ticket.serial.to_string(), ticket.status.to_string())).collect::<Vec<_>>()
    };
    let (moved, is) = (&fixture.serials[1..], |status| all(&fixture.serials[1..], status));

    app.advance_clock(Duration::from_secs(3600));
    let rejected = fixture.offer(&app, moved).await;
    assert_eq!(changes().await, is("Pending"));
    reject(&app, &fixture.esi, &rejected).await;
    assert_eq!(changes().await, is("Issued"));
    let cancelled = fixture.offer(&app, moved).await;
    assert_eq!(changes().await, is("Pending"));
    app.delete(&fixture.ama.key, &cancelled).await;
    assert_eq!(changes().await, is("Issued"));
    let claimed = fixture.offer(&app, moved).await;
    assert_eq!(changes().await, is("Pending"));
    claim(&app, &fixture.esi, &claimed).await;
    let received = all(&serials_of(&app, &fixture.esi).await, "Issued");
    assert_eq!(changes().await, [is("Void"), received].concat());
    assert_eq!(changes().await, [], "nothing since");
}
