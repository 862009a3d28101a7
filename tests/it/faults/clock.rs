//! The machine's clock steps, by an hour, back or forward.

use std::time::Duration;

use boxoffice::log;
use serde_json::json;

use crate::on_both_databases;
use crate::support::{RESERVATION, World, books, by_card, eventually, section};

on_both_databases![
    identifiers_rise_though_the_clock_steps_back,
    identifiers_rise_though_a_server_starts_with_its_clock_back,
    what_has_expired_stays_so_though_the_clock_steps_back,
    what_is_due_does_not_wait_though_the_clock_steps_back,
    a_step_forward_expires_everything_once,
];

const HOUR: Duration = Duration::from_secs(3600);

async fn identifiers_rise_though_the_clock_steps_back(world: World) {
    let (kofi, ama) = (world.person("kofi").await, world.person("ama").await);
    let event = world.listed_event(&world.host_of(&kofi).await, &[section("Floor", 20.0, 10)]).await;

    let before = ama.order(&event.sections[0], 1).await.unwrap();
    world.app.clock.rewind(HOUR);
    let after = ama.order(&event.sections[0], 1).await.unwrap();

    assert!(before.number < after.number, "{} {}", before.number.as_str(), after.number.as_str());
    assert!(before.placed <= after.placed);
}

async fn identifiers_rise_though_a_server_starts_with_its_clock_back(world: World) {
    let (kofi, ama) = (world.person("kofi").await, world.person("ama").await);
    let event = world.listed_event(&world.host_of(&kofi).await, &[section("Floor", 20.0, 10)]).await;
    world.advance(HOUR);
    let before = ama.order(&event.sections[0], 1).await.unwrap();

    let restarted = world.neighbour(world.app.settings.clone(), log::silent()).await;
    let body = json!({ "items": { event.sections[0].as_str(): 1 } });
    let after = world.request("POST", "/orders").at(restarted.address).key(&ama.key).json(&body).send().await;

    assert_eq!(after.status, 201, "{}", after.body);
    assert!(before.number.as_str() < after.body["number"].as_str().unwrap(), "{} {}", before.number.as_str(), after.body);
}

async fn what_has_expired_stays_so_though_the_clock_steps_back(world: World) {
    let (kofi, ama) = (world.person("kofi").await, world.person("ama").await);
    let event = world.listed_event(&world.host_of(&kofi).await, &[section("Floor", 20.0, 10)]).await;
    let floor = event.sections[0].as_str();
    let (verification, code) = world.code_for("/verifications", "ama@example.com", 1).await;
    let order = ama.order(floor, 3).await.unwrap().self_;
    world.advance(RESERVATION);
    let expired = (world.read(&order).await["status"].clone(), world.places(floor).await);

    world.app.clock.rewind(HOUR);
    world.expire_due().await;
    let paid = world.pay(&ama.key, &order, by_card()).await;
    let verified = world.answer(&verification, json!({ "code": code })).await;
    let next = ama.order(floor, 2).await.unwrap().self_;
    world.advance(HOUR + RESERVATION);
    world.expire_due().await;

    assert_eq!(expired, (json!("Timed Out"), (0, 0)));
    assert_eq!((paid.status, paid.code()), (409, "order.not-open"));
    assert_eq!((verified.status, verified.code()), (409, "verification.closed"));
    assert_eq!(world.stored_places().await, (vec![(0, 0)], 0), "its places were given back once");
    assert_eq!(world.read(&next).await["status"], "Timed Out");
    assert_eq!(world.till.total(), 0.0);
    assert_eq!(books(&mut world.app.db.read().await.unwrap()).await, [""; 0]);

    world.advance(Duration::from_secs(31 * 24 * 3600));
    let late = world.request("GET", "/sessions/active").key(&ama.key).send().await;
    world.app.clock.rewind(2 * HOUR);
    let later = world.request("GET", "/sessions/active").key(&ama.key).send().await;
    assert_eq!((late.status, later.status), (403, 403), "a session that has ended doesn't come back");
}

async fn what_is_due_does_not_wait_though_the_clock_steps_back(world: World) {
    world.person("ama").await;
    let asked = world.request("POST", "/verifications").json(&json!({ "email": "ama@example.com" })).send().await;
    world.app.clock.rewind(HOUR);
    let again = world.request("POST", "/verifications").json(&json!({ "email": "ama@example.com" })).send().await;

    assert_eq!((asked.status, again.status), (201, 201));
    world.letter_to("ama@example.com", 2).await;
    let now = async || world.request("GET", "/time").send().await.body["utc"].as_i64().unwrap();
    let before = now().await;
    eventually(async || now().await > before).await;
}

async fn a_step_forward_expires_everything_once(world: World) {
    let (kofi, ama) = (world.person("kofi").await, world.person("ama").await);
    let event = world.listed_event(&world.host_of(&kofi).await, &[section("Floor", 20.0, 10)]).await;
    let floor = event.sections[0].as_str();
    let paid = ama.order(floor, 2).await.unwrap();
    ama.pay(&paid).await.unwrap();
    let part = ama.order(floor, 3).await.unwrap().self_;
    assert_eq!(world.pay(&ama.key, &part, crate::support::part(5.0)).await.status, 201);

    world.advance(HOUR);
    world.expire_due().await;
    world.app.clock.rewind(HOUR);
    world.advance(HOUR);
    world.expire_due().await;

    assert_eq!(world.stored_places().await, (vec![(2, 0)], 0));
    assert_eq!(world.payments(&part).await, [(5.0, "Refunded".to_owned())]);
    assert_eq!(books(&mut world.app.db.read().await.unwrap()).await, [""; 0]);
    world.check_till().await;
}
