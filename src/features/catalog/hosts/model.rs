//! API types and database rows of hosts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::features::identity::accounts::AccountNumber;
use crate::kernel::http::has_location;
use crate::kernel::types::api_types::Uri;
use crate::kernel::types::id::Id;
use crate::kernel::types::paging::PageRequest;

/// A host in API responses.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[expect(missing_docs, reason = "the contract describes the fields")]
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

has_location!(Host, PATH = "/hosts/");

/// Path parameters of a host and its subresources.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct HostPath {
    /// The host.
    pub host: Id,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub struct HostFilter {
    #[serde(flatten)]
    pub paging: PageRequest,
    /// Number of the account that must administer the hosts.
    pub account: Option<AccountNumber>,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub struct HostCreate {
    #[schemars(length(min = 1, max = 200))]
    pub name: String,
    #[schemars(length(min = 1, max = 200))]
    pub contact: String,
    #[schemars(email, length(max = 254))]
    pub email: String,
    #[serde(flatten)]
    pub details: HostDetails,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub struct HostUpdate {
    #[schemars(length(min = 1, max = 200))]
    pub name: Option<String>,
    #[schemars(length(min = 1, max = 200))]
    pub contact: Option<String>,
    #[schemars(email, length(max = 254))]
    pub email: Option<String>,
    #[serde(flatten)]
    pub details: HostDetails,
}

/// The properties of a host that are optional when it is created, too.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HostDetails {
    #[schemars(length(max = 10000))]
    pub description: Option<String>,
    #[schemars(length(max = 40))]
    pub phone: Option<String>,
    #[schemars(
        regex(pattern = r"^([Hh][Tt][Tt][Pp][Ss]?://\S+|[^\s:/?#.]+(\.[^\s:/?#.]+)+(:\d{1,5})?([/?#]\S*)?)?$"),
        length(max = 2000)
    )]
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

/// Request to add an administrator to a host.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct HostAdministratorCreate {
    pub account: AccountNumber,
}

/// Query parameters of the removal of a host's administrator.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct HostAdministratorDelete {
    pub account: AccountNumber,
}

/// Database row of an administrator of a host.
#[derive(Debug, sqlx_macros::FromRow)]
pub struct AdministratorRow {
    pub account_id: Id,
}

/// Database row of a host.
#[derive(Debug, sqlx_macros::FromRow)]
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
