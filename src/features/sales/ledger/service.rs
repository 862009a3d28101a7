//! Reading the ledger and adding entries to it.

use boxoffice_http::error::{Error, Result};

use super::model::{NewLedgerEntry, ShareRow, Transaction, TransactionFilter, TransactionRow};
use super::store;
use crate::features::catalog::hosts;
use crate::kernel::auth::Caller;
use crate::kernel::db::{Tx, read_from_standby};
use crate::kernel::types::id::{Id, IdText};
use crate::kernel::types::paging::{Page, PageRequest};
use crate::kernel::types::period::Period;
use crate::state::{App, Ctx};

/// Adds entries to the ledger. Call it in the transaction that confirms the payments or completes the refunds.
///
/// # Errors
/// Returns an error if the database fails, or the ledger already has one of the entries.
pub async fn record(app: &App, tx: &mut Tx, entries: Vec<NewLedgerEntry>) -> Result<()> {
    let entries: Vec<(Id, NewLedgerEntry)> = entries.into_iter().map(|entry| (app.clock.next_id(), entry)).collect();
    let shares = entries.iter().flat_map(|(id, entry)| entry.part.shares.iter().map(|share| ShareRow::new(*id, share)));
    let shares: Vec<ShareRow> = shares.collect();
    store::insert_shares(store::insert(tx.writes(), &entries, app.clock.now()), &shares).execute().await
}

pub async fn list(ctx: &Ctx, filter: &TransactionFilter) -> Result<Page<Transaction>> {
    filter.period.check()?;
    let page = read_from_standby!(ctx.unit, |reader| store::list(reader, filter).await)?;
    Ok(page.map(TransactionRow::view))
}

/// Lists the entries of an order.
pub async fn list_of_order(ctx: &Ctx, order: Id, paging: PageRequest) -> Result<Page<Transaction>> {
    let order = Some(IdText(order));
    list(ctx, &TransactionFilter { paging, period: Period::default(), kind: None, method: None, order }).await
}

pub async fn get(ctx: &Ctx, id: Id) -> Result<Transaction> {
    let row = store::find(&mut ctx.unit.read().await?, id).await?.ok_or(Error::NOT_FOUND)?;
    Ok(row.view())
}

/// Lists the entries of a host, with the amounts of the host's share. Only platform administrators can read those of a removed
/// host.
pub async fn list_of_host(ctx: &Ctx, caller: &Caller, host: Id, filter: &TransactionFilter) -> Result<Page<Transaction>> {
    read_from_standby!(ctx.unit, |reader| {
        hosts::require_can_audit(reader, caller, host).await?;
        filter.period.check()?;
        let page = store::list_of_host(reader, host, filter).await?;
        Ok(page.map(TransactionRow::view))
    })
}
