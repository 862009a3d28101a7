//! Requests and responses of gate lists.

use boxoffice_http::string_newtype;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::features::catalog::events::EventStatus;
use crate::features::sales::tickets::TicketStatus;
use crate::kernel::types::api_types::{DateTimeInput, NullableField, Uri};
use crate::kernel::types::id::Id;

string_newtype!(
    /// The last ticket of the previous page.
    TicketCursor, None, Some("^[0-9]{1,19}$"), None, None;
    /// A time in UTC, as it is sent in `modified_since`.
    UtcSecond, None, Some(r"^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}Z$"), None, None
);

#[derive(Debug, Deserialize, JsonSchema)]
pub struct GateListQuery {
    /// Only tickets that changed at this time or later.
    pub modified_since: Option<DateTimeInput>,
    pub after: Option<TicketCursor>,
}

impl GateListQuery {
    /// Returns the last ticket of the previous page, or [`Id::NONE`] for the first page.
    pub fn after(&self) -> Id {
        self.after.as_ref().and_then(|after| Id::parse(&after.0)).unwrap_or(Id::NONE)
    }
}

/// A page of a list in a response.
#[derive(Debug, Serialize, JsonSchema)]
pub struct GateList {
    /// [`GateListContent`] as a JSON Web Signature.
    pub list: String,
    /// The URI of the next page.
    pub next: NullableField<Uri>,
    /// The time for the next load of the changes.
    #[serde(rename = "modifiedSince")]
    pub modified_since: UtcSecond,
}

/// The signed content of a page.
#[derive(Debug, Serialize)]
pub struct GateListContent {
    pub event: Uri,
    /// The status of the event. A Cancelled event admits no one.
    pub status: EventStatus,
    /// The time from which tickets are admitted; `None` if they always are.
    #[serde(rename = "admissionFrom")]
    pub admission_from: Option<String>,
    /// The admission token; `None` if an account has loaded the list.
    pub token: Option<Uri>,
    pub created: String,
    /// The time from which on the list has the changes; `None` for a complete list.
    #[serde(rename = "modifiedSince")]
    pub modified_since: Option<UtcSecond>,
    /// The sections to which the caller may admit.
    pub sections: Vec<Uri>,
    pub tickets: Vec<GateListTickets>,
}

/// The tickets of one section with one status.
#[derive(Debug, Serialize)]
pub struct GateListTickets {
    pub section: Uri,
    pub status: TicketStatus,
    pub digests: Vec<String>,
}
