//! The numbers of rows that the database keeps for the totals of lists.

use futures::future::join_all;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};
use serde_json::{Value, json};

use crate::support::{Event, Host, TestApp, User, card_payment, entries_of, section, test_on};

/// Number of clients that change rows at the same time, and of the changes of each.
const CLIENTS: u64 = 6;
const CHANGES: usize = 12;

async fn total(app: &TestApp, key: &str, path: &str) -> usize {
    let separator = if path.contains('?') { '&' } else { '?' };
    let page = app.get(key, &format!("{path}{separator}records=100")).await;
    let entries = entries_of(&page.body).len();
    assert_eq!(page.body["total"], json!(entries), "{path}");
    entries
}

#[test_on(sqlite, postgres)]
async fn total_of_accounts_leaves_out_deleted_ones(app: TestApp) {
    let users = [app.sign_up("ama").await, app.sign_up("esi").await];
    let before = total(&app, &app.staff.key, "/accounts").await;

    let deleted = app.delete(&users[0].key, &format!("/accounts/{}", users[0].number)).await;
    assert_eq!(deleted.status, 204, "{}", deleted.body);

    assert_eq!(total(&app, &app.staff.key, "/accounts").await, before - 1);
    assert_eq!(total(&app, &app.staff.key, "/accounts?username=esi").await, 1);
    app.assert_invariants().await;
}

#[test_on(sqlite, postgres)]
async fn totals_of_events_are_those_that_a_caller_sees(app: TestApp) {
    let (kofi, esi, ama) = (app.sign_up("kofi").await, app.sign_up("esi").await, app.sign_up("ama").await);
    let (live, players) = (app.create_host(&kofi).await, app.create_host(&esi).await);
    let listed = app.create_listed_event(&live, &[section("Floor", 0.0, 10)]).await;
    app.create_listed_event(&players, &[section("Floor", 0.0, 10)]).await;
    let draft = app.create_draft(&live).await;
    let removed = app.create_draft(&live).await;
    app.create_draft(&players).await;
    assert_eq!(app.delete(&kofi.key, &removed.uri).await.status, 204);

    let callers = [&app.staff.key, &kofi.key, &esi.key, &ama.key, &app.public_key];
    for (path, expected) in [
        ("/events".to_owned(), [4, 3, 3, 2, 2]),
        (format!("{}/events", live.uri), [2, 2, 1, 1, 1]),
        (format!("{}/events", players.uri), [2, 1, 2, 1, 1]),
    ] {
        let mut totals = Vec::new();
        for key in callers {
            totals.push(total(&app, key, &path).await);
        }
        assert_eq!(totals, expected, "{path}");
    }

    app.list_event(&draft).await;
    assert_eq!(total(&app, &ama.key, "/events").await, 3);
    app.post_empty(&kofi.key, &format!("{}/withdrawals", listed.uri)).await;
    assert_eq!(total(&app, &ama.key, "/events").await, 2);
    assert_eq!(total(&app, &kofi.key, "/events").await, 3);
    app.assert_invariants().await;
}

