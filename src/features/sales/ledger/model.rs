//! Entries of the ledger on the wire and in the database.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::allocation::HostShare;
use crate::kernel::types::clock::Timestamp;
use crate::kernel::types::id::Id;
use crate::kernel::types::money::Money;
use crate::kernel::types::paging::PageRequest;
use crate::kernel::types::period::Period;
use crate::kernel::types::api_types::{DateTime, Uri, string_newtype};
use crate::features::sales::orders;
use crate::features::sales::payments;

string_newtype!(
    /// The number of an entry, which is its identifier.
    TransactionNumber, None, Some(r"^\d{14}$"), None, None
);

/// In which direction the money went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, sqlx::Type)]
#[sqlx(type_name = "text")]
pub enum TransactionType {
    /// It was taken.
    Sale,
    /// It was given back.
    Refund,
}

/// An entry as it is answered.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Transaction {
    #[serde(rename = "self")]
    pub uri: Uri,
    pub number: TransactionNumber,
    #[serde(rename = "type")]
    pub kind: TransactionType,
    pub order: Uri,
    pub payment: Uri,
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
}

/// An entry as it is kept; in a host's list with the amounts that are the host's.
#[derive(Debug, Clone, sqlx::FromRow)]
pub struct TransactionRow {
    pub id: Id,
    #[sqlx(rename = "type")]
    pub kind: TransactionType,
    pub order_id: Id,
    pub payment_id: Id,
    pub amount: Money,
    pub fees: Money,
    pub placed: Timestamp,
}

impl TransactionRow {
    /// The entry as it is answered.
    pub fn view(self) -> Transaction {
        Transaction {
            uri: Uri(format!("/transactions/{}", self.id)),
            number: TransactionNumber(self.id.to_string()),
            kind: self.kind,
            order: orders::uri(self.order_id),
            payment: payments::uri(self.order_id, self.payment_id),
            amount: self.amount,
            fees: self.fees,
            placed: DateTime(self.placed.format_rfc3339()),
        }
    }
}

/// A host's part of something that has the identifier `id`.
#[derive(Debug, Clone, Copy, sqlx::FromRow)]
pub struct ShareRow {
    pub id: Id,
    pub host_id: Id,
    pub amount: Money,
    pub fees: Money,
}

impl ShareRow {
    /// A host's part of `id`.
    pub fn new(id: Id, share: &HostShare) -> Self {
        Self { id, host_id: share.host, amount: share.amount, fees: share.fees }
    }

    /// The part alone.
    pub fn share(self) -> HostShare {
        HostShare { host: self.host_id, amount: self.amount, fees: self.fees }
    }
}
