//! The removal of accounts: what stands against it, what is left for the books, and what happens at the same moment.

use futures::future::{join, join_all};
use serde_json::{Value, json};

use crate::support::{Answer, Event, PASSWORD, Person, RESERVATION, Refusal, World, by_card, part, section};
use crate::tickets::{buy, set_status};
use crate::{on_both_databases, race_tests};

on_both_databases![
    a_removed_account_leaves_its_number_for_the_books,
    a_removed_account_is_found_nowhere,
    open_transfers_end_with_the_account,
    codes_and_mail_go_with_the_account,
    a_removed_accounts_names_are_free_for_others,
    a_removed_accounts_keys_are_refused,
    a_removed_account_administers_and_prefers_nothing,
    open_orders_are_cancelled_and_given_back,
    what_the_gateway_fails_to_give_back_is_asked_for_again,
    tickets_to_coming_events_stand_against_a_removal,
    tickets_that_nobody_can_use_any_more_do_not,
    an_account_is_removed_by_itself_and_by_staff,
    a_payment_under_way_is_given_back,
];

race_tests![
    removing_and_claiming_at_once_leave_no_ticket_behind,
    removing_and_paying_at_once_leave_one_of_the_two,
    removing_and_ordering_at_once_leave_no_ticket_behind,
    of_many_removals_at_once_one_removes,
];

impl World {
    async fn remove(&self, key: &str, person: &Person) -> Answer {
        self.request("DELETE", &format!("/accounts/{}", person.number)).key(key).send().await
    }

    /// The numbers of rows that a count gives for an account.
    async fn count(&self, sql: &'static str, person: &Person) -> i64 {
        let mut tx = self.app.db.read().await.unwrap();
        tx.query(sql).bind(person.number.clone()).scalar().await.unwrap()
    }

    /// The tickets of an account that can be used.
    async fn usable_tickets(&self, person: &Person) -> i64 {
        let count = "select count(*) from tickets t join accounts a on a.id = t.owner_id
            where a.number = $1 and t.status in ('Issued', 'Pending')";
        self.count(count, person).await
    }

    /// Brings an event's end into the past.
    async fn end(&self, host: &Person, event: &Event) {
        let past = json!({ "start": "2020-01-01T19:00", "end": "2020-01-01T23:00" });
        let ended = self.request("PUT", &event.uri).key(&host.key).json(&past).send().await;
        assert_eq!(ended.status, 200, "{}", ended.body);
    }
}

/// Kofi, who stages an event with sections at these prices.
async fn stage(world: &World, prices: &[f64]) -> (Person, Event) {
    let kofi = world.person("kofi").await;
    let sections = prices.iter().enumerate().map(|(number, price)| section(&format!("Block {number}"), *price, 100));
    let event = world.listed_event(&world.host_of(&kofi).await, &sections.collect::<Vec<_>>()).await;
    (kofi, event)
}

