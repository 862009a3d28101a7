//! Every test of the server: through its front door, on SQLite and on PostgreSQL alike.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

mod accounts;
mod admissions;
mod categories;
mod command;
mod defaults;
mod events;
mod frame;
mod hosts;
mod integrations;
mod layers;
mod ledger;
mod media;
mod mutations;
mod mutator;
mod orders;
mod payments;
mod races;
mod random_walk;
mod regions;
mod returns;
mod review;
mod sale;
#[expect(dead_code, reason = "the sample's endpoints are described and never called")]
mod sample;
mod sections;
mod sessions;
mod states;
mod sweep;
mod tickets;
mod tokens;
mod venues;
