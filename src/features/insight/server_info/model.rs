//! Responses with countries, time and settings.

use schemars::JsonSchema;
use serde::Serialize;

use crate::features::identity::accounts::AccountTitle;
use crate::kernel::types::api_types::NullableField;
use crate::kernel::types::money::Money;

#[derive(Debug, Serialize, JsonSchema)]
pub struct Countries {
    pub countries: Vec<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct ServerTime {
    /// Seconds since 1970.
    #[schemars(range(min = 0))]
    pub utc: i64,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Defaults {
    #[schemars(regex(pattern = r"^[A-Z]{3}$"))]
    pub currency: String,
    #[schemars(range(min = 1))]
    pub reservation_minutes: i64,
    pub fee_steps: Vec<FeeStep>,
    #[schemars(range(min = 1))]
    pub records_default: i64,
    #[schemars(range(min = 1))]
    pub records_maximum: i64,
    pub titles: Vec<AccountTitle>,
    #[schemars(regex(pattern = r"^\d+(\.\d+){2,7}$"))]
    pub minimum_client_version: String,
}

/// The convenience fee of tickets up to a unit price.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FeeStep {
    /// The highest unit price; null for the last step.
    pub up_to: NullableField<Money>,
    pub fee: Money,
}
