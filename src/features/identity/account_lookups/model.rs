//! API types of account lookups.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::features::identity::accounts::Role;

#[derive(Debug, Deserialize, JsonSchema)]
pub struct LookupCreate {
    #[schemars(length(min = 1, max = 254))]
    pub identification: String,
    /// Role that the account must have, if set.
    pub role: Option<Role>,
}

/// The arguments of a lookup and its result.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Lookup {
    pub identification: String,
    // Always present, though it may be null: schemars would make an `Option` field optional.
    #[schemars(schema_with = "Option::<String>::json_schema")]
    pub role: Option<Role>,
    pub found: bool,
}
