//! A server of its own for each test, and people who use it through the generated client.
//!
//! ```ignore
//! on_both_databases![an_order_is_fulfilled];
//!
//! async fn an_order_is_fulfilled(world: World) {
//!     let ama = world.person("ama").await;
//!     let event = world.listed_event(&world.host_of(&ama).await, &[section("Floor", 20.0, 100)]).await;
//!     let order = ama.order(&event.sections[0], 2).await.unwrap();
//!     assert_eq!(order.status, types::OrderStatus::Placed);
//! }
//! ```

mod contract;
mod http;
mod mail_server;
mod people;
mod post;
pub mod postgres;
mod sales;
mod stage;
mod till;
mod world;

pub use http::{Answer, Refusal};
pub use mail_server::{MailServer, Mood, Secure};
pub use people::{PASSWORD, Person};
pub use post::{Post, code_in, eventually};
pub use sales::{RESERVATION, by_card, part};
pub use stage::{Event, Host, section};
pub use till::Till;
pub use world::World;

pub use boxoffice_client::{Client, types};

/// Runs each of the named async functions, which take a [`World`], on a fresh database of either kind.
#[macro_export]
macro_rules! on_both_databases {
    ($($test:ident),* $(,)?) => {$(
        mod $test {
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn sqlite() {
                super::$test($crate::support::World::on_sqlite().await).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn postgres() {
                if let Some(world) = $crate::support::World::on_postgres().await {
                    super::$test(world).await;
                }
            }
        }
    )*};
}
