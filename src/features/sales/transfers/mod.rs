//! Transfers: an account offers tickets to another account, until the offer is claimed, rejected or cancelled.
//!
//! The owner of the tickets creates a transfer, the recipient claims or rejects it, and either of them can cancel it. The
//! tickets of an open transfer are Pending, so that they can be neither redeemed nor offered again.
//!
//! A request that ends a transfer updates the transfer first, on the condition that it is Pending, and then its tickets in
//! ascending order (see the lock order in CONTRIBUTING.md). Of two concurrent requests one succeeds, and the tickets follow its
//! result. A transfer is also cancelled when one of its accounts is deleted (`account_deletion`) or one of its tickets is returned or
//! voided (`orders`).
//!
//! A claim replaces the tickets by new ones. It locks their orders before it updates the transfer, so that a concurrent return of
//! an order misses none of its tickets.

mod endpoints;
mod model;
mod service;
mod store;

pub use endpoints::register;
pub use model::TransferStatus;
pub(crate) use model::{Transfer, TransferFilter};
pub use service::{AccountTransfers, cancel_for_account, cancel_for_tickets};
pub(crate) use service::{list_of_account, list_of_order};
pub(in crate::features) use store::from_transfers_and_tickets;
