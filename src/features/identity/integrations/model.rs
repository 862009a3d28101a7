//! API types and database rows of integrations.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::features::identity::accounts::{AccountNumber, Role};
use crate::kernel::http::HasLocation;
use crate::kernel::types::api_types::{DateTime, NullableField, Uri};
use crate::kernel::types::clock::Timestamp;
use crate::kernel::types::id::Id;

/// An integration in API responses, without its key.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Integration {
    #[serde(rename = "self")]
    pub uri: Uri,
    pub name: String,
    pub role: Role,
    pub account: AccountNumber,
    pub expires: NullableField<DateTime>,
    pub created: DateTime,
    #[serde(rename = "lastUsed")]
    pub last_used: NullableField<DateTime>,
}

/// A new integration with its key.
#[derive(Serialize, JsonSchema)]
pub struct IntegrationWithKey {
    #[serde(flatten)]
    pub integration: Integration,
    #[schemars(regex(pattern = r"^[a-z0-9]{32}$"))]
    pub key: String,
}

impl HasLocation for IntegrationWithKey {
    /// False: a later GET returns the integration without its key.
    const SAME_REPRESENTATION: bool = false;

    fn location(&self) -> &str {
        &self.integration.uri.0
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
pub struct IntegrationPath {
    pub integration: Id,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub struct IntegrationCreate {
    #[schemars(length(min = 1, max = 200))]
    pub name: String,
    pub role: Role,
    pub account: Option<AccountNumber>,
    pub expires: Option<DateTime>,
}

/// Database row of an integration, with its account's number.
#[derive(Debug, sqlx_macros::FromRow)]
pub struct IntegrationRow {
    pub id: Id,
    pub name: String,
    pub role: Role,
    pub number: String,
    pub created: Timestamp,
    pub expires: Option<Timestamp>,
    pub last_used: Option<Timestamp>,
}

/// A key of a client program, as an operator sees it on the command line. Unlike [`Integration`], it may have no account.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ProgramKey {
    pub id: String,
    pub name: String,
    pub role: Role,
    pub account: Option<String>,
    pub created: String,
    pub last_used: Option<String>,
    pub expires: Option<String>,
}

/// Database row of a key of a client program.
#[derive(Debug, sqlx_macros::FromRow)]
pub struct ProgramKeyRow {
    pub id: Id,
    pub name: String,
    pub role: Role,
    pub number: Option<String>,
    pub created: Timestamp,
    pub expires: Option<Timestamp>,
    pub last_used: Option<Timestamp>,
}
