//! `boxoffice compare`: a running server held against the contract, and the report of it.

pub mod baseline;
mod checks;
pub mod comparison;
pub mod exchange;
mod interview;
pub mod model;
pub mod options;
pub mod progress;
mod record;
pub mod report;
pub mod side;
mod subject;
pub mod world;
