//! Waiting lists of sold-out sections: joining, offers in the order of joining, and the end of a list.

mod races;

use std::time::Duration;

use serde_json::{Value, json};

use crate::orders::limited_section;
use crate::support::{
    Event, RESERVATION_TTL, Response, TestApp, User, card_payment, entries_of, id_of, rejection, section, test_on,
};

/// Creates a listed event of Kofi with a section of this price and capacity.
async fn create_event(app: &TestApp, price: f64, capacity: i64) -> (User, Event) {
    app.sign_up_host("kofi", &[section("Floor", price, capacity)]).await
}

async fn join(app: &TestApp, user: &User, section: &str, quantity: i64) -> Response {
    app.post(&user.key, &format!("{section}/waiting-list"), json!({ "quantity": quantity })).await
}

/// Joins, and returns the URI of the entry.
async fn wait(app: &TestApp, user: &User, section: &str, quantity: i64) -> String {
    let entry = join(app, user, section, quantity).await;
    assert_eq!(entry.status, 201, "{}", entry.body);
    entry.uri().to_owned()
}

async fn change(app: &TestApp, user: &User, path: &str, body: Value) {
    let response = app.put(&user.key, path, &body).await;
    assert_eq!(response.status, 200, "{}", response.body);
}

/// Returns the status and the position of an entry.
async fn state(app: &TestApp, entry: &str) -> (String, Option<i64>) {
    let entry = app.read(entry).await;
    (entry["status"].as_str().unwrap().to_owned(), entry["position"].as_i64())
}

/// Returns the status of an entry.
async fn status(app: &TestApp, entry: &str) -> String {
    state(app, entry).await.0
}

fn waiting(position: i64) -> (String, Option<i64>) {
    ("Waiting".to_owned(), Some(position))
}

/// Returns the numbers of sold, reserved and remaining places of a section.
async fn places(app: &TestApp, section: &str) -> [i64; 3] {
    let section = app.read(section).await;
    ["sold", "reserved", "remaining"].map(|name| section[name].as_i64().unwrap())
}

#[test_on(sqlite, postgres)]
async fn sold_out_section_has_a_waiting_list(app: TestApp) {
    let (_, event) = create_event(&app, 10.0, 2).await;
    let (ama, yaw, esi) = (app.sign_up("ama").await, app.sign_up("yaw").await, app.sign_up("esi").await);
    let floor = event.sections[0].as_str();
    assert_eq!(rejection(&join(&app, &yaw, floor, 1).await), (409, "section.not-sold-out"));
    ama.order(floor, 2).await.unwrap();

    let first = join(&app, &yaw, floor, 1).await;
    let second = join(&app, &esi, floor, 2).await;

    let uri = first.uri();
    assert!(uri.starts_with(&format!("{floor}/waiting-list/")), "{uri}");
    assert_eq!((first.status, first.header("location")), (201, uri));
    assert_eq!(app.get(&yaw.key, uri).await.body, first.body);
    assert_eq!((&first.body["section"], &first.body["quantity"]), (&json!(floor), &json!(1)));
    assert_eq!(first.body["customer"]["number"], yaw.number);
    assert_eq!(
        (&first.body["position"], &first.body["status"], &first.body["expires"]),
        (&json!(1), &json!("Waiting"), &Value::Null)
    );
    assert_eq!((second.status, &second.body["position"]), (201, &json!(2)));
    assert_eq!(rejection(&join(&app, &yaw, floor, 1).await), (409, "waiting-list.joined"));
    for quantity in [0, 3, 11] {
        let invalid = join(&app, &ama, floor, quantity).await;
        assert_eq!(invalid.invalid_arguments(), ["quantity"]);
    }
    // Leaving moves the others up, and the account can join at the end again.
    assert_eq!(app.delete(&yaw.key, uri).await.status, 204);
    assert_eq!(rejection(&app.get(&yaw.key, uri).await), (404, "resource.not-found"));
    assert_eq!(rejection(&app.delete(&yaw.key, uri).await), (404, "resource.not-found"));
    assert_eq!(state(&app, second.uri()).await, waiting(1));
    assert_eq!(join(&app, &yaw, floor, 1).await.body["position"], 2);
}