#[test_on(sqlite, postgres)]
async fn totals_of_filtered_lists_are_counted(app: TestApp) {
    let (kofi, ama, event) = app.create_sale(&[section("Free", 0.0, 50), section("Floor", 20.0, 50)]).await;
    let esi = app.sign_up("esi").await;
    let serials = ama.order_free_tickets(&event.sections[0], 4).await;
    // One order for the event, though it has two items.
    let both = ama.order_items([(event.sections[0].as_str(), 1), (event.sections[1].as_str(), 1)]).await.unwrap();
    ama.pay(&both).await.unwrap();
    ama.order(&event.sections[1], 1).await.unwrap();
    for serial in &serials[..2] {
        app.post(&ama.key, "/transfers", json!({ "recipient": esi.number, "tickets": [serial] })).await;
    }
    let first = app.get(&ama.key, &format!("/accounts/{}/transfers", ama.number)).await.body;
    let claim = format!("{}/claims", first["entries"][0]["self"].as_str().unwrap());
    assert_eq!(app.post_empty(&esi.key, &claim).await.status, 200);
    app.post(&kofi.key, &format!("{}/admissions", event.uri), json!({ "serials": [serials[2]], "device": "Gate A" })).await;

    let account = format!("/accounts/{}", ama.number);
    for (path, expected) in [
        (format!("{account}/orders"), 3),
        (format!("{account}/orders?status=Placed"), 1),
        (format!("{account}/tickets"), 5),
        (format!("/accounts/{}/tickets", esi.number), 1),
        (format!("{account}/transfers"), 2),
        (format!("{account}/transfers?status=Claimed"), 1),
        (format!("{account}/transfers?direction=received"), 0),
        (format!("/accounts/{}/transfers?direction=received", esi.number), 2),
        ("/orders".to_owned(), 3),
        ("/orders?status=Fulfilled".to_owned(), 2),
        (format!("/orders?customer={}", esi.number), 0),
        (format!("{}/orders", event.uri), 3),
        (format!("{}/orders?status=Placed", event.uri), 1),
        (format!("{}/orders", event.host.uri), 3),
        ("/transactions".to_owned(), 1),
        ("/transactions?type=Refund".to_owned(), 0),
        (format!("{}/transactions", event.host.uri), 1),
        (format!("{}/transactions?type=Refund", event.host.uri), 0),
        (format!("{}/admissions", event.uri), 1),
        (format!("{}/admissions?device=Gate%20A", event.uri), 1),
        (format!("{}/admissions?device=Gate%20B", event.uri), 0),
        (format!("{}/events?active=false", event.host.uri), 0),
    ] {
        assert_eq!(total(&app, &app.staff.key, &path).await, expected, "{path}");
    }
    app.assert_invariants().await;
}

#[test_on(sqlite, postgres)]
async fn orders_of_removed_events_stay_with_the_host(app: TestApp) {
    let (kofi, ama) = (app.sign_up("kofi").await, app.sign_up("ama").await);
    let host = app.create_host(&kofi).await;
    let mut events = Vec::new();
    for _ in 0..3 {
        events.push(app.create_listed_event(&host, &[section("Floor", 20.0, 50), section("Free", 0.0, 50)]).await);
    }
    let floor = |event: usize| (events[event].sections[0].as_str(), 1);
    let sold = ama.order_free_tickets(&events[2].sections[1], 1).await;
    assert_eq!(sold.len(), 1);
    for items in [vec![floor(0)], vec![floor(0), floor(1)], vec![floor(1), floor(2)]] {
        let order = ama.order_items(items).await.unwrap();
        app.cancel_order(&ama.key, &order.self_).await;
    }
    let orders = async || {
        app.assert_invariants().await;
        total(&app, &kofi.key, &format!("{}/orders", host.uri)).await
    };

    assert_eq!(orders().await, 4);
    for event in [0, 1] {
        let removed = app.delete(&kofi.key, &events[event].uri).await;
        assert_eq!(removed.status, 204, "{}", removed.body);
        assert_eq!(orders().await, 4);
    }
    app.execute_sql("delete from orders where status = 'Cancelled'").await;
    assert_eq!(orders().await, 1);
}

