//! Requests, responses and rows of returns of events.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::features::catalog::events;
use crate::kernel::http::has_location;
use crate::kernel::types::api_types::{DateTime, NullableField, Uri};
use crate::kernel::types::clock::Timestamp;
use crate::kernel::types::id::{Id, IdText};
use crate::kernel::types::money::Money;
use crate::kernel::types::stored_text::stored_as_text;

/// The status of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema, strum::EnumString, strum::IntoStaticStr)]
pub enum EventReturnStatus {
    /// The job returns orders.
    Running,
    /// All orders were processed.
    Done,
}

stored_as_text!(EventReturnStatus);

/// A run in a response.
#[derive(Debug, Serialize, JsonSchema)]
pub struct EventReturn {
    #[serde(rename = "self")]
    pub uri: Uri,
    pub number: IdText,
    pub event: Uri,
    pub status: EventReturnStatus,
    pub reason: String,
    /// The number of orders with returned tickets.
    pub orders: i64,
    /// The number of returned tickets.
    pub tickets: i64,
    /// The refunds, made or scheduled, including fees.
    pub amount: Money,
    /// The number of orders that were not processed yet.
    pub remaining: i64,
    /// The number of orders that could not be returned, when they were tried last.
    pub failed: i64,
    pub started: DateTime,
    pub finished: NullableField<DateTime>,
}

has_location!(EventReturn);

#[derive(Debug, Deserialize, JsonSchema)]
pub struct EventReturnPath {
    pub event: Id,
    pub entry: Id,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub struct EventReturnCreate {
    #[schemars(length(max = 2000))]
    pub reason: Option<String>,
}

/// A row of `event_returns`.
#[derive(Debug, Clone, sqlx_macros::FromRow)]
pub struct EventReturnRow {
    pub id: Id,
    pub event_id: Id,
    pub status: EventReturnStatus,
    pub reason: String,
    /// The account of the caller, if its key acts for one.
    pub account_id: Option<Id>,
    /// The last order that was processed; [`Id::NONE`] at first.
    pub last_order: Id,
    /// The number of orders with returned tickets.
    pub orders: i64,
    /// The number of returned tickets.
    pub tickets: i64,
    /// The refunds, made or scheduled, including fees.
    pub amount: Money,
    /// The number of orders that could not be returned since the run began, or began again. It is kept until the first order after that.
    pub failed: i64,
    pub started: Timestamp,
    pub finished: Option<Timestamp>,
}

impl EventReturnRow {
    /// Returns whether any order since the run began, or began again, could not be returned.
    pub fn has_failures(&self) -> bool {
        self.failed > 0 && self.last_order != Id::NONE
    }

    /// Returns the run as a response. `remaining` is the number of orders that were not processed yet.
    pub fn view(self, remaining: i64) -> EventReturn {
        EventReturn {
            uri: Uri(format!("/events/{}/returns/{}", self.event_id, self.id)),
            number: IdText(self.id),
            event: events::uri(self.event_id),
            status: self.status,
            reason: self.reason,
            orders: self.orders,
            tickets: self.tickets,
            amount: self.amount,
            remaining,
            failed: self.failed,
            started: DateTime::from(self.started),
            finished: NullableField(self.finished.map(DateTime::from)),
        }
    }
}
