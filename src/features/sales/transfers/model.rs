//! Requests, responses and rows of transfers.

use boxoffice_http::{inline_schema, schema_from_json, string_newtype};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::features::catalog::sections::Section;
use crate::features::identity::accounts::{Account, AccountNumber};
use crate::features::sales::tickets::{Redeemed, SERIAL_PATTERN, SerialInput};
use crate::kernel::http::has_location;
use crate::kernel::types::api_types::{OffsetSeconds, Uri};
use crate::kernel::types::clock::Timestamp;
use crate::kernel::types::embedded::Embedded;
use crate::kernel::types::id::Id;
use crate::kernel::types::paging::PageRequest;
use crate::kernel::types::stored_text::stored_as_text;

/// The status of a transfer.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, strum::EnumString, strum::IntoStaticStr,
)]
pub enum TransferStatus {
    /// Open.
    Pending,
    /// Claimed; its tickets belong to the recipient.
    Claimed,
    /// Cancelled by the sender or the recipient; its tickets still belong to the sender.
    Cancelled,
    /// Rejected by the recipient; its tickets still belong to the sender.
    Rejected,
}

stored_as_text!(TransferStatus);

/// A transfer in a response.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Transfer {
    #[serde(rename = "self")]
    pub uri: Uri,
    pub status: TransferStatus,
    pub sender: Embedded<Account>,
    pub recipient: Embedded<Account>,
    pub tickets: Vec<TransferTicket>,
}

has_location!(Transfer);

string_newtype!(
    /// The serial number of a ticket; empty for the recipient before a claim, and for the sender after it.
    TransferSerial, None, Some("^([0-9A-Z]{6}-[0-9A-Z]{12})?$"), None, None
);

/// A ticket of a transfer in a response. It doesn't include changes of the ticket after the end of the transfer.
#[derive(Debug, Serialize, JsonSchema)]
pub struct TransferTicket {
    #[serde(rename = "self")]
    pub uri: Uri,
    pub serial: TransferSerial,
    pub status: TransferTicketStatus,
    pub section: Embedded<Section>,
    pub owner: Embedded<Account>,
    pub issued: OffsetSeconds,
    pub redeemed: Redeemed,
}

/// The status of a ticket as its transfer left it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub enum TransferTicketStatus {
    /// The transfer has ended.
    Issued,
    /// The transfer is open.
    Pending,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub struct TransferPath {
    pub transfer: Id,
}

/// The role of an account in a transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// The account is the sender.
    Sent,
    /// The account is the recipient.
    Received,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize, JsonSchema)]
pub struct TransferFilter {
    #[serde(flatten)]
    pub paging: PageRequest,
    pub status: Option<TransferStatus>,
    pub direction: Option<Direction>,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub struct TransferCreate {
    pub recipient: AccountNumber,
    pub tickets: Serials,
}

/// The serial numbers of the tickets to be offered, without duplicates.
#[derive(Debug, Deserialize)]
#[serde(transparent)]
pub struct Serials(pub Vec<SerialInput>);

inline_schema!(
    Serials,
    "Serials",
    schema_from_json(json!({
        "type": "array", "minItems": 1, "maxItems": 50, "uniqueItems": true,
        "items": { "type": "string", "pattern": SERIAL_PATTERN },
    }))
);

/// A row of `transfers`.
#[derive(Debug, Clone, Copy, sqlx_macros::FromRow)]
pub struct TransferRow {
    pub id: Id,
    pub status: TransferStatus,
    pub sender_id: Id,
    pub recipient_id: Id,
}

impl TransferRow {
    /// Returns the owner of the tickets as far as this transfer decides it.
    pub fn owner(&self) -> Id {
        if self.status == TransferStatus::Claimed { self.recipient_id } else { self.sender_id }
    }
}

/// A ticket of a transfer, with the columns of the ticket that never change.
#[derive(Debug, Clone, sqlx_macros::FromRow)]
pub struct TransferTicketRow {
    pub transfer_id: Id,
    pub ticket_id: Id,
    pub serial: String,
    pub section_id: Id,
    pub issued: Timestamp,
}
