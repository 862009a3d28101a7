//! Verifications and resets on the wire, and what they have in common in the database.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::features::identity::accounts::Password;
use crate::kernel::types::clock::Timestamp;
use crate::kernel::types::id::Id;
use crate::kernel::types::api_types::{Uri, string_newtype};
use boxoffice_http::error::{Code as Refusal, Error};
use crate::kernel::http::HasLocation;

string_newtype!(
    /// The identifier in a URI: a secret of whoever asked for the code.
    Identifier, None, Some("^[A-Za-z0-9-]+$"), None, Some(64)
);
string_newtype!(
    /// Six digits.
    Digits, None, Some("^[0-9]{6}$"), None, None
);

#[derive(Debug, Deserialize, JsonSchema)]
pub struct VerificationPath {
    pub verification: Identifier,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub struct VerificationCreate {
    #[schemars(email, length(max = 254))]
    pub email: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub struct VerificationUpdate {
    pub code: Digits,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub enum VerificationStatus {
    Pending,
    Verified,
    Expired,
}

/// A verification as it is answered.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Verification {
    #[serde(rename = "self")]
    pub uri: Uri,
    #[schemars(email)]
    pub email: String,
    pub status: VerificationStatus,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub struct ResetPath {
    pub reset: Identifier,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub struct ResetCreate {
    #[schemars(email, length(max = 254))]
    pub email: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub struct ResetUpdate {
    pub code: Digits,
    pub password: Password<8>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub enum ResetStatus {
    Pending,
    Used,
    Expired,
}

/// A reset as it is answered.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Reset {
    #[serde(rename = "self")]
    pub uri: Uri,
    #[schemars(email)]
    pub email: String,
    pub status: ResetStatus,
}

impl HasLocation for Verification {
    fn location(&self) -> &str {
        &self.uri.0
    }
}

impl HasLocation for Reset {
    fn location(&self) -> &str {
        &self.uri.0
    }
}

/// What a code is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, sqlx::Type)]
#[sqlx(type_name = "text", rename_all = "lowercase")]
pub enum CodePurpose {
    Verification,
    Reset,
}

impl CodePurpose {
    /// The refusal of whoever comes with a code that counts no more.
    pub fn closed(self) -> Error {
        match self {
            Self::Verification => Refusal::VerificationClosed.into(),
            Self::Reset => Refusal::ResetClosed.into(),
        }
    }
}

/// What has become of a code, but for what time and tries make of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, sqlx::Type)]
#[sqlx(type_name = "text")]
pub enum CodeStatus {
    Pending,
    Used,
    /// A newer one has taken its place.
    Closed,
}

/// Whether a code counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CodeValidity {
    Open,
    Used,
    Over,
}

/// A code as it is kept.
#[derive(Debug, Clone, sqlx::FromRow)]
pub struct CodeRow {
    pub hash: String,
    pub kind: CodePurpose,
    pub account_id: Id,
    pub email: String,
    pub code_hash: String,
    pub expires: Timestamp,
    pub tries: i64,
    pub status: CodeStatus,
}

/// A code as its holder sees it.
#[derive(Debug)]
pub struct VerificationCode {
    /// The identifier in its URI, which is not kept.
    pub identifier: Identifier,
    pub row: CodeRow,
    pub standing: CodeValidity,
}

impl From<VerificationCode> for Verification {
    fn from(code: VerificationCode) -> Self {
        Self {
            uri: Uri(format!("/verifications/{}", code.identifier.0)),
            email: code.row.email,
            status: match code.standing {
                CodeValidity::Open => VerificationStatus::Pending,
                CodeValidity::Used => VerificationStatus::Verified,
                CodeValidity::Over => VerificationStatus::Expired,
            },
        }
    }
}

impl From<VerificationCode> for Reset {
    fn from(code: VerificationCode) -> Self {
        Self {
            uri: Uri(format!("/resets/{}", code.identifier.0)),
            email: code.row.email,
            status: match code.standing {
                CodeValidity::Open => ResetStatus::Pending,
                CodeValidity::Used => ResetStatus::Used,
                CodeValidity::Over => ResetStatus::Expired,
            },
        }
    }
}
