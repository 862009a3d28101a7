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
//!
//! [`harness`] runs what is registered so; `proxy` stands before each server and holds its answers to the contract; `coverage`
//! tells at the end which answers were never seen.

mod books;
mod cluster;
mod contract;
mod coverage;
mod far_till;
pub mod harness;
mod http;
mod mail_server;
mod notes;
mod operations;
mod people;
mod post;
pub mod postgres;
pub mod program;
mod programs;
mod proxy;
mod sales;
mod snapshot;
mod stage;
mod till;
mod world;

pub use books::books;
pub use cluster::Cluster;
pub use contract::CONTRACT;
pub use far_till::FarTill;
pub use http::{Answer, Refusal, Request, refusal};
pub use mail_server::{MailServer, Mood, Secure};
pub use operations::{Operation, operations};
pub use people::{PASSWORD, Person};
pub use post::{Post, code_in, eventually};
pub use sales::{RESERVATION, by_card, part};
pub use snapshot::Snapshot;
pub use stage::{Event, Host, section};
pub use till::Till;
pub use world::{ANYWHERE, World};

pub use boxoffice_client::{Client, types};

/// Registers each of the named async functions, which take a [`World`], as a test on a fresh database of either kind.
#[macro_export]
macro_rules! on_both_databases {
    ($($test:ident),* $(,)?) => {$(
        inventory::submit! {
            $crate::support::harness::Test::new(module_path!(), concat!(stringify!($test), "::sqlite"), || {
                $crate::support::harness::on_sqlite($test)
            })
        }
        inventory::submit! {
            $crate::support::harness::Test::new(module_path!(), concat!(stringify!($test), "::postgres"), || {
                $crate::support::harness::on_postgres($test)
            })
        }
    )*};
}

/// Registers each of the named async functions, which take a [`World`], as a test on two servers that share a PostgreSQL database.
#[macro_export]
macro_rules! on_two_servers {
    ($($test:ident),* $(,)?) => {$(
        inventory::submit! {
            $crate::support::harness::Test::new(module_path!(), concat!(stringify!($test), "::two_servers"), || {
                $crate::support::harness::on_two_servers($test)
            })
        }
    )*};
}

/// Registers each of the named async functions, which take a [`World`] in which much happens at the same moment, as a test on both
/// databases, and on two servers that share one.
#[macro_export]
macro_rules! race_tests {
    ($($test:ident),* $(,)?) => {
        $crate::on_both_databases![$($test),*];
        $crate::on_two_servers![$($test),*];
    };
}

/// Registers each of the named functions, which take nothing, as a test; after `async`, asynchronous ones.
#[macro_export]
macro_rules! plain_tests {
    (async $($test:ident),* $(,)?) => {$(
        inventory::submit! {
            $crate::support::harness::Test::new(module_path!(), stringify!($test), || {
                $crate::support::harness::plain_async($test)
            })
        }
    )*};
    ($($test:ident),* $(,)?) => {$(
        inventory::submit! {
            $crate::support::harness::Test::new(module_path!(), stringify!($test), || $crate::support::harness::plain($test))
        }
    )*};
}
