//! Tests of the server through its HTTP API, on SQLite and on PostgreSQL.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../support/mod.rs"]
#[allow(dead_code, unused_imports, clippy::allow_attributes, reason = "shared by several test binaries")]
mod support;

mod access;
mod accounts;
mod activation;
mod admissions;
mod advertisements;
mod api_keys;
mod audit;
mod categories;
mod client;
mod client_version;
mod clock;
mod command;
mod defaults;
mod erasure;
mod etags;
mod events;
mod failures;
mod fuzz;
mod hosts;
mod http_limits;
mod integrations;
mod layers;
mod ledger;
mod lookups;
mod mail;
mod malformed_input;
mod media;
mod modifiers;
mod names;
mod orders;
mod paging;
mod passwords;
mod payments;
mod pipeline;
mod preferences;
mod prices;
mod purchase;
mod races;
mod random_walk;
mod regions;
mod reports;
mod resets;
mod retries;
mod returns;
mod review;
mod sections;
mod sessions;
mod settings;
mod states;
mod sweep;
mod tickets;
mod tokens;
mod transfers;
mod two_servers;
mod venues;
mod verifications;
mod zones;
