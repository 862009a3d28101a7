//! Transfers of tickets.

mod lists;
mod races;
mod states;

use std::collections::BTreeSet;
use std::slice::from_ref;
use std::time::Duration;

use boxoffice::bootstrap;
use boxoffice::kernel::types::clock::Timestamp;
use boxoffice_openapi::Scope;
use serde_json::{Value, json};

use crate::on_both_databases;
use crate::support::{Event, Rejection, Response, TestApp, User, section, types};
use crate::tickets::set_status;
use crate::tokens::redeemer_key;

on_both_databases![
    transfer_hides_addresses_of_both_sides,
    claim_transfers_ownership,
    claim_replaces_serials_and_uris,
    redeemer_learns_of_replaced_serials,
    host_returns_claimed_tickets_by_new_serials,
    rejection_leaves_tickets_with_sender,
    either_side_cancels_open_transfer,
    transfers_tickets_of_several_events,
    pending_tickets_admit_only_after_claim,
    claimed_ticket_can_be_transferred_again,
    transfer_does_not_reveal_later_changes,
    recipient_reads_serials_after_claim,
    redeemer_sees_every_status_change,
    transfer_is_readable_by_both_sides_and_staff,
    only_recipient_claims_or_rejects,
    only_both_sides_cancel,
    unknown_transfer_is_not_found,
    only_owner_offers_tickets,
    invalid_offer_names_all_errors_and_changes_nothing,
    unissued_tickets_are_named_and_none_is_offered,
    recipient_must_be_active_account,
];

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
    let (kofi, ama, esi) = (app.sign_up("kofi").await, app.sign_up("ama").await, app.sign_up("esi").await);
    let event = app.create_listed_event(&app.create_host(&kofi).await, &[section("Floor", 0.0, 100)]).await;
    let serials = ama.order_free_tickets(&event.sections[0], tickets).await;
    Fixture { kofi, ama, esi, event, serials }
}

impl Fixture {
    /// Creates a transfer of these tickets from Ama to Esi, and returns its URI.
    async fn offer(&self, app: &TestApp, serials: &[String]) -> String {
        let created = offer(app, &self.ama.key, &self.esi, serials).await;
        assert_eq!(created.status, 201, "{}", created.body);
        created.body["self"].as_str().unwrap().to_owned()
    }

    /// Requests the admission of these tickets as the host.
    async fn admit(&self, app: &TestApp, serials: &[String]) -> Response {
        let path = format!("{}/admissions", self.event.uri);
        app.request("POST", &path).key(&self.kofi.key).json(&json!({ "serials": serials })).send().await
    }

    /// Returns a key that admits to the whole event.
    async fn gate_key(&self, app: &TestApp) -> String {
        let tokens = self.kofi.client.event_token_list().event(&self.event.id).global(true).send().await.unwrap();
        redeemer_key(app, &tokens.entries[0]).await
    }
}

async fn offer(app: &TestApp, key: &str, recipient: &User, serials: &[String]) -> Response {
    let body = json!({ "recipient": recipient.number, "tickets": serials });
    app.request("POST", "/transfers").key(key).json(&body).send().await
}

async fn claim(app: &TestApp, user: &User, transfer: &str) -> Response {
    app.request("POST", &format!("{transfer}/claims")).key(&user.key).send().await
}

async fn reject(app: &TestApp, user: &User, transfer: &str) -> Response {
    app.request("POST", &format!("{transfer}/rejections")).key(&user.key).send().await
}

async fn cancel(app: &TestApp, user: &User, transfer: &str) -> Response {
    app.request("DELETE", transfer).key(&user.key).send().await
}

async fn read(app: &TestApp, user: &User, transfer: &str) -> Value {
    let response = app.request("GET", transfer).key(&user.key).send().await;
    assert_eq!(response.status, 200, "{}", response.body);
    response.body
}

