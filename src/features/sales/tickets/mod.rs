//! Tickets: the right to one place in a section of an event, issued when an order is fulfilled.
//!
//! A ticket is Issued until it is redeemed at the entrance. It is Pending while an open transfer offers it to another account,
//! and Void once it was returned or its order was voided. Only an Issued ticket can be redeemed or offered, and only once:
//! [`redeem`], [`mark_pending`] and [`return_to_owner`] are conditional updates.
//!
//! An owner reads its own tickets. Host administrators, redeemers and platform administrators read the tickets of an event.

mod endpoints;
mod model;
mod service;
mod store;

pub use endpoints::register;
pub use model::{Redeemed, Serial, Ticket, TicketRow, TicketStatus, uri};
pub use service::{NewTickets, issue};
pub use store::{
    find_by_order, has_upcoming, lock_all, lock_by_ids, lock_of_order, lock_own, mark_pending, redeem, release, return_to_owner,
    void,
};
