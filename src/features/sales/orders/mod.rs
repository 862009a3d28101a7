//! Orders: tickets that one account reserves together, pays for and receives.
//!
//! A customer places an order and pays it before its reservation expires; then its tickets are issued. Otherwise it is cancelled
//! or timed out. The customer and platform administrators read, pay and cancel an order. Administrators of the hosts of its events
//! read their part of it. Administrators of the hosts of all its events can return tickets of a fulfilled order, and platform
//! administrators can void the order.
//!
//! - `pricing` computes the prices of items, for orders and for `quotes`.
//! - `placement` places orders. `inventory` has the places: it locks the sections in ascending order, which prevents overselling and
//!   deadlocks.
//! - `complimentary` places orders that cost nothing, also for e-mail addresses without an account (`guests`).
//! - `lifecycle` ends an open order. `payments` calls it to fulfill an order that is paid; it calls `payments` to refund an order
//!   that ended otherwise.
//! - `revocation` returns or voids the tickets of a fulfilled order. It ends the open transfers of those tickets first.
//! - [`waiting_list`] offers places of sold-out sections that become free to the accounts that wait for them.
//! - `hosts_orders` lists the orders of an event or a host, `returns` the returns of an order, and `voids` its voids.
//!
//! Every read treats an open order with an expired reservation as timed out, even before [`expire_due`] has updated its row.
//! `orders`, `payments` and `ledger` depend on each other and form one layer.

mod complimentary;
mod endpoints;
mod guests;
mod hosts_orders;
mod inventory;
mod lifecycle;
mod model;
mod order_reads;
mod placement;
mod pricing;
mod quotes;
mod returns;
mod revocation;
mod revocation_store;
mod search;
mod service;
mod store;
mod voids;
pub mod waiting_list;

pub use endpoints::register;
pub use lifecycle::{OrderRefund, cancel_all, correct_future, delete_unpaid_before, expire_due, fulfill, mail_refunds};
pub(crate) use model::Order;
pub use model::{EventItemRow, Items, OrderPath, OrderRow, OrderStatus, uri};
pub use order_reads::OrderReads;
pub use placement::OrderRequest;
pub(crate) use returns::{OrderReturn, list as list_returns};
pub use revocation::{ReturnedTickets, return_tickets_of_event};
pub use search::parse as read_number_filter;
pub use service::{AccountOrders, load_for_payments, lock_authorized, resend_confirmation};
pub(crate) use service::{get, list_newest_of_account};
pub use store::{find, lock, lock_all, lock_events_of, lock_reserved_sections};
pub(crate) use voids::{OrderVoid, list as list_voids};
