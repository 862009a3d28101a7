//! `boxoffice compare`: checks a running server against its OpenAPI document and writes a report.

mod argument;
pub mod baseline;
mod checks;
pub mod comparison;
mod currency;
pub mod fixtures;
mod form;
pub mod http_client;
mod identifiers;
pub mod model;
mod operation_run;
mod operation_under_test;
pub mod options;
pub mod progress;
pub mod proxy;
mod recorder;
pub mod report;
mod resources;
pub mod server_kind;
pub mod target;

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test may panic")]
mod tests;