async fn a_removed_account_leaves_its_number_for_the_books(world: World) {
    let (kofi, event) = stage(&world, &[0.0]).await;
    let ama = world.person("ama").await;
    let particulars = json!({
        "lastName": "Mensah", "title": "Ms", "dateOfBirth": "1992-04-18", "phone": "+233 24 555 0134", "country": "Ghana",
        "firstAddressLine": "12 Oxford Street", "secondAddressLine": "Osu", "city": "Accra", "state": "Greater Accra",
    });
    let path = format!("/accounts/{}", ama.number);
    assert_eq!(world.request("PUT", &path).key(&ama.key).json(&particulars).send().await.status, 200);
    world.execute("update accounts set verified = true where number = $1", &ama.number).await;
    let order = ama.order(&event.sections[0], 1).await.unwrap();
    world.end(&kofi, &event).await;

    let removed = world.remove(&ama.key, &ama).await;

    assert_eq!((removed.status, removed.body), (204, Value::Null));
    let kept = world.read(&order.self_).await;
    assert_eq!(kept["status"], "Fulfilled");
    let customer = &kept["customer"];
    let name = customer["username"].as_str().unwrap();
    assert!(name.starts_with("deleted-") && name.len() > 32, "{name}");
    let expected = json!({
        "self": path, "number": ama.number, "username": name, "email": format!("{name}@deleted.invalid"), "role": "customer",
        "verified": false, "activated": false, "firstName": "", "lastName": "", "title": "", "dateOfBirth": null,
        "phone": "", "country": "", "firstAddressLine": "", "secondAddressLine": "", "city": "", "state": "",
        "preferences": format!("{path}/preferences"),
    });
    assert_eq!(customer, &expected);
    let tickets = world.request("GET", &format!("{}/tickets", event.uri)).key(&kofi.key).send().await;
    assert_eq!(tickets.body["entries"][0]["owner"], expected);
    let found = world.read(&format!("/orders?customer={}", ama.number)).await;
    assert_eq!((&found["total"], &found["entries"][0]["self"]), (&json!(1), &json!(order.self_)), "the books are kept by number");
    let old = "select count(*) from accounts where number <> $1 and username = 'ama' or email = 'ama@example.com'";
    assert_eq!(world.count(old, &ama).await, 0);
}

async fn a_removed_account_is_found_nowhere(world: World) {
    let (ama, esi) = (world.person("ama").await, world.person("esi").await);
    let session = ama.client.session_active_get().send().await.unwrap().self_.clone();

    assert_eq!(world.remove(&ama.key, &ama).await.status, 204);

    let account = format!("/accounts/{}", ama.number);
    let send = |method, path: &str, body: Value| world.request(method, path).key(&world.staff.key).json(&body).send();
    for below in ["", "/preferences", "/hosts", "/sessions", "/orders", "/tickets", "/transfers", "/events"] {
        let answer = send("GET", &format!("{account}{below}"), Value::Null).await;
        assert_eq!((answer.status, answer.code()), (404, "resource.not-found"), "{below}");
    }
    for (method, path, body) in [
        ("PUT", account.clone(), json!({ "firstName": "Ama" })),
        ("DELETE", account.clone(), Value::Null),
        ("POST", format!("{account}/toggles"), Value::Null),
        ("POST", format!("{account}/deletions"), Value::Null),
        ("PUT", format!("{account}/preferences"), json!({ "region": world.region().await })),
        ("GET", session.clone(), Value::Null),
        ("DELETE", session, Value::Null),
    ] {
        let answer = send(method, &path, body).await;
        assert_eq!((answer.status, answer.code()), (404, "resource.not-found"), "{method} {path}");
    }
    for filter in ["", &format!("?number={}", ama.number), "?username=ama", "?email=ama@example.com"] {
        let listed = world.read(&format!("/accounts{filter}")).await;
        assert!(!listed.to_string().contains(&ama.number), "{filter}");
    }
    let till = json!({ "name": "Till", "role": "customer", "account": ama.number });
    let till = send("POST", "/integrations", till).await;
    assert_eq!((till.status, till.complaints()), (400, vec!["account".to_owned()]));
    let (_, event) = stage(&world, &[10.0]).await;
    let order = json!({ "customer": ama.number, "items": { event.sections[0].as_str(): 1 } });
    let order_for_it = send("POST", "/orders", order.clone()).await;
    assert_eq!((order_for_it.status, order_for_it.complaints()), (400, vec!["customer".to_owned()]));
    let anothers = world.request("POST", "/orders").key(&esi.key).json(&order).send().await;
    assert_eq!((anothers.status, anothers.code()), (403, "resource.not-yours"));
}

