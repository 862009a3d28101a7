//! The job that returns the orders of cancelled events.

use std::time::Duration;

use boxoffice_http::error::{Error, Result};
use slog::error;

use super::model::EventReturnRow;
use super::store;
use crate::features::sales::orders;
use crate::kernel::db::{Tx, transaction};
use crate::kernel::outbox::MailCounts;
use crate::kernel::types::clock::Timestamp;
use crate::kernel::types::id::Id;
use crate::state::{App, Ctx};

/// The pause before a run tries the orders again that could not be returned.
const RETRY_PAUSE: Duration = Duration::from_secs(10 * 60);

/// Job step: returns the next order of a run, or ends the run after its last order. Returns the number of changes: 1, or 0 if
/// there is no run, or other servers work on all of them. The refunds are scheduled;
/// [`process_due`](crate::features::sales::payments::process_due) has the gateway make them.
///
/// An order that can't be returned does not keep the run from the others: after the last one, the run begins again.
pub async fn return_next(ctx: &Ctx) -> Result<u64> {
    let mut attempt = None;
    let mails = MailCounts::default();
    let returned = transaction!(ctx.unit, |tx| return_next_in_tx(&ctx.app, tx, &mut attempt, &mails).await);
    match (returned, attempt) {
        (Err(error), Some((run, order))) => record_failure(ctx, &run, order, error).await,
        (returned, _) => returned,
    }
}

/// Locks the run first, then the order with its events, sections, transfers and tickets. Sets `attempt` to the run and the order.
async fn return_next_in_tx(
    app: &App,
    tx: &mut Tx,
    attempt: &mut Option<(EventReturnRow, Id)>,
    mails: &MailCounts,
) -> Result<u64> {
    *attempt = None;
    let now = app.clock.now();
    let Some(run) = store::lock_running(tx, now).await? else { return Ok(0) };
    let Some(order) = store::next_order(tx, &run).await? else {
        if run.has_failures() {
            store::begin_again(tx, run.id, now.plus(RETRY_PAUSE)).await?;
        } else {
            store::finish(tx, run.id, now).await?;
        }
        return Ok(1);
    };
    *attempt = Some((run.clone(), order));
    let returned = orders::return_tickets_of_event(app, tx, order, run.event_id, &run.reason, run.account_id, mails).await?;
    store::record_progress(tx, run.id, order, returned).await?;
    Ok(1)
}

/// Logs an error, and records that an order of a run could not be returned.
async fn record_failure(ctx: &Ctx, run: &EventReturnRow, order: Id, error: Error) -> Result<u64> {
    error!(ctx.app.log, "an order of a cancelled event could not be returned and will be tried again"; "order" => %order,
        "event" => %run.event_id, "cause" => error.into_log_text());
    transaction!(ctx.unit, |tx| store::record_failure(tx, run, order).await)?;
    Ok(1)
}

/// Corrects the runs that a clock ahead has postponed: beyond the pause after `latest`. Returns their number.
pub async fn correct_future(tx: &mut Tx, latest: Timestamp) -> Result<u64> {
    store::correct_future(tx, latest.plus(RETRY_PAUSE)).await
}
