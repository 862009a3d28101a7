//! Withdrawing and cancelling an event: what becomes of its sales.

use std::time::Duration;

use futures::future::join;
use serde_json::{Value, json};

use super::{read, refusal};
use crate::support::{Answer, Event, Person, RESERVATION, World, by_card, part, section};
use crate::{on_both_databases, race_tests};

on_both_databases![
    a_withdrawn_event_is_a_draft_that_sells_nothing,
    what_a_withdrawn_event_has_sold_stays_valid,
    a_withdrawn_event_is_reviewed_and_published_again,
    a_cancelled_event_is_seen_by_all_and_sells_nothing,
    an_open_order_of_a_cancelled_event_cannot_be_paid,
    an_order_with_one_cancelled_event_cannot_be_paid,
    a_payment_under_way_when_the_event_is_cancelled_is_given_back,
    a_part_under_way_when_the_event_is_cancelled_is_given_back,
    an_event_is_unlisted_by_its_hosts_administrators_and_the_staff,
    an_event_is_unlisted_once,
];

race_tests![
    cancelling_an_event_and_paying_at_once_keep_the_money_or_give_it_back,
    cancelling_an_event_and_giving_its_places_away_at_once_count_every_ticket,
];

async fn unlist(world: &World, key: &str, event: &Event, how: &str) -> Answer {
    world.request("POST", &format!("{}/{how}", event.uri)).key(key).send().await
}

/// Kofi's Listed event, with ten places at 100.00 and ten for free.
async fn concert(world: &World, kofi: &Person) -> Event {
    world.listed_event(&world.host_of(kofi).await, &[section("Stalls", 100.0, 10), section("Lawn", 0.0, 10)]).await
}

async fn a_withdrawn_event_is_a_draft_that_sells_nothing(world: World) {
    let (kofi, ama) = (world.person("kofi").await, world.person("ama").await);
    let event = concert(&world, &kofi).await;
    ama.order(&event.sections[1], 2).await.unwrap();
    let mut expected = read(&world, &kofi.key, &event.uri).await.body;

    let withdrawn = unlist(&world, &kofi.key, &event, "withdrawals").await;

    expected["status"] = "Draft".into();
    assert_eq!((withdrawn.status, &withdrawn.body), (200, &expected));
    assert_eq!(read(&world, &kofi.key, &event.uri).await.body, expected);
    assert_ne!(expected["published"], "", "it tells when it was published");
    for key in [&ama.key, &world.public_key] {
        assert_eq!(refusal(&read(&world, key, &event.uri).await), (403, "resource.not-yours"));
    }
    assert_eq!(world.anyone.published_event_list().send().await.unwrap().total, 0);
    assert_eq!(world.anyone.event_list().send().await.unwrap().total, 0);
    for section in &event.sections {
        let refused = world.place(&ama.key, json!({ section.as_str(): 1 })).await;
        assert_eq!(refusal(&refused), (409, "event.not-listed"));
    }
    let deleted = world.request("DELETE", &event.uri).key(&kofi.key).send().await;
    assert_eq!(refusal(&deleted), (409, "event.sold"));
}

async fn what_a_withdrawn_event_has_sold_stays_valid(world: World) {
    let (kofi, ama) = (world.person("kofi").await, world.person("ama").await);
    let event = concert(&world, &kofi).await;
    ama.order(&event.sections[1], 1).await.unwrap();
    let open = ama.order(&event.sections[0], 1).await.unwrap();
    world.pay(&ama.key, &open.self_, part(50.0)).await;

    assert_eq!(unlist(&world, &kofi.key, &event, "withdrawals").await.status, 200);

    assert_eq!(world.pay(&ama.key, &open.self_, by_card()).await.status, 201, "what is reserved can be paid");
    assert_eq!(world.read(&open.self_).await["status"], "Fulfilled");
    let tickets = world.read(&format!("/accounts/{}/tickets", ama.number)).await;
    let serials: Vec<&Value> = tickets["entries"].as_array().unwrap().iter().map(|ticket| &ticket["serial"]).collect();
    let admissions = world.request("POST", &format!("{}/admissions", event.uri)).key(&kofi.key);
    let admitted = admissions.json(&json!({ "serials": serials })).send().await;
    assert_eq!((admitted.status, admitted.body.as_array().unwrap().len()), (201, 2));
}

