//! Random orders, cancellations, joins, leaves and offers at the same time: no place is given away twice, and no account is
//! overtaken.

use std::collections::BTreeSet;
use std::time::Duration;

use futures::future::{join, join_all};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde_json::{Value, json};

use super::create_event;
use crate::support::{RESERVATION_TTL, Response, TestApp, User, check_invariants, entries_of, race_rounds, test_on};

/// A request of a round. The number of the user comes first.
#[derive(Debug, Clone)]
enum Step {
    Order(usize, i64),
    Pay(usize, String),
    Cancel(usize, String),
    Join(usize, i64),
    Leave(usize, String),
}

#[test_on(sqlite, postgres, two_servers)]
async fn random_requests_overtake_no_account(app: TestApp) {
    let seed = rand::random::<u64>();
    eprintln!("seed {seed}");
    let mut random = StdRng::seed_from_u64(seed);
    let (kofi, event) = create_event(&app, 10.0, 5).await;
    let floor = event.sections[0].as_str();
    let mut users = Vec::new();
    for number in 0..8 {
        users.push(app.sign_up(&format!("person-{number}")).await);
    }
    for round in 0..race_rounds(15, 200) {
        let before = entries(&app).await;
        let steps: Vec<Step> = join_all((0..users.len()).map(|number| draw(&app, &users[number], number, floor, &before)))
            .await
            .into_iter()
            .map(|options| options[random.random_range(0..options.len())].clone())
            .collect();
        let capacity = json!({ "capacity": 5 + random.random_range(0..3_i64) });

        let requests = join_all(steps.iter().map(|step| send(&app, &users, floor, step)));
        let change = app.request("PUT", floor).key(&kofi.key).json(&capacity).send();
        let (responses, (_, changed)) = join(requests, join(app.offer_places(), change)).await;

        assert!([200, 409].contains(&changed.status), "{changed:?}");
        for (step, response) in steps.iter().zip(&responses) {
            assert!([200, 201, 204, 404, 409].contains(&response.status), "{step:?}: {response:?}");
        }
        let after = entries(&app).await;
        check_buyers(round, &steps, &responses, &users, &before, &after);
        app.offer_places().await;
        check_order(round, &entries(&app).await);
        app.advance_clock(if round % 4 == 3 { RESERVATION_TTL } else { Duration::from_secs(60) });
        // The counts, and the sums of reservations and offers. An order whose reservation was released is timed out first.
        app.expire_due().await;
        let mut reader = app.state.db.read().await.unwrap();
        assert_eq!(check_invariants(&mut reader, app.state.clock.now()).await, [""; 0], "round {round}, seed {seed}");
    }
}

/// Returns the steps that a user can take.
async fn draw(app: &TestApp, user: &User, number: usize, floor: &str, entries: &[Entry]) -> Vec<Step> {
    let mut steps = vec![Step::Order(number, 1), Step::Order(number, 2), Step::Join(number, 1), Step::Join(number, 2)];
    let open = app.read(&format!("/accounts/{}/orders?status=Placed", user.number)).await;
    for order in entries_of(&open) {
        let uri = order["self"].as_str().unwrap().to_owned();
        steps.extend([Step::Cancel(number, uri.clone()), Step::Cancel(number, uri.clone()), Step::Pay(number, uri)]);
    }
    let own = entries.iter().filter(|entry| entry.account == user.number);
    steps.extend(own.map(|entry| Step::Leave(number, format!("{floor}/waiting-list/{}", entry.id))));
    steps
}

async fn send(app: &TestApp, users: &[User], floor: &str, step: &Step) -> Response {
    let post = |number: &usize, path: String, body: Value| {
        let request = app.request("POST", &path).key(&users[*number].key);
        if body.is_null() { request } else { request.json(&body) }
    };
    match step {
        Step::Order(user, quantity) => post(user, "/orders".to_owned(), json!({ "items": { floor: quantity } })).send().await,
        Step::Pay(user, order) => {
            post(user, format!("{order}/payments"), json!({ "method": "card", "token": "tok_approve" })).send().await
        }
        Step::Cancel(user, order) => post(user, format!("{order}/cancellations"), Value::Null).send().await,
        Step::Join(user, quantity) => post(user, format!("{floor}/waiting-list"), json!({ "quantity": quantity })).send().await,
        Step::Leave(user, entry) => app.delete(&users[*user].key, entry).await,
    }
}

/// A row of the waiting list.
#[derive(Debug, Clone, sqlx_macros::FromRow)]
struct Entry {
    id: i64,
    account: String,
    quantity: i64,
    status: String,
    joined: i64,
    offered: Option<i64>,
}

async fn entries(app: &TestApp) -> Vec<Entry> {
    app.rows(
        "select w.id, a.number as account, w.quantity, w.status, w.joined, w.offered
         from waiting_entries w join accounts a on a.id = w.account_id order by w.id",
    )
    .await
}

/// Asserts that no account has ordered without an offer while another one waited during the whole round.
fn check_buyers(round: usize, steps: &[Step], responses: &[Response], users: &[User], before: &[Entry], after: &[Entry]) {
    let waiting = |entries: &[Entry]| -> BTreeSet<i64> {
        entries.iter().filter(|entry| entry.status == "Waiting").map(|entry| entry.id).collect()
    };
    if waiting(before).is_disjoint(&waiting(after)) {
        return;
    }
    for (step, response) in steps.iter().zip(responses) {
        if let (Step::Order(user, _), 201) = (step, response.status) {
            let number = &users[*user].number;
            let used = after.iter().any(|entry| entry.account == *number && entry.status == "Ordered");
            assert!(used, "round {round}: {number} has ordered without an offer\n{before:#?}\n{after:#?}");
        }
    }
}

/// Asserts that no account waits although a later one was offered as many places.
fn check_order(round: usize, entries: &[Entry]) {
    for waiting in entries.iter().filter(|entry| entry.status == "Waiting") {
        // A request that waited for the lock has an earlier time, so offers of the same round are not compared.
        let is_later =
            |other: &&Entry| other.id > waiting.id && other.offered.is_some_and(|offered| offered > waiting.joined + 30_000_000);
        let overtaking = entries.iter().filter(is_later).find(|other| other.quantity >= waiting.quantity);
        assert!(overtaking.is_none(), "round {round}: {waiting:?} was overtaken by {overtaking:?}");
    }
}