#[test_on(sqlite, postgres)]
async fn free_places_are_offered_in_order(app: TestApp) {
    let (_, event) = create_event(&app, 10.0, 4).await;
    let floor = event.sections[0].as_str();
    let users = [app.sign_up("ama").await, app.sign_up("yaw").await, app.sign_up("esi").await, app.sign_up("efua").await];
    let [ama, yaw, esi, efua] = &users;
    let (one, three) = (ama.order(floor, 1).await.unwrap(), ama.order(floor, 3).await.unwrap());
    let (hers, his, last) = (wait(&app, esi, floor, 2).await, wait(&app, yaw, floor, 1).await, wait(&app, efua, floor, 1).await);

    app.cancel_order(&ama.key, &one.self_).await;
    app.offer_places().await;

    // Esi needs two places: she is passed over, and stays the first.
    assert_eq!(state(&app, &hers).await, waiting(1));
    assert_eq!(state(&app, &his).await, ("Offered".to_owned(), None));
    assert_eq!(state(&app, &last).await, waiting(2));
    assert_eq!(places(&app, floor).await, [0, 4, 0]);
    app.cancel_order(&ama.key, &three.self_).await;
    app.offer_places().await;
    assert_eq!((status(&app, &hers).await, status(&app, &last).await), ("Offered".to_owned(), "Offered".to_owned()));
    assert_eq!(places(&app, floor).await, [0, 4, 0]);
    let mail = app.mail_to("esi@example.com", 1).await;
    assert!(mail.contains("2 places are") && mail.contains("Floor"), "{mail}");
    assert!(mail.contains(&format!("/events/{}", event.id)), "{mail}");
}

#[test_on(sqlite, postgres)]
async fn offer_is_reserved_for_its_account(app: TestApp) {
    // The job would offer the free places at once.
    app.stop_jobs().await;
    let (_, event) = create_event(&app, 10.0, 3).await;
    let floor = event.sections[0].as_str();
    let (ama, yaw, esi) = (app.sign_up("ama").await, app.sign_up("yaw").await, app.sign_up("esi").await);
    let order = ama.order(floor, 2).await.unwrap();
    ama.order(floor, 1).await.unwrap();
    let (entry, last) = (wait(&app, &yaw, floor, 2).await, wait(&app, &esi, floor, 3).await);
    let quote = async |key: &str, quantity: i64| {
        let body = json!({ "items": { floor: quantity } });
        app.post(key, "/quotes", &body).await
    };
    let sold_out = (409, "section.sold-out");

    app.cancel_order(&ama.key, &order.self_).await;
    // Places that are free but not offered yet are not for others.
    let rejected = app.place_order(&ama.key, json!({ floor: 1 })).await;
    assert_eq!(rejection(&rejected), sold_out);
    assert!(rejected.body["error"].as_str().unwrap().starts_with("Accounts on the waiting list come first"), "{}", rejected.body);
    assert_eq!(quote(&ama.key, 1).await.body["error"], rejected.body["error"]);
    app.offer_places().await;

    let offered = app.read(&entry).await;
    assert_eq!(offered["status"], "Offered");
    assert!(offered["expires"].as_str().unwrap() > offered["joined"].as_str().unwrap());
    for (user, quantity) in [(&ama, 1), (&esi, 1), (&yaw, 3)] {
        assert_eq!(rejection(&app.place_order(&user.key, json!({ floor: quantity })).await), sold_out);
        assert_eq!(rejection(&quote(&user.key, quantity).await), sold_out);
    }
    assert_eq!(rejection(&quote(&app.public_key, 1).await), sold_out);
    assert_eq!(quote(&yaw.key, 2).await.body["subtotal"], 20.0);
    // An order for fewer places uses the whole offer; the other place is for the next account.
    let ordered = app.place_order(&yaw.key, json!({ floor: 1 })).await;
    assert_eq!(ordered.status, 201, "{}", ordered.body);
    assert_eq!(state(&app, &entry).await, ("Ordered".to_owned(), None));
    assert_eq!(places(&app, floor).await, [0, 2, 0]);
    assert_eq!(state(&app, &last).await, waiting(1));
    assert_eq!(rejection(&app.place_order(&yaw.key, json!({ floor: 1 })).await), sold_out);
    assert_eq!(app.pay(&yaw.key, ordered.uri(), card_payment()).await.status, 201);
    assert_eq!(places(&app, floor).await, [1, 1, 0]);
    // Without a waiting account, the places that are left are for everyone.
    assert_eq!(app.delete(&esi.key, &last).await.status, 204);
    assert_eq!(places(&app, floor).await, [1, 1, 1]);
    ama.order(floor, 1).await.unwrap();
}

