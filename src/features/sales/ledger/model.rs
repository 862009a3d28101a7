//! Requests, responses and rows of the ledger.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::allocation::{Allocation, HostShare};
use crate::features::sales::orders;
use crate::features::sales::payments::{self, PaymentMethod};
use crate::kernel::types::api_types::{DateTime, Uri};
use crate::kernel::types::clock::Timestamp;
use crate::kernel::types::id::{Id, IdText};
use crate::kernel::types::money::Money;
use crate::kernel::types::paging::PageRequest;
use crate::kernel::types::period::Period;
use crate::kernel::types::stored_text::stored_as_text;

/// The direction of a movement of money.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, strum::EnumString, strum::IntoStaticStr)]
pub enum TransactionType {
    /// Money that was paid.
    Sale,
    /// Money that was refunded.
    Refund,
}

stored_as_text!(TransactionType);

/// An entry of the ledger in a response.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Transaction {
    #[serde(rename = "self")]
    pub uri: Uri,
    pub number: IdText,
    #[serde(rename = "type")]
    pub kind: TransactionType,
    pub order: Uri,
    pub payment: Uri,
    pub method: PaymentMethod,
    pub amount: Money,
    pub fees: Money,
    pub placed: DateTime,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub struct TransactionPath {
    pub transaction: Id,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub struct TransactionFilter {
    #[serde(flatten)]
    pub paging: PageRequest,
    #[serde(flatten)]
    pub period: Period,
    #[serde(rename = "type")]
    pub kind: Option<TransactionType>,
    pub method: Option<PaymentMethod>,
    pub order: Option<IdText>,
}

/// An entry to be added: money that was paid or refunded.
#[derive(Debug)]
pub struct NewLedgerEntry {
    /// The payment, or the payment that is refunded.
    pub payment: Id,
    /// The order of the payment.
    pub order: Id,
    /// The refund; `None` for a payment.
    pub refund: Option<Id>,
    /// The amount and its allocation.
    pub part: Allocation,
}

impl NewLedgerEntry {
    /// Returns the direction in which the money moved.
    pub fn kind(&self) -> TransactionType {
        if self.refund.is_some() { TransactionType::Refund } else { TransactionType::Sale }
    }
}

/// A row of `transactions` with the method of its payment. In the list of a host, the amounts are the host's share.
#[derive(Debug, Clone, sqlx_macros::FromRow)]
pub struct TransactionRow {
    pub id: Id,
    #[sqlx(rename = "type")]
    pub kind: TransactionType,
    pub order_id: Id,
    pub payment_id: Id,
    pub method: PaymentMethod,
    pub amount: Money,
    pub fees: Money,
    pub placed: Timestamp,
}

impl TransactionRow {
    /// Returns the entry as a response.
    pub fn view(self) -> Transaction {
        Transaction {
            uri: Uri(format!("/transactions/{}", self.id)),
            number: IdText(self.id),
            kind: self.kind,
            order: orders::uri(self.order_id),
            payment: payments::uri(self.order_id, self.payment_id),
            method: self.method,
            amount: self.amount,
            fees: self.fees,
            placed: DateTime::from(self.placed),
        }
    }
}

/// A host's share of the entry or payment with the identifier `id`.
#[derive(Debug, Clone, Copy, sqlx_macros::FromRow)]
pub struct ShareRow {
    pub id: Id,
    pub host_id: Id,
    pub amount: Money,
    pub fees: Money,
}

impl ShareRow {
    /// Creates the row of a host's share of `id`.
    pub fn new(id: Id, share: &HostShare) -> Self {
        Self { id, host_id: share.host, amount: share.amount, fees: share.fees }
    }

    /// Returns the share without `id`.
    pub fn share(self) -> HostShare {
        HostShare { host: self.host_id, amount: self.amount, fees: self.fees }
    }
}
