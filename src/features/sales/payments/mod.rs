//! Payments of orders: charged through the gateway, or made outside the platform and recorded by a platform administrator.
//!
//! The order's customer and platform administrators read and make payments. No transaction stays open during a call of the
//! gateway, so a payment by card has three steps:
//!
//! 1. A transaction inserts the payment as `Pending`. It counts as paid from here on, so that concurrent payments cannot exceed
//!    the order's total.
//! 2. The gateway makes the charge.
//! 3. A second transaction confirms the payment, and fulfills the order once its total is reached. If the order has ended in the
//!    meantime, a refund is scheduled instead.
//!
//! Both transactions are steps in a group commit (`processing`). If the server stops between the steps, the payment stays `Pending` and a
//! job has the gateway cancel the charge. All other money that goes back, in whole or in part, is a refund (`refunds`).
//! `orders`, `payments` and `ledger` depend on each other and form one layer.

mod endpoints;
mod gateway;
mod model;
mod processing;
mod refund_store;
mod refunds;
mod service;
mod store;

pub use endpoints::register;
pub use gateway::{CancelCharge, Charge, ChargeResult, Gateway, Refund, Sandbox};
pub use model::uri;
pub(crate) use model::{OpenRefundRow, Payment, PaymentMethod};
pub use processing::PaymentStep;
pub(crate) use refund_store::{count_open_refunds, find_open_refund, list_open_refunds};
pub use refund_store::{refund_shares_by_order, refunded_by_order};
pub(crate) use refunds::settle;
pub use refunds::{process_after_commit, process_due, process_refunds, schedule_refunds, schedule_ticket_refunds};
pub(crate) use service::list;
pub use store::correct_future;
