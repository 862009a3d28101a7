//! Requests, responses and rows of tickets.

use boxoffice_http::{inline_schema, schema_from_json, string_newtype, text_schema};
use schemars::JsonSchema;
use schemars::r#gen::SchemaGenerator;
use schemars::schema::Schema;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::json;

use super::qr_code::QrCodeFormat;
use crate::features::catalog::sections::Section;
use crate::features::identity::accounts::Account;
use crate::kernel::types::api_types::{DateTimeInput, OffsetSeconds, Uri};
use crate::kernel::types::clock::Timestamp;
use crate::kernel::types::embedded::Embedded;
use crate::kernel::types::id::Id;
use crate::kernel::types::paging::PageRequest;
use crate::kernel::types::stored_text::stored_as_text;

string_newtype!(
    /// A ticket's serial number, which is scanned at the entrance.
    Serial, None, Some("^[0-9A-Z]{6}-[0-9A-Z]{12}$"), None, None
);
/// A ticket's serial number in a request, in upper or lower case; kept in upper case.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SerialInput(pub String);

impl<'de> Deserialize<'de> for SerialInput {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(|serial| Self(serial.to_ascii_uppercase()))
    }
}

inline_schema!(SerialInput, "SerialInput", text_schema(None, Some(SERIAL_PATTERN), None, None));

/// Pattern of a serial in a request, whose letters may be small.
pub const SERIAL_PATTERN: &str = "^[0-9A-Za-z]{6}-[0-9A-Za-z]{12}$";

string_newtype!(
    /// The time at which a ticket was redeemed, or `N/A`.
    Redeemed, None, Some(r"^(N/A|\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\+00:00)$"), None, None
);

/// Returns the URI of a ticket.
pub fn uri(ticket: Id) -> Uri {
    Uri(format!("/tickets/{ticket}"))
}

/// The status of a ticket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema, strum::EnumString, strum::IntoStaticStr)]
pub enum TicketStatus {
    /// Can be redeemed or transferred.
    Issued,
    /// Offered by an open transfer.
    Pending,
    /// Used.
    Redeemed,
    /// No longer valid.
    Void,
}

stored_as_text!(TicketStatus);

/// A ticket in a response.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Ticket {
    /// The URI.
    #[serde(rename = "self")]
    pub uri: Uri,
    /// The serial number.
    pub serial: Serial,
    /// The order.
    pub order: Uri,
    /// The status.
    pub status: TicketStatus,
    /// The section.
    pub section: Embedded<Section>,
    /// The owner.
    pub owner: Embedded<Account>,
    /// The time of issue.
    pub issued: OffsetSeconds,
    /// The time of redemption, if it was redeemed.
    pub redeemed: Redeemed,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub struct TicketPath {
    pub ticket: Id,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub struct TicketCodeImagePath {
    pub ticket: Id,
    pub format: QrCodeFormat,
}

/// The width and height of a QR code in pixels.
#[derive(Debug, Clone, Copy, Deserialize)]
pub struct QrCodeSize(pub u32);

impl QrCodeSize {
    /// Shows each module of a ticket's QR code with 8 pixels.
    const DEFAULT: Self = Self(392);
}

impl Default for QrCodeSize {
    fn default() -> Self {
        Self::DEFAULT
    }
}

impl JsonSchema for QrCodeSize {
    fn schema_name() -> String {
        "QrCodeSize".to_owned()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        schema_from_json(
            json!({ "type": "integer", "format": "int64", "minimum": 100, "maximum": 1000, "default": Self::DEFAULT.0 }),
        )
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
pub struct TicketCodeImageQuery {
    #[serde(default)]
    pub size: QrCodeSize,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, Deserialize, JsonSchema)]
pub struct EventTicketFilter {
    #[serde(flatten)]
    pub paging: PageRequest,
    /// Only tickets that changed at this time or later.
    pub modified_since: Option<DateTimeInput>,
    /// Only the ticket with this serial number.
    pub serial: Option<SerialInput>,
    /// Only tickets of the account with this e-mail address or username.
    #[schemars(length(min = 1, max = 254))]
    pub holder: Option<String>,
    /// Only tickets of accounts whose names or e-mail address contain this text.
    #[schemars(length(min = 2, max = 100))]
    pub search: Option<String>,
}

/// A row of `tickets`.
#[derive(Debug, Clone, sqlx_macros::FromRow)]
pub struct TicketRow {
    /// The identifier.
    pub id: Id,
    /// The serial number.
    pub serial: String,
    /// The order.
    pub order_id: Id,
    /// The event.
    pub event_id: Id,
    /// The section.
    pub section_id: Id,
    /// The account that owns it.
    pub owner_id: Id,
    /// The status.
    pub status: TicketStatus,
    /// The time of issue.
    pub issued: Timestamp,
    /// The time of redemption, if it was redeemed.
    pub redeemed: Option<Timestamp>,
    /// The time of the last change but admissions, which have times of their own.
    pub modified: Timestamp,
}
