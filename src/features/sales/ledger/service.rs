//! Reading the ledger and adding entries to it.

use boxoffice_http::error::{Error, Result};

use super::allocation::Allocation;
use super::model::{ShareRow, Transaction, TransactionFilter, TransactionRow, TransactionType};
use super::store;
use crate::features::catalog::hosts;
use crate::kernel::auth::Caller;
use crate::kernel::db::{Tx, read_from_standby};
use crate::kernel::types::id::{Id, IdText};
use crate::kernel::types::paging::{Page, PageRequest};
use crate::kernel::types::period::Period;
use crate::state::{App, Ctx};

/// Money that was paid or refunded, to be recorded.
#[derive(Debug)]
pub struct Entry {
    /// The payment, or the payment that is refunded.
    pub payment: Id,
    /// The order of the payment.
    pub order: Id,
    /// The refund; `None` for a payment.
    pub refund: Option<Id>,
    /// The amount and its allocation.
    pub part: Allocation,
}

/// Adds entries to the ledger. Call it in the transaction that confirms the payments or completes the refunds.
///
/// # Errors
/// Returns an error if the database fails, or the ledger already has one of the entries.
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
    store::insert_shares(store::insert(tx.writes(), &rows), &shares).execute().await
}

pub async fn list(ctx: &Ctx, filter: &TransactionFilter) -> Result<Page<Transaction>> {
    filter.period.check()?;
    let page = read_from_standby!(ctx.unit, |reader| store::list(reader, filter).await)?;
    Ok(page.map(TransactionRow::view))
}

/// Lists the entries of an order.
pub async fn list_of_order(ctx: &Ctx, order: Id, paging: PageRequest) -> Result<Page<Transaction>> {
    let order = Some(IdText(order));
    list(ctx, &TransactionFilter { paging, period: Period::default(), kind: None, order }).await
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