/// Returns the serial and the status of each ticket in a wallet.
async fn wallet(app: &TestApp, user: &User) -> Vec<(String, String)> {
    let wallet = app.read(&format!("/accounts/{}/tickets?records=100", user.number)).await;
    let ticket = |ticket: &Value| {
        assert_eq!(ticket["owner"]["number"], user.number.as_str());
        (ticket["serial"].as_str().unwrap().to_owned(), ticket["status"].as_str().unwrap().to_owned())
    };
    wallet["entries"].as_array().unwrap().iter().map(ticket).collect()
}

/// Returns the serials of the tickets in a wallet.
async fn serials_of(app: &TestApp, user: &User) -> Vec<String> {
    wallet(app, user).await.into_iter().map(|(serial, _)| serial).collect()
}

/// Returns these serials, all with one status.
fn all(serials: &[String], status: &str) -> Vec<(String, String)> {
    serials.iter().map(|serial| (serial.clone(), status.to_owned())).collect()
}

/// Returns the last segment of a URI.
fn id(uri: &str) -> &str {
    uri.rsplit('/').next().unwrap()
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

async fn claim_transfers_ownership(app: TestApp) {
    let Fixture { ama, esi, event, serials, .. } = create_fixture(&app, 3).await;

    let sent = offer(&app, &ama.key, &esi, &[serials[2].clone(), serials[0].clone()]).await;

    assert_eq!(sent.status, 201, "{}", sent.body);
    let uri = sent.body["self"].as_str().unwrap();
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

    let claimed = esi.client.transfer_claim_create().transfer(id(uri)).send().await.unwrap().into_inner();

    assert_eq!((claimed.self_.as_str(), claimed.status.clone()), (uri, types::TransferStatus::Claimed));
    assert_eq!((&claimed.sender.number, &claimed.recipient.number), (&ama.number, &esi.number));
    let hers = esi.client.account_ticket_list().number(esi.number.as_str()).send().await.unwrap();
    for (ticket, held) in claimed.tickets.iter().zip(&hers.entries) {
        assert_eq!((&ticket.self_, ticket.serial.as_ref(), &ticket.owner), (&held.self_, Some(&held.serial), &held.owner));
        assert_eq!(ticket.status, types::TransferTicketStatus::Issued);
    }
    assert_eq!(wallet(&app, &ama).await, [issued(&serials[1])]);
    assert_eq!(wallet(&app, &esi).await.len(), 2);
    for user in [&esi, &app.staff] {
        let read = user.client.transfer_get().transfer(id(uri)).send().await.unwrap();
        assert_eq!(*read, claimed);
    }
    let ticket = &claimed.tickets[0].self_;
    assert_eq!(esi.client.ticket_get().ticket(id(ticket)).send().await.unwrap().owner.number, esi.number);
    let former = ama.client.ticket_get().ticket(id(ticket)).send().await;
    assert_eq!(former.rejection(), (403, "resource.not-yours".to_owned()));
}

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
            let old = app.request("GET", offered(at)).key(&user.key).send().await;
            assert_eq!((old.status, old.code()), (404, "resource.not-found"), "{}", user.username);
        }
    }
    let repeated = claim(&app, &fixture.esi, &uri).await;
    assert_eq!((repeated.status, repeated.code()), (409, "transfer.not-open"));
    assert_eq!(serials_of(&app, &fixture.esi).await, received, "a repeated claim changes nothing");

    let old = fixture.admit(&app, &fixture.serials).await;
    assert_eq!((old.status, old.code()), (400, "admission.none"), "the sender's copy admits nobody");
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

