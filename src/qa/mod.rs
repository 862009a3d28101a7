//! `boxoffice compare`: a running server held against the contract, and the report of it.

pub mod baseline;
pub mod exchange;
pub mod model;
pub mod report;
