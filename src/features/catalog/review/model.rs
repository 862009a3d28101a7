//! API types and database rows of submissions.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use boxoffice_http::string_newtype;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::features::catalog::advertisements::Advertisement;
use crate::features::catalog::events::Event;
use crate::features::catalog::venues::Venue;
use crate::kernel::http::has_location;
use crate::kernel::types::api_types::{DateTime, HasCollection, Uri};
use crate::kernel::types::clock::Timestamp;
use crate::kernel::types::id::Id;
use crate::kernel::types::paging::PageRequest;
use crate::kernel::types::stored_text::stored_as_text;

/// Type of the content that is submitted for review.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, strum::EnumString, strum::IntoStaticStr)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum SubmissionType {
    /// An event to be listed.
    Event,
    /// An advertisement to be shown.
    Advertisement,
    /// A venue to be used by every caller.
    Venue,
}

stored_as_text!(SubmissionType);

impl SubmissionType {
    const ALL: [Self; 3] = [Self::Event, Self::Advertisement, Self::Venue];

    /// Returns its name in a text.
    pub fn noun(self) -> &'static str {
        match self {
            Self::Event => "event",
            Self::Advertisement => "advertisement",
            Self::Venue => "venue",
        }
    }

    /// Returns the path of the collection with content of this type.
    fn path(self) -> &'static str {
        match self {
            Self::Event => Event::PATH,
            Self::Advertisement => Advertisement::PATH,
            Self::Venue => Venue::PATH,
        }
    }
}

/// Content under review, identified by its URI.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Content {
    /// Type of the content.
    pub kind: SubmissionType,
    /// Identifier within its collection.
    pub id: Id,
}

impl Content {
    /// URI.
    pub fn uri(self) -> String {
        format!("{}{}", self.kind.path(), self.id)
    }

    /// Returns the identifier of its submissions.
    pub fn submission(self) -> String {
        STANDARD.encode(self.uri())
    }

    /// Parses the identifier of a submission.
    pub fn parse(submission: &str) -> Option<Self> {
        let uri = String::from_utf8(STANDARD.decode(submission).ok()?).ok()?;
        SubmissionType::ALL.into_iter().find_map(|kind| Some(Self { kind, id: Id::parse(uri.strip_prefix(kind.path())?)? }))
    }
}

/// Status of a submission.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema, strum::EnumString, strum::IntoStaticStr)]
pub enum SubmissionStatus {
    /// Waiting for a decision.
    Pending,
    /// Approved: the content was made public.
    Approved,
    /// Rejected: the content was returned to its submitter.
    Rejected,
    /// Not decided, because the event was cancelled.
    Cancelled,
}

stored_as_text!(SubmissionStatus);

/// A submission in API responses.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Submission {
    /// URI.
    #[serde(rename = "self")]
    pub uri: Uri,
    /// Type of the content.
    #[serde(rename = "type")]
    pub kind: SubmissionType,
    /// URI of the content.
    pub content: Uri,
    /// Status, pending until the decision.
    pub status: SubmissionStatus,
    /// Time of the submission.
    pub submitted: DateTime,
    /// URI of the account that submitted it.
    pub submitter: Uri,
    /// Reason for the decision, or empty.
    pub reason: String,
}

// Only platform administrators may read it, not the submitter.
has_location!(Submission, SAME_REPRESENTATION = false);

string_newtype!(
    /// Identifier of a submission: the base64 of its content's URI.
    SubmissionId, None, Some(r"^[A-Za-z0-9+/=]+$"), None, Some(200)
);

#[derive(Debug, Deserialize, JsonSchema)]
pub struct SubmissionPath {
    pub submission: SubmissionId,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub struct SubmissionFilter {
    #[serde(flatten)]
    pub paging: PageRequest,
    #[serde(rename = "type")]
    pub kind: Option<SubmissionType>,
}

/// Decision on a submission, and its reason.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Decision {
    pub approved: bool,
    #[schemars(length(max = 2000))]
    pub reason: Option<String>,
}

/// Database row of a submission, with its submitter's account number.
#[derive(Debug, sqlx_macros::FromRow)]
pub struct SubmissionRow {
    pub id: Id,
    #[sqlx(rename = "type")]
    pub kind: SubmissionType,
    pub content_id: Id,
    pub status: SubmissionStatus,
    pub submitted: Timestamp,
    pub submitter: Option<String>,
    pub reason: String,
}

impl From<SubmissionRow> for Submission {
    fn from(row: SubmissionRow) -> Self {
        let content = Content { kind: row.kind, id: row.content_id };
        Self {
            uri: Uri(format!("/submissions/{}", content.submission())),
            kind: row.kind,
            content: Uri(content.uri()),
            status: row.status,
            submitted: DateTime::from(row.submitted),
            submitter: Uri(row.submitter.map(|number| format!("/accounts/{number}")).unwrap_or_default()),
            reason: row.reason,
        }
    }
}
