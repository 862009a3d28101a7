//! Admission tokens on the wire and in the database.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::kernel::types::id::Id;
use crate::kernel::types::paging::PageRequest;
use crate::kernel::types::api_types::{Uri, string_newtype};
use crate::kernel::http::HasLocation;

string_newtype!(
    /// A token's code.
    TokenCode, None, Some("^[0-9A-Z]{8}$"), None, None
);
string_newtype!(
    /// A code that somebody has typed in. Of whatever shape it is, it is a token's or unknown (wire facts).
    GivenCode, None, Some("^[A-Za-z0-9-]+$"), None, Some(64)
);
string_newtype!(
    /// A redeemer's key.
    RedeemerKey, None, Some("^[a-z0-9]{32}$"), None, None
);
string_newtype!(
    /// A section that a token is to cover, by either of its URIs.
    GivenSection, None, Some(r"^(/v3)?(/events/[A-Za-z0-9-]+)?/sections/[A-Za-z0-9-]+$"), Some(1), Some(200)
);

/// A token as it is answered.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Token {
    #[serde(rename = "self")]
    pub uri: Uri,
    pub code: TokenCode,
    pub global: bool,
    pub sections: Vec<Uri>,
}

impl HasLocation for Token {
    fn location(&self) -> &str {
        &self.uri.0
    }
}

/// What a code is exchanged for.
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
    /// Only the global token, or only the others.
    pub global: Option<bool>,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub struct TokenCreate {
    #[schemars(length(min = 1, max = 100))]
    pub sections: Vec<GivenSection>,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub struct TokenUpdate {
    #[schemars(length(min = 1, max = 100))]
    pub sections: Option<Vec<GivenSection>>,
}

/// A token as it is kept. The sections of one that isn't global are rows of their own.
#[derive(Debug, sqlx::FromRow)]
pub struct TokenRow {
    pub id: Id,
    pub event_id: Id,
    pub code: String,
    pub global: bool,
}

/// A token's URI.
pub fn uri(event: Id, token: Id) -> Uri {
    Uri(format!("/events/{event}/tokens/{token}"))
}
