//! Transfers on the wire and in the database.

use schemars::JsonSchema;
use schemars::r#gen::SchemaGenerator;
use schemars::schema::{ArrayValidation, InstanceType, Schema, SchemaObject};
use serde::{Deserialize, Serialize};

use crate::features::identity::accounts::{Account, AccountNumber};
use crate::kernel::types::clock::Timestamp;
use crate::kernel::types::id::Id;
use crate::kernel::types::paging::PageRequest;
use crate::kernel::types::api_types::{OffsetSeconds, Uri};
use crate::kernel::http::HasLocation;
use crate::features::catalog::sections::Section;
use crate::features::sales::tickets::{Redeemed, Serial};

/// The state of a transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, sqlx::Type)]
#[sqlx(type_name = "text")]
pub enum TransferStatus {
    /// Open.
    Pending,
    /// Its tickets are the recipient's.
    Claimed,
    /// Ended by the sender or the recipient; its tickets are still the sender's.
    Cancelled,
    /// Turned down by the recipient; its tickets are still the sender's.
    Rejected,
}

/// A transfer as it is answered.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Transfer {
    #[serde(rename = "self")]
    pub uri: Uri,
    pub status: TransferStatus,
    pub sender: Account,
    pub recipient: Account,
    pub tickets: Vec<TransferTicket>,
}

impl HasLocation for Transfer {
    fn location(&self) -> &str {
        &self.uri.0
    }
}

/// A ticket as far as a transfer tells of it: nothing of what has become of it since the transfer's end.
#[derive(Debug, Serialize, JsonSchema)]
pub struct TransferTicket {
    #[serde(rename = "self")]
    pub uri: Uri,
    /// Not for the recipient unless it has claimed the ticket.
    // Always there, though it may be null: schemars would not require an Option.
    #[schemars(schema_with = "Option::<Serial>::json_schema")]
    pub serial: Option<Serial>,
    pub status: TransferTicketStatus,
    pub section: Section,
    pub owner: Account,
    pub issued: OffsetSeconds,
    pub redeemed: Redeemed,
}

/// The state of a ticket as its transfer leaves it.
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

/// Which side of a transfer an account is on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// It is the sender.
    Sent,
    /// It is the recipient.
    Received,
}

#[derive(Debug, Deserialize, JsonSchema)]
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

/// The serials of the tickets to be offered, each only once.
#[derive(Debug, Deserialize)]
#[serde(transparent)]
pub struct Serials(pub Vec<Serial>);

impl JsonSchema for Serials {
    fn is_referenceable() -> bool {
        false
    }

    fn schema_name() -> String {
        "Serials".to_owned()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let serials = ArrayValidation {
            items: Some(Serial::json_schema(generator).into()),
            min_items: Some(1),
            max_items: Some(50),
            unique_items: Some(true),
            ..ArrayValidation::default()
        };
        SchemaObject {
            instance_type: Some(InstanceType::Array.into()),
            array: Some(Box::new(serials)),
            ..SchemaObject::default()
        }
        .into()
    }
}

/// A transfer as it is kept.
#[derive(Debug, Clone, Copy, sqlx::FromRow)]
pub struct TransferRow {
    pub id: Id,
    pub status: TransferStatus,
    pub sender_id: Id,
    pub recipient_id: Id,
}

impl TransferRow {
    /// Whose the tickets are as far as this transfer decides it.
    pub fn owner(&self) -> Id {
        if self.status == TransferStatus::Claimed { self.recipient_id } else { self.sender_id }
    }
}

/// A ticket of a transfer, with what never changes of it.
#[derive(Debug, sqlx::FromRow)]
pub struct TransferTicketRow {
    pub transfer_id: Id,
    pub ticket_id: Id,
    pub serial: String,
    pub section_id: Id,
    pub issued: Timestamp,
}
