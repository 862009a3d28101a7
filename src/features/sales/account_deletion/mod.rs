//! Permanent deletion of an account, by the account itself or a platform administrator.
//!
//! The deletion touches every feature that has data about the account, so it is a feature of its own. It is one transaction, so a
//! rejected deletion changes nothing:
//!
//! 1. It locks the account's row. A request that adds an order, a preference or a host to the account locks the row too
//!    (`accounts::lock`), so it either commits first and is seen here, or finds no account.
//! 2. It cancels the account's open orders and schedules their refunds. It waits for an order that is being paid at the moment:
//!    that order is then fulfilled, and its tickets count, or cancelled. It deletes the account's entries of waiting lists.
//! 3. It cancels open transfers, so that offered tickets count as the account's own. An account with tickets for upcoming events
//!    is not deleted.
//! 4. It removes the account from the hosts that it administers, and deletes its preferences, its verification codes and its
//!    unsent mail.
//! 5. It marks the account's tickets as changed, so that devices at the entrance replace the owner's data in their copies.

mod endpoints;
mod service;

pub use endpoints::register;
pub use service::truncate_wal;