#[test_on(sqlite, postgres)]
async fn complimentary_tickets_leave_offer_open(app: TestApp) {
    let (kofi, event) = create_event(&app, 10.0, 3).await;
    let floor = event.sections[0].as_str();
    let (ama, yaw) = (app.sign_up("ama").await, app.sign_up("yaw").await);
    let order = ama.order(floor, 3).await.unwrap();
    let entry = wait(&app, &yaw, floor, 2).await;
    app.cancel_order(&ama.key, &order.self_).await;
    app.offer_places().await;
    let give = async |quantity: i64| {
        let body = json!({ "account": yaw.number, "items": { floor: quantity } });
        app.post(&kofi.key, &format!("{}/complimentary-orders", event.uri), body).await
    };

    let too_many = give(2).await;
    let given = give(1).await;

    assert_eq!(rejection(&too_many), (409, "section.sold-out"));
    assert_eq!((given.status, status(&app, &entry).await.as_str()), (201, "Offered"));
    assert_eq!(places(&app, floor).await, [1, 2, 0]);
    yaw.order(floor, 2).await.unwrap();
    assert_eq!(status(&app, &entry).await, "Ordered");
}

#[test_on(sqlite, postgres)]
async fn lapsed_offer_goes_to_the_next_account(app: TestApp) {
    let (_, event) = create_event(&app, 0.0, 1).await;
    let floor = event.sections[0].as_str();
    let (ama, yaw, esi) = (app.sign_up("ama").await, app.sign_up("yaw").await, app.sign_up("esi").await);
    let order = ama.order(floor, 1).await.unwrap();
    let (his, hers) = (wait(&app, &yaw, floor, 1).await, wait(&app, &esi, floor, 1).await);
    assert_eq!(app.return_tickets(&app.staff.key, &order.self_, json!({})).await.status, 200);
    app.offer_places().await;
    assert_eq!(status(&app, &his).await, "Offered");

    app.advance_clock(RESERVATION_TTL);
    assert_eq!(status(&app, &his).await, "Lapsed");
    assert_eq!(rejection(&app.place_order(&yaw.key, json!({ floor: 1 })).await), (409, "section.sold-out"));
    app.offer_places().await;

    assert_eq!(state(&app, &his).await, ("Lapsed".to_owned(), None));
    assert_eq!(status(&app, &hers).await, "Offered");
    // A free order uses the offer, too.
    esi.order(floor, 1).await.unwrap();
    assert_eq!(status(&app, &hers).await, "Ordered");
    assert_eq!(places(&app, floor).await, [1, 0, 0]);
    // A new entry replaces the ended one.
    let again = wait(&app, &yaw, floor, 1).await;
    assert_eq!(state(&app, &again).await, waiting(1));
    assert_eq!(rejection(&app.get(&yaw.key, &his).await), (404, "resource.not-found"));
    let mine = app.read(&format!("/accounts/{}/waiting-list", yaw.number)).await;
    assert_eq!((&mine["total"], &mine["entries"][0]["self"]), (&json!(1), &json!(again)));
}