async fn open_transfers_end_with_the_account(world: World) {
    let (kofi, event) = stage(&world, &[0.0]).await;
    let (ama, esi, yaw) = (world.person("ama").await, world.person("esi").await, world.person("yaw").await);
    let offer = async |from: &Person, to: &Person| {
        let serial = buy(from, &event.sections[0], 1).await.remove(0);
        let body = json!({ "recipient": to.number, "tickets": [serial] });
        let made = world.request("POST", "/transfers").key(&from.key).json(&body).send().await;
        made.body["self"].as_str().unwrap().to_owned()
    };
    let (received, sent, others) = (offer(&ama, &esi).await, offer(&esi, &yaw).await, offer(&ama, &yaw).await);
    assert_eq!(world.remove(&esi.key, &esi).await.code(), "account.has-tickets", "what is offered is still its own");
    assert_eq!(world.read(&received).await["status"], "Pending", "a refusal ends nothing");
    world.end(&kofi, &event).await;

    assert_eq!(world.remove(&esi.key, &esi).await.status, 204);

    for (transfer, status) in [(&received, "Cancelled"), (&sent, "Cancelled"), (&others, "Pending")] {
        assert_eq!(world.read(transfer).await["status"], status);
    }
    let back = world.read(&format!("/accounts/{}/tickets", ama.number)).await;
    assert_eq!((&back["entries"][0]["status"], &back["entries"][1]["status"]), (&json!("Issued"), &json!("Pending")));
    let claim = world.request("POST", &format!("{sent}/claims")).key(&yaw.key).send().await;
    assert_eq!((claim.status, claim.code()), (409, "transfer.not-open"));
    let offer_to_nobody = json!({ "recipient": esi.number, "tickets": [back["entries"][0]["serial"]] });
    let refused = world.request("POST", "/transfers").key(&ama.key).json(&offer_to_nobody).send().await;
    assert_eq!((refused.status, refused.complaints()), (400, vec!["recipient".to_owned()]));
}

async fn removing_and_claiming_at_once_leave_no_ticket_behind(world: World) {
    let (_, event) = stage(&world, &[0.0]).await;
    let ama = world.person("ama").await;
    for round in 0..5 {
        let esi = world.person(&format!("esi{round}")).await;
        let serial = buy(&ama, &event.sections[0], 1).await.pop().unwrap();
        let body = json!({ "recipient": esi.number, "tickets": [serial] });
        let transfer = world.request("POST", "/transfers").key(&ama.key).json(&body).send().await;
        let transfer = transfer.body["self"].as_str().unwrap().to_owned();

        let claim = world.request("POST", &format!("{transfer}/claims")).key(&esi.key).send();
        let (removed, claimed) = join(world.remove(&world.staff.key, &esi), claim).await;

        let (holds, is_gone) = (world.usable_tickets(&esi).await, removed.status == 204);
        assert!(is_gone || (removed.status, removed.code()) == (409, "account.has-tickets"), "{}", removed.body);
        assert_eq!(holds, i64::from(claimed.status == 200), "{}", claimed.body);
        assert_ne!(holds > 0, is_gone, "a ticket is lost, or nothing happened");
        assert_eq!(world.read(&transfer).await["status"], if is_gone { "Cancelled" } else { "Claimed" });
    }
}

async fn codes_and_mail_go_with_the_account(world: World) {
    let (ama, esi) = (world.person("ama").await, world.person("esi").await);
    let ask = async |kind: &str, person: &Person| {
        let email = json!({ "email": format!("{}@example.com", person.username) });
        world.request("POST", kind).json(&email).send().await.body["self"].as_str().unwrap().to_owned()
    };
    let (reset, kept) = (ask("/resets", &ama).await, ask("/verifications", &esi).await);
    let given_up = "insert into outbox select id, 'AMA@example.com', '', '', 0, 8, null, 1 from accounts where number = $1";
    world.execute(given_up, &ama.number).await;

    assert_eq!(world.remove(&ama.key, &ama).await.status, 204);

    assert_eq!(world.request("GET", &reset).send().await.status, 404);
    assert_eq!(world.request("GET", &kept).send().await.status, 200);
    let left = "select count(*) from outbox where lower(recipient) = 'ama@example.com' and $1 <> ''";
    assert_eq!(world.count(left, &ama).await, 0);
    let reset = world.request("POST", "/resets").json(&json!({ "email": "ama@example.com" })).send().await;
    assert_eq!((reset.status, reset.code()), (404, "account.unknown"));
    let lookup = world.request("POST", "/lookups").json(&json!({ "identification": "ama" })).send().await;
    assert_eq!(lookup.body["found"], false);
}

