//! The gate of `clients/rust/examples/offline_gate.rs` against a server: two gates, one of them without a connection.

use std::net::SocketAddr;
use std::time::Duration;

use boxoffice::kernel::settings::Settings;
use boxoffice_client::{Client, ClientBuilder, RetryPolicy};
use chrono::{DateTime, Utc};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, oneshot};

use super::gate_lists::insert_10_000_tickets;
use crate::support::{Event, TestApp, section, test_on};
use crate::tokens::{create_token, global_token, redeemer_key};

#[path = "../../../clients/rust/examples/offline_gate.rs"]
#[expect(clippy::duplicate_mod, reason = "another example uses it too")]
#[expect(dead_code, reason = "the test doesn't call the example's main function")]
mod example;

use example::{Decision, Gate};

/// Passes connections to the server while `cable` is true.
async fn start_network(server: std::net::SocketAddr, cable: tokio::sync::watch::Receiver<bool>) -> std::net::SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            let mut cable = cable.clone();
            tokio::spawn(async move {
                let Ok(mut upstream) = tokio::net::TcpStream::connect(server).await else { return };
                tokio::select! {
                    _ = tokio::io::copy_bidirectional(&mut client, &mut upstream) => {}
                    // Dropping both sides closes the connection.
                    _ = cable.wait_for(|is_plugged| !is_plugged) => {}
                }
            });
        }
    });
    address
}

/// A request head that a network has received, and the channel for the decision if it is passed on.
type HeldRequest = (String, oneshot::Sender<bool>);

/// Passes requests to the server, each after a decision. The connection of a request that is not passed on is closed.
async fn start_deciding_network(server: SocketAddr) -> (SocketAddr, mpsc::UnboundedReceiver<HeldRequest>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (requests, held) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            let requests = requests.clone();
            tokio::spawn(async move {
                let (mut from_client, mut to_client) = client.into_split();
                let (mut from_server, mut to_server) = TcpStream::connect(server).await.unwrap().into_split();
                let responses = tokio::spawn(async move { tokio::io::copy(&mut from_server, &mut to_client).await });
                let mut head = [0; 8192];
                // A GET without a body arrives at once.
                while let Ok(length @ 1..) = from_client.read(&mut head).await {
                    let (decide, decision) = oneshot::channel::<bool>();
                    requests.send((String::from_utf8_lossy(&head[..length]).into_owned(), decide)).unwrap();
                    if !decision.await.unwrap() || to_server.write_all(&head[..length]).await.is_err() {
                        break;
                    }
                }
                responses.abort();
            });
        }
    });
    (address, held)
}

/// Passes all requests until one matches, and returns the channel for the decision about that one.
async fn hold_request(held: &mut mpsc::UnboundedReceiver<HeldRequest>, is_held: impl Fn(&str) -> bool) -> oneshot::Sender<bool> {
    loop {
        let (head, decide) = held.recv().await.unwrap();
        if is_held(&head) {
            return decide;
        }
        decide.send(true).unwrap();
    }
}

/// Passes all requests.
async fn pass_all(held: &mut mpsc::UnboundedReceiver<HeldRequest>) {
    hold_request(held, |_| false).await;
}

/// Creates a gate behind a network in which the test decides about each request.
async fn gate_in_deciding_network(app: &TestApp, event: &Event, key: &str) -> (Gate, mpsc::UnboundedReceiver<HeldRequest>) {
    let (network, held) = start_deciding_network(app.server).await;
    let client = ClientBuilder::new(&format!("http://{network}"), key).retries(RetryPolicy::NONE).build().unwrap();
    (Gate::new(client, &event.id, "Gate A"), held)
}

