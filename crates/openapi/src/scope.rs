//! Scopes of API keys.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The scope of an API key. Each operation lists the scopes that may call it (`x-scopes`).
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, strum::EnumString, strum::IntoStaticStr,
)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum Scope {
    /// An application, with no person behind it.
    Public,
    /// A person.
    Customer,
    /// A member of the platform's staff.
    Administrator,
    /// A holder of an admission token.
    Redeemer,
}
