//! Transfers: tickets that one account offers to another, until they are claimed, rejected or cancelled.
//!
//! An open transfer makes its tickets Pending, so that nobody is admitted by them and no other transfer holds them. Whoever
//! ends it changes the transfer first, by an update that asks for Pending, and then its tickets in ascending order: of two who
//! do so at the same moment one succeeds, and the tickets are as that one says. A transfer also ends, Cancelled, with an account
//! that is erased and with a ticket that is taken back: `erasure` and `orders` ask for it.

mod endpoints;
mod model;
mod service;
mod store;

pub use endpoints::register;
pub use service::{cancel_for_account, cancel_for_tickets};