#[test_on(sqlite, postgres)]
async fn interrupted_load_keeps_the_list(app: TestApp) {
    let (kofi, ama, event) = app.create_sale(&[section("VIP", 0.0, 10), section("Floor", 0.0, 10)]).await;
    let vip = ama.order_free_tickets(&event.sections[0], 1).await.remove(0);
    let floor = ama.order_free_tickets(&event.sections[1], 1).await.remove(0);
    let token = create_token(&event, &[&event.sections[0]]).await;
    let key = redeemer_key(&app, &token).await;
    let (mut gate, mut held) = gate_in_deciding_network(&app, &event, &key).await;
    let now = || DateTime::<Utc>::from_timestamp_micros(app.state.clock.now().0).unwrap();
    tokio::select! {
        loaded = gate.sync() => assert!(loaded.unwrap().is_empty()),
        () = pass_all(&mut held) => {}
    }
    assert_eq!(app.put(&kofi.key, &token.self_, json!({ "sections": event.sections })).await.status, 200);

    // The connection breaks when the gate loads the complete list.
    let cut = async {
        let is_complete = |head: &str| head.contains("gate-list") && !head.contains("modified_since");
        hold_request(&mut held, is_complete).await.send(false).unwrap();
        pass_all(&mut held).await;
    };
    let interrupted = tokio::select! {
        loaded = gate.sync() => loaded,
        () = cut => unreachable!("all requests are passed on until the load ends"),
    };

    assert!(interrupted.is_err(), "{interrupted:?}");
    assert_eq!((gate.scan(&vip, now()), gate.scan(&floor, now())), (Decision::Admitted, Decision::NotInList));
    tokio::select! {
        loaded = gate.sync() => assert!(loaded.unwrap().is_empty()),
        () = pass_all(&mut held) => {}
    }
    assert_eq!(gate.scan(&floor, now()), Decision::Admitted);
}

#[test_on(sqlite, postgres)]
async fn load_starts_over_when_sections_change_between_pages(app: TestApp) {
    let (kofi, ama, event) = app.create_sale(&[section("VIP", 0.0, 20_000), section("Floor", 0.0, 10)]).await;
    let floor = ama.order_free_tickets(&event.sections[1], 1).await.remove(0);
    ama.order_free_tickets(&event.sections[0], 1).await;
    insert_10_000_tickets(&app).await;
    let token = create_token(&event, &[&event.sections[0]]).await;
    let key = redeemer_key(&app, &token).await;
    let (mut gate, mut held) = gate_in_deciding_network(&app, &event, &key).await;

    let change = async {
        let second_page = hold_request(&mut held, |head| head.contains("after=")).await;
        assert_eq!(app.put(&kofi.key, &token.self_, json!({ "sections": event.sections })).await.status, 200);
        second_page.send(true).unwrap();
        pass_all(&mut held).await;
    };
    tokio::select! {
        loaded = gate.sync() => assert!(loaded.unwrap().is_empty()),
        () = change => unreachable!("all requests are passed on until the load ends"),
    }

    let now = DateTime::<Utc>::from_timestamp_micros(app.state.clock.now().0).unwrap();
    assert_eq!(gate.scan(&floor, now), Decision::Admitted, "it is before the first page of the other section");
}

