//! Deletion of accounts.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use boxoffice_http::error::{Result, reject_if};
use futures::future::join_all;

use crate::features::catalog::hosts;
use crate::features::catalog::preferences;
use crate::features::codes;
use crate::features::identity::accounts::{self, AccountNumber};
use crate::features::identity::verification_codes;
use crate::features::sales::orders;
use crate::features::sales::payments;
use crate::features::sales::tickets;
use crate::features::sales::transfers;
use crate::kernel::auth::{self, Caller};
use crate::kernel::db::{Tx, transaction};
use crate::kernel::outbox;
use crate::kernel::types::id::Id;
use crate::state::{App, Ctx};

/// Deletes an account. Payments of its open orders are refunded after the commit, because no transaction waits for the gateway;
/// a job retries refunds that fail.
pub async fn delete(ctx: &Ctx, caller: &Caller, number: &AccountNumber) -> Result<()> {
    accounts::load(&mut ctx.unit.read().await?, caller, number).await?;
    let unusable_hash = ctx.app.passwords.unusable_hash().await?;
    let cancelled = transaction!(ctx.unit, |tx| delete_in_tx(&ctx.app, tx, caller, number, &unusable_hash).await)?;
    let background = ctx.background();
    let refunds = async move { process_refunds(&background, cancelled).await };
    ctx.unit.after_commit(refunds).await;
    let app = Arc::clone(&ctx.app);
    ctx.unit.after_commit(async move { app.has_erased.store(true, Ordering::Relaxed) }).await;
    Ok(())
}

/// Job step: empties SQLite's write-ahead log after an erasure, because it keeps the earlier content of rows. Returns 0: if a
/// reader prevents it, the next run of the job tries again.
pub async fn truncate_wal(ctx: &Ctx) -> Result<u64> {
    let has_erased = &ctx.app.has_erased;
    if has_erased.swap(false, Ordering::Relaxed) {
        let truncated = ctx.unit.db().truncate_wal().await;
        if !matches!(truncated, Ok(true)) {
            has_erased.store(true, Ordering::Relaxed);
        }
        truncated?;
    }
    Ok(0)
}

async fn process_refunds(ctx: &Ctx, orders: Vec<Id>) {
    join_all(orders.into_iter().map(|order| payments::process_refunds(ctx, order))).await;
}

/// Deletes the account in `tx` and returns its cancelled orders.
async fn delete_in_tx(app: &App, tx: &mut Tx, caller: &Caller, number: &AccountNumber, password_hash: &str) -> Result<Vec<Id>> {
    let now = app.clock.now();
    let row = accounts::load(tx, caller, number).await?;
    let row = accounts::lock_unless_last_admin(tx, &row).await?;
    auth::require_not_revoked(tx, caller).await?;
    let account = row.id;
    // Before the tickets are checked, because this waits for an order that is being paid at the moment.
    let cancelled = orders::cancel_all(app, tx, account).await?;
    orders::waiting_list::delete_of_account(tx, account).await?;
    transfers::cancel_for_account(app, tx, account).await?;
    reject_if(tickets::has_upcoming(tx, account, now).await?, codes::ACCOUNT_HAS_TICKETS)?;
    hosts::delete_administrator_everywhere(tx, account).await?;
    preferences::delete_of_account(tx, account).await?;
    verification_codes::delete_of_account(tx, account).await?;
    outbox::delete_of_account(tx, account, &row.email).await?;
    app.clock.require_not_set_back(now)?;
    accounts::erase(tx, account, password_hash, now).await?;
    tickets::touch_of_account(tx, account, now).await?;
    Ok(cancelled)
}