async fn a_withdrawn_event_is_reviewed_and_published_again(world: World) {
    let (kofi, ama) = (world.person("kofi").await, world.person("ama").await);
    let host = world.host_of(&kofi).await;
    let event = world.listed_event(&host, &[section("Lawn", 0.0, 10)]).await;
    let first = world.read(&event.uri).await["published"].clone();
    unlist(&world, &kofi.key, &event, "withdrawals").await;
    world.advance(Duration::from_secs(3600));

    world.list(&host, &event).await;

    let again = read(&world, &world.public_key, &event.uri).await.body;
    assert_eq!(again["status"], "Listed");
    assert!(again["published"].as_str().unwrap() > first.as_str().unwrap(), "{again}");
    ama.order(&event.sections[0], 1).await.unwrap();
}

async fn a_cancelled_event_is_seen_by_all_and_sells_nothing(world: World) {
    let (kofi, ama) = (world.person("kofi").await, world.person("ama").await);
    let event = concert(&world, &kofi).await;
    ama.order(&event.sections[1], 2).await.unwrap();
    let mut expected = read(&world, &kofi.key, &event.uri).await.body;

    let cancelled = unlist(&world, &kofi.key, &event, "cancellations").await;

    expected["status"] = "Cancelled".into();
    assert_eq!((cancelled.status, &cancelled.body), (200, &expected));
    assert_eq!(read(&world, &world.public_key, &event.uri).await.body, expected);
    assert_eq!(world.anyone.published_event_list().send().await.unwrap().total, 0);
    for section in &event.sections {
        let refused = world.place(&ama.key, json!({ section.as_str(): 1 })).await;
        assert_eq!(refusal(&refused), (409, "event.not-listed"));
    }
}

async fn an_open_order_of_a_cancelled_event_cannot_be_paid(world: World) {
    let (kofi, ama) = (world.person("kofi").await, world.person("ama").await);
    let event = concert(&world, &kofi).await;
    let [first, second] = [ama.order(&event.sections[0], 2).await.unwrap(), ama.order(&event.sections[0], 1).await.unwrap()];
    for order in [&first, &second] {
        assert_eq!(world.pay(&ama.key, &order.self_, part(50.0)).await.status, 201);
    }

    assert_eq!(unlist(&world, &kofi.key, &event, "cancellations").await.status, 200);

    for (key, payment) in [
        (&ama.key, by_card()),
        (&ama.key, part(1.0)),
        (&world.staff.key, json!({ "method": "external", "reference": "Receipt 7" })),
    ] {
        assert_eq!(refusal(&world.pay(key, &first.self_, payment).await), (409, "event.cancelled"));
    }
    assert_eq!(world.till.total(), 100.0);
    assert_eq!(world.read(&first.self_).await["status"], "Placed");
    // Whether it is cancelled or times out, what was paid is given back.
    assert_eq!(world.cancel(&ama.key, &first.self_).await.status, 200);
    assert_eq!(world.till.total(), 50.0);
    world.advance(RESERVATION);
    world.expire_due().await;
    assert_eq!((world.read(&second.self_).await["status"].as_str().unwrap(), world.till.total()), ("Timed Out", 0.0));
    assert_eq!(world.places(&event.sections[0]).await, (0, 0));
}

async fn an_order_with_one_cancelled_event_cannot_be_paid(world: World) {
    let (kofi, ama) = (world.person("kofi").await, world.person("ama").await);
    let (off, on) = (concert(&world, &kofi).await, concert(&world, &kofi).await);
    let both = ama.order_all([(on.sections[0].as_str(), 1), (off.sections[1].as_str(), 1)]).await.unwrap();
    let other = ama.order(&on.sections[0], 1).await.unwrap();

    unlist(&world, &kofi.key, &off, "cancellations").await;

    assert_eq!(refusal(&world.pay(&ama.key, &both.self_, by_card()).await), (409, "event.cancelled"));
    assert_eq!(world.pay(&ama.key, &other.self_, by_card()).await.status, 201);
}

async fn a_payment_under_way_when_the_event_is_cancelled_is_given_back(world: World) {
    let (kofi, ama) = (world.person("kofi").await, world.person("ama").await);
    let event = concert(&world, &kofi).await;
    let order = ama.order(&event.sections[0], 2).await.unwrap().self_.clone();
    world.till.hold();

    let meanwhile = async {
        world.till.until(1).await;
        assert_eq!(unlist(&world, &kofi.key, &event, "cancellations").await.status, 200);
        world.till.release();
    };
    let (paid, ()) = join(world.pay(&ama.key, &order, by_card()), meanwhile).await;

    assert_eq!(refusal(&paid), (409, "event.cancelled"));
    assert_eq!((world.till.charges(), world.till.total()), (1, 0.0));
    assert_eq!(world.payments(&order).await, [(203.98, "Refunded".to_owned())]);
    assert_eq!(world.read(&order).await["status"], "Placed");
    assert_eq!(world.places(&event.sections[0]).await, (0, 2));
    assert_eq!(world.read(&event.uri).await["popularity"], 0);
    assert_eq!(world.cancel(&ama.key, &order).await.status, 200);
}