async fn a_removed_accounts_names_are_free_for_others(world: World) {
    let ama = world.person("ama").await;
    let esi = world.person("esi").await;
    world.remove(&ama.key, &ama).await;
    world.remove(&world.staff.key, &esi).await;

    for identification in ["ama", "ama@example.com"] {
        assert_eq!(world.sign_in(identification, PASSWORD).await.refusal(), (404, "account.unknown".to_owned()));
    }
    let again = world.person("ama").await;

    assert_ne!(again.number, ama.number);
    assert!(world.sign_in("ama@example.com", PASSWORD).await.is_ok());
    let in_the_books = "select count(*) from accounts where number = $1 and username like 'deleted-%'";
    assert_eq!((world.count(in_the_books, &ama).await, world.count(in_the_books, &esi).await), (1, 1));
    let mut tx = world.app.db.read().await.unwrap();
    let gone = "select username from accounts where username like 'deleted-%'";
    for (username,) in tx.query(gone).all::<(String,)>().await.unwrap() {
        assert_eq!(world.sign_in(&username, PASSWORD).await.refusal(), (404, "account.unknown".to_owned()));
    }
}

async fn a_removed_accounts_keys_are_refused(world: World) {
    let (ama, kofi) = (world.person("ama").await, world.person("kofi").await);
    let other = world.sign_in("ama", PASSWORD).await.unwrap();
    let body = json!({ "name": "Till", "role": "customer", "account": ama.number });
    let till = world.request("POST", "/integrations").key(&world.staff.key).json(&body).send().await.body;
    let kofis = world.integration_of(&kofi).await;

    assert_eq!(world.remove(&world.staff.key, &ama).await.status, 204);

    for key in [ama.key.as_str(), &other.key, till["key"].as_str().unwrap()] {
        let refused = world.request("GET", "/time").key(key).send().await;
        assert_eq!((refused.status, refused.code()), (403, "key.refused"));
    }
    assert_eq!(world.request("GET", "/time").key(&kofis).send().await.status, 200);
    let integration = world.request("GET", till["self"].as_str().unwrap()).key(&world.staff.key).send().await;
    assert_eq!((integration.status, integration.code()), (404, "resource.not-found"));
    let open = "select count(*) from api_keys k join accounts a on a.id = k.account_id where a.number = $1 and k.ended is null";
    assert_eq!(world.count(open, &ama).await, 0);
}

async fn a_removed_account_administers_and_prefers_nothing(world: World) {
    let ama = world.person("ama").await;
    let host = world.host_of(&ama).await.uri;
    let region = world.region().await;
    let preferences = format!("/accounts/{}/preferences", ama.number);
    world.request("PUT", &preferences).key(&ama.key).json(&json!({ "region": region })).send().await;

    assert_eq!(world.remove(&ama.key, &ama).await.status, 204);

    for table in [
        "select count(*) from host_administrators m join accounts a on a.id = m.account_id where a.number = $1",
        "select count(*) from account_preferences p join accounts a on a.id = p.account_id where a.number = $1",
    ] {
        assert_eq!(world.count(table, &ama).await, 0);
    }
    assert_eq!(world.read(&format!("/hosts?account={}", ama.number)).await["total"], 0);
    assert_eq!(world.request("GET", &host).send().await.status, 200, "the host stays");
}

