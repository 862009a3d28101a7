//! Which sections of an event a caller may admit to.

use super::store;
use crate::kernel::auth::{Caller, Scope};
use crate::kernel::types::id::Id;
use crate::kernel::db::Tx;
use boxoffice_http::error::{Error, Result};
use crate::features::catalog::events::EventRow;
use crate::features::catalog::hosts;

/// The sections of an event that a caller may admit to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AdmissionScope {
    /// All of them: an administrator of its host, or of the platform.
    Event,
    /// Those that this token covers.
    Token(Id),
}

impl AdmissionScope {
    /// The token whose sections they are; `None` where they are all of them.
    pub fn token(self) -> Option<Id> {
        match self {
            Self::Event => None,
            Self::Token(token) => Some(token),
        }
    }
}

/// What of this event the caller may admit to.
///
/// # Errors
/// [`Error::NOT_YOURS`] for whoever may not at all, among them a redeemer of another event.
pub async fn authorize(tx: &mut Tx, caller: &Caller, event: &EventRow) -> Result<AdmissionScope> {
    if caller.scope == Scope::Redeemer {
        let redeemer = caller.redeemer.filter(|redeemer| redeemer.event == event.id);
        return redeemer.map(|redeemer| AdmissionScope::Token(redeemer.token)).ok_or(Error::FORBIDDEN);
    }
    hosts::require_administrator(tx, caller, event.host_id).await?;
    Ok(AdmissionScope::Event)
}

/// The condition that a token, every `?` in it, covers the section in this column. For [`crate::kernel::db::Statement::and`].
pub fn covers_sql(section_column: &str) -> String {
    format!(
        "(exists (select 1 from tokens k where k.id = ? and k.global)
          or {section_column} in (select ks.section_id from token_sections ks where ks.token_id = ?))"
    )
}

impl AdmissionScope {
    /// Succeeds when this section is within reach.
    ///
    /// # Errors
    /// [`Error::NOT_YOURS`] when it isn't.
    pub async fn require(self, tx: &mut Tx, section: Id) -> Result<()> {
        match self {
            Self::Event => Ok(()),
            Self::Token(token) if store::covers(tx, token, section).await? => Ok(()),
            Self::Token(_) => Err(Error::FORBIDDEN),
        }
    }
}
