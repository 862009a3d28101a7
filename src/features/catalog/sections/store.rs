//! SQL of sections.
//!
//! Every select leaves out the reservations that are over, so that places are free from that moment on, whether or not the job
//! that times out orders has come by.

use std::collections::{BTreeMap, HashMap};

use super::model::SectionRow;
use super::price::ActiveModifier;
use crate::kernel::types::clock::Timestamp;
use crate::kernel::types::id::Id;
use crate::kernel::types::money::Money;
use crate::kernel::db::{Statement, Tx};
use boxoffice_http::error::Result;

/// Sections of these events, the oldest first.
///
/// # Errors
/// When the database fails.
pub async fn of_events(tx: &mut Tx, events: impl IntoIterator<Item = Id>, now: Timestamp) -> Result<Vec<SectionRow>> {
    fetch_with_modifiers(select(tx, now).and_in("s.event_id", events)).await
}

/// These sections by their identifier, without those that are none.
///
/// # Errors
/// When the database fails.
pub async fn find_by_ids(tx: &mut Tx, ids: impl IntoIterator<Item = Id>, now: Timestamp) -> Result<HashMap<Id, SectionRow>> {
    let found = fetch_with_modifiers(select(tx, now).and_in("s.id", ids)).await?;
    Ok(found.into_iter().map(|row| (row.id, row)).collect())
}

/// A section beside one of its active price modifiers, or beside none where it has none.
#[derive(sqlx::FromRow)]
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
        let adjustment = self.modifier_id.zip(self.price_delta).map(|(modifier, delta)| ActiveModifier {
            modifier,
            delta,
            from: self.available_from,
            to: self.available_to,
            min_order: self.min_order,
            max_order: self.max_order,
        });
        (self.section, adjustment)
    }
}

/// Places of a section `s` that are held for open orders now, which `?` stands for.
pub const RESERVED: &str = "s.reserved - coalesce((select cast(sum(r.quantity) as bigint) from reservations r
     where r.section_id = s.id and r.expires <= ?), 0) as reserved";

fn select(tx: &mut Tx, now: Timestamp) -> Statement<'_> {
    tx.select("s.id, s.event_id, s.name, s.description, s.base_price, s.capacity, s.sold, s.sales_start, s.sales_end, s.active, ")
        .push_bind(RESERVED, now)
        .push(
            ", m.id as modifier_id, m.price_delta, m.available_from, m.available_to, m.min_order, m.max_order
             from sections s left join modifiers m on m.section_id = s.id and m.active where true",
        )
}

/// The selected sections with their price modifiers, both the oldest first. One statement for the two, so that a price is never
/// made of a section before and modifiers after somebody's changes.
async fn fetch_with_modifiers(select: Statement<'_>) -> Result<Vec<SectionRow>> {
    let rows: Vec<PricedRow> = select.push(" order by s.id, m.id").all().await?;
    let mut sections: Vec<SectionRow> = Vec::new();
    for (section, adjustment) in rows.into_iter().map(PricedRow::split) {
        match sections.last_mut() {
            Some(last) if last.id == section.id => last.adjustments.extend(adjustment),
            _ => sections.push(SectionRow { adjustments: adjustment.into_iter().collect(), ..section }),
        }
    }
    Ok(sections)
}

/// How many sections an event has.
pub(super) async fn count_of_event(tx: &mut Tx, event: Id) -> Result<i64> {
    tx.query("select count(*) from sections where event_id = $1").bind(event).scalar().await
}

/// Makes everyone else who changes this section wait until this transaction ends.
///
/// # Errors
/// When the database fails.
pub async fn lock(tx: &mut Tx, id: Id) -> Result<()> {
    tx.query("update sections set name = name where id = $1").bind(id).execute().await?;
    Ok(())
}

/// Deletes the reservations of these sections that are over, and frees their places.
///
/// Whoever deletes a reservation lowers its section's count, by what the deletion gave back: two servers that do this at the
/// same moment lower it once.
///
/// # Errors
/// When the database fails.
pub async fn release_expired(tx: &mut Tx, sections: impl IntoIterator<Item = Id>, now: Timestamp) -> Result<()> {
    let over = tx.delete("reservations where true").and_where("expires <= ?", Some(now)).and_in("section_id", sections);
    let over: Vec<(Id, i64)> = over.push(" returning section_id, quantity").all().await?;
    let mut places: BTreeMap<Id, i64> = BTreeMap::new();
    for (section, quantity) in over {
        *places.entry(section).or_default() += quantity;
    }
    // One by one and ascending, as everyone changes these counts, so that transactions never wait for one another in a circle.
    for (section, quantity) in places {
        release_seats(tx, section, quantity).await?;
    }
    Ok(())
}

/// Frees so many places of a section that were reserved.
///
/// # Errors
/// When the database fails.
pub async fn release_seats(tx: &mut Tx, section: Id, quantity: i64) -> Result<()> {
    let free = tx.query("update sections set reserved = reserved - $2 where id = $1");
    free.bind(section).bind(quantity).execute().await?;
    Ok(())
}

pub(super) async fn insert(tx: &mut Tx, row: &SectionRow) -> Result<()> {
    tx.query(
        "insert into sections (id, event_id, name, description, base_price, capacity, sold, reserved, sales_start, sales_end,
         active) values ($1, $2, $3, $4, $5, $6, 0, 0, $7, $8, $9)",
    )
    .bind(row.id)
    .bind(row.event_id)
    .bind(row.name.clone())
    .bind(row.description.clone())
    .bind(row.base_price)
    .bind(row.capacity)
    .bind(row.sales_start)
    .bind(row.sales_end)
    .bind(row.active)
    .execute()
    .await?;
    Ok(())
}

/// Writes a section whose places in all are not fewer than those sold and reserved; tells whether that was so.
pub(super) async fn update(tx: &mut Tx, row: &SectionRow) -> Result<bool> {
    let updated = tx
        .query(
            "update sections set name = $2, description = $3, base_price = $4, capacity = $5, sales_start = $6, sales_end = $7,
             active = $8 where id = $1 and sold + reserved <= $5",
        )
        .bind(row.id)
        .bind(row.name.clone())
        .bind(row.description.clone())
        .bind(row.base_price)
        .bind(row.capacity)
        .bind(row.sales_start)
        .bind(row.sales_end)
        .bind(row.active)
        .execute()
        .await?;
    Ok(updated == 1)
}

/// Removes a section without sales and reservations; tells whether it was one.
pub(super) async fn delete(tx: &mut Tx, id: Id) -> Result<bool> {
    let deleted = tx.query("delete from sections where id = $1 and sold = 0 and reserved = 0").bind(id).execute().await?;
    Ok(deleted == 1)
}
