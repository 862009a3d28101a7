//! The ledger: an entry, in the API a `Transaction`, for every amount that was paid for an order, and for every amount that was
//! refunded.
//!
//! Entries are only added, never changed. An entry is written in the transaction that confirms the payment or completes the
//! refund. So the sales minus the refunds are the platform's balance, at any moment and exact to the cent.
//!
//! `allocation` divides an amount into convenience fees and hosts' shares, because an order may be for events of several hosts.
//! Platform administrators read all entries, host administrators only the shares of their host. `orders`, `payments` and `ledger`
//! depend on each other and form one layer.

mod allocation;
mod endpoints;
mod model;
mod service;
mod store;

pub use allocation::{Allocation, AllocationLine, HostShare, TicketCosts};
pub use endpoints::register;
pub(crate) use model::Transaction;
pub use model::{NewLedgerEntry, TransactionType};
pub(crate) use service::list_of_order;
pub use service::record;
pub use store::sales;
