//! SQL of what is given back. A refund is `Owed` until the gateway has done it, then `Done`.

use super::model::{PendingRefundRow, RefundRow, RefundShareRow};
use crate::kernel::types::clock::Timestamp;
use crate::kernel::types::id::Id;
use crate::kernel::db::Tx;
use boxoffice_http::error::Result;

/// What the gateway is asked at a time.
const UNSETTLED_BATCH: &str = "20";

pub async fn insert(tx: &mut Tx, refunds: &[RefundRow], owed: Timestamp) -> Result<()> {
    let into = "refunds (id, order_id, payment_id, amount, fees, status, owed)";
    tx.insert_rows(into, refunds, |refund, values| {
        values.bind(refund.id).bind(refund.order_id).bind(refund.payment_id).bind(refund.amount).bind(refund.fees);
        values.bind("Owed").bind(owed);
    })
    .await
}

pub async fn insert_shares(tx: &mut Tx, shares: &[RefundShareRow]) -> Result<()> {
    tx.insert_rows("refund_shares (refund_id, host_id, amount, fees)", shares, |share, values| {
        values.bind(share.refund_id).bind(share.host_id).bind(share.amount).bind(share.fees);
    })
    .await
}

/// What hosts bear of these refunds, each refund's by ascending host.
pub async fn shares(tx: &mut Tx, refunds: impl IntoIterator<Item = Id>) -> Result<Vec<RefundShareRow>> {
    let shares = tx.select("* from refund_shares where true").and_in("refund_id", refunds);
    shares.push(" order by refund_id, host_id").all().await
}

/// Marks those of these refunds that are owed as done, and gives them.
pub async fn set_done(tx: &mut Tx, refunds: impl IntoIterator<Item = Id>, now: Timestamp) -> Result<Vec<RefundRow>> {
    let update = tx.update("refunds set status = 'Done'").push_bind(", done = ? where status = 'Owed'", now);
    update.and_in("id", refunds).push(" returning id, order_id, payment_id, amount, fees").all().await
}

/// The next things after `after` that the gateway is to undo or to give back: of one order, or of all.
pub async fn unsettled(tx: &mut Tx, order: Option<Id>, after: Id) -> Result<Vec<PendingRefundRow>> {
    // The first condition on a payment's state is that of the index.
    tx.select(
        "* from (
            select p.id, false as is_refund, p.id as payment_id, p.order_id, p.amount, p.reference from payments p
            where p.status in ('Pending', 'Abandoned') and p.status = 'Abandoned'
            union all
            select r.id, true, r.payment_id, r.order_id, r.amount, p.reference
            from refunds r join payments p on p.id = r.payment_id where r.status = 'Owed'
        ) as unsettled where true",
    )
    .and_where("order_id = ?", order)
    .and_where("id > ?", Some(after))
    .push(" order by id limit ")
    .push(UNSETTLED_BATCH)
    .all()
    .await
}