#[test_on(sqlite, postgres)]
async fn events_of_an_account_are_those_of_its_valid_tickets(app: TestApp) {
    let (kofi, ama) = (app.sign_up("kofi").await, app.sign_up("ama").await);
    let host = app.create_host(&kofi).await;
    let mut held = Vec::new();
    for tickets in [3, 0, 2, 1, 2] {
        let event = app.create_listed_event(&host, &[section("Free", 0.0, 50)]).await;
        if tickets > 0 {
            ama.order_free_tickets(&event.sections[0], tickets).await;
            held.push(event);
        }
    }
    let events = async || {
        let page = app.read(&format!("/accounts/{}/events", ama.number)).await;
        assert_eq!(page["total"], json!(entries_of(&page).len()));
        entries_of(&page).iter().map(|event| event["self"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let uris = |numbers: &[usize]| numbers.iter().map(|number| held[*number].uri.clone()).collect::<Vec<_>>();

    assert_eq!(events().await, uris(&[0, 1, 2, 3]));
    for event in [&held[0], &held[2]] {
        let order = app.read(&format!("{}/orders", event.uri)).await["entries"][0]["self"].as_str().unwrap().to_owned();
        assert_eq!(app.return_tickets(&kofi.key, &order, json!({})).await.status, 200);
    }
    assert_eq!(events().await, uris(&[1, 3]));
}

/// A client that changes rows at random, also those of other clients.
struct RandomClient<'a> {
    app: &'a TestApp,
    random: StdRng,
    users: [&'a User; 2],
    host: &'a Host,
    events: &'a [Event; 2],
}

impl RandomClient<'_> {
    /// Sends a random request. Conflicts with other clients are rejected, which is right.
    async fn change(&mut self) {
        let Self { app, random, users, host, events: [event, other] } = self;
        let (sender, recipient) = if random.random() { (users[0], users[1]) } else { (users[1], users[0]) };
        let uris = async |path: String, key: &str, property: &str| -> Vec<String> {
            let page = app.get(key, &path).await.body;
            let entries = page["entries"].as_array().cloned().unwrap_or_default();
            entries.iter().filter_map(|entry| entry[property].as_str().map(str::to_owned)).collect()
        };
        let send = async |method: &str, path: &str, key: &str, body: Value| {
            let response = app.request(method, path).key(key).json(&body).send().await;
            assert!(response.status < 500, "{method} {path}: {response:?}");
        };
        let account = format!("/accounts/{}", sender.number);
        match random.random_range(0..11) {
            0 => {
                let items = json!({ event.sections[0].as_str(): 2, event.sections[1].as_str(): 1 });
                app.place_order(&sender.key, items).await;
            }
            1 => {
                // Of two events of the host.
                let items =
                    json!({ event.sections[0].as_str(): 2, other.sections[0].as_str(): 1, other.sections[1].as_str(): 1 });
                app.place_order(&sender.key, items).await;
            }
            2 => {
                let open = uris(format!("{account}/orders?status=Placed"), &sender.key, "self").await;
                let Some(order) = open.choose(random) else { return };
                if random.random() {
                    app.pay(&sender.key, order, card_payment()).await;
                } else {
                    app.cancel_order(&sender.key, order).await;
                }
            }
            3 => {
                let serials = uris(format!("{account}/tickets"), &sender.key, "serial").await;
                let Some(serial) = serials.choose(random) else { return };
                send("POST", "/transfers", &sender.key, json!({ "recipient": recipient.number, "tickets": [serial] })).await;
            }
            4 => {
                let path = format!("{account}/transfers?direction=received&status=Pending");
                let transfers = uris(path, &sender.key, "self").await;
                let Some(transfer) = transfers.choose(random) else { return };
                let answer = if random.random() { "claims" } else { "rejections" };
                send("POST", &format!("{transfer}/{answer}"), &sender.key, json!({})).await;
            }
            5 => {
                let serials = uris(format!("{}/tickets", event.uri), &host.owner.key, "serial").await;
                let Some(serial) = serials.choose(random) else { return };
                send("POST", &format!("{}/admissions", event.uri), &host.owner.key, json!({ "serials": [serial] })).await;
            }
            6 => {
                let admissions = uris(format!("{}/admissions", event.uri), &host.owner.key, "self").await;
                let Some(admission) = admissions.choose(random) else { return };
                app.delete(&host.owner.key, admission).await;
            }
            7 => {
                let draft = app.create_draft(host).await;
                app.delete(&host.owner.key, &draft.uri).await;
            }
            8 | 9 => {
                let orders = uris(format!("{account}/orders?status=Fulfilled"), &sender.key, "self").await;
                let Some(order) = orders.choose(random) else { return };
                let serials = uris(format!("{}/tickets", other.uri), &host.owner.key, "serial").await;
                let body = match serials.choose(random) {
                    // One of the tickets, if it is of this order.
                    Some(serial) if random.random() => json!({ "tickets": [serial] }),
                    _ => json!({}),
                };
                send("POST", &format!("{order}/returns"), &host.owner.key, body).await;
            }
            _ => {
                let orders = uris(format!("{account}/orders?status=Fulfilled"), &sender.key, "self").await;
                let Some(order) = orders.choose(random) else { return };
                send("POST", &format!("{order}/voids"), &app.staff.key, json!({ "reason": "Fraud." })).await;
            }
        }
    }
}

#[test_on(sqlite, postgres, two_servers)]
async fn totals_are_exact_after_concurrent_changes(app: TestApp) {
    let seed = rand::random::<u64>();
    eprintln!("seed {seed}");
    let (kofi, ama, esi) = (app.sign_up("kofi").await, app.sign_up("ama").await, app.sign_up("esi").await);
    let host = app.create_host(&kofi).await;
    let sections = [section("Free", 0.0, 500), section("Floor", 20.0, 500)];
    let events = [app.create_listed_event(&host, &sections).await, app.create_listed_event(&host, &sections).await];
    for event in &events {
        ama.order_free_tickets(&event.sections[0], 5).await;
        esi.order_free_tickets(&event.sections[0], 5).await;
    }

    join_all((0..CLIENTS).map(async |number| {
        let random = StdRng::seed_from_u64(seed.wrapping_add(number));
        let mut client = RandomClient { app: &app, random, users: [&ama, &esi], host: &host, events: &events };
        for _ in 0..CHANGES {
            client.change().await;
        }
    }))
    .await;

    let kinds = "select count(distinct operation) from audit where status < 300 and operation in ('event_admission_create',
        'event_admission_delete', 'event_delete', 'order_cancellation_create', 'order_payment_create', 'order_return_create',
        'order_void_create', 'transfer_claim_create', 'transfer_create', 'transfer_rejection_create')";
    let kinds = app.scalar::<i64>(kinds).await;
    assert!(kinds >= 4, "only {kinds} kinds of changes were accepted");
    app.assert_invariants().await;
    fill_again(&app).await;
    app.assert_invariants().await;
}

/// Fills the tables that triggers keep again, as the migrations do at an upgrade.
async fn fill_again(app: &TestApp) {
    macro_rules! migrations {
        ($database:literal) => {
            [
                include_str!(concat!("../../migrations/", $database, "/0110_orders_of_hosts.sql")),
                include_str!(concat!("../../migrations/", $database, "/0111_sums_of_sales.sql")),
            ]
        };
    }
    let migrations = if app.database_url.starts_with("sqlite") { migrations!("sqlite") } else { migrations!("postgres") };
    let mut filled = Vec::new();
    for statement in migrations.iter().flat_map(|migration| migration.split(";\n")) {
        let lines = statement.lines().skip_while(|line| line.is_empty() || line.starts_with("--"));
        let statement = lines.collect::<Vec<_>>().join("\n");
        let Some(table) = statement.strip_prefix("INSERT INTO ").and_then(|rest| rest.split(' ').next()) else { continue };
        let delete = match table {
            "host_orders" => "delete from host_orders",
            "list_counts" => "delete from list_counts where list = 'host orders'",
            "event_sales" => "delete from event_sales",
            "host_customers" => "delete from host_customers",
            "host_sales" => "delete from host_sales",
            table => panic!("{table} is no table that triggers keep"),
        };
        filled.push(table.to_owned());
        app.execute_sql(delete).await;
        app.execute_sql(statement.leak()).await;
    }
    assert_eq!(filled, ["host_orders", "list_counts", "event_sales", "host_customers", "host_sales"]);
}
