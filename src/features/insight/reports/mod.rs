//! Reports on the sales of hosts and events, for host administrators and platform administrators. Payments and refunds are in the
//! ledger.
//!
//! A report counts tickets that are not Void of orders that are Fulfilled, with the price and the fee of their order item. A
//! returned ticket or a voided order therefore disappears from every report.
//!
//! Triggers keep the sums of each event and host (`migrations/*/0111_sums_of_sales.sql`), so that a report takes the same time whatever
//! was sold. The kept sums are those of whole days in UTC: a report on another period reads the tickets of its event.

mod endpoints;
mod model;
mod service;
mod store;

pub use endpoints::register;
