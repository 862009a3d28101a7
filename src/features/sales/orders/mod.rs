//! Orders: tickets reserved together by one account, from being placed to being paid, cancelled or timed out, and taken back
//! again.
//!
//! Placing (`placement`) counts places of sections that are locked in ascending order, so that no section is oversold and nobody
//! waits for another in a circle. An open order whose reservation is over counts as timed out in every read,
//! even before [`expire_due`] says so in the table. How an order ends is in `settlement`; `payments` asks it to fulfil what
//! has been paid, and is asked by it to give back what was paid for an order that ended otherwise. What becomes of a fulfilled
//! order whose tickets are returned or made void is in `returns`, which ends the open transfers of those tickets first.
//! `orders`, `payments` and `ledger` are one layer.

mod endpoints;
mod model;
mod placement;
mod return_order;
mod search;
mod service;
mod lifecycle;
mod store;

pub use endpoints::register;
pub use model::{OrderNumber, OrderRow, OrderStatus, uri};
pub use placement::OrderBatcher;
pub use search::parse as read_number_filter;
pub use service::{find_authorized, lock_authorized};
pub use lifecycle::{cancel_all, cancelled, expire_due, fulfill};
pub use store::{lock, lock_all};
