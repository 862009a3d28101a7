//! Reports on the sales of hosts and events, for host administrators and platform administrators. Payments and refunds are in the
//! ledger.
//!
//! A report counts tickets that are not Void of orders that are Fulfilled, with the price and the fee of their order item. A
//! returned ticket or a voided order therefore disappears from every report. The database computes the sums, in one or two
//! statements for each report.

mod endpoints;
mod model;
mod service;
mod store;

pub use endpoints::register;
