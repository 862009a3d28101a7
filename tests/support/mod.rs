//! Support for all test binaries: a server per test, users that call it through the generated client, and fake dependencies.
//!
//! ```ignore
//! #[test_on(sqlite, postgres)]
//! async fn fulfills_paid_order(app: TestApp) {
//!     let ama = app.sign_up("ama").await;
//!     let event = app.create_listed_event(&app.create_host(&ama).await, &[section("Floor", 20.0, 100)]).await;
//!     let order = ama.order(&event.sections[0], 2).await.unwrap();
//!     assert_eq!(order.status, types::OrderStatus::Placed);
//! }
//! ```
//!
//! `proxy` sits in front of each server and checks every response against the contract. `coverage` records which declared
//! responses were seen.

pub mod collector;
mod coverage;
mod failures;
mod fake_gateway;
mod fixtures;
mod http;
mod http_server;
mod invariants;
mod mail_server;
mod mailbox;
mod mock_server;
mod operations;
pub mod pdf;
mod pg_binaries;
mod pg_cluster;
pub mod postgres;
mod proxy;
mod remote_fake_gateway;
mod runner;
mod sales;
pub mod server_process;
mod snapshot;
mod statements;
mod test_app;
mod tool_process;
mod users;

pub use failures::{FailureCheck, TestFailures};
pub use fake_gateway::FakeGateway;
pub use fixtures::{Event, Host, id_of, section};
pub use http::{Call, Rejection, Request, Response, entries_of, fetch_url, header, refusing_socket, rejection, texts, uris};
pub use http_server::serve_http;
pub use invariants::check_invariants;
pub use mail_server::{MailServer, SmtpBehavior, TlsMode};
pub use mailbox::{Mailbox, code_in, readable, wait_until};
pub use mock_server::{MockServer, mock_request};
pub use operations::{CONTRACT, Operation, operations};
pub use pg_binaries::PgBinaries;
pub use pg_cluster::PgCluster;
pub use proxy::start_proxy;
pub use remote_fake_gateway::RemoteFakeGateway;
pub use runner::{race_rounds, run_on_postgres, run_on_sqlite, run_on_two_servers};
pub use sales::{RESERVATION_TTL, card_payment, entry, paid, partial_card_payment};
pub use snapshot::Snapshot;
pub use test_app::{ANY_PORT, DAY, SecondServer, TestApp, test_settings};
pub use tool_process::ToolProcess;
pub use users::{PASSWORD, User};

pub use boxoffice_client::{Client, types};
pub use boxoffice_test_macros::test_on;