async fn host_returns_claimed_tickets_by_new_serials(app: TestApp) {
    let fixture = create_fixture(&app, 2).await;
    let order = app.read("/orders").await["entries"][0]["self"].as_str().unwrap().to_owned();
    let uri = fixture.offer(&app, &fixture.serials[..1]).await;
    claim(&app, &fixture.esi, &uri).await;
    let new = serials_of(&app, &fixture.esi).await.remove(0);

    let old = app.return_tickets(&fixture.kofi.key, &order, json!({ "tickets": [fixture.serials[0]] })).await;
    assert_eq!((old.status, old.invalid_arguments()), (400, vec!["tickets".to_owned()]));
    let returned = app.return_tickets(&fixture.kofi.key, &order, json!({ "tickets": [new] })).await;
    assert_eq!((returned.status, &returned.body["status"]), (200, &json!("Fulfilled")));
    let rest = app.return_tickets(&fixture.kofi.key, &order, json!({})).await;
    assert_eq!((rest.status, &rest.body["status"]), (200, &json!("Returned")));
    assert_eq!(wallet(&app, &fixture.esi).await, [(new, "Void".to_owned())]);
    assert_eq!(wallet(&app, &fixture.ama).await, all(&fixture.serials[1..], "Void"));
    assert_eq!(app.sold_and_reserved(&fixture.event.sections[0]).await, (0, 0));
}

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

async fn either_side_cancels_open_transfer(app: TestApp) {
    let fixture = create_fixture(&app, 2).await;

    for user in [&fixture.ama, &fixture.esi] {
        let uri = fixture.offer(&app, &fixture.serials).await;
        assert_eq!(wallet(&app, &fixture.ama).await, all(&fixture.serials, "Pending"));

        let cancelled = cancel(&app, user, &uri).await;

        assert_eq!((cancelled.status, &cancelled.body), (204, &Value::Null));
        let transfer = read(&app, user, &uri).await;
        assert_eq!(transfer["status"], "Cancelled");
        assert_eq!((&transfer["tickets"][0]["status"], &transfer["tickets"][1]["status"]), (&json!("Issued"), &json!("Issued")));
        assert_eq!(wallet(&app, &fixture.ama).await, all(&fixture.serials, "Issued"));
        assert_eq!(wallet(&app, &fixture.esi).await, []);
    }
    assert_eq!(fixture.admit(&app, &fixture.serials).await.body.as_array().unwrap().len(), 2);
}

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

