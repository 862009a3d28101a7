//! Exports for spreadsheets: orders and tickets of an event, and the ledger of a host, as CSV.
//!
//! An export may have a million rows. It is read in batches by ascending identifier, each with a query of its own, and sent while
//! the next batch is read. So it needs little memory, and no transaction is open for long.

mod endpoints;
mod model;
mod service;
mod store;
mod table;

pub use endpoints::register;
pub use table::text as escape_formula;
