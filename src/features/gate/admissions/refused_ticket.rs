//! The reasons for which tickets are not admitted.

use schemars::JsonSchema;
use serde::Serialize;

use crate::kernel::types::api_types::NullableField;

/// The reason for which a ticket is not admitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RefusalReason {
    /// The event has no ticket with this serial number.
    Unknown,
    /// The caller may not admit to the ticket's section.
    OtherSection,
    /// The ticket was admitted before.
    Redeemed,
    /// An open transfer offers the ticket to another account.
    Pending,
    /// The ticket was returned, voided, or replaced when a transfer was claimed.
    Void,
    /// The event is cancelled.
    EventCancelled,
    /// The event admits tickets later.
    TooEarly,
    /// The scan is from before the ticket was issued, or from the future.
    ImplausibleTime,
    /// An admission of the ticket by the same device was undone after the scan.
    Undone,
}

/// A serial number that is not admitted.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct RefusedTicket {
    /// The serial number as the client sent it.
    pub serial: String,
    /// The reason.
    pub reason: RefusalReason,
    /// The earlier admission of a redeemed ticket.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub admission: Option<EarlierAdmission>,
}

/// The admission with which a ticket was redeemed before.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EarlierAdmission {
    /// The URI of the admission.
    #[serde(rename = "self")]
    pub uri: String,
    /// The time of the admission, as `YYYY-MM-DDTHH:MM:SS+00:00`.
    pub admitted: String,
    /// The redeemer as recorded.
    pub redeemer: String,
    /// The device as recorded.
    pub device: String,
    /// The URI of the admission token, unless an account admitted the ticket.
    pub token: NullableField<String>,
    /// The name of the token, or empty.
    pub token_name: String,
}
