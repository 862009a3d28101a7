//! Tickets: the right to one place in a section of an event, issued when an order is fulfilled.
//!
//! A ticket is Issued until it is redeemed at the entrance. It is Pending while an open transfer offers it to another account,
//! and Void once it was returned or its order was voided. Only an Issued ticket can be redeemed or offered, and only once:
//! [`redeem`] and [`mark_pending`] are conditional updates.
//!
//! A ticket that is claimed from a transfer becomes Void and is [replaced](replace) by a new ticket, so that the sender can't
//! enter with the old serial number. A replaced ticket exists only in the list of changes that devices at the entrance read.
//!
//! An owner reads its own tickets. Host administrators, redeemers and platform administrators read the tickets of an event.

mod code;
mod endpoints;
mod event_lists;
mod keys;
mod model;
mod qr_code;
mod service;
mod store;
mod workers;

pub use code::{digest, replace_codes, serial_of_bytes, sign as sign_code};
pub use endpoints::register;
pub use event_lists::EventTicketLists;
pub use keys::{TicketKeys, is_registered, register_key};
pub use model::{Redeemed, SERIAL_PATTERN, Serial, SerialInput, Ticket, TicketRow, TicketStatus, uri};
pub use qr_code::QrCode;
pub use service::{AccountTickets, NewTickets, issue, replace};
pub(crate) use service::{list_of_account, list_of_order};
pub(in crate::features) use store::joined_columns;
pub use store::{
    BYTES, SET_MODIFIED, bytes_sql, find_by_order, has_upcoming, ids_of_account, list_for_gate, lock_by_ids, lock_by_serials,
    lock_of_order, lock_orders, lock_own, mark_pending, or_all_if_future, redeem, release, touch_of_account, undo_redemption,
    void,
};
pub use workers::TicketWorkers;