async fn open_orders_are_cancelled_and_given_back(world: World) {
    let (_, event) = stage(&world, &[10.0, 20.0]).await;
    let (ama, esi) = (world.person("ama").await, world.person("esi").await);
    let late = ama.order(&event.sections[0], 5).await.unwrap().self_.clone();
    world.advance(RESERVATION);
    let both = ama.order_all([(event.sections[0].as_str(), 2), (event.sections[1].as_str(), 3)]).await.unwrap();
    let second = ama.order(&event.sections[1], 1).await.unwrap();
    let hers = esi.order(&event.sections[1], 4).await.unwrap();
    assert_eq!(world.pay(&ama.key, &both.self_, part(30.0)).await.status, 201);

    assert_eq!(world.remove(&ama.key, &ama).await.status, 204);

    for (order, status) in
        [(&late, "Timed Out"), (&both.self_, "Cancelled"), (&second.self_, "Cancelled"), (&hers.self_, "Placed")]
    {
        assert_eq!(world.read(order).await["status"], status);
    }
    assert_eq!(world.payments(&both.self_).await, [(30.0, "Refunded".to_owned())]);
    assert_eq!(world.till.total(), 0.0);
    assert_eq!(world.places(&event.sections[0]).await, (0, 0));
    assert_eq!(world.places(&event.sections[1]).await, (0, 4));
    world.expire_due().await;
    assert_eq!(world.stored_places().await, (vec![(0, 0), (0, 4)], 4));
}

async fn what_the_gateway_fails_to_give_back_is_asked_for_again(world: World) {
    let (_, event) = stage(&world, &[10.0]).await;
    let ama = world.person("ama").await;
    let order = ama.order(&event.sections[0], 5).await.unwrap().self_.clone();
    world.pay(&ama.key, &order, part(30.0)).await;
    world.till.refuse_refunds(true);

    assert_eq!(world.remove(&ama.key, &ama).await.status, 204);

    assert_eq!(world.till.total(), 30.0);
    world.till.refuse_refunds(false);
    world.expire_due().await;
    assert_eq!(world.till.total(), 0.0);
    assert_eq!(world.payments(&order).await, [(30.0, "Refunded".to_owned())]);
}

async fn tickets_to_coming_events_stand_against_a_removal(world: World) {
    let (_, event) = stage(&world, &[0.0, 10.0]).await;
    let ama = world.person("ama").await;
    let serials = buy(&ama, &event.sections[0], 1).await;
    let open = ama.order(&event.sections[1], 2).await.unwrap();
    let path = format!("/accounts/{}", ama.number);
    let before = world.read(&path).await;

    for status in ["Issued", "Pending"] {
        set_status(&world, &serials[0], status).await;
        for key in [&ama.key, &world.staff.key] {
            let refused = world.remove(key, &ama).await;
            assert_eq!((refused.status, refused.code()), (409, "account.has-tickets"), "{status}");
        }
    }

    assert_eq!(world.read(&path).await, before, "nothing was changed");
    assert_eq!(world.read(&open.self_).await["status"], "Placed");
    assert_eq!(world.places(&event.sections[1]).await, (0, 2));
    assert!(ama.client.session_active_get().send().await.is_ok());
}

async fn tickets_that_nobody_can_use_any_more_do_not(world: World) {
    let (kofi, event) = stage(&world, &[0.0]).await;
    let over = world.listed_event(&world.host_of(&kofi).await, &[section("Floor", 0.0, 10)]).await;
    let ama = world.person("ama").await;
    let serials = buy(&ama, &event.sections[0], 2).await;
    set_status(&world, &serials[0], "Redeemed").await;
    set_status(&world, &serials[1], "Void").await;
    buy(&ama, &over.sections[0], 1).await;
    world.end(&kofi, &over).await;

    assert_eq!(world.remove(&ama.key, &ama).await.status, 204);
}

async fn an_account_is_removed_by_itself_and_by_staff(world: World) {
    let (ama, kofi) = (world.person("ama").await, world.person("kofi").await);

    let anothers = world.remove(&kofi.key, &ama).await;
    let programs = world.remove(&world.public_key, &ama).await;
    let unknown = world.request("DELETE", "/accounts/ZZ-00000000").key(&ama.key).send().await;

    assert_eq!((anothers.status, anothers.code()), (403, "resource.not-yours"));
    assert_eq!((programs.status, programs.code()), (403, "key.refused"));
    assert_eq!((unknown.status, unknown.code()), (404, "resource.not-found"));
    assert!(ama.client.session_active_get().send().await.is_ok());
    assert_eq!(world.remove(&ama.key, &ama).await.status, 204);
    assert_eq!(world.remove(&world.staff.key, &kofi).await.status, 204);
}

