//! Tickets on the wire and in the database.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::features::identity::accounts::Account;
use crate::kernel::types::clock::Timestamp;
use crate::kernel::types::id::Id;
use crate::kernel::types::paging::PageRequest;
use crate::kernel::types::api_types::{DateTimeInput, OffsetSeconds, Uri, string_newtype};
use crate::features::catalog::sections::Section;

string_newtype!(
    /// A ticket's serial, which is shown at the gate.
    Serial, None, Some("^[0-9A-Z]{6}-[0-9A-Z]{12}$"), None, None
);
string_newtype!(
    /// When a ticket was redeemed; `N/A` before.
    Redeemed, None, Some(r"^(N/A|\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\+00:00)$"), None, None
);

/// The URI of a ticket.
pub fn uri(ticket: Id) -> Uri {
    Uri(format!("/tickets/{ticket}"))
}

/// What has become of a ticket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema, sqlx::Type)]
#[sqlx(type_name = "text")]
pub enum TicketStatus {
    /// It can be used or transferred.
    Issued,
    /// It is in an open transfer.
    Pending,
    /// It was used.
    Redeemed,
    /// It is no longer valid.
    Void,
}

/// A ticket as it is answered.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Ticket {
    /// Its URI.
    #[serde(rename = "self")]
    pub uri: Uri,
    /// What is shown at the gate.
    pub serial: Serial,
    /// What has become of it.
    pub status: TicketStatus,
    /// Where it admits to.
    pub section: Section,
    /// Whose it is.
    pub owner: Account,
    /// When it was issued.
    pub issued: OffsetSeconds,
    /// When it was redeemed.
    pub redeemed: Redeemed,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub struct TicketPath {
    pub ticket: Id,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub struct EventTicketFilter {
    #[serde(flatten)]
    pub paging: PageRequest,
    /// Only tickets that changed at this moment or later.
    pub modified_since: Option<DateTimeInput>,
}

/// A ticket as it is kept.
#[derive(Debug, Clone, sqlx::FromRow)]
pub struct TicketRow {
    /// Its identifier.
    pub id: Id,
    /// What is shown at the gate.
    pub serial: String,
    /// The order that it was bought with.
    pub order_id: Id,
    /// The event that it is for.
    pub event_id: Id,
    /// Where it admits to.
    pub section_id: Id,
    /// The account that holds it.
    pub owner_id: Id,
    /// What has become of it.
    pub status: TicketStatus,
    /// When it was issued.
    pub issued: Timestamp,
    /// When it was redeemed.
    pub redeemed: Option<Timestamp>,
    /// When anything about it changed last.
    pub modified: Timestamp,
}
