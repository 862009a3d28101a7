//! `boxoffice compare`: a running server held against the contract, and the report of it.

pub mod baseline;
mod checks;
pub mod comparison;
pub mod http_client;
mod operation_run;
pub mod model;
pub mod options;
pub mod progress;
mod recorder;
pub mod report;
pub mod target;
mod operation_under_test;
pub mod fixtures;