async fn pending_tickets_admit_only_after_claim(app: TestApp) {
    let fixture = create_fixture(&app, 2).await;
    let uri = fixture.offer(&app, &fixture.serials[..1]).await;

    let pending = fixture.admit(&app, &fixture.serials[..1]).await;
    assert_eq!((pending.status, pending.code()), (400, "admission.none"));
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

async fn claimed_ticket_can_be_transferred_again(app: TestApp) {
    let fixture = create_fixture(&app, 1).await;
    let yaw = app.sign_up("yaw").await;
    let first = fixture.offer(&app, &fixture.serials).await;
    claim(&app, &fixture.esi, &first).await;

    let former = offer(&app, &fixture.ama.key, &yaw, &fixture.serials).await;
    assert_eq!((former.status, former.invalid_arguments()), (400, vec!["tickets".to_owned()]), "it is Ama's no more");
    let second = offer(&app, &fixture.esi.key, &yaw, &serials_of(&app, &fixture.esi).await).await;
    let second = second.body["self"].as_str().unwrap();
    assert_eq!(claim(&app, &yaw, second).await.status, 200);
    let back = offer(&app, &yaw.key, &fixture.ama, &serials_of(&app, &yaw).await).await;
    assert_eq!(claim(&app, &fixture.ama, back.body["self"].as_str().unwrap()).await.status, 200);

    let came_back = serials_of(&app, &fixture.ama).await;
    assert_eq!(wallet(&app, &fixture.ama).await, all(&came_back, "Issued"));
    assert_ne!(came_back, fixture.serials, "with another serial");
    assert_eq!(fixture.admit(&app, &fixture.serials).await.status, 400);
    assert_eq!((wallet(&app, &fixture.esi).await, wallet(&app, &yaw).await), (vec![], vec![]));
}

async fn transfer_does_not_reveal_later_changes(app: TestApp) {
    let fixture = create_fixture(&app, 2).await;
    let yaw = app.sign_up("yaw").await;
    let claimed = fixture.offer(&app, &fixture.serials).await;
    claim(&app, &fixture.esi, &claimed).await;
    let read_by_all = async || {
        let [ama, esi, staff] = [&fixture.ama, &fixture.esi, &app.staff].map(|user| read(&app, user, &claimed));
        [ama.await, esi.await, staff.await]
    };
    let before = read_by_all().await;
    let received = serials_of(&app, &fixture.esi).await;

    let onward = offer(&app, &fixture.esi.key, &yaw, &received[..1]).await;
    let meanwhile = read_by_all().await;
    claim(&app, &yaw, onward.body["self"].as_str().unwrap()).await;
    assert_eq!(fixture.admit(&app, &serials_of(&app, &yaw).await).await.status, 201);

    assert_eq!(meanwhile, before, "offered on");
    assert_eq!(read_by_all().await, before, "claimed by somebody else, and redeemed");
    assert_eq!(before[0]["tickets"][0]["owner"]["number"], fixture.esi.number.as_str());
}

async fn recipient_reads_serials_after_claim(app: TestApp) {
    let fixture = create_fixture(&app, 2).await;
    let serials = |transfer: &Value| {
        let tickets = transfer["tickets"].as_array().unwrap().iter();
        tickets.map(|ticket| ticket["serial"].clone()).collect::<Vec<_>>()
    };
    let (known, hidden) = (vec![json!(fixture.serials[0]), json!(fixture.serials[1])], vec![Value::Null; 2]);

    for (method, below) in [("POST", "/rejections"), ("DELETE", ""), ("POST", "/claims")] {
        let uri = fixture.offer(&app, &fixture.serials).await;
        assert_eq!(serials(&read(&app, &fixture.esi, &uri).await), hidden);
        let ended = app.request(method, &format!("{uri}{below}")).key(&fixture.esi.key).send().await;

        // After the claim, the new serials are hidden from the sender.
        let received: Vec<Value> = serials_of(&app, &fixture.esi).await.into_iter().map(Value::from).collect();
        let (to_recipient, to_sender, to_staff) =
            if below == "/claims" { (&received, &hidden, &received) } else { (&hidden, &known, &known) };
        if ended.status == 200 {
            assert_eq!(&serials(&ended.body), to_recipient, "{method} {below}");
        }
        let now = read(&app, &fixture.esi, &uri).await;
        assert_eq!(&serials(&now), to_recipient, "{method} {below}");
        assert_eq!(&serials(&read(&app, &fixture.ama, &uri).await), to_sender, "{method} {below}");
        let history = format!("/accounts/{}/transfers", fixture.esi.number);
        let hers = app.request("GET", &history).key(&fixture.esi.key).send().await.body;
        assert_eq!(hers["entries"].as_array().unwrap().last(), Some(&now), "the history ends there");
        let staffs = app.read(&history).await;
        assert_eq!(&serials(staffs["entries"].as_array().unwrap().last().unwrap()), to_staff, "{method} {below}");
    }
}

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
    cancel(&app, &fixture.ama, &cancelled).await;
    assert_eq!(changes().await, is("Issued"));
    let claimed = fixture.offer(&app, moved).await;
    assert_eq!(changes().await, is("Pending"));
    claim(&app, &fixture.esi, &claimed).await;
    let received = all(&serials_of(&app, &fixture.esi).await, "Issued");
    assert_eq!(changes().await, [is("Void"), received].concat());
    assert_eq!(changes().await, [], "nothing since");
}

