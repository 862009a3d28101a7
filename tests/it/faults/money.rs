//! A server is killed while the gateway has its money: another finds what was begun, and none is lost or taken twice.

use boxoffice_client::{Client, Error, RetryPolicy, types};
use serde_json::json;
use tokio::net::TcpListener;

use std::net::SocketAddr;
use std::time::Duration;

use super::server;
use crate::on_both_databases;
use crate::support::program::Server;
use crate::support::{Event, Person, RESERVATION, World, books, by_card, eventually, part, section};

on_both_databases![
    a_charge_that_nobody_wrote_down_is_undone,
    a_charge_that_nobody_wrote_down_is_undone_when_the_order_is_over,
    a_charge_that_was_never_asked_for_is_forgotten,
    a_refund_that_nobody_wrote_down_is_done_once,
];

/// Longer than a request waits for the gateway, so that whoever began a payment is given up.
const GIVEN_UP: Duration = Duration::from_secs(3 * 60);

/// Ama's order of two tickets at 100.00, which is 203.98 with fees, and a server that can be killed.
struct Scene {
    ama: Person,
    event: Event,
    order: types::Order,
    doomed: Server,
    _folder: tempfile::TempDir,
}

async fn scene(world: &World, till: SocketAddr) -> Scene {
    let (kofi, ama) = (world.person("kofi").await, world.person("ama").await);
    let event = world.listed_event(&world.host_of(&kofi).await, &[section("Stalls", 100.0, 2)]).await;
    let order = ama.order(&event.sections[0], 2).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let mut command = server::command(folder.path(), till, Duration::ZERO);
    command.env("DATABASE_URL", &world.database_url);
    Scene { ama, event, order, doomed: Server::start(command), _folder: folder }
}

impl Scene {
    /// Ama at the server that will be killed.
    fn ama_there(&self) -> Person {
        let client = Client::connect(&self.doomed.address, &self.ama.key).unwrap().with_retries(RetryPolicy::NONE);
        let Person { number, username, key, .. } = &self.ama;
        Person { client, number: number.clone(), username: username.clone(), key: key.clone() }
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
async fn pay_and_die(world: &World) -> Scene {
    let scene = scene(world, world.till.open().await).await;
    world.till.hold();
    let (ama, order) = (scene.ama_there(), scene.order.clone());
    let pays = tokio::spawn(async move { ama.pay(&order).await });
    world.till.until(1).await;
    let heard = scene.kill(pays).await;
    assert!(matches!(heard, Some(Error::CommunicationError(_))), "{heard:?}");
    world.till.release();
    assert_eq!((world.till.charges(), world.till.total()), (1, 203.98));
    scene
}

async fn assert_books(world: &World) {
    assert_eq!(books(&mut world.app.db.read().await.unwrap()).await, [""; 0]);
    world.check_till().await;
}

async fn a_charge_that_nobody_wrote_down_is_undone(world: World) {
    let scene = pay_and_die(&world).await;
    let order = &scene.order.self_;
    assert_eq!((world.payments(order).await, &world.read(order).await["status"]), (vec![], &json!("Placed")));

    world.advance(GIVEN_UP);
    world.expire_due().await;

    assert_eq!((world.till.total(), world.payments(order).await), (0.0, vec![]));
    assert_eq!(world.pay(&scene.ama.key, order, by_card()).await.status, 201);
    assert_eq!((world.till.charges(), world.till.total()), (2, 203.98));
    assert_eq!(world.payments(order).await, [(203.98, "Confirmed".to_owned())]);
    assert_eq!(world.places(&scene.event.sections[0]).await, (2, 0));
    assert_books(&world).await;
}

async fn a_charge_that_nobody_wrote_down_is_undone_when_the_order_is_over(world: World) {
    let scene = pay_and_die(&world).await;

    world.advance(RESERVATION);
    world.expire_due().await;

    assert_eq!((world.till.charges(), world.till.total()), (1, 0.0));
    assert_eq!(world.read(&scene.order.self_).await["status"], "Timed Out");
    assert_eq!(world.places(&scene.event.sections[0]).await, (0, 0));
    assert_books(&world).await;
}

async fn a_charge_that_was_never_asked_for_is_forgotten(world: World) {
    // A gateway that takes the connection and reads nothing.
    let deaf = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let scene = scene(&world, deaf.local_addr().unwrap()).await;
    let (ama, order) = (scene.ama_there(), scene.order.clone());
    let pays = tokio::spawn(async move { ama.pay(&order).await });
    let _asked = deaf.accept().await.unwrap();
    assert!(scene.kill(pays).await.is_some());

    // Until it is given up nobody can pay, so that nobody pays twice.
    let order = &scene.order.self_;
    let early = world.pay(&scene.ama.key, order, by_card()).await;
    assert_eq!((early.status, early.code()), (409, "order.not-open"));
    world.advance(GIVEN_UP);
    world.expire_due().await;

    assert_eq!(world.pay(&scene.ama.key, order, by_card()).await.status, 201);
    assert_eq!((world.till.charges(), world.till.total()), (1, 203.98));
    assert_eq!(world.payments(order).await, [(203.98, "Confirmed".to_owned())]);
    assert_books(&world).await;
}

async fn a_refund_that_nobody_wrote_down_is_done_once(world: World) {
    let scene = scene(&world, world.till.open().await).await;
    let order = &scene.order.self_;
    for paid in [50.0, 70.0] {
        assert_eq!(world.pay(&scene.ama.key, order, part(paid)).await.status, 201);
    }
    world.till.hold();
    let (ama, number) = (scene.ama_there(), scene.order.number.clone());
    let cancels = tokio::spawn(async move { ama.client.order_cancellation_create().order(number).send().await });
    eventually(async || world.till.total() == 0.0).await;
    assert!(scene.kill(cancels).await.is_some());
    world.till.release();
    assert_eq!(world.ledger("/transactions?type=Refund").await, [], "given back, and not written down");

    world.expire_due().await;

    assert_eq!(world.till.total(), 0.0);
    assert_eq!(world.payments(order).await, [(50.0, "Refunded".to_owned()), (70.0, "Refunded".to_owned())]);
    assert_eq!(world.ledger("/transactions?type=Refund").await.len(), 2);
    assert_eq!(world.read(order).await["status"], "Cancelled");
    assert_books(&world).await;
}
