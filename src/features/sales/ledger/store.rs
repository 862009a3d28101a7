//! SQL of the ledger. It has no update and no delete.

use std::collections::HashMap;

use boxoffice_http::error::Result;

use super::allocation::Allocation;
use super::model::{NewLedgerEntry, ShareRow, TransactionFilter, TransactionRow};
use crate::kernel::db::{Reader, Statement, Writes, define_sql};
use crate::kernel::types::clock::Timestamp;
use crate::kernel::types::id::Id;
use crate::kernel::types::money::Money;
use crate::kernel::types::paging::PagedRows;

// The columns of `TransactionRow`, and their tables. Databases leave a left join out of a count that doesn't need it.
define_sql!(columns, "t.id, t.type, t.order_id, t.payment_id, p.method, t.amount, t.fees, t.placed");
define_sql!(tables, "from transactions t left join payments p on p.id = t.payment_id");

/// Returns a page of all entries, the oldest first.
pub async fn list(reader: &mut Reader, filter: &TransactionFilter) -> Result<PagedRows<TransactionRow>> {
    let entries = reader.list(columns!(), concat!(tables!(), " where true")).push_list_count("transactions", Id(0));
    apply_filter(entries, filter).page("t.id", filter.paging).await
}

/// Returns a page of the entries in which a host has a share, with the amounts of that share, the oldest first.
pub async fn list_of_host(reader: &mut Reader, host: Id, filter: &TransactionFilter) -> Result<PagedRows<TransactionRow>> {
    let entries = reader.list(
        "t.id, t.type, t.order_id, t.payment_id, p.method, s.amount, s.fees, t.placed",
        concat!(tables!(), " join transaction_shares s on s.transaction_id = t.id where true"),
    );
    let entries = entries.and_key("s.host_id", host).push_list_count("host transactions", host);
    apply_filter(entries, filter).page("s.host_id, s.transaction_id", filter.paging).await
}

fn apply_filter<'a>(entries: Statement<'a>, filter: &TransactionFilter) -> Statement<'a> {
    entries
        .and_where("t.placed >= ?", filter.period.start())
        .and_where("t.placed < ?", filter.period.end())
        .and_where("t.type = ?", filter.kind)
        .and_where("p.method = ?", filter.method)
        .and_where("t.order_id = ?", filter.order.map(|order| order.0))
}

pub async fn find(reader: &mut Reader, id: Id) -> Result<Option<TransactionRow>> {
    reader.query(concat!("select ", columns!(), " ", tables!(), " where t.id = $1")).bind(id).optional().await
}

/// Returns the allocations of the sale entries of these payments, by payment.
pub async fn sales(reader: &mut Reader, payments: impl IntoIterator<Item = Id> + Clone) -> Result<HashMap<Id, Allocation>> {
    let sales = reader.select("payment_id, amount, fees from transactions where type = 'Sale'");
    let sales: Vec<(Id, Money, Money)> = sales.and_in("payment_id", payments.clone()).all().await?;
    let shares = reader.select(
        "t.payment_id as id, s.host_id, s.amount, s.fees
         from transactions t join transaction_shares s on s.transaction_id = t.id where t.type = 'Sale'",
    );
    let shares: Vec<ShareRow> = shares.and_in("t.payment_id", payments).push(" order by s.host_id").all().await?;
    let allocation = |(payment, amount, fees)| {
        let shares = shares.iter().filter(|share| share.id == payment).map(|share| share.share()).collect();
        (payment, Allocation { amount, fees, shares })
    };
    Ok(sales.into_iter().map(allocation).collect())
}

/// Inserts entries with these identifiers.
pub fn insert<'a>(writes: Writes<'a>, entries: &[(Id, NewLedgerEntry)], now: Timestamp) -> Writes<'a> {
    let into = "transactions (id, type, order_id, payment_id, refund_id, amount, fees, placed)";
    writes.insert_rows(into, entries, |columns| {
        columns.add(|(id, _)| *id).add(|(_, entry)| entry.kind()).add(|(_, entry)| entry.order).add(|(_, entry)| entry.payment);
        columns.add(|(_, entry)| entry.refund).add(|(_, entry)| entry.part.amount).add(|(_, entry)| entry.part.fees).add(|_| now);
    })
}

/// Inserts the hosts' shares of entries.
pub fn insert_shares<'a>(writes: Writes<'a>, shares: &[ShareRow]) -> Writes<'a> {
    writes.insert_rows("transaction_shares (transaction_id, host_id, amount, fees)", shares, |columns| {
        columns.add(|share| share.id).add(|share| share.host_id).add(|share| share.amount).add(|share| share.fees);
    })
}