async fn transfer_is_readable_by_both_sides_and_staff(app: TestApp) {
    let fixture = create_fixture(&app, 1).await;
    let yaw = app.sign_up("yaw").await;
    let uri = fixture.offer(&app, &fixture.serials).await;

    for user in [&fixture.ama, &fixture.esi, &app.staff] {
        assert_eq!(read(&app, user, &uri).await["self"], uri.as_str());
    }
    for user in [&yaw, &fixture.kofi] {
        let rejected = user.client.transfer_get().transfer(id(&uri)).send().await;
        assert_eq!(rejected.rejection(), (403, "resource.not-yours".to_owned()), "the event's host neither");
    }
    let redeemer = fixture.gate_key(&app).await;
    for key in [&app.public_key, &redeemer] {
        let rejected = app.request("GET", &uri).key(key).send().await;
        assert_eq!((rejected.status, rejected.code()), (403, "key.refused"));
    }
}

async fn only_recipient_claims_or_rejects(app: TestApp) {
    let fixture = create_fixture(&app, 1).await;
    let yaw = app.sign_up("yaw").await;
    let uri = fixture.offer(&app, &fixture.serials).await;
    let before = tables(&app).await;

    for user in [&fixture.ama, &yaw, &fixture.kofi, &app.staff] {
        let claimed = user.client.transfer_claim_create().transfer(id(&uri)).send().await;
        assert_eq!(claimed.rejection(), (403, "resource.not-yours".to_owned()), "{}", user.username);
        let rejected = user.client.transfer_rejection_create().transfer(id(&uri)).send().await;
        assert_eq!(rejected.rejection(), (403, "resource.not-yours".to_owned()), "{}", user.username);
    }
    assert_eq!(tables(&app).await, before);
    assert_eq!(claim(&app, &fixture.esi, &uri).await.status, 200);
    for response in [claim(&app, &fixture.ama, &uri).await, reject(&app, &yaw, &uri).await] {
        assert_eq!((response.status, response.code()), (403, "resource.not-yours"), "whatever its state");
    }
}

async fn only_both_sides_cancel(app: TestApp) {
    let fixture = create_fixture(&app, 1).await;
    let yaw = app.sign_up("yaw").await;
    let uri = fixture.offer(&app, &fixture.serials).await;
    let before = tables(&app).await;

    for user in [&yaw, &fixture.kofi, &app.staff] {
        let rejected = user.client.transfer_delete().transfer(id(&uri)).send().await;
        assert_eq!(rejected.rejection(), (403, "resource.not-yours".to_owned()), "{}", user.username);
    }
    assert_eq!(tables(&app).await, before);
}

async fn unknown_transfer_is_not_found(app: TestApp) {
    let ama = app.sign_up("ama").await;
    for key in [&ama.key, &app.staff.key] {
        for unknown in ["/transfers/17637000000001", "/transfers/nothing"] {
            for (method, below) in [("GET", ""), ("DELETE", ""), ("POST", "/claims"), ("POST", "/rejections")] {
                let response = app.request(method, &format!("{unknown}{below}")).key(key).send().await;
                assert_eq!((response.status, response.code()), (404, "resource.not-found"), "{method} {unknown}{below}");
            }
        }
    }
}

async fn only_owner_offers_tickets(app: TestApp) {
    let fixture = create_fixture(&app, 1).await;
    let redeemer = fixture.gate_key(&app).await;
    let nobodys = bootstrap::create_key(&app.state, "batch", Scope::Administrator, None).await.unwrap();
    let before = tables(&app).await;

    for key in [&app.public_key, &redeemer] {
        let rejected = offer(&app, key, &fixture.esi, &fixture.serials).await;
        assert_eq!((rejected.status, rejected.code()), (403, "key.refused"));
    }
    let rejected = offer(&app, &nobodys, &fixture.esi, &fixture.serials).await;
    assert_eq!((rejected.status, rejected.code()), (403, "resource.not-yours"), "no person is behind this key");
    for key in [&app.staff.key, &fixture.kofi.key] {
        let rejected = offer(&app, key, &fixture.esi, &fixture.serials).await;
        assert_eq!(
            (rejected.status, rejected.invalid_arguments()),
            (400, vec!["tickets".to_owned()]),
            "neither staff nor the host"
        );
    }
    assert_eq!(tables(&app).await, before);

    let staffs = app.staff.order_free_tickets(&fixture.event.sections[0], 1).await;
    let sent = offer(&app, &app.staff.key, &fixture.esi, &staffs).await;
    assert_eq!((sent.status, &sent.body["sender"]["number"]), (201, &json!(app.staff.number)));
    assert_eq!(claim(&app, &fixture.esi, sent.body["self"].as_str().unwrap()).await.status, 200);
    assert_eq!(wallet(&app, &fixture.esi).await.len(), 1);
}

