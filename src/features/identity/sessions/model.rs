//! API types and database rows of sessions, and the credentials that a log-in verifies.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::features::identity::accounts::{Account, AccountNumber, AccountRow, Password};
use crate::kernel::http::has_location;
use crate::kernel::types::api_types::{DateTime, NullableField, Uri};
use crate::kernel::types::clock::Timestamp;
use crate::kernel::types::id::Id;

/// A session with its key. Returned only to the client that logs in or uses the key.
#[derive(Serialize, JsonSchema)]
pub struct Session {
    #[serde(rename = "self")]
    pub uri: Uri,
    pub id: i64,
    pub open: bool,
    #[schemars(regex(pattern = r"^\d{4}-\d{2}-\d{2} \d{2}:\d{2}:\d{2}$"))]
    pub started: String,
    #[schemars(regex(pattern = r"^[a-z0-9]{32}$"))]
    pub key: String,
    pub account: Account,
}

// A GET of the session's URI returns it without its key.
has_location!(Session, SAME_REPRESENTATION = false);

/// A session without its key, as the account and platform administrators see it.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AccountSession {
    #[serde(rename = "self")]
    pub uri: Uri,
    pub id: i64,
    pub open: bool,
    #[schemars(regex(pattern = r"^\d{4}-\d{2}-\d{2} \d{2}:\d{2}:\d{2}$"))]
    pub started: String,
    pub last_used: NullableField<DateTime>,
    pub account: Account,
}

/// Path parameters of a session of an account.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct SessionPath {
    pub number: AccountNumber,
    pub session: Id,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub struct SessionCreate {
    #[schemars(length(min = 1, max = 254))]
    pub identification: String,
    pub password: Password<1>,
}

/// An account and its password hash.
#[derive(sqlx_macros::FromRow)]
pub struct Credentials {
    #[sqlx(flatten)]
    pub account: AccountRow,
    pub password_hash: String,
}

/// Database row of a session, stored in `api_keys`.
#[derive(Debug, sqlx_macros::FromRow)]
pub struct SessionRow {
    pub id: Id,
    pub created: Timestamp,
    pub expires: Option<Timestamp>,
    pub last_used: Option<Timestamp>,
    pub ended: Option<Timestamp>,
}

impl SessionRow {
    /// Returns whether the session has neither ended nor expired.
    pub fn is_open(&self, now: Timestamp) -> bool {
        self.ended.is_none() && self.expires.is_none_or(|expires| expires > now)
    }
}
