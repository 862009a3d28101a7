//! Loading of events, with the permissions to see and change them.

use boxoffice_http::error::{Error, Result};
use boxoffice_openapi::Scope;

use super::model::EventRow;
use super::store;
use crate::features::catalog::hosts;
use crate::kernel::auth::Caller;
use crate::kernel::db::{Reader, Tx};
use crate::kernel::types::id::Id;
use crate::state::Ctx;

/// Returns an event without a permission check.
///
/// # Errors
/// [`Error::NOT_FOUND`] if there is no such event.
pub async fn load(reader: &mut Reader, id: Id) -> Result<EventRow> {
    store::find(reader, id).await?.ok_or(Error::NOT_FOUND)
}

/// Returns an event, if the caller may see it: every caller while it is listed or cancelled, and always the callers who may change it
/// and those who have tickets for it. A redeemer's key sees the event of its token, and no other.
///
/// # Errors
/// [`Error::NOT_FOUND`] if there is no such event, [`Error::FORBIDDEN`] for any other caller.
pub async fn load_visible(reader: &mut Reader, caller: &Caller, id: Id) -> Result<EventRow> {
    let row = load(reader, id).await?;
    require_visible(reader, caller, &row).await?;
    Ok(row)
}

/// Requires a caller who may see the event; see [`load_visible`].
///
/// # Errors
/// [`Error::FORBIDDEN`] for any other caller.
pub async fn require_visible(reader: &mut Reader, caller: &Caller, row: &EventRow) -> Result<()> {
    match caller.admission_claims {
        Some(claims) if claims.event == row.id => Ok(()),
        _ if is_public_for(caller, row) => Ok(()),
        _ if caller.scope == Scope::Redeemer => Err(Error::FORBIDDEN),
        _ => match hosts::require_administrator(reader, caller, row.host_id).await {
            Err(Error::Rejected(..)) if is_holder(reader, caller, row.id).await? => Ok(()),
            outcome => outcome,
        },
    }
}

/// Returns whether the caller has tickets for the event that are not void. They stay valid when it is withdrawn.
async fn is_holder(reader: &mut Reader, caller: &Caller, event: Id) -> Result<bool> {
    match caller.account {
        Some(account) => store::is_holder(reader, account, event).await,
        None => Ok(false),
    }
}

/// Returns whether the caller may see the event because it is public. Redeemers may not: they see only their token's event.
pub fn is_public_for(caller: &Caller, row: &EventRow) -> bool {
    row.status.is_public() && caller.scope != Scope::Redeemer
}

/// Returns an event, if the caller may change it: an administrator of its host or a platform administrator.
///
/// # Errors
/// [`Error::NOT_FOUND`] if there is no such event, [`Error::FORBIDDEN`] for any other caller.
pub async fn load_managed(reader: &mut Reader, caller: &Caller, id: Id) -> Result<EventRow> {
    let row = load(reader, id).await?;
    hosts::require_administrator(reader, caller, row.host_id).await?;
    Ok(row)
}

/// Requires an event that the caller may change; see [`load_managed`].
pub async fn check_managed(ctx: &Ctx, caller: &Caller, id: Id) -> Result<()> {
    load_managed(&mut ctx.unit.read().await?, caller, id).await.map(drop)
}

/// Locks and returns an event like [`load_managed`]. Every change of an event or of anything that belongs to it begins with this
/// lock: its sections, price modifiers, admission tokens and advertisements can't be removed by another transaction before this
/// one ends.
///
/// # Errors
/// Like [`load_managed`].
pub async fn lock_managed(tx: &mut Tx, caller: &Caller, id: Id) -> Result<EventRow> {
    let row = store::lock(tx, id).await?.ok_or(Error::NOT_FOUND)?;
    hosts::lock_administrator(tx, caller, row.host_id).await?;
    Ok(row)
}
