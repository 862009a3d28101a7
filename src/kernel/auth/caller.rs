//! The caller of an operation.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::kernel::types::id::Id;
use crate::kernel::db::DbVersion;
use boxoffice_openapi::Scope;
use boxoffice_http::error::{Error, Result};

/// Whose key a request came with.
#[derive(Debug, Clone)]
pub struct Caller {
    /// The key's own identifier.
    pub key: Id,
    /// How far it reaches.
    pub scope: Scope,
    /// The account it acts for.
    pub account: Option<Id>,
    /// Whether the key is a session's.
    pub is_session: bool,
    /// What an admission token's key may redeem.
    pub redeemer: Option<AdmissionClaims>,
    /// What was committed when the key was looked up, after the request had come.
    pub snapshot: Arc<DbVersion>,
}

/// The token behind a redeemer's key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AdmissionClaims {
    /// The token.
    pub token: Id,
    /// The event that it belongs to.
    pub event: Id,
}

impl Caller {
    /// Whether this is the platform's staff.
    pub fn is_administrator(&self) -> bool {
        self.scope == Scope::Administrator
    }

    /// Whether this key acts for that account.
    pub fn is(&self, account: Id) -> bool {
        self.account == Some(account)
    }

    /// Succeeds for the account itself and for the platform's staff.
    ///
    /// # Errors
    /// [`Error::NOT_YOURS`] for anyone else.
    pub fn require_account(&self, account: Id) -> Result<()> {
        if self.is_administrator() || self.is(account) { Ok(()) } else { Err(Error::FORBIDDEN) }
    }
}
