//! API types of verifications and password resets, and the database row that they share.

use boxoffice_http::error::Error;
use boxoffice_http::{secret_newtype, string_newtype};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::features::codes;
use crate::features::identity::accounts::Password;
use crate::kernel::http::has_location;
use crate::kernel::types::api_types::Uri;
use crate::kernel::types::clock::Timestamp;
use crate::kernel::types::id::Id;
use crate::kernel::types::stored_text::stored_as_text;

secret_newtype!(
    /// Identifier in a code's URI. A secret of the client that requested the code.
    Identifier, None, Some("^[A-Za-z0-9-]+$"), None, Some(64);
    /// The six digits of a code.
    Digits, None, Some("^[0-9]{6}$"), None, None
);

string_newtype!(
    /// The e-mail address of an account, perhaps with spaces around it, which keyboards of phones add.
    EmailInput, None, Some(r"^\s*[^\s@]+@[^\s@]+\s*$"), None, Some(254)
);

#[derive(Debug, Deserialize, JsonSchema)]
pub struct VerificationPath {
    pub verification: Identifier,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub struct VerificationCreate {
    pub email: EmailInput,
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

/// A verification in API responses.
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
    pub email: EmailInput,
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

/// A password reset in API responses.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Reset {
    #[serde(rename = "self")]
    pub uri: Uri,
    #[schemars(email)]
    pub email: String,
    pub status: ResetStatus,
}

has_location!(Verification);

has_location!(Reset);

/// Purpose of a code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, strum::EnumString, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum CodePurpose {
    Verification,
    Reset,
}

stored_as_text!(CodePurpose);

impl CodePurpose {
    /// Returns the error for a code that is no longer valid.
    pub fn closed(self) -> Error {
        match self {
            Self::Verification => codes::VERIFICATION_CLOSED.into(),
            Self::Reset => codes::RESET_CLOSED.into(),
        }
    }
}

/// Stored status of a code. It doesn't include expiry and used-up attempts; see [`CodeValidity`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::EnumString, strum::IntoStaticStr)]
pub enum CodeStatus {
    Pending,
    Used,
    /// Replaced by a newer code, or invalidated.
    Closed,
}

stored_as_text!(CodeStatus);

/// Validity of a code, derived from its status, its expiry and the attempts made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CodeValidity {
    Open,
    Used,
    Over,
}

/// Database row of a code.
#[derive(Debug, Clone, sqlx_macros::FromRow)]
pub struct CodeRow {
    pub hash: String,
    pub kind: CodePurpose,
    pub account_id: Id,
    pub email: String,
    pub code_hash: String,
    pub expires: Timestamp,
    pub tries: i64,
    pub status: CodeStatus,
    /// True if it was requested from an address from which someone had signed in to the account.
    pub known_address: bool,
}

impl CodeRow {
    /// Returns the codes with which this one shares its limit of attempts.
    pub const fn group(&self) -> CodeGroup {
        CodeGroup { kind: self.kind, account: self.account_id, known_address: self.known_address }
    }
}

/// The codes of an account that share a limit of attempts, and of which one at most is pending. Codes that were requested from an
/// address from which someone had signed in to the account are a group of their own: otherwise, anyone could keep its owner from
/// using codes.
#[derive(Debug, Clone, Copy)]
pub struct CodeGroup {
    pub kind: CodePurpose,
    pub account: Id,
    pub known_address: bool,
}

/// A code with its identifier and validity.
#[derive(Debug)]
pub struct VerificationCode {
    /// Identifier in the code's URI. The database stores only its hash.
    pub identifier: Identifier,
    pub row: CodeRow,
    pub validity: CodeValidity,
}

impl From<VerificationCode> for Verification {
    fn from(code: VerificationCode) -> Self {
        Self {
            uri: Uri(format!("/verifications/{}", code.identifier.0)),
            email: code.row.email,
            status: match code.validity {
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
            status: match code.validity {
                CodeValidity::Open => ResetStatus::Pending,
                CodeValidity::Used => ResetStatus::Used,
                CodeValidity::Over => ResetStatus::Expired,
            },
        }
    }
}
