//! Responses of histories.

use schemars::JsonSchema;
use serde::Serialize;

use crate::features::identity::accounts::Account;
use crate::features::insight::audit_log::AuditEntry;
use crate::features::sales::ledger::Transaction;
use crate::features::sales::orders::{Order, OrderReturn, OrderVoid};
use crate::features::sales::payments::Payment;
use crate::features::sales::tickets::Ticket;
use crate::features::sales::transfers::Transfer;
use crate::kernel::types::paging::Page;

/// Everything that happened to an order.
#[derive(Debug, Serialize, JsonSchema)]
pub struct OrderHistory {
    pub order: Order,
    pub payments: Page<Payment>,
    pub returns: Page<OrderReturn>,
    pub voids: Page<OrderVoid>,
    pub transactions: Page<Transaction>,
    pub tickets: Page<Ticket>,
    pub transfers: Page<Transfer>,
    pub audit: Page<AuditEntry>,
}

/// Everything that an account did and has.
#[derive(Debug, Serialize, JsonSchema)]
pub struct AccountHistory {
    pub account: Account,
    pub orders: Page<Order>,
    pub tickets: Page<Ticket>,
    pub transfers: Page<Transfer>,
    pub audit: Page<AuditEntry>,
}
