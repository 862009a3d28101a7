//! Undoing an admission: a ticket that was scanned by mistake is Issued again.
//!
//! The lock of the ticket guards its admission, so an admission is undone once. The lock of the order keeps it from being voided at
//! the same time, because a ticket of a voided order must not admit again. The audit log keeps the requests that created and
//! deleted the admission.

use std::time::Duration;

use boxoffice_http::error::{Error, Result, reject_if};
use boxoffice_openapi::Scope;

use super::model::AdmissionRow;
use super::{offline_store, store};
use crate::features::catalog::events::{self, EventRow};
use crate::features::catalog::hosts;
use crate::features::codes;
use crate::features::sales::tickets;
use crate::kernel::auth::Caller;
use crate::kernel::db::{Reader, Tx, transaction};
use crate::kernel::types::id::Id;
use crate::state::{App, Ctx};

/// Time after an admission during which it can be undone.
const UNDO_PERIOD: Duration = Duration::from_secs(10 * 60);

/// Deletes an admission and sets its ticket to Issued.
pub async fn undo(ctx: &Ctx, caller: &Caller, event: Id, admission: Id) -> Result<()> {
    transaction!(ctx.unit, |tx| undo_in_tx(&ctx.app, tx, caller, event, admission).await)
}

async fn undo_in_tx(app: &App, tx: &mut Tx, caller: &Caller, event: Id, admission: Id) -> Result<()> {
    let event = events::load(tx, event).await?;
    let row = store::find(tx, event.id, admission).await?.ok_or(Error::NOT_FOUND)?;
    authorize(tx, caller, &event, &row).await?;
    let now = app.clock.now();
    reject_if(row.admitted.plus(UNDO_PERIOD) < now, codes::ADMISSION_TOO_LATE)?;
    tickets::lock_orders(tx, &[row.ticket_id]).await?;
    tickets::lock_by_ids(tx, [row.ticket_id]).await?;
    // The caller may have been removed from the host's administrators while it waited for the locks.
    authorize(tx, caller, &event, &row).await?;
    reject_if(offline_store::has_conflict(tx, row.id).await?, codes::ADMISSION_CONFLICT)?;
    // Another request may have undone the admission before the lock.
    reject_if(!store::delete(tx, row.id).await?, Error::NOT_FOUND)?;
    if !row.device.is_empty() {
        // A gate's clock may be ahead. The scan that was undone must not seem to be a later one when it is uploaded again.
        let undone = now.max(row.admitted);
        offline_store::insert_undone_admission(tx, row.ticket_id, row.device, undone).await?;
    }
    reject_if(!tickets::undo_redemption(tx, row.ticket_id, now).await?, codes::ADMISSION_ORDER_VOIDED)
}

/// Rejects callers other than host administrators, platform administrators and the keys of the token that admitted the ticket.
async fn authorize(reader: &mut Reader, caller: &Caller, event: &EventRow, admission: &AdmissionRow) -> Result<()> {
    if caller.scope == Scope::Redeemer {
        let is_own = caller.admission_claims.is_some_and(|claims| admission.token_id == Some(claims.token));
        return if is_own { Ok(()) } else { Err(Error::FORBIDDEN) };
    }
    hosts::require_administrator(reader, caller, event.host_id).await
}
