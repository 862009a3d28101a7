//! Payments on the wire and in the database.

use schemars::JsonSchema;
use schemars::r#gen::SchemaGenerator;
use schemars::schema::Schema;
use serde::{Deserialize, Serialize};

use crate::kernel::types::clock::Timestamp;
use crate::kernel::types::id::Id;
use crate::kernel::types::money::{AmountInput, Money};
use crate::kernel::types::paging::PageRequest;
use crate::kernel::types::api_types::{DateTime, Uri, string_newtype};
use crate::kernel::http::HasLocation;
use crate::features::sales::ledger::TicketCosts;
use crate::features::sales::orders::{self, OrderNumber};

string_newtype!(
    /// The number of a payment, which is its identifier.
    PaymentNumber, None, Some(r"^\d{14}$"), None, None
);

/// The URI of a payment of an order.
pub fn uri(order: Id, payment: Id) -> Uri {
    Uri(format!("{}/payments/{payment}", orders::uri(order).0))
}

/// How a payment is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, sqlx::Type)]
#[serde(rename_all = "lowercase")]
#[sqlx(type_name = "text", rename_all = "lowercase")]
pub enum PaymentMethod {
    /// Through the gateway.
    Card,
    /// Outside the platform, recorded by its staff.
    External,
}

/// The state of a payment as it is answered. The table has two more, which the module's store explains.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema, sqlx::Type)]
#[sqlx(type_name = "text")]
pub enum PaymentStatus {
    /// Taken, and not all given back.
    Confirmed,
    /// Not taken, because the gateway said no.
    Declined,
    /// All of it given back.
    Refunded,
}

/// A payment as it is answered.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Payment {
    #[serde(rename = "self")]
    pub uri: Uri,
    pub number: PaymentNumber,
    pub order: Uri,
    pub method: PaymentMethod,
    pub amount: Money,
    pub status: PaymentStatus,
    pub reference: String,
    pub placed: DateTime,
}

impl HasLocation for Payment {
    fn location(&self) -> &str {
        &self.uri.0
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
pub struct PaymentsPath {
    pub order: OrderNumber,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub struct PaymentPath {
    pub order: OrderNumber,
    pub payment: Id,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub struct PaymentFilter {
    #[serde(flatten)]
    pub paging: PageRequest,
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

/// An amount that is not nothing.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(transparent)]
pub struct PositiveAmount(pub AmountInput);

impl JsonSchema for PositiveAmount {
    fn is_referenceable() -> bool {
        false
    }

    fn schema_name() -> String {
        "PaidAmount".to_owned()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut schema = AmountInput::json_schema(generator).into_object();
        schema.number().minimum = Some(0.01);
        schema.into()
    }
}

/// A payment as it is kept, apart from its state.
#[derive(Debug, Clone, sqlx::FromRow)]
pub struct PaymentRow {
    pub id: Id,
    pub order_id: Id,
    pub method: PaymentMethod,
    pub amount: Money,
    /// The gateway's, or that of an external payment; empty when there is none.
    pub reference: String,
    pub placed: Timestamp,
}

/// A payment that is shown, with the state that is shown.
#[derive(Debug, sqlx::FromRow)]
pub struct PaymentViewRow {
    #[sqlx(flatten)]
    pub payment: PaymentRow,
    pub shown: PaymentStatus,
}

impl PaymentViewRow {
    /// The payment as it is answered.
    pub fn view(self) -> Payment {
        let Self { payment, shown } = self;
        Payment {
            uri: uri(payment.order_id, payment.id),
            number: PaymentNumber(payment.id.to_string()),
            order: orders::uri(payment.order_id),
            method: payment.method,
            amount: payment.amount,
            status: shown,
            reference: payment.reference,
            placed: DateTime(payment.placed.format_rfc3339()),
        }
    }
}

/// What is left of a payment: what was taken by it, less what was given back or is to be.
#[derive(Debug, Clone, Copy, sqlx::FromRow)]
pub struct RefundableRow {
    pub id: Id,
    pub order_id: Id,
    pub method: PaymentMethod,
    pub amount: Money,
}

/// Tickets of an order.
#[derive(Debug, sqlx::FromRow)]
pub struct PaidTicketsRow {
    pub order_id: Id,
    #[sqlx(flatten)]
    pub tickets: TicketCosts,
}

/// Money of one payment that was given back or is to be.
#[derive(Debug, Clone, Copy, sqlx::FromRow)]
pub struct RefundRow {
    pub id: Id,
    pub order_id: Id,
    pub payment_id: Id,
    pub amount: Money,
    pub fees: Money,
}

/// The part of a refund that a host bears.
#[derive(Debug, Clone, Copy, sqlx::FromRow)]
pub struct RefundShareRow {
    pub refund_id: Id,
    pub host_id: Id,
    pub amount: Money,
    pub fees: Money,
}

/// Something that the gateway still has to be asked.
#[derive(Debug, sqlx::FromRow)]
pub struct PendingRefundRow {
    /// The refund, or the payment that is to be undone.
    pub id: Id,
    pub is_refund: bool,
    pub payment_id: Id,
    pub order_id: Id,
    pub amount: Money,
    pub reference: String,
}
