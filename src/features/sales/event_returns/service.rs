//! Starting and reading returns of events. Only administrators of the host and platform administrators can do so.

use boxoffice_http::error::{Error, Result, reject_if};

use super::model::{EventReturn, EventReturnCreate, EventReturnRow, EventReturnStatus};
use super::store;
use crate::features::catalog::events::{self, EventStatus};
use crate::features::codes;
use crate::kernel::auth::Caller;
use crate::kernel::db::{Reader, Tx, transaction};
use crate::kernel::types::id::Id;
use crate::kernel::types::money::Money;
use crate::kernel::types::paging::{Page, PageRequest};
use crate::state::{App, Ctx};

pub async fn list(ctx: &Ctx, caller: &Caller, event: Id, paging: PageRequest) -> Result<Page<EventReturn>> {
    let mut reader = ctx.unit.read().await?;
    events::load_managed(&mut reader, caller, event).await?;
    let page = store::list(&mut reader, event, paging).await?;
    let mut entries = Vec::with_capacity(page.rows.len());
    for row in page.rows {
        // At most one is running, so there is at most one query.
        entries.push(view(&mut reader, row).await?);
    }
    Ok(paging.page(page.total, entries))
}

pub async fn get(ctx: &Ctx, caller: &Caller, event: Id, id: Id) -> Result<EventReturn> {
    let mut reader = ctx.unit.read().await?;
    let row = store::find(&mut reader, event, id).await?.ok_or(Error::NOT_FOUND)?;
    events::load_managed(&mut reader, caller, event).await?;
    view(&mut reader, row).await
}

pub async fn create(ctx: &Ctx, caller: &Caller, event: Id, new: EventReturnCreate) -> Result<EventReturn> {
    let reason = new.reason.unwrap_or_default();
    transaction!(ctx.unit, |tx| create_in_tx(&ctx.app, tx, caller, event, &reason).await)
}

/// Starts a run. The lock of the event keeps two requests from starting one each.
async fn create_in_tx(app: &App, tx: &mut Tx, caller: &Caller, event: Id, reason: &str) -> Result<EventReturn> {
    let event = events::lock_managed(tx, caller, event).await?;
    reject_if(event.status != EventStatus::Cancelled, codes::EVENT_NOT_CANCELLED)?;
    reject_if(store::is_running(tx, event.id).await?, codes::EVENT_RETURNING)?;
    let row = EventReturnRow {
        id: app.clock.next_id(),
        event_id: event.id,
        status: EventReturnStatus::Running,
        reason: reason.to_owned(),
        account_id: caller.account,
        last_order: Id::NONE,
        orders: 0,
        tickets: 0,
        amount: Money::ZERO,
        failed: 0,
        started: app.clock.now(),
        finished: None,
    };
    store::insert(tx, &row).await?;
    view(tx, row).await
}

async fn view(reader: &mut Reader, row: EventReturnRow) -> Result<EventReturn> {
    let is_running = row.status == EventReturnStatus::Running;
    let remaining = if is_running { store::count_remaining(reader, &row).await? } else { 0 };
    Ok(row.view(remaining))
}
