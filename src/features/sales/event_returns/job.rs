//! The job that returns the orders of cancelled events.

use boxoffice_http::error::Result;

use super::store;
use crate::features::sales::orders;
use crate::kernel::db::{Tx, transaction};
use crate::state::{App, Ctx};

/// Job step: returns the next order of a run, or ends the run after its last order. Returns the number of changes: 1, or 0 if
/// there is no run, or other servers work on all of them. The refunds are scheduled; the job of [`orders::expire_due`] has the
/// gateway make them.
pub async fn return_next(ctx: &Ctx) -> Result<u64> {
    transaction!(ctx.unit, |tx| return_next_in_tx(&ctx.app, tx).await)
}

/// Locks the run first, then the order with its events, sections, transfers and tickets.
async fn return_next_in_tx(app: &App, tx: &mut Tx) -> Result<u64> {
    let Some(run) = store::lock_running(tx).await? else { return Ok(0) };
    let Some(order) = store::next_order(tx, &run).await? else {
        store::finish(tx, run.id, app.clock.now()).await?;
        return Ok(1);
    };
    let returned = orders::return_tickets_of_event(app, tx, order, run.event_id, &run.reason, run.account_id).await?;
    store::record_progress(tx, run.id, order, returned).await?;
    Ok(1)
}
