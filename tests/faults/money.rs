//! A server is killed while the gateway has its money: another finds what was begun, and none is lost or taken twice.

use boxoffice_client::{Client, Error, Retries, types};
use serde_json::json;
use tokio::net::TcpListener;

use std::net::SocketAddr;
use std::time::Duration;

use super::server;
use crate::on_both_databases;
use crate::support::server_process::ServerProcess;
use crate::support::{
    Event, RESERVATION_TTL, TestApp, User, card_payment, check_invariants, partial_card_payment, section, wait_until,
};

on_both_databases![
    unrecorded_charge_is_undone,
    unrecorded_charge_is_undone_after_expiry,
    unsent_charge_is_abandoned,
    unrecorded_refund_is_made_once,
];

/// Longer than a request waits for the gateway, so that whoever began a payment is given up.
const GIVEN_UP: Duration = Duration::from_secs(3 * 60);

/// Ama's order of two tickets at 100.00, which is 203.98 with fees, and a server that can be killed.
struct Scene {
    ama: User,
    event: Event,
    order: types::Order,
    doomed: ServerProcess,
    _folder: tempfile::TempDir,
}

async fn scene(app: &TestApp, gateway: SocketAddr) -> Scene {
    let (kofi, ama) = (app.sign_up("kofi").await, app.sign_up("ama").await);
    let event = app.create_listed_event(&app.create_host(&kofi).await, &[section("Stalls", 100.0, 2)]).await;
    let order = ama.order(&event.sections[0], 2).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let mut command = server::command(folder.path(), gateway, Duration::ZERO);
    command.env("DATABASE_URL", &app.database_url);
    Scene { ama, event, order, doomed: ServerProcess::start(command), _folder: folder }
}

impl Scene {
    /// Ama at the server that will be killed.
    fn ama_there(&self) -> User {
        let client = Client::connect(&self.doomed.address, &self.ama.key).unwrap().with_retries(Retries::NONE);
        let User { number, username, key, .. } = &self.ama;
        User { client, number: number.clone(), username: username.clone(), key: key.clone() }
    }

    /// Kills it, and gives what its client then hears.
    async fn kill<T: Send + 'static>(
        &self,
        request: tokio::task::JoinHandle<Result<T, Error<types::Error>>>,
    ) -> Option<Error<types::Error>> {
        self.doomed.signal("KILL");
        request.await.unwrap().err()
    }
}

/// Ama pays at the doomed server, which is killed when the money is in the till and the gateway's answer on its way.
async fn pay_and_die(app: &TestApp) -> Scene {
    let scene = scene(app, app.gateway.listen().await).await;
    app.gateway.block();
    let (ama, order) = (scene.ama_there(), scene.order.clone());
    let pays = tokio::spawn(async move { ama.pay(&order).await });
    app.gateway.wait_for_charges(1).await;
    let heard = scene.kill(pays).await;
    assert!(matches!(heard, Some(Error::CommunicationError(_))), "{heard:?}");
    app.gateway.unblock();
    assert_eq!((app.gateway.charge_count(), app.gateway.total()), (1, 203.98));
    scene
}

async fn assert_books(app: &TestApp) {
    assert_eq!(check_invariants(&mut app.state.db.read().await.unwrap()).await, [""; 0]);
    app.check_gateway_balance().await;
}

async fn unrecorded_charge_is_undone(app: TestApp) {
    let scene = pay_and_die(&app).await;
    let order = &scene.order.self_;
    assert_eq!((app.payments(order).await, &app.read(order).await["status"]), (vec![], &json!("Placed")));

    app.advance_clock(GIVEN_UP);
    app.expire_due().await;

    assert_eq!((app.gateway.total(), app.payments(order).await), (0.0, vec![]));
    assert_eq!(app.pay(&scene.ama.key, order, card_payment()).await.status, 201);
    assert_eq!((app.gateway.charge_count(), app.gateway.total()), (2, 203.98));
    assert_eq!(app.payments(order).await, [(203.98, "Confirmed".to_owned())]);
    assert_eq!(app.sold_and_reserved(&scene.event.sections[0]).await, (2, 0));
    assert_books(&app).await;
}

async fn unrecorded_charge_is_undone_after_expiry(app: TestApp) {
    let scene = pay_and_die(&app).await;

    app.advance_clock(RESERVATION_TTL);
    app.expire_due().await;

    assert_eq!((app.gateway.charge_count(), app.gateway.total()), (1, 0.0));
    assert_eq!(app.read(&scene.order.self_).await["status"], "Timed Out");
    assert_eq!(app.sold_and_reserved(&scene.event.sections[0]).await, (0, 0));
    assert_books(&app).await;
}

async fn unsent_charge_is_abandoned(app: TestApp) {
    // A gateway that takes the connection and reads nothing.
    let deaf = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let scene = scene(&app, deaf.local_addr().unwrap()).await;
    let (ama, order) = (scene.ama_there(), scene.order.clone());
    let pays = tokio::spawn(async move { ama.pay(&order).await });
    let _asked = deaf.accept().await.unwrap();
    assert!(scene.kill(pays).await.is_some());

    // Until it is given up nobody can pay, so that nobody pays twice.
    let order = &scene.order.self_;
    let early = app.pay(&scene.ama.key, order, card_payment()).await;
    assert_eq!((early.status, early.code()), (409, "order.not-open"));
    app.advance_clock(GIVEN_UP);
    app.expire_due().await;

    assert_eq!(app.pay(&scene.ama.key, order, card_payment()).await.status, 201);
    assert_eq!((app.gateway.charge_count(), app.gateway.total()), (1, 203.98));
    assert_eq!(app.payments(order).await, [(203.98, "Confirmed".to_owned())]);
    assert_books(&app).await;
}

async fn unrecorded_refund_is_made_once(app: TestApp) {
    let scene = scene(&app, app.gateway.listen().await).await;
    let order = &scene.order.self_;
    for paid in [50.0, 70.0] {
        assert_eq!(app.pay(&scene.ama.key, order, partial_card_payment(paid)).await.status, 201);
    }
    app.gateway.block();
    let (ama, number) = (scene.ama_there(), scene.order.number.clone());
    let cancels = tokio::spawn(async move { ama.client.order_cancellation_create().order(number).send().await });
    wait_until(async || app.gateway.total() == 0.0).await;
    assert!(scene.kill(cancels).await.is_some());
    app.gateway.unblock();
    assert_eq!(app.transactions("/transactions?type=Refund").await, [], "given back, and not written down");

    app.expire_due().await;

    assert_eq!(app.gateway.total(), 0.0);
    assert_eq!(app.payments(order).await, [(50.0, "Refunded".to_owned()), (70.0, "Refunded".to_owned())]);
    assert_eq!(app.transactions("/transactions?type=Refund").await.len(), 2);
    assert_eq!(app.read(order).await["status"], "Cancelled");
    assert_books(&app).await;
}
