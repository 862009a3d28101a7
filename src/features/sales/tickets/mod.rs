//! Tickets: the right to one place in a section of an event, issued when an order is fulfilled.
//!
//! A ticket is Issued until it is redeemed at the gate, is Pending while an open transfer offers it to somebody else, and
//! Void once it was returned or its order voided. Only an Issued one can be redeemed or offered, and only once: [`redeem`],
//! [`offer`] and [`release`] are conditional updates.

mod endpoints;
mod model;
mod service;
mod store;

pub use endpoints::register;
pub use model::{Redeemed, Serial, Ticket, TicketRow, TicketStatus, uri};
pub use service::{NewTickets, issue};
pub use store::{find_by_order, has_upcoming, lock_all, lock_of_order, lock_own, mark_pending, redeem, return_to_owner, void};
