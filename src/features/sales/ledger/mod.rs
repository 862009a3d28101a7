//! The ledger: every amount that was taken for an order, and every amount that was given back. Entries are added and never
//! changed, each in the transaction that confirms the payment or writes down that the money is back, so that the sales less the
//! refunds are what the platform holds, at any moment and to the cent.
//!
//! `parts` tells how much of an amount is convenience fees, and how much of it is each host's: an order may be of several
//! hosts' events, and a host reads its own part alone. `orders`, `payments` and `ledger` are one layer.

mod endpoints;
mod model;
mod allocation;
mod service;
mod store;

pub use endpoints::register;
pub use model::TransactionType;
pub use allocation::{Allocation, AllocationLine, HostShare, TicketCosts};
pub use service::{Entry, record};
pub use store::sales;