#[test_on(sqlite, postgres)]
async fn offer_of_deactivated_account_goes_to_the_next_one(app: TestApp) {
    let (_, event) = create_event(&app, 10.0, 1).await;
    let floor = event.sections[0].as_str();
    let (ama, yaw, esi) = (app.sign_up("ama").await, app.sign_up("yaw").await, app.sign_up("esi").await);
    let order = ama.order(floor, 1).await.unwrap();
    let (his, hers) = (wait(&app, &yaw, floor, 1).await, wait(&app, &esi, floor, 1).await);
    app.cancel_order(&ama.key, &order.self_).await;
    app.offer_places().await;
    assert_eq!((status(&app, &his).await.as_str(), status(&app, &hers).await.as_str()), ("Offered", "Waiting"));

    assert_eq!(app.post_empty(&yaw.key, &format!("/accounts/{}/deletions", yaw.number)).await.status, 200);
    app.offer_places().await;

    assert_eq!((status(&app, &his).await.as_str(), status(&app, &hers).await.as_str()), ("Closed", "Offered"));
    assert_eq!(places(&app, floor).await, [0, 1, 0]);
    esi.order(floor, 1).await.unwrap();
    app.assert_invariants().await;
}

#[test_on(sqlite, postgres)]
async fn every_way_to_free_places_leads_to_an_offer(app: TestApp) {
    let (kofi, event) = create_event(&app, 10.0, 3).await;
    let floor = event.sections[0].as_str();
    let (ama, yaw) = (app.sign_up("ama").await, app.sign_up("yaw").await);
    let mut sold = Vec::new();
    for _ in 0..2 {
        let order = ama.order(floor, 1).await.unwrap();
        ama.pay(&order).await.unwrap();
        sold.push(order.self_);
    }
    ama.order(floor, 1).await.unwrap();
    for way in ["timeout", "return", "void", "capacity", "leave"] {
        let entry = wait(&app, &yaw, floor, 1).await;
        app.offer_places().await;
        assert_eq!(status(&app, &entry).await, "Waiting", "{way}");
        match way {
            "timeout" => app.advance_clock(RESERVATION_TTL),
            "return" => _ = app.return_tickets(&kofi.key, &sold[0], json!({})).await,
            "void" => _ = app.void_order(&app.staff.key, &sold[1], json!({ "reason": "Fraud." })).await,
            "capacity" => change(&app, &kofi, floor, json!({ "capacity": 4 })).await,
            _ => {
                let esi = app.sign_up("esi").await;
                assert_eq!(app.delete(&yaw.key, &entry).await.status, 204);
                let hers = wait_after_offer(&app, &esi, &yaw, &kofi, floor).await;
                assert_eq!(status(&app, &hers).await, "Offered");
                continue;
            }
        }
        app.offer_places().await;
        assert_eq!(status(&app, &entry).await, "Offered", "{way}");
        let order = yaw.order(floor, 1).await.unwrap();
        yaw.pay(&order).await.unwrap();
    }
}

/// Has Yaw leave the list while a place is offered to him, for which Esi waits. Returns her entry.
async fn wait_after_offer(app: &TestApp, esi: &User, yaw: &User, kofi: &User, floor: &str) -> String {
    let (his, hers) = (wait(app, yaw, floor, 1).await, wait(app, esi, floor, 1).await);
    let capacity = app.read(floor).await["capacity"].as_i64().unwrap();
    change(app, kofi, floor, json!({ "capacity": capacity + 1 })).await;
    app.offer_places().await;
    assert_eq!((status(app, &his).await, state(app, &hers).await), ("Offered".to_owned(), waiting(1)));
    assert_eq!(app.delete(&yaw.key, &his).await.status, 204);
    app.offer_places().await;
    hers
}