async fn a_part_under_way_when_the_event_is_cancelled_is_given_back(world: World) {
    let (kofi, ama) = (world.person("kofi").await, world.person("ama").await);
    let event = concert(&world, &kofi).await;
    let order = ama.order(&event.sections[0], 2).await.unwrap().self_.clone();
    world.till.hold();

    let meanwhile = async {
        world.till.until(1).await;
        assert_eq!(unlist(&world, &world.staff.key, &event, "cancellations").await.status, 200);
        world.till.release();
    };
    let (paid, ()) = join(world.pay(&ama.key, &order, part(20.0)), meanwhile).await;

    assert_eq!(refusal(&paid), (409, "event.cancelled"));
    assert_eq!((world.till.charges(), world.till.total()), (1, 0.0));
}

async fn an_event_is_unlisted_by_its_hosts_administrators_and_the_staff(world: World) {
    let (kofi, ama) = (world.person("kofi").await, world.person("ama").await);
    let event = concert(&world, &kofi).await;
    let unknown = Event { uri: "/events/17637000000001".to_owned(), id: String::new(), sections: Vec::new() };

    for how in ["withdrawals", "cancellations"] {
        assert_eq!(refusal(&unlist(&world, &ama.key, &event, how).await), (403, "resource.not-yours"));
        assert_eq!(refusal(&unlist(&world, &world.public_key, &event, how).await), (403, "key.refused"));
        assert_eq!(refusal(&unlist(&world, &ama.key, &unknown, how).await), (404, "resource.not-found"));
        assert_eq!(world.read(&event.uri).await["status"], "Listed");
    }
    for how in ["withdrawals", "cancellations"] {
        let event = concert(&world, &kofi).await;
        assert_eq!(unlist(&world, &world.staff.key, &event, how).await.status, 200);
    }
}

async fn an_event_is_unlisted_once(world: World) {
    let kofi = world.person("kofi").await;
    for _ in 0..4 {
        let event = concert(&world, &kofi).await;

        let withdrawn = unlist(&world, &kofi.key, &event, "withdrawals");
        let (withdrawn, cancelled) = join(withdrawn, unlist(&world, &kofi.key, &event, "cancellations")).await;

        let (done, refused) = if withdrawn.status == 200 { (withdrawn, cancelled) } else { (cancelled, withdrawn) };
        assert_eq!((done.status, refusal(&refused)), (200, (409, "event.not-listed")));
        assert_eq!(world.read(&event.uri).await["status"], done.body["status"]);
    }
}

async fn cancelling_an_event_and_paying_at_once_keep_the_money_or_give_it_back(world: World) {
    let (kofi, ama) = (world.person("kofi").await, world.person("ama").await);
    let mut kept = 0;
    for _ in 0..6 {
        let event = concert(&world, &kofi).await;
        let order = ama.order(&event.sections[0], 2).await.unwrap().self_.clone();

        let paid = world.pay(&ama.key, &order, by_card());
        let (paid, cancelled) = join(paid, unlist(&world, &kofi.key, &event, "cancellations")).await;

        assert_eq!(cancelled.status, 200);
        if paid.status == 201 {
            kept += 1;
            assert_eq!(world.read(&order).await["status"], "Fulfilled");
            assert_eq!(world.places(&event.sections[0]).await, (2, 0));
        } else {
            assert_eq!(refusal(&paid), (409, "event.cancelled"));
            assert_eq!(world.cancel(&ama.key, &order).await.status, 200);
        }
    }
    assert!((world.till.total() - f64::from(kept) * 203.98).abs() < 0.001, "{} is kept for {kept}", world.till.total());
}

async fn cancelling_an_event_and_giving_its_places_away_at_once_count_every_ticket(world: World) {
    let (kofi, ama) = (world.person("kofi").await, world.person("ama").await);
    for _ in 0..4 {
        let event = concert(&world, &kofi).await;
        let lawn = event.sections[1].as_str();

        let taken = futures::future::join_all((0..4).map(|_| world.place(&ama.key, json!({ lawn: 1 }))));
        let (taken, cancelled) = join(taken, unlist(&world, &kofi.key, &event, "cancellations")).await;

        assert_eq!(cancelled.status, 200);
        let given = taken.iter().filter(|answer| answer.status == 201).count();
        assert_eq!(taken.iter().filter(|answer| refusal(answer) == (409, "event.not-listed")).count(), 4 - given);
        let told = world.read(&event.uri).await;
        assert_eq!((&told["popularity"], &told["status"]), (&json!(given), &json!("Cancelled")));
        assert_eq!(world.places(lawn).await, (i64::try_from(given).unwrap(), 0));
    }
}
