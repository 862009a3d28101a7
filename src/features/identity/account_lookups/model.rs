//! Lookups on the wire.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::features::identity::accounts::AccountRole;

#[derive(Debug, Deserialize, JsonSchema)]
pub struct LookupCreate {
    #[schemars(length(min = 1, max = 254))]
    pub identification: String,
    /// The only type of account that counts.
    pub role: Option<AccountRole>,
}

/// What was asked, and the answer.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Lookup {
    pub identification: String,
    // Always there, though it may be null: schemars would not require an Option.
    #[schemars(schema_with = "Option::<String>::json_schema")]
    pub role: Option<AccountRole>,
    pub found: bool,
}