#[test_on(sqlite, postgres)]
async fn entries_are_read_by_account_host_and_staff(app: TestApp) {
    let (kofi, event) = create_event(&app, 0.0, 1).await;
    let floor = event.sections[0].as_str();
    let (ama, yaw, esi) = (app.sign_up("ama").await, app.sign_up("yaw").await, app.sign_up("esi").await);
    ama.order(floor, 1).await.unwrap();
    let (his, hers) = (wait(&app, &yaw, floor, 1).await, wait(&app, &esi, floor, 1).await);
    let list = format!("{floor}/waiting-list");

    let page = app.get(&kofi.key, &list).await;
    let uris: Vec<&Value> = entries_of(&page.body).iter().map(|entry| &entry["self"]).collect();
    assert_eq!(uris, [&json!(his), &json!(hers)]);
    assert_eq!(page.body["entries"][1]["position"], 2);
    let second = app.get(&kofi.key, &format!("{list}?records=1&page=2")).await;
    assert_eq!((&second.body["total"], &second.body["entries"][0]), (&json!(2), &page.body["entries"][1]));
    let own = format!("/accounts/{}/waiting-list", yaw.number);
    assert_eq!(app.get(&yaw.key, &own).await.body["entries"], json!([app.read(&his).await]));
    // An entry belongs to one section of one event.
    let other = app.create_listed_event(&app.create_host(&kofi).await, &[section("Floor", 0.0, 1)]).await;
    let id = id_of(&his);
    for path in [format!("{}/waiting-list/{id}", other.sections[0]), format!("{list}/1763731080000"), format!("{list}/x")] {
        assert_eq!(rejection(&app.get(&yaw.key, &path).await), (404, "resource.not-found"));
    }
    assert_eq!(app.delete(&app.staff.key, &his).await.status, 204);
}

#[test_on(sqlite, postgres)]
async fn lists_end_with_their_sale(app: TestApp) {
    let (kofi, cancelled) = create_event(&app, 10.0, 2).await;
    let host = app.create_host(&kofi).await;
    let mut events = vec![cancelled];
    for _ in 0..3 {
        events.push(app.create_listed_event(&host, &[section("Floor", 10.0, 2)]).await);
    }
    let (ama, yaw, esi) = (app.sign_up("ama").await, app.sign_up("yaw").await, app.sign_up("esi").await);
    let mut entries = Vec::new();
    for event in &events {
        let floor = event.sections[0].as_str();
        let order = ama.order(floor, 1).await.unwrap();
        ama.order(floor, 1).await.unwrap();
        let (his, hers) = (wait(&app, &yaw, floor, 1).await, wait(&app, &esi, floor, 1).await);
        app.cancel_order(&ama.key, &order.self_).await;
        entries.push([his, hers]);
    }
    app.offer_places().await;
    let [cancelled, ended, inactive, withdrawn] = [0, 1, 2, 3].map(|number| &events[number]);

    assert_eq!(app.post_empty(&kofi.key, &format!("{}/cancellations", cancelled.uri)).await.status, 200);
    change(&app, &kofi, &ended.sections[0], json!({ "salesEnd": "2020-01-02T00:00" })).await;
    change(&app, &kofi, &inactive.sections[0], json!({ "active": false, "capacity": 3 })).await;
    assert_eq!(app.post_empty(&kofi.key, &format!("{}/withdrawals", withdrawn.uri)).await.status, 200);
    app.offer_places().await;

    for [his, hers] in &entries[..2] {
        assert_eq!((status(&app, his).await, status(&app, hers).await), ("Closed".to_owned(), "Closed".to_owned()));
        assert_eq!(app.read(his).await["expires"], Value::Null);
    }
    assert_eq!(app.read(&format!("{}/waiting-list", ended.sections[0])).await["total"], 0);
    // A section that is inactive, or whose event is not listed, offers nothing; the accounts keep waiting.
    for [his, hers] in &entries[2..] {
        assert_eq!((status(&app, his).await, state(&app, hers).await), ("Offered".to_owned(), waiting(1)));
    }
    change(&app, &kofi, &inactive.sections[0], json!({ "active": true })).await;
    app.offer_places().await;
    assert_eq!(status(&app, &entries[2][1]).await, "Offered");
    // The last list ends with its host.
    assert_eq!(app.delete(&kofi.key, &host.uri).await.status, 204);
    app.offer_places().await;
    assert_eq!(status(&app, &entries[3][1]).await, "Closed");
}

