//! Requests, responses and rows of admissions.

use boxoffice_http::string_newtype;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::refused_ticket::{EarlierAdmission, RefusalReason, RefusedTicket};
use crate::features::catalog::sections::Section;
use crate::features::catalog::tokens;
use crate::features::identity::accounts::Account;
use crate::features::sales::tickets::{Serial, SerialInput, TicketRow, TicketStatus};
use crate::kernel::types::api_types::{DateTimeInput, NullableField, OffsetSeconds, Uri};
use crate::kernel::types::clock::Timestamp;
use crate::kernel::types::embedded::Embedded;
use crate::kernel::types::id::Id;
use crate::kernel::types::paging::PageRequest;

/// Number of characters that no serial number and no code exceeds.
const MAX_SCANNED: usize = 200;

string_newtype!(
    /// A scanned serial number or code of a ticket, not validated.
    ScannedSerial, None, None, None, None;
    /// A reference to an account: its number or its URI.
    PatronRef, None, Some("^((/v3)?/accounts/)?[A-Z]{2}-[A-Z0-9]{8}$"), None, Some(200)
);

impl ScannedSerial {
    /// Returns the serial number as tickets have it: in upper case, without white space and control characters around it, which some
    /// scanners add. The rest of a text that is longer than any serial number or code is cut off.
    pub fn normalized(&self) -> String {
        let text = self.0.trim_matches(|character: char| character.is_whitespace() || character.is_control());
        text.chars().take(MAX_SCANNED + 1).collect::<String>().to_ascii_uppercase()
    }
}

impl PatronRef {
    /// Returns the account's number.
    pub fn number(&self) -> String {
        self.0.rsplit('/').next().unwrap_or_default().to_owned()
    }
}

/// Returns the URI of an admission.
pub fn uri(event: Id, admission: Id) -> Uri {
    Uri(format!("/events/{event}/admissions/{admission}"))
}

/// An admission in a response.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Admission {
    #[serde(rename = "self")]
    pub uri: Uri,
    pub redeemer: String,
    pub device: String,
    pub ticket: Serial,
    pub patron: Account,
    pub section: Embedded<Section>,
    pub admitted: OffsetSeconds,
}

/// The result of a scan: the new admissions, and the serial numbers that are not admitted.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Scan {
    pub admitted: Vec<Admission>,
    pub refused: Vec<RefusedTicket>,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub struct AdmissionPath {
    pub event: Id,
    pub admission: Id,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub struct AdmissionFilter {
    #[serde(flatten)]
    pub paging: PageRequest,
    #[schemars(length(min = 1, max = 200))]
    pub redeemer: Option<String>,
    #[schemars(length(min = 1, max = 200))]
    pub device: Option<String>,
    pub ticket: Option<SerialInput>,
    pub patron: Option<PatronRef>,
    /// A section: its identifier, one of its URIs or its name.
    #[schemars(length(min = 1, max = 200))]
    pub section: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub struct AdmissionCreate {
    #[schemars(length(min = 1, max = 100))]
    pub serials: Vec<ScannedSerial>,
    #[schemars(length(max = 200))]
    pub redeemer: Option<String>,
    #[schemars(length(max = 200))]
    pub device: Option<String>,
}

/// A row of `admissions`, with the ticket's serial number.
#[derive(Debug, sqlx_macros::FromRow)]
pub struct AdmissionRow {
    pub id: Id,
    pub event_id: Id,
    pub section_id: Id,
    pub ticket_id: Id,
    pub serial: String,
    pub patron_id: Id,
    pub redeemer: String,
    pub device: String,
    /// The admission token of the redeemer; `None` if an account admitted the ticket.
    pub token_id: Option<Id>,
    pub admitted: Timestamp,
}

/// The gate that admits tickets, as their admissions record it.
pub struct Gate {
    pub redeemer: String,
    pub device: String,
    /// The admission token; `None` if an account admits the tickets.
    pub token: Option<Id>,
}

impl Gate {
    /// Returns whether a ticket was admitted by this gate, or by this scan: the gate's token may have been replaced before the scan is
    /// uploaded again, which has the same device and the same time.
    pub fn has_admitted(&self, scanned: Timestamp, device: &str, token: Option<Id>, admitted: Timestamp) -> bool {
        self.device == device && (self.token == token || admitted == scanned)
    }

    /// Returns the admission of a ticket.
    pub fn admission(&self, id: Id, ticket: &TicketRow, admitted: Timestamp) -> AdmissionRow {
        AdmissionRow {
            id,
            event_id: ticket.event_id,
            section_id: ticket.section_id,
            ticket_id: ticket.id,
            serial: ticket.serial.clone(),
            patron_id: ticket.owner_id,
            redeemer: self.redeemer.clone(),
            device: self.device.clone(),
            token_id: self.token,
            admitted,
        }
    }
}

/// A ticket that is not admitted, with its earlier admission.
#[derive(Debug, sqlx_macros::FromRow)]
pub struct RefusedTicketRow {
    pub serial: String,
    pub status: TicketStatus,
    /// True if the caller may admit to the ticket's section.
    pub is_covered: bool,
    #[sqlx(flatten)]
    pub admission: EarlierAdmissionRow,
}

/// The admission of a ticket, joined to it. Its columns are null if the ticket was not admitted.
#[derive(Debug, sqlx_macros::FromRow)]
pub struct EarlierAdmissionRow {
    pub admission_id: Option<Id>,
    pub redeemer: Option<String>,
    pub device: Option<String>,
    pub token_id: Option<Id>,
    pub token_name: Option<String>,
    pub admitted: Option<Timestamp>,
}

impl EarlierAdmissionRow {
    /// Returns the admission of the ticket to this event.
    pub fn view(&self, event: Id) -> Option<EarlierAdmission> {
        Some(EarlierAdmission {
            uri: uri(event, self.admission_id?).0,
            admitted: self.admitted?.format_rfc3339(),
            redeemer: self.redeemer.clone()?,
            device: self.device.clone()?,
            token: NullableField(self.token_id.map(|token| tokens::uri(event, token).0)),
            token_name: self.token_name.clone().unwrap_or_default(),
        })
    }
}

impl RefusedTicketRow {
    /// Returns the reason for which the ticket is not admitted.
    pub fn reason(&self) -> RefusalReason {
        match self.status {
            _ if !self.is_covered => RefusalReason::OtherSection,
            // The sections of the token have changed since the ticket was refused.
            TicketStatus::Issued => RefusalReason::OtherSection,
            TicketStatus::Pending => RefusalReason::Pending,
            TicketStatus::Redeemed => RefusalReason::Redeemed,
            TicketStatus::Void => RefusalReason::Void,
        }
    }
}

/// Scans of a gate that had no connection.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct OfflineScanCreate {
    #[schemars(length(min = 1, max = 200))]
    pub device: String,
    #[schemars(length(max = 200))]
    pub redeemer: Option<String>,
    #[schemars(length(min = 1, max = 10_000))]
    pub scans: Vec<UploadedScan>,
}

/// A scan of a ticket, with its time.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct UploadedScan {
    pub serial: ScannedSerial,
    pub scanned: DateTimeInput,
}