async fn a_payment_under_way_is_given_back(world: World) {
    let (_, event) = stage(&world, &[100.0]).await;
    let ama = world.person("ama").await;
    let order = ama.order(&event.sections[0], 2).await.unwrap().self_.clone();
    world.till.hold();

    let meanwhile = async {
        world.till.until(1).await;
        assert_eq!(world.remove(&ama.key, &ama).await.status, 204);
        world.till.release();
    };
    let (paid, ()) = join(world.pay(&ama.key, &order, by_card()), meanwhile).await;

    assert_eq!((paid.status, paid.code()), (409, "order.not-open"));
    assert_eq!((world.till.charges(), world.till.total()), (1, 0.0));
    assert_eq!(world.payments(&order).await, [(203.98, "Refunded".to_owned())]);
    assert_eq!(world.usable_tickets(&ama).await, 0);
}

async fn removing_and_paying_at_once_leave_one_of_the_two(world: World) {
    let (_, event) = stage(&world, &[10.0]).await;
    for number in 0..6 {
        let person = world.person(&format!("person-{number}")).await;
        let order = person.order(&event.sections[0], 2).await.unwrap().self_.clone();
        let before = world.till.total();

        let paying = world.pay(&person.key, &order, by_card());
        let (paid, removed) = join(paying, world.remove(&world.staff.key, &person)).await;

        let kept = match (removed.status, removed.code()) {
            (204, _) => {
                assert!([(403, "key.refused"), (409, "order.not-open")].contains(&(paid.status, paid.code())), "{paid:?}");
                assert_eq!(world.read(&order).await["status"], "Cancelled");
                assert_eq!(world.usable_tickets(&person).await, 0);
                0.0
            }
            (409, "account.has-tickets") => {
                assert_eq!(paid.status, 201);
                assert_eq!(world.usable_tickets(&person).await, 2);
                21.98
            }
            other => panic!("{other:?}"),
        };
        assert!((world.till.total() - before - kept).abs() < 0.001);
    }
}

async fn removing_and_ordering_at_once_leave_no_ticket_behind(world: World) {
    let (_, event) = stage(&world, &[0.0, 10.0]).await;
    for number in 0..6 {
        let person = world.person(&format!("person-{number}")).await;
        let place = |section: &str| world.place(&person.key, json!({ section: 1 }));

        let orders = join_all([place(&event.sections[0]), place(&event.sections[1])]);
        let (placed, removed) = join(orders, world.remove(&world.staff.key, &person)).await;

        for answer in &placed {
            let refused = (answer.status, answer.code()) == (403, "key.refused") || answer.complaints() == ["customer"];
            assert!(answer.status == 201 || refused, "{answer:?}");
        }
        match (removed.status, removed.code()) {
            (204, _) => {
                let open = "select count(*) from orders o join accounts a on a.id = o.account_id
                    where a.number = $1 and o.status <> 'Cancelled'";
                assert_eq!((world.usable_tickets(&person).await, world.count(open, &person).await), (0, 0));
            }
            (409, "account.has-tickets") => assert_eq!((placed[0].status, world.usable_tickets(&person).await), (201, 1)),
            other => panic!("{other:?}"),
        }
    }
}

async fn of_many_removals_at_once_one_removes(world: World) {
    let ama = world.person("ama").await;

    let answers = join_all((0..6).map(|_| world.remove(&world.staff.key, &ama))).await;

    let mut statuses: Vec<_> = answers.iter().map(|answer| answer.status).collect();
    statuses.sort_unstable();
    assert_eq!(statuses, [204, 404, 404, 404, 404, 404]);
}
