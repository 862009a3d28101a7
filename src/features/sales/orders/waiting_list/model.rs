//! Requests, responses and rows of waiting lists.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::features::identity::accounts::Account;
use crate::kernel::http::has_location;
use crate::kernel::types::api_types::{DateTime, NullableField, Uri};
use crate::kernel::types::clock::Timestamp;
use crate::kernel::types::id::Id;
use crate::kernel::types::stored_text::stored_as_text;

/// The status of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, strum::EnumString, strum::IntoStaticStr)]
pub enum WaitingStatus {
    /// The account waits for places.
    Waiting,
    /// Places are reserved for an order of the account.
    Offered,
    /// The account has ordered the places.
    Ordered,
    /// The account has not ordered the places in time.
    Lapsed,
    /// The sale ended before there was an offer, or before it was used.
    Closed,
}

stored_as_text!(WaitingStatus);

impl WaitingStatus {
    /// Returns the change of a section's counts of waiting entries and of offered places by the removal of an entry with this
    /// status; `None` for an entry that counts no more.
    pub fn change_of_removal(self, section: Id, quantity: i64) -> Option<(Id, i64, i64)> {
        match self {
            Self::Waiting => Some((section, -1, 0)),
            Self::Offered => Some((section, 0, -quantity)),
            Self::Ordered | Self::Lapsed | Self::Closed => None,
        }
    }
}

/// An entry of a waiting list in a response.
#[derive(Debug, Serialize, JsonSchema)]
pub struct WaitingEntry {
    #[serde(rename = "self")]
    pub uri: Uri,
    pub section: Uri,
    pub customer: Account,
    /// The number of places.
    pub quantity: i64,
    pub status: WaitingStatus,
    /// The position among the entries that wait, from 1; `None` if it doesn't wait.
    pub position: NullableField<i64>,
    pub joined: DateTime,
    /// The end of the offer; `None` if there is no open one.
    pub expires: NullableField<DateTime>,
}

has_location!(WaitingEntry);

#[derive(Debug, Deserialize, JsonSchema)]
pub struct WaitingEntryCreate {
    #[schemars(range(min = 1, max = 10))]
    pub quantity: i64,
}

/// Path parameters of an entry.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct WaitingEntryPath {
    pub event: Id,
    pub section: Id,
    pub entry: Id,
}

/// A new row of `waiting_entries`.
#[derive(Debug, Clone, Copy)]
pub struct NewEntry {
    pub id: Id,
    pub section_id: Id,
    pub account_id: Id,
    pub quantity: i64,
    pub joined: Timestamp,
}

/// A row of `waiting_entries`.
#[derive(Debug, Clone, sqlx_macros::FromRow)]
pub struct EntryRow {
    pub id: Id,
    pub section_id: Id,
    /// The event of the section.
    pub event_id: Id,
    pub account_id: Id,
    pub quantity: i64,
    #[sqlx(rename = "status")]
    pub stored_status: WaitingStatus,
    /// The number of entries of the section that wait and are not younger.
    pub position: i64,
    pub joined: Timestamp,
    /// The end of the offer.
    pub expires: Option<Timestamp>,
}

impl EntryRow {
    /// Returns the status at `now`: an offer lapses at its end, even if the job has not run yet.
    pub fn status(&self, now: Timestamp) -> WaitingStatus {
        let is_over = self.stored_status == WaitingStatus::Offered && self.expires.is_none_or(|expires| expires <= now);
        if is_over { WaitingStatus::Lapsed } else { self.stored_status }
    }
}

/// An offer of places: an open one, or one to be made.
#[derive(Debug, Clone, Copy, sqlx_macros::FromRow)]
pub struct OfferRow {
    /// The entry.
    pub id: Id,
    /// The section.
    pub section_id: Id,
    /// The account to which the places are offered.
    pub account_id: Id,
    /// The number of places.
    pub quantity: i64,
}

/// An entry to which places may be offered.
#[derive(Debug, sqlx_macros::FromRow)]
pub struct CandidateRow {
    /// The entry.
    #[sqlx(flatten)]
    pub entry: OfferRow,
    /// False for a deactivated account, which can't order.
    pub activated: bool,
}

/// A filter for the entries of one section or account.
#[derive(Debug, Clone, Copy)]
pub enum EntriesOf {
    /// The entries of a section that wait or have an open offer.
    Section(Id),
    /// The entries of an account, with any status.
    Account(Id),
}
