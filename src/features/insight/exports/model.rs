//! Rows and parameters of exports.

use boxoffice_http::string_newtype;
use schemars::JsonSchema;
use serde::Deserialize;

use super::table::{TableRow, text};
use crate::features::sales::ledger::TransactionType;
use crate::features::sales::tickets::TicketStatus;
use crate::kernel::types::clock::Timestamp;
use crate::kernel::types::currency::Currency;
use crate::kernel::types::id::Id;
use crate::kernel::types::money::Money;
use crate::kernel::types::period::Period;

string_newtype!(
    /// A month in UTC, `YYYY-MM`.
    Month, None, Some(r"^\d{4}-(0[1-9]|1[0-2])$"), None, None
);

#[derive(Debug, Deserialize, JsonSchema)]
pub struct LedgerFilter {
    #[serde(flatten)]
    pub period: Period,
    pub month: Option<Month>,
}

/// An order with its tickets of one event.
#[derive(Debug, sqlx_macros::FromRow)]
pub struct OrderExportRow {
    pub id: Id,
    pub status: String,
    pub placed: Timestamp,
    pub complimentary: bool,
    pub number: String,
    pub first_name: String,
    pub last_name: String,
    pub email: String,
    pub tickets: i64,
    pub price: Money,
    pub fees: Money,
    /// The share of the event's host of the order's refunds, made or scheduled.
    pub refunded: Money,
}

impl TableRow for OrderExportRow {
    const COLUMNS: &'static [&'static str] = &[
        "number",
        "status",
        "placed",
        "complimentary",
        "customer",
        "firstName",
        "lastName",
        "email",
        "tickets",
        "subtotal",
        "fees",
        "total",
        "refunded",
    ];

    fn id(&self) -> Id {
        self.id
    }

    fn values(self, currency: Currency) -> Vec<String> {
        vec![
            self.id.to_string(),
            self.status,
            self.placed.format_rfc3339(),
            self.complimentary.to_string(),
            self.number,
            text(self.first_name),
            text(self.last_name),
            text(self.email),
            self.tickets.to_string(),
            currency.format(self.price),
            currency.format(self.fees),
            currency.format(self.price + self.fees),
            currency.format(self.refunded),
        ]
    }
}

/// A valid ticket of an event.
#[derive(Debug, sqlx_macros::FromRow)]
pub struct TicketExportRow {
    pub id: Id,
    pub serial: String,
    pub section: String,
    pub status: TicketStatus,
    pub first_name: String,
    pub last_name: String,
    pub email: String,
    pub order_id: Id,
    pub redeemed: Option<Timestamp>,
}

impl TableRow for TicketExportRow {
    const COLUMNS: &'static [&'static str] =
        &["serial", "section", "status", "firstName", "lastName", "email", "order", "redeemed"];

    fn id(&self) -> Id {
        self.id
    }

    fn values(self, _: Currency) -> Vec<String> {
        vec![
            self.serial,
            text(self.section),
            format!("{:?}", self.status),
            text(self.first_name),
            text(self.last_name),
            text(self.email),
            self.order_id.to_string(),
            self.redeemed.map(Timestamp::format_rfc3339).unwrap_or_default(),
        ]
    }
}

/// An entry of the ledger with the share of a host.
#[derive(Debug, sqlx_macros::FromRow)]
pub struct LedgerExportRow {
    pub id: Id,
    #[sqlx(rename = "type")]
    pub kind: TransactionType,
    pub placed: Timestamp,
    pub order_id: Id,
    pub payment_id: Id,
    pub amount: Money,
    pub fees: Money,
}

impl TableRow for LedgerExportRow {
    const COLUMNS: &'static [&'static str] = &["number", "type", "placed", "order", "payment", "amount", "fees"];

    fn id(&self) -> Id {
        self.id
    }

    /// Returns refunds as negative amounts, so that the columns add up.
    fn values(self, currency: Currency) -> Vec<String> {
        let sign = if self.kind == TransactionType::Refund { -1 } else { 1 };
        vec![
            self.id.to_string(),
            format!("{:?}", self.kind),
            self.placed.format_rfc3339(),
            self.order_id.to_string(),
            self.payment_id.to_string(),
            currency.format(self.amount * sign),
            currency.format(self.fees * sign),
        ]
    }
}
