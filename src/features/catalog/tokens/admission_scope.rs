//! Sections of an event to which a caller may admit, and the check of that permission.

use boxoffice_http::error::{Code, Error, Result};
use boxoffice_openapi::Scope;

use super::store;
use crate::features::catalog::events::EventRow;
use crate::features::catalog::hosts;
use crate::kernel::auth::Caller;
use crate::kernel::db::Reader;
use crate::kernel::types::id::Id;

/// Sections of an event to which a caller may admit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AdmissionScope {
    /// All sections, for an administrator of the host or a platform administrator.
    Event,
    /// The sections that this token covers.
    Token(Id),
}

impl AdmissionScope {
    /// Returns the token that limits the sections; `None` for all sections.
    pub fn token(self) -> Option<Id> {
        match self {
            Self::Event => None,
            Self::Token(token) => Some(token),
        }
    }
}

/// Returns the sections of this event to which the caller may admit.
///
/// # Errors
/// [`Error::FORBIDDEN`] for a caller who may not admit to the event, such as a redeemer of another event.
pub async fn authorize(reader: &mut Reader, caller: &Caller, event: &EventRow) -> Result<AdmissionScope> {
    if caller.scope == Scope::Redeemer {
        let claims = caller.admission_claims.filter(|claims| claims.event == event.id);
        return claims.map(|claims| AdmissionScope::Token(claims.token)).ok_or(Error::FORBIDDEN);
    }
    hosts::require_administrator(reader, caller, event.host_id).await?;
    Ok(AdmissionScope::Event)
}

/// Returns the SQL condition that a token covers the section in this column. Every `?` is the token. Used with
/// [`crate::kernel::db::Statement::and_where`].
pub fn covers_sql(section_column: &str) -> String {
    format!(
        "(exists (select 1 from tokens k where k.id = ? and k.global)
          or {section_column} in (select ks.section_id from token_sections ks where ks.token_id = ?))"
    )
}

impl AdmissionScope {
    /// Requires that the token exists. After its removal it covers no section, so that each ticket would be one of another section.
    ///
    /// # Errors
    /// [`Code::KEY_REFUSED`] if it was removed since the caller's key was looked up.
    pub async fn require_token(self, reader: &mut Reader) -> Result<()> {
        let removed = store::removed(reader, self.token().into_iter().collect()).await?;
        if removed.is_empty() { Ok(()) } else { Err(Code::KEY_REFUSED.into()) }
    }

    /// Requires a section to which the caller may admit.
    ///
    /// # Errors
    /// [`Error::FORBIDDEN`] for any other section.
    pub async fn require(self, reader: &mut Reader, section: Id) -> Result<()> {
        match self {
            Self::Event => Ok(()),
            Self::Token(token) if store::covers(reader, token, section).await? => Ok(()),
            Self::Token(_) => Err(Error::FORBIDDEN),
        }
    }
}
