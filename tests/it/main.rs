//! Every test of the server: through its front door, on SQLite and on PostgreSQL alike.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

mod accounts;
mod activation;
mod admissions;
mod advertisements;
mod audit;
mod callers;
mod categories;
mod command;
mod compare;
mod compare_world;
mod defaults;
mod erasure;
mod events;
mod failures;
mod faults;
mod frame;
mod hosts;
mod integrations;
mod layers;
mod ledger;
mod lookups;
mod mail;
mod media;
mod mock;
mod modifiers;
mod mutations;
mod mutator;
mod orders;
mod paging;
mod payments;
mod preferences;
mod prices;
mod races;
mod random_walk;
mod regions;
mod reports;
mod requirement;
mod resets;
mod retries;
mod returns;
mod review;
mod sale;
#[expect(dead_code, reason = "the sample's endpoints are described and never called")]
mod sample;
mod sections;
mod sessions;
mod settings;
mod states;
mod sweep;
mod tickets;
mod tokens;
mod transfers;
mod venues;
mod verifications;
mod zones;

fn main() -> std::process::ExitCode {
    faults::server::run_if_asked().unwrap_or_else(support::harness::run)
}
