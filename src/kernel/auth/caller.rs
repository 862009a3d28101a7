//! The authenticated caller of an operation.

use std::sync::Arc;

use boxoffice_http::error::{Error, Result};
use boxoffice_openapi::Scope;

use crate::kernel::db::DbVersion;
use crate::kernel::types::id::Id;

/// The principal of a request's API key.
#[derive(Debug, Clone)]
pub struct Caller {
    /// The identifier of the key.
    pub key: Id,
    /// The scope of the key.
    pub scope: Scope,
    /// The account that the key acts for.
    pub account: Option<Id>,
    /// The number of this account, for the log.
    pub account_number: Option<Arc<str>>,
    /// The region that the account prefers.
    pub preferred_region: Option<Id>,
    /// True for the key of a session.
    pub is_session: bool,
    /// The admission token of a redeemer's key.
    pub admission_claims: Option<AdmissionClaims>,
    /// The version of the database at the lookup of the key, after the request had arrived.
    pub db_version: Arc<DbVersion>,
}

/// The admission token of a redeemer's key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct AdmissionClaims {
    /// The identifier of the token.
    pub token: Id,
    /// The event of the token.
    pub event: Id,
}

impl Caller {
    /// Returns whether the caller is a platform administrator.
    pub fn is_administrator(&self) -> bool {
        self.scope == Scope::Administrator
    }

    /// Returns whether the caller acts for this account.
    pub fn is(&self, account: Id) -> bool {
        self.account == Some(account)
    }

    /// Rejects callers other than the account itself and platform administrators.
    ///
    /// # Errors
    /// [`Error::FORBIDDEN`] for all other callers.
    pub fn require_account(&self, account: Id) -> Result<()> {
        if self.is_administrator() || self.is(account) { Ok(()) } else { Err(Error::FORBIDDEN) }
    }
}