async fn invalid_offer_names_all_errors_and_changes_nothing(app: TestApp) {
    let fixture = create_fixture(&app, 2).await;
    let kofis = fixture.kofi.order_free_tickets(&fixture.event.sections[0], 1).await.remove(0);
    let [good, other] = [0, 1].map(|ticket| fixture.serials[ticket].as_str());
    let (ama, esi, unknown) = (fixture.ama.number.as_str(), fixture.esi.number.as_str(), "ZZZZZZ-ZZZZZZZZZZZZ");
    let before = tables(&app).await;

    for (body, complaints) in [
        (json!({}), "-recipient -tickets"),
        (json!({ "recipient": " ", "tickets": null }), "-recipient -tickets"),
        (json!({ "recipient": "ama", "tickets": [] }), "recipient tickets"),
        (json!({ "recipient": esi, "tickets": [good, good] }), "tickets"),
        (json!({ "recipient": esi, "tickets": [good, "scribble"] }), "tickets"),
        (json!({ "recipient": esi, "tickets": good }), "tickets"),
        (
            json!({ "recipient": esi, "tickets": (10..61).map(|n| format!("ZZZZZZ-ZZZZZZZZZZ{n}")).collect::<Vec<_>>() }),
            "tickets",
        ),
        (json!({ "recipient": esi, "tickets": [good, unknown] }), "tickets"),
        (json!({ "recipient": esi, "tickets": [kofis, good] }), "tickets"),
        (json!({ "recipient": ama, "tickets": [good, other] }), "recipient"),
        (json!({ "recipient": "ZZ-ZZZZZZZZ", "tickets": [good] }), "recipient"),
        (json!({ "recipient": "ZZ-ZZZZZZZZ", "tickets": [unknown] }), "recipient tickets"),
        (json!({ "recipient": ama, "tickets": [good, unknown] }), "recipient tickets"),
    ] {
        let response = app.request("POST", "/transfers").key(&fixture.ama.key).json(&body).send().await;
        assert_eq!((response.status, response.invalid_arguments().join(" ").as_str()), (400, complaints), "{body}");
        assert_eq!(tables(&app).await, before, "{body}");
    }

    // A rejection doesn't reveal the owner or the existence of a ticket.
    let body = json!({ "recipient": esi, "tickets": [unknown, good, kofis] });
    let response = app.request("POST", "/transfers").key(&fixture.ama.key).json(&body).send().await;
    assert_eq!(response.body["fields"][0]["detail"], format!("names no ticket of yours (at {unknown}, {kofis})"));
    let myself = json!({ "recipient": ama, "tickets": [good] });
    let response = app.request("POST", "/transfers").key(&fixture.ama.key).json(&myself).send().await;
    assert_eq!(response.body["fields"][0]["detail"], "must be somebody else");
    assert_eq!(tables(&app).await, before);
}

