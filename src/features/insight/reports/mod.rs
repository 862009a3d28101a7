//! Reports: what a host or an event has sold. What was taken and given back is told by the ledger.
//!
//! What counts is a ticket that is not Void, of an order that is Fulfilled, at the price and the fee that its order's item of that
//! section had: so a ticket that is given back, or an order that is voided, is gone from every report. The databases do the sums,
//! in a statement or two for each report.

mod endpoints;
mod model;
mod service;
mod store;

pub use endpoints::register;
