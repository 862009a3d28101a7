//! SQL queries for sections.
//!
//! Every select excludes expired reservations. So their places are free as soon as they expire, even if the job that times out
//! orders has not run yet.

use std::collections::HashMap;

use boxoffice_http::error::Result;

use super::model::SectionRow;
use super::price::ActiveModifier;
use crate::kernel::db::{Statement, Tx};
use crate::kernel::types::clock::Timestamp;
use crate::kernel::types::folding::fold;
use crate::kernel::types::id::Id;
use crate::kernel::types::money::Money;

/// Returns the sections of these events, the oldest first.
pub async fn of_events(tx: &mut Tx, events: impl IntoIterator<Item = Id>, now: Timestamp) -> Result<Vec<SectionRow>> {
    fetch_with_modifiers(select(tx, now).and_in("s.event_id", events)).await
}

/// Returns the sections with these identifiers, by identifier. Unknown identifiers are skipped.
pub async fn find_by_ids(tx: &mut Tx, ids: impl IntoIterator<Item = Id>, now: Timestamp) -> Result<HashMap<Id, SectionRow>> {
    let rows = fetch_with_modifiers(select(tx, now).and_in("s.id", ids)).await?;
    Ok(rows.into_iter().map(|row| (row.id, row)).collect())
}

/// A section joined with one of its active price modifiers, or with none if it has none.
#[derive(sqlx_macros::FromRow)]
struct PricedRow {
    #[sqlx(flatten)]
    section: SectionRow,
    modifier_id: Option<Id>,
    price_delta: Option<Money>,
    available_from: Option<Timestamp>,
    available_to: Option<Timestamp>,
    min_order: Option<i64>,
    max_order: Option<i64>,
}

impl PricedRow {
    fn split(self) -> (SectionRow, Option<ActiveModifier>) {
        let active = self.modifier_id.zip(self.price_delta).map(|(modifier, delta)| ActiveModifier {
            modifier,
            delta,
            from: self.available_from,
            to: self.available_to,
            min_order: self.min_order,
            max_order: self.max_order,
        });
        (self.section, active)
    }
}

/// SQL expression for the number of places of a section `s` that are reserved for open orders. `?` is the current time.
pub const RESERVED: &str = "s.reserved - coalesce((select cast(sum(r.quantity) as bigint) from reservations r
     where r.section_id = s.id and r.expires <= ?), 0) as reserved";

/// SQL expression for the size of a section `s` in a page, in bytes.
pub const BYTES: &str = "(800 + octet_length(s.name) + octet_length(s.description)
    + 130 * (select count(*) from modifiers g where g.section_id = s.id and g.active))";

fn select(tx: &mut Tx, now: Timestamp) -> Statement<'_> {
    tx.select("s.id, s.event_id, s.name, s.description, s.base_price, s.capacity, s.sold, s.waiting, s.sales_start, s.sales_end, s.active, ")
        .push_bind(RESERVED, now)
        .push(
            ", s.maximum_per_account, m.id as modifier_id, m.price_delta, m.available_from, m.available_to, m.min_order, m.max_order
             from sections s left join modifiers m on m.section_id = s.id and m.active where true",
        )
}

/// Returns the selected sections with their price modifiers, both the oldest first. One statement reads both, so that a price is
/// never computed from a section and modifiers of different transactions.
async fn fetch_with_modifiers(select: Statement<'_>) -> Result<Vec<SectionRow>> {
    let rows: Vec<PricedRow> = select.push(" order by s.id, m.id").all().await?;
    let mut sections: Vec<SectionRow> = Vec::new();
    for (section, active) in rows.into_iter().map(PricedRow::split) {
        match sections.last_mut() {
            Some(last) if last.id == section.id => last.modifiers.extend(active),
            _ => sections.push(SectionRow { modifiers: active.into_iter().collect(), ..section }),
        }
    }
    Ok(sections)
}

/// Returns the number of sections of an event.
pub(super) async fn count_of_event(tx: &mut Tx, event: Id) -> Result<i64> {
    tx.query("select count(*) from sections where event_id = $1").bind(event).scalar().await
}

/// Locks these sections until the transaction ends, by ascending identifier.
///
/// The lock of a section guards its counts and its reservations: they are only changed while it is held.
pub async fn lock_all(tx: &mut Tx, sections: impl IntoIterator<Item = Id>) -> Result<()> {
    let _locked: Vec<(Id,)> = tx.select("id from sections where true").and_in("id", sections).for_update().all().await?;
    Ok(())
}

/// Locks all sections of an event like [`lock_all`].
pub async fn lock_of_event(tx: &mut Tx, event: Id) -> Result<()> {
    let sections = tx.select("id from sections where true").and_where("event_id = ?", Some(event));
    let _locked: Vec<(Id,)> = sections.for_update().all().await?;
    Ok(())
}

/// Inserts new sections, without their price modifiers.
pub async fn insert(tx: &mut Tx, rows: &[SectionRow]) -> Result<()> {
    let into = "sections (id, event_id, name, description, base_price, capacity, sold, reserved, sales_start, sales_end, active,
         maximum_per_account, folded_name)";
    tx.insert_rows(into, rows, |columns| {
        columns
            .add(|row| row.id)
            .add(|row| row.event_id)
            .add(|row| row.name.clone())
            .add(|row| row.description.clone())
            .add(|row| row.base_price)
            .add(|row| row.capacity)
            .add(|_| 0_i64)
            .add(|_| 0_i64)
            .add(|row| row.sales_start)
            .add(|row| row.sales_end)
            .add(|row| row.active)
            .add(|row| row.maximum_per_account)
            .add(|row| fold(&row.name));
    })
    .await
}

/// Updates a section. Returns false, and changes nothing, if its capacity would be less than the places sold and reserved.
pub(super) async fn update(tx: &mut Tx, row: &SectionRow) -> Result<bool> {
    let updated = tx
        .query(
            "update sections set name = $2, description = $3, base_price = $4, capacity = $5, sales_start = $6, sales_end = $7,
             active = $8, maximum_per_account = $9, folded_name = case when name = $2 then folded_name else $10 end
             where id = $1 and sold + reserved <= $5",
        )
        .bind(row.id)
        .bind(row.name.clone())
        .bind(row.description.clone())
        .bind(row.base_price)
        .bind(row.capacity)
        .bind(row.sales_start)
        .bind(row.sales_end)
        .bind(row.active)
        .bind(row.maximum_per_account)
        .bind(fold(&row.name))
        .execute()
        .await?;
    Ok(updated == 1)
}

/// Deletes a section. Returns false if it has sales or reservations.
pub(super) async fn delete(tx: &mut Tx, id: Id) -> Result<bool> {
    let deleted = tx.query("delete from sections where id = $1 and sold = 0 and reserved = 0").bind(id).execute().await?;
    Ok(deleted == 1)
}

/// Returns the numbers of sold and of reserved places, and the capacity, of all listed events that are not over.
pub async fn count_places(tx: &mut Tx, now: Timestamp) -> Result<(i64, i64, i64)> {
    let count = "select coalesce(cast(sum(s.sold) as bigint), 0), coalesce(cast(sum(s.reserved) as bigint), 0),
             coalesce(cast(sum(s.capacity) as bigint), 0)
         from events e join sections s on s.event_id = e.id where e.status = 'Listed' and e.ends > $1";
    Ok(tx.query(count).bind(now).optional().await?.unwrap_or_default())
}
