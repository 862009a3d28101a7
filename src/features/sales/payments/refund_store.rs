//! SQL of refunds. A refund is `Owed` until the gateway has made it, then `Done`.
//!
//! The open refunds are the refunds and the cancellations of charges that the gateway has not completed yet.

use std::collections::HashMap;

use boxoffice_http::error::Result;

use super::model::{OpenRefundRow, RefundRow, RefundShareRow};
use crate::kernel::db::{Reader, Tx};
use crate::kernel::types::clock::Timestamp;
use crate::kernel::types::id::Id;
use crate::kernel::types::money::Money;
use crate::kernel::types::paging::{PageRequest, PagedRows};

/// Number of open refunds that are sent to the gateway at a time.
const OPEN_BATCH: &str = "20";
/// The columns of an [`OpenRefundRow`].
const OPEN_COLUMNS: &str = "id, is_refund, payment_id, order_id, amount, reference, since";
/// The open refunds. The first condition on the status is the condition of the partial index.
const FROM_OPEN: &str = "from (
    select p.id, false as is_refund, p.id as payment_id, p.order_id, p.amount, p.reference, p.placed as since from payments p
    where p.status in ('Pending', 'Abandoned') and p.status = 'Abandoned'
    union all
    select r.id, true, r.payment_id, r.order_id, r.amount, p.reference, r.owed
    from refunds r join payments p on p.id = r.payment_id where r.status = 'Owed') as open_refunds where true";

pub async fn insert(tx: &mut Tx, refunds: &[RefundRow], owed: Timestamp) -> Result<()> {
    let into = "refunds (id, order_id, payment_id, amount, fees, status, owed)";
    tx.insert_rows(into, refunds, |columns| {
        columns
            .add(|refund| refund.id)
            .add(|refund| refund.order_id)
            .add(|refund| refund.payment_id)
            .add(|refund| refund.amount)
            .add(|refund| refund.fees);
        columns.add(|_| "Owed").add(|_| owed);
    })
    .await
}

pub async fn insert_shares(tx: &mut Tx, shares: &[RefundShareRow]) -> Result<()> {
    tx.insert_rows("refund_shares (refund_id, host_id, amount, fees)", shares, |columns| {
        columns.add(|share| share.refund_id).add(|share| share.host_id).add(|share| share.amount).add(|share| share.fees);
    })
    .await
}

/// Returns the sum of the refunds of each order that has any, made or scheduled.
pub async fn refunded_by_order(reader: &mut Reader, orders: impl IntoIterator<Item = Id>) -> Result<HashMap<Id, Money>> {
    let sums = reader
        .select("p.order_id, cast(sum(r.amount) as bigint) from payments p join refunds r on r.payment_id = p.id where true");
    let sums: Vec<(Id, Money)> = sums.and_in("p.order_id", orders).push(" group by p.order_id").all().await?;
    Ok(sums.into_iter().collect())
}

/// Returns the sum of these hosts' shares of the refunds of each order that has any, made or scheduled.
pub async fn refund_shares_by_order(
    reader: &mut Reader,
    orders: impl IntoIterator<Item = Id>,
    hosts: &[Id],
) -> Result<HashMap<Id, Money>> {
    let sums = reader.select(
        "p.order_id, cast(sum(s.amount) as bigint) from payments p join refunds r on r.payment_id = p.id
         join refund_shares s on s.refund_id = r.id where true",
    );
    let sums = sums.and_in("p.order_id", orders).and_in("s.host_id", hosts.to_vec());
    let sums: Vec<(Id, Money)> = sums.push(" group by p.order_id").all().await?;
    Ok(sums.into_iter().collect())
}

/// Returns the hosts' shares of these refunds, sorted by refund and host.
pub async fn shares(reader: &mut Reader, refunds: impl IntoIterator<Item = Id>) -> Result<Vec<RefundShareRow>> {
    let shares = reader.select("refund_id, host_id, amount, fees from refund_shares where true").and_in("refund_id", refunds);
    shares.push(" order by refund_id, host_id").all().await
}

/// Marks the owed ones among these refunds as done, and returns them.
pub async fn set_done(tx: &mut Tx, refunds: impl IntoIterator<Item = Id>, now: Timestamp) -> Result<Vec<RefundRow>> {
    let update = tx.update("refunds set status = 'Done'").push_bind(", done = ? where status = 'Owed'", now);
    update.and_in("id", refunds).push(" returning id, order_id, payment_id, amount, fees").all().await
}

/// Returns the next open refunds after `after`: of one order, or of all.
pub async fn next_open_refunds(reader: &mut Reader, order: Option<Id>, after: Id) -> Result<Vec<OpenRefundRow>> {
    reader
        .select(&format!("{OPEN_COLUMNS} {FROM_OPEN}"))
        .and_where("order_id = ?", order)
        .and_where("id > ?", Some(after))
        .push(" order by id limit ")
        .push(OPEN_BATCH)
        .all()
        .await
}

/// Returns an open refund.
pub async fn find_open_refund(reader: &mut Reader, id: Id) -> Result<Option<OpenRefundRow>> {
    reader.select(&format!("{OPEN_COLUMNS} {FROM_OPEN}")).and_where("id = ?", Some(id)).optional().await
}

/// Returns a page of the open refunds, by identifier.
pub async fn list_open_refunds(reader: &mut Reader, paging: PageRequest) -> Result<PagedRows<OpenRefundRow>> {
    reader.list(OPEN_COLUMNS, FROM_OPEN).page("id", paging).await
}

/// Returns the number of open refunds, and the time of the oldest. At most 10,000 refunds and 10,000 cancellations are counted: the
/// metrics are read often, also when the refunds of all orders of a large event are open.
pub async fn count_open_refunds(reader: &mut Reader) -> Result<(i64, Option<Timestamp>)> {
    reader
        .query(
            "select count(*), min(since) from (
            select since from (
                select placed as since from payments
                where status in ('Pending', 'Abandoned') and status = 'Abandoned' order by id limit 10000
            ) as abandoned
            union all
            select since from (select owed as since from refunds where status = 'Owed' order by id limit 10000) as refunds
        ) as open_refunds",
        )
        .one()
        .await
}
