//! Requests, responses and rows of payments.

use boxoffice_http::inline_schema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::features::sales::orders;
use crate::kernel::http::has_location;
use crate::kernel::types::api_types::{DateTime, Uri};
use crate::kernel::types::clock::Timestamp;
use crate::kernel::types::id::{Id, IdText};
use crate::kernel::types::money::{AmountInput, Money, amount_schema};
use crate::kernel::types::stored_text::stored_as_text;

/// Returns the URI of a payment of an order.
pub fn uri(order: Id, payment: Id) -> Uri {
    Uri(format!("{}/payments/{payment}", orders::uri(order).0))
}

/// The payment method.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, strum::EnumString, strum::IntoStaticStr)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum PaymentMethod {
    /// Through the gateway.
    Card,
    /// Outside the platform, recorded by a platform administrator.
    External,
}

stored_as_text!(PaymentMethod);

/// The status of a payment in the table. Clients don't see the payments that are pending or abandoned.
#[derive(Debug, Clone, Copy, strum::EnumString, strum::IntoStaticStr)]
pub enum StoredPaymentStatus {
    /// The gateway call is in progress. The amount counts as paid.
    Pending,
    /// The result of the charge is unknown. The gateway is called to cancel it, then the payment is deleted.
    Abandoned,
    /// Paid, and not refunded completely.
    Confirmed,
    /// Declined by the gateway.
    Declined,
    /// Refunded completely.
    Refunded,
}

stored_as_text!(StoredPaymentStatus);

/// The status of a payment in a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema, strum::EnumString, strum::IntoStaticStr)]
pub enum PaymentStatus {
    /// Paid, and not refunded completely.
    Confirmed,
    /// Declined by the gateway.
    Declined,
    /// Refunded completely.
    Refunded,
}

stored_as_text!(PaymentStatus);

/// A payment in a response.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Payment {
    #[serde(rename = "self")]
    pub uri: Uri,
    pub number: IdText,
    pub order: Uri,
    pub method: PaymentMethod,
    pub amount: Money,
    /// The sum of its refunds, made or scheduled.
    pub refunded: Money,
    pub status: PaymentStatus,
    pub reference: String,
    pub placed: DateTime,
}

has_location!(Payment);

#[derive(Debug, Deserialize, JsonSchema)]
pub struct PaymentPath {
    pub order: IdText,
    pub payment: Id,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub struct PaymentCreate {
    pub method: PaymentMethod,
    pub amount: Option<PositiveAmount>,
    #[schemars(length(max = 200))]
    pub token: Option<String>,
    #[schemars(length(max = 200))]
    pub reference: Option<String>,
}

/// An amount greater than zero. It has no maximum of its own: it is at most the outstanding amount of its order.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(transparent)]
pub struct PositiveAmount(pub AmountInput);

inline_schema!(PositiveAmount, "PaidAmount", amount_schema(json!(0.01), Value::Null));

/// A row of `payments`, without the status.
#[derive(Debug, Clone, sqlx_macros::FromRow)]
pub struct PaymentRow {
    pub id: Id,
    pub order_id: Id,
    pub method: PaymentMethod,
    pub amount: Money,
    /// The gateway's reference, or the reference of an external payment. Empty if there is none.
    pub reference: String,
    pub placed: Timestamp,
}

/// A payment that is visible to clients, with its status.
#[derive(Debug, sqlx_macros::FromRow)]
pub struct PaymentViewRow {
    #[sqlx(flatten)]
    pub payment: PaymentRow,
    pub status: PaymentStatus,
    /// The sum of the refunds, made or scheduled.
    pub refunded: Money,
}

impl PaymentViewRow {
    /// Returns the payment as a response.
    pub fn view(self) -> Payment {
        let Self { payment, status, refunded } = self;
        Payment {
            uri: uri(payment.order_id, payment.id),
            number: IdText(payment.id),
            order: orders::uri(payment.order_id),
            method: payment.method,
            amount: payment.amount,
            refunded,
            status,
            reference: payment.reference,
            placed: DateTime::from(payment.placed),
        }
    }
}

/// The refundable rest of a payment: its amount minus the refunds that were made or scheduled.
#[derive(Debug, Clone, Copy, sqlx_macros::FromRow)]
pub struct RefundableRow {
    pub id: Id,
    pub order_id: Id,
    pub method: PaymentMethod,
    pub amount: Money,
}

/// A row of `refunds`: a refund of a payment, made or scheduled.
#[derive(Debug, Clone, Copy, sqlx_macros::FromRow)]
pub struct RefundRow {
    pub id: Id,
    pub order_id: Id,
    pub payment_id: Id,
    pub amount: Money,
    pub fees: Money,
}

/// A row of `refund_shares`: a host's share of a refund.
#[derive(Debug, Clone, Copy, sqlx_macros::FromRow)]
pub struct RefundShareRow {
    pub refund_id: Id,
    pub host_id: Id,
    pub amount: Money,
    pub fees: Money,
}

/// An open refund: a refund or a cancellation of a charge that the gateway has not completed yet.
#[derive(Debug, sqlx_macros::FromRow)]
pub struct OpenRefundRow {
    /// The refund, or the payment whose charge is to be cancelled.
    pub id: Id,
    pub is_refund: bool,
    pub payment_id: Id,
    pub order_id: Id,
    pub amount: Money,
    /// The gateway's reference of the charge, if it is known.
    pub reference: String,
    /// The time at which the refund was scheduled, or the payment began.
    pub since: Timestamp,
}