/// The outcome of uploaded scans.
#[derive(Debug, Serialize, JsonSchema)]
pub struct OfflineScanResult {
    #[schemars(range(min = 0))]
    pub admitted: i64,
    pub refused: Vec<RefusedTicket>,
    pub conflicts: Vec<AdmissionConflict>,
}

/// A ticket that two gates have admitted: the admission that counts, and the scan of the other gate.
#[derive(Debug, Serialize, JsonSchema)]
pub struct AdmissionConflict {
    pub ticket: Serial,
    pub section: Uri,
    pub recorded: OffsetSeconds,
    pub admission: EarlierAdmission,
    pub scan: OfflineScan,
}

/// A scan of a gate that had no connection.
#[derive(Debug, Serialize, JsonSchema)]
pub struct OfflineScan {
    pub scanned: OffsetSeconds,
    pub redeemer: String,
    pub device: String,
    pub token: NullableField<Uri>,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub struct ConflictFilter {
    #[serde(flatten)]
    pub paging: PageRequest,
    /// Only conflicts in which this device has admitted the ticket.
    #[schemars(length(min = 1, max = 200))]
    pub device: Option<String>,
    /// Only conflicts that were recorded at this time or later.
    pub modified_since: Option<DateTimeInput>,
}

/// A ticket that a gate has scanned without a connection, with its admission.
#[derive(Debug, sqlx_macros::FromRow)]
pub struct ScannedTicketRow {
    #[sqlx(flatten)]
    pub ticket: TicketRow,
    /// True if the caller may admit to the ticket's section.
    pub is_covered: bool,
    #[sqlx(flatten)]
    pub admission: EarlierAdmissionRow,
}

/// A row of `admission_conflicts`, with its ticket and its admission.
#[derive(Debug, sqlx_macros::FromRow)]
pub struct ConflictRow {
    pub event_id: Id,
    pub ticket_id: Id,
    pub section_id: Id,
    pub serial: String,
    pub recorded: Timestamp,
    pub scanned: Timestamp,
    pub redeemer: String,
    pub device: String,
    pub token_id: Option<Id>,
    pub admission_id: Id,
    pub admitted: Timestamp,
    pub admission_redeemer: String,
    pub admission_device: String,
    pub admission_token_id: Option<Id>,
    pub admission_token_name: Option<String>,
}

/// A row of `admission_conflicts` to be inserted.
#[derive(Debug)]
pub struct NewConflict {
    pub id: Id,
    pub event_id: Id,
    pub ticket_id: Id,
    pub admission_id: Id,
    pub redeemer: String,
    pub device: String,
    pub token_id: Option<Id>,
    pub scanned: Timestamp,
    pub recorded: Timestamp,
}