#[test_on(sqlite, postgres)]
async fn entries_are_limited(app: TestApp) {
    let sections: Vec<_> = (0..21).map(|number| section(&format!("Block {number}"), 0.0, 1)).collect();
    let (kofi, event) = app.sign_up_host("kofi", &sections).await;
    let (ama, yaw) = (app.sign_up("ama").await, app.sign_up("yaw").await);
    ama.order_items(event.sections.iter().map(|section| (section.as_str(), 1))).await.unwrap();
    for section in &event.sections[..20] {
        wait(&app, &yaw, section, 1).await;
    }
    let last = event.sections[20].as_str();

    assert_eq!(rejection(&join(&app, &yaw, last, 1).await), (409, "waiting-list.too-many"));

    app.execute_sql("update sections set waiting = waiting + 10000").await;
    assert_eq!(rejection(&join(&app, &ama, last, 1).await), (409, "waiting-list.full"));
    app.execute_sql("update sections set waiting = waiting - 10000").await;
    wait(&app, &ama, last, 1).await;

    // An offer counts until it ends, even if the job has not run yet.
    change(&app, &kofi, &event.sections[0], json!({ "capacity": 2 })).await;
    app.offer_places().await;
    assert_eq!(rejection(&join(&app, &yaw, last, 1).await), (409, "waiting-list.too-many"));
    app.advance_clock(RESERVATION_TTL);
    wait(&app, &yaw, last, 1).await;
}

#[test_on(sqlite, postgres)]
async fn rules_of_sale_apply_to_entries(app: TestApp) {
    let (kofi, event) = app.sign_up_host("kofi", &[limited_section("VIP", 0.0, 2)]).await;
    let vip = event.sections[0].as_str();
    let (ama, yaw) = (app.sign_up("ama").await, app.sign_up("yaw").await);
    change(&app, &kofi, vip, json!({ "capacity": 2 })).await;
    ama.order(vip, 2).await.unwrap();

    assert_eq!(rejection(&join(&app, &ama, vip, 1).await), (409, "section.account-maximum"));
    change(&app, &kofi, vip, json!({ "active": false })).await;
    assert_eq!(rejection(&join(&app, &yaw, vip, 1).await), (409, "section.inactive"));
    change(&app, &kofi, vip, json!({ "active": true, "salesStart": "2998-01-01T00:00" })).await;
    assert_eq!(rejection(&join(&app, &yaw, vip, 1).await), (409, "section.not-on-sale"));
    change(&app, &kofi, vip, json!({ "salesStart": "2020-01-01T00:00" })).await;
    // An account with tickets can wait for as many more as it may have.
    assert_eq!(rejection(&join(&app, &yaw, &vip.replace("/events/1", "/events/2"), 1).await).0, 404);
    assert_eq!(app.post_empty(&kofi.key, &format!("{}/withdrawals", event.uri)).await.status, 200);
    assert_eq!(rejection(&join(&app, &kofi, vip, 1).await), (409, "event.not-listed"));
    assert_eq!(rejection(&join(&app, &yaw, vip, 1).await), (403, "resource.not-yours"));
    let over = app.create_listed_event(&event.host, &[section("Floor", 0.0, 1)]).await;
    change(&app, &kofi, &over.uri, json!({ "start": "2020-01-01T00:00", "end": "2020-01-01T01:00" })).await;
    assert_eq!(rejection(&join(&app, &yaw, &over.sections[0], 1).await), (409, "event.over"));
    let orphan = app.create_listed_event(&event.host, &[section("Floor", 0.0, 1)]).await;
    assert_eq!(app.delete(&kofi.key, &event.host.uri).await.status, 204);
    assert_eq!(rejection(&join(&app, &yaw, &orphan.sections[0], 1).await), (409, "host.removed"));
}

