//! `boxoffice`: an event-ticketing platform as a REST API, written against one OpenAPI document.
//!
//! A tour along the path of one request, `POST /orders`:
//!
//! 1. [`http`]'s front door finds the endpoint, checks the client's version, the key ([`auth`]) and its scope, and holds the
//!    request against the [`contract`]: whatever is missing or invalid is answered here, all at once.
//! 2. `orders::endpoints::order_create` takes the caller and the body as Rust types and calls one function of the feature.
//! 3. `orders::placement::place` begins a transaction ([`db`]), loads what it touches, asks for permission where it loads it,
//!    and applies the rules.
//! 4. `orders::store` has the SQL, a function for each statement.
//! 5. The feature turns rows into the view that the contract describes; what goes wrong is an [`error::Error`], which
//!    [`http::Failure`] alone turns into a status and a body.
//! 6. The [`journal`] adds a row to the audit trail, and the answer, where the request carried an `Idempotency-Key`; then the
//!    transaction is committed, and the request answered.
//!
//! Every feature is a folder with the same four names, of which it leaves out what it has no use for: `endpoints` (HTTP in,
//! HTTP out), `service` (rules), `store` (SQL) and `model` (types). What would be too much for one file stands beside them under
//! a name of its own, as `placement` does. A feature knows `base`, `db`, `http`, `auth` and the features below it, never one
//! above: `tests/it/layers.rs` has their order and holds them to it.
//!
//! - Who: [`accounts`], how they come in ([`sessions`], [`integrations`]), what is asked before ([`lookups`], [`codes`]), what
//!   they prefer ([`preferences`]), and how they go ([`erasure`]); [`hosts`].
//! - What is staged, and where: [`regions`], [`venues`], [`categories`], [`events`], their [`sections`] and price [`modifiers`];
//!   [`zones`] and [`advertisements`]; the staff's [`review`] of what is submitted; [`media`] for the images.
//! - What is sold: [`orders`], [`payments`] and the [`ledger`], [`tickets`] and their [`transfers`]; at the gate, [`tokens`] and
//!   [`admissions`]; [`reports`] of it all, and the [`audit`] trail of who changed what.
//! - What clients need to know: [`defaults`].
//!
//! Mail leaves through the [`outbox`]. What runs beside the requests is in [`jobs`]; what is made without a request, in [`setup`]
//! and [`demo`]; the command line, in [`command`]; the settings, in [`config`]; what joins all this, in [`app`]. [`mock`] answers
//! from the contract alone.

pub mod accounts;
pub mod admissions;
pub mod advertisements;
pub mod app;
pub mod audit;
pub mod auth;
pub mod base;
pub mod categories;
pub mod codes;
pub mod command;
pub mod config;
pub mod contract;
pub mod db;
pub mod defaults;
pub mod demo;
pub mod erasure;
pub mod error;
pub mod events;
pub mod hosts;
pub mod http;
pub mod integrations;
pub mod jobs;
pub mod journal;
pub mod ledger;
pub mod log;
pub mod lookups;
pub mod media;
pub mod mock;
pub mod modifiers;
pub mod orders;
pub mod outbox;
pub mod payments;
pub mod preferences;
pub mod qa;
pub mod regions;
pub mod reports;
pub mod review;
pub mod sections;
pub mod sessions;
pub mod setup;
pub mod tickets;
pub mod tokens;
pub mod transfers;
pub mod venues;
pub mod zones;
