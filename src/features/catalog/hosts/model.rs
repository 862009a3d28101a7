//! Hosts on the wire and in the database.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::features::identity::accounts::AccountNumber;
use crate::kernel::types::id::Id;
use crate::kernel::types::paging::PageRequest;
use crate::kernel::types::api_types::{ResourceCollection, Uri};
use crate::kernel::http::HasLocation;

/// The collection, for references to a host.
#[derive(Debug)]
pub struct Hosts;

impl ResourceCollection for Hosts {
    const PATH: &'static str = "/hosts/";
}

/// A host as it is answered.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Host {
    #[serde(rename = "self")]
    pub uri: Uri,
    pub name: String,
    pub contact: String,
    #[schemars(email)]
    pub email: String,
    pub description: String,
    pub phone: String,
    pub website: String,
    pub country: String,
    pub first_address_line: String,
    pub second_address_line: String,
    pub city: String,
    pub state: String,
    pub business_no: String,
}

impl HasLocation for Host {
    fn location(&self) -> &str {
        &self.uri.0
    }
}

/// The path of a host and of what lies below it.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct HostPath {
    /// The host.
    pub host: Id,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub struct HostFilter {
    #[serde(flatten)]
    pub paging: PageRequest,
    /// Only hosts that the account with this number administers.
    pub account: Option<AccountNumber>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HostCreate {
    #[schemars(length(min = 1, max = 200))]
    pub name: String,
    #[schemars(length(min = 1, max = 200))]
    pub contact: String,
    #[schemars(email, length(max = 254))]
    pub email: String,
    #[schemars(length(max = 10000))]
    pub description: Option<String>,
    #[schemars(length(max = 40))]
    pub phone: Option<String>,
    #[schemars(regex(pattern = r"^(https?://\S+)?$"), length(max = 2000))]
    pub website: Option<String>,
    #[schemars(length(max = 200))]
    pub country: Option<String>,
    #[schemars(length(max = 200))]
    pub first_address_line: Option<String>,
    #[schemars(length(max = 200))]
    pub second_address_line: Option<String>,
    #[schemars(length(max = 200))]
    pub city: Option<String>,
    #[schemars(length(max = 200))]
    pub state: Option<String>,
    #[schemars(length(max = 100))]
    pub business_no: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HostUpdate {
    #[schemars(length(min = 1, max = 200))]
    pub name: Option<String>,
    #[schemars(length(min = 1, max = 200))]
    pub contact: Option<String>,
    #[schemars(email, length(max = 254))]
    pub email: Option<String>,
    #[schemars(length(max = 10000))]
    pub description: Option<String>,
    #[schemars(length(max = 40))]
    pub phone: Option<String>,
    #[schemars(regex(pattern = r"^(https?://\S+)?$"), length(max = 2000))]
    pub website: Option<String>,
    #[schemars(length(max = 200))]
    pub country: Option<String>,
    #[schemars(length(max = 200))]
    pub first_address_line: Option<String>,
    #[schemars(length(max = 200))]
    pub second_address_line: Option<String>,
    #[schemars(length(max = 200))]
    pub city: Option<String>,
    #[schemars(length(max = 200))]
    pub state: Option<String>,
    #[schemars(length(max = 100))]
    pub business_no: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub struct HostAdministratorFilter {
    #[serde(flatten)]
    pub paging: PageRequest,
}

/// Who is to administer a host.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct HostAdministratorCreate {
    pub account: AccountNumber,
}

/// Who is to administer a host no more.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct HostAdministratorDelete {
    pub account: AccountNumber,
}

/// An administrator of a host as it is kept.
#[derive(Debug, sqlx::FromRow)]
pub struct AdministratorRow {
    pub account_id: Id,
}

/// A host as it is kept.
#[derive(Debug, sqlx::FromRow)]
pub struct HostRow {
    pub id: Id,
    pub name: String,
    pub contact: String,
    pub email: String,
    pub description: String,
    pub phone: String,
    pub website: String,
    pub country: String,
    pub first_address_line: String,
    pub second_address_line: String,
    pub city: String,
    pub state: String,
    pub business_no: String,
}