#[test_on(sqlite, postgres)]
async fn section_that_changes_while_a_request_waits_decides(app: TestApp) {
    app.stop_jobs().await;
    let (_, event) = create_event(&app, 0.0, 1).await;
    let floor = event.sections[0].as_str();
    let (ama, yaw) = (app.sign_up("ama").await, app.sign_up("yaw").await);
    ama.order(floor, 1).await.unwrap();
    let mut host = app.state.db.begin().await.unwrap();
    host.query("update sections set active = false").execute().await.unwrap();

    let (joined, ()) = futures::join!(join(&app, &yaw, floor, 1), app.commit_when_awaited(host, 1));

    assert_eq!(rejection(&joined), (409, "section.inactive"));
}

#[test_on(sqlite, postgres)]
async fn deleted_account_leaves_its_lists(app: TestApp) {
    let (_, event) = create_event(&app, 10.0, 2).await;
    let floor = event.sections[0].as_str();
    let (ama, yaw, esi, efua) =
        (app.sign_up("ama").await, app.sign_up("yaw").await, app.sign_up("esi").await, app.sign_up("efua").await);
    let order = ama.order(floor, 1).await.unwrap();
    esi.order(floor, 1).await.unwrap();
    wait(&app, &yaw, floor, 1).await;
    let next = wait(&app, &efua, floor, 1).await;
    app.cancel_order(&ama.key, &order.self_).await;
    app.offer_places().await;

    // Yaw has an offer; Esi has a reservation, and waits for more.
    let last = wait(&app, &esi, floor, 1).await;
    for user in [&yaw, &esi] {
        let deleted = app.delete(&app.staff.key, &format!("/accounts/{}", user.number)).await;
        assert_eq!(deleted.status, 204, "{}", deleted.body);
    }
    app.offer_places().await;

    assert_eq!(status(&app, &next).await, "Offered");
    assert_eq!(rejection(&app.get(&app.staff.key, &last).await), (404, "resource.not-found"));
    assert_eq!(places(&app, floor).await, [0, 1, 1]);
    app.advance_clock(RESERVATION_TTL + Duration::from_secs(1));
    app.offer_places().await;
    assert_eq!(places(&app, floor).await, [0, 0, 2]);
}

/// As long as such an entry waited, nobody could order the free places.
#[test_on(sqlite, postgres)]
async fn entries_that_cannot_be_served_are_closed(app: TestApp) {
    // The last two ask for more places than become free. As long as they wait, nobody else can order.
    for (way, quantity) in [("capacity", 4), ("maximum", 2), ("deactivated", 2), ("maximum", 5), ("deactivated", 5)] {
        let number = app.state.clock.next_id();
        let [kofi, ama, yaw, esi] = ["kofi", "ama", "yaw", "esi"].map(|name| format!("{name}{number}"));
        let (kofi, ama) = (app.sign_up(&kofi).await, app.sign_up(&ama).await);
        let (yaw, esi) = (app.sign_up(&yaw).await, app.sign_up(&esi).await);
        let event = app.create_listed_event(&app.create_host(&kofi).await, &[section("Floor", 10.0, 5)]).await;
        let floor = event.sections[0].as_str();
        let orders = [ama.order(floor, 2).await.unwrap(), ama.order(floor, 3).await.unwrap()];
        let his = wait(&app, &yaw, floor, quantity).await;

        match way {
            "maximum" => change(&app, &kofi, floor, json!({ "maximumPerAccount": 1 })).await,
            "deactivated" => {
                assert_eq!(app.post_empty(&yaw.key, &format!("/accounts/{}/deletions", yaw.number)).await.status, 200);
            }
            _ => {}
        }
        app.cancel_order(&ama.key, &orders[1].self_).await;
        if way == "capacity" {
            change(&app, &kofi, floor, json!({ "capacity": 3 })).await;
        }
        app.offer_places().await;

        assert_eq!(status(&app, &his).await, "Closed", "{way} {quantity}");
        let remaining = if way == "capacity" { 1 } else { 3 };
        assert_eq!(places(&app, floor).await, [0, 2, remaining], "{way} {quantity}");
        esi.order(floor, 1).await.unwrap();
    }
    app.assert_invariants().await;
}
