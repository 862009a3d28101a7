//! Sessions on the wire, and what signing in reads of an account.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::accounts::{Account, AccountRow, Password};
use crate::base::wire::Uri;
use crate::http::Located;

/// A session as it is answered, always to whoever holds its key.
#[derive(Serialize, JsonSchema)]
pub struct Session {
    #[serde(rename = "self")]
    pub uri: Uri,
    pub id: i64,
    pub open: bool,
    #[schemars(regex(pattern = r"^\d{4}-\d{2}-\d{2} \d{2}:\d{2}:\d{2}$"))]
    pub started: String,
    #[schemars(regex(pattern = r"^[a-z0-9]{32}$"))]
    pub key: String,
    pub account: Account,
}

impl Located for Session {
    fn location(&self) -> &str {
        &self.uri.0
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
pub struct SessionCreate {
    #[schemars(length(min = 1, max = 254))]
    pub identification: String,
    pub password: Password<1>,
}

/// An account and the hash of its password.
#[derive(sqlx::FromRow)]
pub struct Credentials {
    #[sqlx(flatten)]
    pub account: AccountRow,
    pub password_hash: String,
}
