//! Tickets: the right to one place in a section of an event, issued when an order is fulfilled.
//!
//! A ticket is Issued until it is redeemed at the gate, is Pending while an open transfer offers it to somebody else, and
//! Void once it was given back. Only an Issued one can be redeemed, and only once: [`redeem`] is a conditional update.

mod endpoints;
mod model;
mod service;
mod store;

pub use endpoints::register;
pub use model::{Serial, Ticket, TicketRow, TicketStatus};
pub use service::issue;
pub use store::{lock_of_order, redeem, void};
