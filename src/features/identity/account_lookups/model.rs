//! API types of account lookups.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::features::identity::accounts::Role;
use crate::kernel::types::api_types::NullableField;

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
    // The document lists no roles here.
    #[schemars(with = "NullableField<String>")]
    pub role: NullableField<Role>,
    pub found: bool,
}
