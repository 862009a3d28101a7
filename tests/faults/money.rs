//! A server is killed during a payment or refund: another server completes or undoes it, and no money is lost or taken twice.

use std::net::SocketAddr;
use std::time::Duration;

use boxoffice_client::{Client, Error, RetryPolicy, types};
use serde_json::json;
use tokio::net::TcpListener;

use super::server;
use crate::support::server_process::ServerProcess;
use crate::support::{Event, TestApp, User, card_payment, partial_card_payment, rejection, section, test_on, wait_until};

/// Longer than the gateway's timeout, after which a payment is abandoned.
const ABANDONED_AFTER: Duration = Duration::from_secs(3 * 60);

/// Ama's order of two tickets at 100.00, which is 203.98 with fees, and a server that can be killed.
struct Fixture {
    ama: User,
    event: Event,
    order: types::Order,
    killed: ServerProcess,
    _folder: tempfile::TempDir,
}

async fn create_fixture(app: &TestApp, gateway: SocketAddr) -> Fixture {
    let (_, ama, event) = app.create_sale(&[section("Stalls", 100.0, 2)]).await;
    let order = ama.order(&event.sections[0], 2).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let mut command = server::command(folder.path(), gateway, Duration::ZERO);
    command.env("DATABASE_URL", &app.database_url);
    Fixture { ama, event, order, killed: ServerProcess::start(command), _folder: folder }
}

impl Fixture {
    /// Returns Ama with a client of the server that will be killed.
    fn ama_at_killed_server(&self) -> User {
        let client = Client::connect(&self.killed.address, &self.ama.key).unwrap().with_retries(RetryPolicy::NONE);
        let User { number, username, key, .. } = &self.ama;
        User { client, number: number.clone(), username: username.clone(), key: key.clone() }
    }

    /// Kills the server, and returns the error that its client receives.
    async fn kill<T: Send + 'static>(
        &self,
        request: tokio::task::JoinHandle<Result<T, Error<types::Error>>>,
    ) -> Option<Error<types::Error>> {
        self.killed.signal("KILL");
        request.await.unwrap().err()
    }
}

/// Ama pays at the server, which is killed after the charge and before the gateway's response.
async fn pay_and_kill(app: &TestApp) -> Fixture {
    let fixture = create_fixture(app, app.gateway.listen().await).await;
    app.gateway.block();
    let (ama, order) = (fixture.ama_at_killed_server(), fixture.order.clone());
    let pays = tokio::spawn(async move { ama.pay(&order).await });
    app.gateway.wait_for_charges(1).await;
    let records = fixture.kill(pays).await;
    assert!(matches!(records, Some(Error::CommunicationError(_))), "{records:?}");
    app.gateway.unblock();
    assert_eq!((app.gateway.charge_count(), app.gateway.total()), (1, 203.98));
    fixture
}

async fn assert_books(app: &TestApp) {
    app.assert_invariants().await;
    app.check_gateway_balance().await;
}

#[test_on(sqlite, postgres)]
async fn unrecorded_charge_is_cancelled(app: TestApp) {
    let fixture = pay_and_kill(&app).await;
    let order = &fixture.order.self_;
    assert_eq!((app.payments(order).await, &app.read(order).await["status"]), (vec![], &json!("Placed")));

    app.advance_clock(ABANDONED_AFTER);
    app.expire_due().await;

    assert_eq!((app.gateway.total(), app.payments(order).await), (0.0, vec![]));
    assert_eq!(app.pay(&fixture.ama.key, order, card_payment()).await.status, 201);
    assert_eq!((app.gateway.charge_count(), app.gateway.total()), (2, 203.98));
    assert_eq!(app.payments(order).await, [(203.98, "Confirmed".to_owned())]);
    assert_eq!(app.sold_and_reserved(&fixture.event.sections[0]).await, (2, 0));
    assert_books(&app).await;
}

#[test_on(sqlite, postgres)]
async fn unrecorded_charge_is_cancelled_after_expiry(app: TestApp) {
    let fixture = pay_and_kill(&app).await;

    app.time_out_orders().await;

    assert_eq!((app.gateway.charge_count(), app.gateway.total()), (1, 0.0));
    assert_eq!(app.read(&fixture.order.self_).await["status"], "Timed Out");
    assert_eq!(app.sold_and_reserved(&fixture.event.sections[0]).await, (0, 0));
    assert_books(&app).await;
}

#[test_on(sqlite, postgres)]
async fn unsent_charge_is_abandoned(app: TestApp) {
    // A gateway that accepts the connection and reads nothing.
    let deaf = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let fixture = create_fixture(&app, deaf.local_addr().unwrap()).await;
    let (ama, order) = (fixture.ama_at_killed_server(), fixture.order.clone());
    let pays = tokio::spawn(async move { ama.pay(&order).await });
    let _asked = deaf.accept().await.unwrap();
    assert!(fixture.kill(pays).await.is_some());

    // Until the payment is abandoned, another one is rejected.
    let order = &fixture.order.self_;
    assert_eq!(rejection(&app.pay(&fixture.ama.key, order, card_payment()).await), (409, "order.not-open"));
    app.advance_clock(ABANDONED_AFTER);
    app.expire_due().await;

    assert_eq!(app.pay(&fixture.ama.key, order, card_payment()).await.status, 201);
    assert_eq!((app.gateway.charge_count(), app.gateway.total()), (1, 203.98));
    assert_eq!(app.payments(order).await, [(203.98, "Confirmed".to_owned())]);
    assert_books(&app).await;
}

#[test_on(sqlite, postgres)]
async fn unrecorded_refund_is_made_once(app: TestApp) {
    let fixture = create_fixture(&app, app.gateway.listen().await).await;
    let order = &fixture.order.self_;
    for paid in [50.0, 70.0] {
        assert_eq!(app.pay(&fixture.ama.key, order, partial_card_payment(paid)).await.status, 201);
    }
    // The job of the other server would record the refunds at any time.
    app.stop_jobs().await;
    app.gateway.block();
    let (ama, number) = (fixture.ama_at_killed_server(), fixture.order.number.clone());
    let cancels = tokio::spawn(async move { ama.client.order_cancellation_create().order(number).send().await });
    wait_until(async || app.gateway.total() == 0.0).await;
    assert!(fixture.kill(cancels).await.is_some());
    app.gateway.unblock();
    assert_eq!(app.transactions("/transactions?type=Refund").await, [], "refunded, and not recorded");

    app.expire_due().await;

    assert_eq!(app.gateway.total(), 0.0);
    assert_eq!(app.payments(order).await, [(50.0, "Refunded".to_owned()), (70.0, "Refunded".to_owned())]);
    assert_eq!(app.transactions("/transactions?type=Refund").await.len(), 2);
    assert_eq!(app.read(order).await["status"], "Cancelled");
    assert_books(&app).await;
}
