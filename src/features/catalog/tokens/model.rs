//! API types and database rows of admission tokens.

use boxoffice_http::{secret_newtype, string_newtype};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::kernel::http::has_location;
use crate::kernel::types::api_types::Uri;
use crate::kernel::types::id::Id;
use crate::kernel::types::paging::PageRequest;

secret_newtype!(
    /// Code of a token.
    TokenCode, None, Some("^[0-9A-Z]{8}$"), None, None;
    /// A code that a person has typed in. It may have another format than [`TokenCode`]: then it is unknown, not invalid.
    GivenCode, None, Some("^[A-Za-z0-9-]+$"), None, Some(64);
    /// API key of a redeemer.
    RedeemerKey, None, Some("^[a-z0-9]{32}$"), None, None
);
string_newtype!(
    /// Section to be covered by a token, by either of its URIs.
    GivenSection, None, Some(r"^(/v3)?(/events/[A-Za-z0-9-]+)?/sections/[A-Za-z0-9-]+$"), Some(1), Some(200)
);

/// A token in API responses.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Token {
    #[serde(rename = "self")]
    pub uri: Uri,
    pub code: TokenCode,
    pub name: String,
    pub global: bool,
    pub sections: Vec<Uri>,
}

has_location!(Token);

/// Result of the exchange of a code: a key, and the sections to which it may admit.
#[derive(Debug, Serialize, JsonSchema)]
pub struct TokenAuthentication {
    pub key: RedeemerKey,
    pub event: Uri,
    pub sections: Vec<Uri>,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub struct TokenPath {
    pub event: Id,
    pub token: Id,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub struct CodePath {
    pub code: GivenCode,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub struct TokenFilter {
    #[serde(flatten)]
    pub paging: PageRequest,
    /// True for the global token only, false for all others.
    pub global: Option<bool>,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub struct TokenCreate {
    #[schemars(length(min = 1, max = 100))]
    pub sections: Vec<GivenSection>,
    #[schemars(length(max = 100))]
    pub name: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub struct TokenUpdate {
    #[schemars(length(min = 1, max = 100))]
    pub sections: Option<Vec<GivenSection>>,
    #[schemars(length(max = 100))]
    pub name: Option<String>,
}

/// Database row of a token. The sections of a token that isn't global are rows of `token_sections`.
#[derive(Debug, sqlx_macros::FromRow)]
pub struct TokenRow {
    pub id: Id,
    pub event_id: Id,
    pub code: String,
    /// Name, or empty.
    pub name: String,
    pub global: bool,
}

/// Returns the URI of a token.
pub fn uri(event: Id, token: Id) -> Uri {
    Uri(format!("/events/{event}/tokens/{token}"))
}
