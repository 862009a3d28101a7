//! What the ledger's operations mean, and how entries get into it.

use super::model::{ShareRow, Transaction, TransactionFilter, TransactionRow, TransactionType};
use super::allocation::Allocation;
use super::store;
use crate::state::App;
use crate::kernel::auth::Caller;
use crate::kernel::types::id::Id;
use crate::kernel::types::paging::Page;
use crate::kernel::db::Tx;
use boxoffice_http::error::{Error, Result};
use crate::features::catalog::hosts;

/// Money that was taken or given back.
#[derive(Debug)]
pub struct Entry {
    /// The payment that it was taken by, or is given back of.
    pub payment: Id,
    /// That payment's order.
    pub order: Id,
    /// The refund by which it was given back; none where it was taken.
    pub refund: Option<Id>,
    /// How much, and whose.
    pub part: Allocation,
}

/// Writes entries into the ledger, in the transaction that makes them true.
///
/// # Errors
/// When the database fails, or has one of them already.
pub async fn record(app: &App, tx: &mut Tx, entries: Vec<Entry>) -> Result<()> {
    let now = app.clock.now();
    let (mut rows, mut shares) = (Vec::new(), Vec::new());
    for Entry { payment, order, refund, part } in entries {
        let row = TransactionRow {
            id: app.clock.next_id(),
            kind: if refund.is_some() { TransactionType::Refund } else { TransactionType::Sale },
            order_id: order,
            payment_id: payment,
            amount: part.amount,
            fees: part.fees,
            placed: now,
        };
        let of_host = |share: &_| ShareRow::new(row.id, share);
        shares.extend(part.shares.iter().map(of_host));
        rows.push((row, refund));
    }
    store::insert(tx, &rows).await?;
    store::insert_shares(tx, &shares).await
}

pub async fn list(app: &App, filter: &TransactionFilter) -> Result<Page<Transaction>> {
    check(filter)?;
    let found = store::list(&mut app.db.read().await?, filter).await?;
    Ok(filter.paging.page(found.total, found.rows.into_iter().map(TransactionRow::view).collect()))
}

pub async fn get(app: &App, id: Id) -> Result<Transaction> {
    let row = store::find(&mut app.db.read().await?, id).await?.ok_or(Error::NOT_FOUND)?;
    Ok(row.view())
}

/// A host's own list. A removed host has none any more: the platform's staff have the whole ledger.
pub async fn list_of_host(app: &App, caller: &Caller, host: Id, filter: &TransactionFilter) -> Result<Page<Transaction>> {
    let mut tx = app.db.read().await?;
    hosts::require_can_manage(&mut tx, caller, host).await?;
    check(filter)?;
    let found = store::list_of_host(&mut tx, host, filter).await?;
    Ok(filter.paging.page(found.total, found.rows.into_iter().map(TransactionRow::view).collect()))
}

fn check(filter: &TransactionFilter) -> Result<()> {
    filter.period.problem().map_or(Ok(()), |problem| Err(Error::invalid("to", problem)))
}
