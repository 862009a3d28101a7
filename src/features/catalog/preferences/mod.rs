//! Preferences: the region whose events an account wants to see first.
//!
//! They are there from the account's making, though a row is only written once something is preferred. A region that is removed is
//! preferred by nobody any more; nobody's preference keeps it from being removed.

mod endpoints;
mod model;
mod service;
mod store;

pub use endpoints::register;
pub use store::forget;