#[test_on(sqlite, postgres)]
async fn gate_works_with_the_cable_pulled(app: TestApp) {
    let (_, ama, event) = app.create_sale(&[section("VIP", 0.0, 200)]).await;
    let esi = app.sign_up("esi").await;
    let mut serials = Vec::new();
    for user in [&ama, &ama, &esi, &esi] {
        serials.extend(user.order_free_tickets(&event.sections[0], 30).await);
    }
    let ticket = &app.wallet(&ama).await[0];
    let code =
        app.get(&ama.key, &format!("{}/code", ticket["self"].as_str().unwrap())).await.body["code"].as_str().unwrap().to_owned();
    app.advance_clock(Duration::from_secs(120));
    let key = redeemer_key(&app, &global_token(&event).await).await;
    let (plug, cable) = tokio::sync::watch::channel(true);
    let server = app.address.trim_start_matches("http://").parse().unwrap();
    let network = start_network(server, cable).await;
    let offline = ClientBuilder::new(&format!("http://{network}"), &key).retries(RetryPolicy::NONE).build().unwrap();
    let (mut a, mut b) = (Gate::new(app.client(&key), &event.id, "Gate A"), Gate::new(offline, &event.id, "Gate B"));
    a.sync().await.unwrap();
    b.sync().await.unwrap();
    let now = || DateTime::<Utc>::from_timestamp_micros(app.state.clock.now().0).unwrap();

    // The cable of gate B is pulled. It admits 100 tickets, the first by its QR code.
    plug.send_replace(false);
    assert!(b.sync().await.is_err());
    let admitted: Vec<Decision> =
        (0..100).map(|number| b.scan(if number == 0 { &code } else { &serials[number] }, now())).collect();
    assert!(admitted.iter().all(|decision| *decision == Decision::Admitted), "{admitted:?}");
    assert_eq!([b.scan(&serials[0], now()), b.scan(&code.to_lowercase(), now())], [Decision::AdmittedBefore; 2]);
    assert_eq!(b.scan("AAAAAA-AAAAAAAAAAAA", now()), Decision::NotInList);
    assert_eq!(b.scan(&code.replace('A', "B"), now()), Decision::Invalid);
    assert_eq!(b.queued(), 100);

    // Meanwhile gate A admits 10 others, and copies of 5 that gate B has admitted.
    for serial in &serials[95..110] {
        assert_eq!(a.scan(serial, now()), Decision::Admitted);
    }
    assert!(a.sync().await.unwrap().is_empty());

    plug.send_replace(true);
    let of_b = b.sync().await.unwrap();
    let of_a = a.sync().await.unwrap();

    assert_eq!((b.queued(), of_b.len(), of_a.len()), (0, 5, 5), "both gates learn of the copies");
    assert!(
        of_b.iter().all(|conflict| (conflict.admission.device.as_str(), conflict.scan.device.as_str()) == ("Gate A", "Gate B"))
    );
    assert!(b.sync().await.unwrap().is_empty() && a.sync().await.unwrap().is_empty(), "once");
    assert_eq!(app.read(&format!("{}/admissions", event.uri)).await["total"], json!(110));
    assert_eq!(b.scan(&serials[109], now()), Decision::NotIssued, "gate A has admitted it");
    assert_eq!(b.scan(&serials[110], now()), Decision::Admitted);
}

/// The second server is the first one after a restart with a new key of the tickets.
#[test_on(sqlite, postgres)]
async fn codes_of_an_earlier_key_admit(app: TestApp) {
    let (_, ama, event) = app.create_sale(&[section("VIP", 0.0, 10)]).await;
    ama.order_free_tickets(&event.sections[0], 5).await;
    let tickets = app.wallet(&ama).await;
    let code = async |server: SocketAddr, index: usize| {
        let path = format!("{}/code", tickets[index]["self"].as_str().unwrap());
        app.request("GET", &path).key(&ama.key).at(server).send().await.body["code"].as_str().unwrap().to_owned()
    };
    let key = redeemer_key(&app, &global_token(&event).await).await;
    let (first, fourth) = (code(app.server, 0).await, code(app.server, 3).await);
    let mut a = Gate::new(app.client(&key), &event.id, "Gate A");
    a.sync().await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let settings = Settings { ticket_key_file: folder.path().join("ticket.key"), ..app.state.settings.clone() };
    let restarted = app.start_second_server(settings).await;
    let (second, fifth) = (code(restarted.address, 1).await, code(restarted.address, 4).await);
    assert_ne!(code(restarted.address, 0).await, first);
    let now = || DateTime::<Utc>::from_timestamp_micros(app.state.clock.now().0).unwrap();

    let batch = json!({ "serials": [first, second, tickets[2]["serial"]] });
    let online =
        app.request("POST", &format!("{}/admissions", event.uri)).key(&key).at(restarted.address).json(&batch).send().await;
    let mut b = Gate::new(Client::connect(&format!("http://{}", restarted.address), &key).unwrap(), &event.id, "Gate B");
    b.sync().await.unwrap();
    let without_new_key = a.scan(&fifth, now());
    a.sync().await.unwrap();
    let decisions = [b.scan(&fourth, now()), a.scan(&fifth, now())];
    let conflicts = [b.sync().await.unwrap(), a.sync().await.unwrap()].concat();

    assert_eq!((online.status, online.body.as_array().unwrap().len()), (201, 3), "{online:?}");
    assert_eq!((without_new_key, decisions), (Decision::Invalid, [Decision::Admitted; 2]));
    assert!(conflicts.is_empty(), "{conflicts:?}");
    assert_eq!(app.read(&format!("{}/admissions", event.uri)).await["total"], 5);
}