async fn unissued_tickets_are_named_and_none_is_offered(app: TestApp) {
    let fixture = create_fixture(&app, 4).await;
    let [issued, pending, redeemed, void] = [0, 1, 2, 3].map(|ticket| fixture.serials[ticket].clone());
    fixture.offer(&app, from_ref(&pending)).await;
    assert_eq!(fixture.admit(&app, from_ref(&redeemed)).await.status, 201);
    set_status(&app, &void, "Void").await;
    let before = tables(&app).await;

    for (serials, named) in [
        (vec![&issued, &pending], vec![&pending]),
        (vec![&redeemed], vec![&redeemed]),
        (vec![&void, &issued], vec![&void]),
        (vec![&pending, &redeemed, &issued, &void], vec![&pending, &redeemed, &void]),
    ] {
        let serials: Vec<String> = serials.into_iter().cloned().collect();
        let rejected = offer(&app, &fixture.ama.key, &fixture.esi, &serials).await;

        assert_eq!((rejected.status, rejected.code()), (409, "ticket.not-issued"), "{serials:?}");
        let text = rejected.body["error"].as_str().unwrap();
        for serial in &fixture.serials {
            assert_eq!(text.contains(serial), named.contains(&serial), "{text}");
        }
        assert_eq!(tables(&app).await, before);
    }
    // Invalid arguments take precedence.
    let both = offer(&app, &fixture.ama.key, &fixture.ama, &[void]).await;
    assert_eq!((both.status, both.invalid_arguments()), (400, vec!["recipient".to_owned()]));
}

async fn recipient_must_be_active_account(app: TestApp) {
    let fixture = create_fixture(&app, 1).await;
    let mut tx = app.state.db.begin().await.unwrap();
    let deactivate = tx.query("update accounts set activated = false where number = $1").bind(fixture.esi.number.clone());
    assert_eq!(deactivate.execute().await.unwrap(), 1);
    tx.commit().await.unwrap();
    let before = tables(&app).await;

    let rejected = offer(&app, &fixture.ama.key, &fixture.esi, &fixture.serials).await;

    assert_eq!((rejected.status, rejected.invalid_arguments()), (400, vec!["recipient".to_owned()]));
    assert_eq!(rejected.body["fields"][0]["detail"], "names no active account", "as of an unknown one");
    assert_eq!(tables(&app).await, before);
}

async fn transfer_hides_addresses_of_both_sides(app: TestApp) {
    let fixture = create_fixture(&app, 1).await;
    let private = json!({ "phone": "+233 24 555 0134", "dateOfBirth": "1992-04-18", "firstAddressLine": "12 Oxford Street", "city": "Accra" });
    for user in [&fixture.ama, &fixture.esi] {
        let changed = app.request("PUT", &format!("/accounts/{}", user.number)).key(&user.key).json(&private).send().await;
        assert_eq!(changed.status, 200);
    }
    let transfer = fixture.offer(&app, &fixture.serials).await;
    let event = app.request("GET", &format!("{}/tickets", fixture.event.uri)).key(&fixture.gate_key(&app).await).send().await;
    let host = app.create_host(&fixture.kofi).await;
    let body = json!({ "account": fixture.ama.number });
    let added = app.request("POST", &format!("{}/administrators", host.uri)).key(&fixture.kofi.key).json(&body).send().await;

    let (sent, received) = (read(&app, &fixture.ama, &transfer).await, read(&app, &fixture.esi, &transfer).await);
    for strange in [
        &sent["recipient"],
        &received["sender"],
        &received["tickets"][0]["owner"],
        &event.body["entries"][0]["owner"],
        &added.body,
    ] {
        let seen = ["phone", "dateOfBirth", "firstAddressLine", "city"].map(|name| strange[name].clone());
        assert_eq!(seen, [json!(""), json!(""), json!(""), json!("")], "{strange}");
        assert_eq!(strange["firstName"], strange["username"], "only the name");
    }
    let staff = app.read(&transfer).await;
    for own in [&sent["sender"], &received["recipient"], &staff["sender"], &staff["recipient"]] {
        assert_eq!(own["phone"], "+233 24 555 0134");
    }
}
