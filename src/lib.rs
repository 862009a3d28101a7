//! `boxoffice`: an event-ticketing platform as a REST API, written against one OpenAPI document.
//!
//! - [`kernel`]: settings, database, HTTP, authentication, idempotency, audit log, mail, jobs. It names no feature.
//! - [`features`]: the platform itself. Each group depends on the kernel and on the groups before it: [`features::identity`],
//!   [`features::catalog`], [`features::sales`], [`features::gate`], [`features::insight`]. [`features::codes`] has its error codes.
//! - [`state`], [`routes`], [`server`]: the application's state, its endpoints, and a running server.
//! - [`admin_listener`], [`readiness`]: the health checks and the metrics, for operators.
//! - [`clock_watch`], [`retention`]: jobs that watch the machine's clock, and delete what is no longer needed.
//! - [`cli`], [`config`], [`bootstrap`], [`demo`]: the command line, its options, the first start, demo data.
//! - [`provisioning`]: accounts and keys that the command line creates.
//! - [`window_limits`]: limits of failed log-ins, mails and more, by account or address.
//! - [`open_page`]: the page to which links in mails lead.
//! - [`backup`], [`invariants`]: backups, and what must hold in every database.
//! - [`contract`], [`error_catalogue`]: the contract, and the list of its errors.
//!
//! A feature is a folder with up to four files of the same names: `endpoints` (HTTP), `service` (rules), `store` (SQL) and `model`
//! (types). `docs/tour.md` follows one request through all of them.
//!
//! Other crates of the workspace: `boxoffice-openapi` (the contract at run time), `boxoffice-http` (the dispatcher),
//! `boxoffice-mock`, `boxoffice-reference` (the start page and the API reference), and `boxoffice-conformance` (`boxoffice compare`
//! and `boxoffice proxy`).

pub mod admin_listener;
pub mod backup;
pub mod bootstrap;
pub mod cli;
pub mod clock_watch;
pub mod config;
pub mod contract;
pub mod demo;
pub mod error_catalogue;
/// The features of the platform, by group.
pub mod features;
pub mod invariants;
pub mod kernel;
pub mod open_page;
pub mod provisioning;
pub mod readiness;
pub mod retention;
pub mod routes;
pub mod server;
pub mod state;
pub mod window_limits;

/// Of the program and its tests.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;
