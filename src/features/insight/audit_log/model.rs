//! Requests, responses and rows of the audit log.

use boxoffice_http::{inline_schema, string_newtype, text_schema};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

use crate::features::identity::accounts::AccountNumber;
use crate::kernel::types::api_types::{DateTime, NullableField};
use crate::kernel::types::clock::Timestamp;
use crate::kernel::types::id::Id;
use crate::kernel::types::paging::PageRequest;
use crate::kernel::types::period::Period;

string_newtype!(
    /// The identifier of an API key.
    KeyNumber, None, Some(r"^\d{14}$"), None, None
);

/// The API key of the entries that a client asks for. A malformed identifier is that of no key, while [`Id::NONE`] is that of the
/// operator's commands.
#[derive(Debug, Clone, Copy)]
pub struct KeyFilter(pub Id);

impl<'de> Deserialize<'de> for KeyFilter {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        const NO_KEY: Id = Id(-1);
        Ok(Self(Id::parse(&String::deserialize(deserializer)?).unwrap_or(NO_KEY)))
    }
}

inline_schema!(KeyFilter, "KeyFilter", text_schema(None, Some("^[A-Za-z0-9-]+$"), None, Some(64)));

/// The outcome of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum AuditOutcome {
    /// The request succeeded.
    Done,
    /// The request was rejected.
    Refused,
}

/// An entry in a response.
#[derive(Debug, Serialize, JsonSchema)]
pub struct AuditEntry {
    pub at: DateTime,
    pub key: KeyNumber,
    pub account: NullableField<AccountNumber>,
    pub operation: String,
    pub resource: String,
    pub outcome: AuditOutcome,
    pub status: i64,
    pub code: NullableField<String>,
    pub request: String,
    pub count: i64,
    pub operator: NullableField<String>,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
pub struct AuditFilter {
    #[serde(flatten)]
    pub paging: PageRequest,
    #[serde(flatten)]
    pub period: Period,
    pub account: Option<AccountNumber>,
    pub key: Option<KeyFilter>,
    pub operation: Option<String>,
    pub resource: Option<String>,
    pub outcome: Option<AuditOutcome>,
}

/// A row of `audit`, with the number of its account.
#[derive(Debug, sqlx_macros::FromRow)]
pub struct AuditRow {
    pub id: Id,
    pub at: Timestamp,
    key_id: Id,
    number: Option<String>,
    operation: String,
    resource: String,
    status: i64,
    code: Option<String>,
    request: String,
    count: i64,
    operator: Option<String>,
}

impl AuditRow {
    /// Returns the entry as a response.
    pub fn view(self) -> AuditEntry {
        AuditEntry {
            at: DateTime::from(self.at),
            key: KeyNumber(self.key_id.to_string()),
            account: NullableField(self.number.map(AccountNumber)),
            operation: self.operation,
            resource: self.resource,
            outcome: if self.status < 400 { AuditOutcome::Done } else { AuditOutcome::Refused },
            status: self.status,
            code: NullableField(self.code),
            request: self.request,
            count: self.count,
            operator: NullableField(self.operator),
        }
    }
}
