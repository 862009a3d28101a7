//! Payments: what is taken for an order through the gateway, or recorded by the platform's staff.
//!
//! No transaction stays open while the gateway is asked. A payment is first kept as `Pending`, which counts as taken, so that
//! two payments at the same moment cannot exceed the order's total; then the gateway is asked; then a second transaction
//! confirms it, and fulfils the order once its total is reached. Both are shared by all who pay at the same moment (`desk`).
//! If the order has ended meanwhile, the money is owed back. If the server ends in between, the payment stays `Pending`, and a
//! job has the gateway undo it. Whatever else is given back, in whole or in part, is a refund of its own (`refunds`).
//! `orders`, `payments` and `ledger` are one layer.

mod processing;
mod endpoints;
mod gateway;
mod model;
mod refund_store;
mod refunds;
mod service;
mod store;

pub use processing::PaymentBatcher;
pub use endpoints::register;
pub use gateway::{CancelCharge, Charge, Gateway, Outcome, Refund, Sandbox};
pub use model::uri;
pub use refunds::{process_due, process_refunds, schedule_refunds, schedule_ticket_refunds};
