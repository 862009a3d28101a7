//! SQL of sections.
//!
//! Every select leaves out the reservations that are over, so that places are free from that moment on, whether or not the job
//! that times out orders has come by.

use std::collections::{BTreeMap, HashMap};

use super::model::SectionRow;
use crate::base::clock::Timestamp;
use crate::base::id::Id;
use crate::db::{Select, Tx};
use crate::error::Result;

/// Sections of these events, the oldest first.
///
/// # Errors
/// When the database fails.
pub async fn of_events(tx: &mut Tx, events: impl IntoIterator<Item = Id>, now: Timestamp) -> Result<Vec<SectionRow>> {
    select(tx, now).and_in("s.event_id", events).push(" order by s.id").all().await
}

/// These sections by their identifier, without those that are none.
///
/// # Errors
/// When the database fails.
pub async fn rows(tx: &mut Tx, ids: impl IntoIterator<Item = Id>, now: Timestamp) -> Result<HashMap<Id, SectionRow>> {
    let found: Vec<SectionRow> = select(tx, now).and_in("s.id", ids).all().await?;
    Ok(found.into_iter().map(|row| (row.id, row)).collect())
}

fn select(tx: &mut Tx, now: Timestamp) -> Select<'_> {
    tx.select(
        "s.id, s.event_id, s.name, s.description, s.base_price, s.capacity, s.sold, s.sales_start, s.sales_end, s.active,
         s.reserved - coalesce((select cast(sum(r.quantity) as bigint) from reservations r where r.section_id = s.id",
    )
    .and("r.expires <= ?", Some(now))
    .push("), 0) as reserved from sections s where true")
}

/// The section as it is after everyone else's changes, which then wait until this transaction ends.
/// Its `reserved` is right once [`release_expired`] has run.
pub(super) async fn lock(tx: &mut Tx, id: Id) -> Result<Option<SectionRow>> {
    tx.query("update sections set name = name where id = $1 returning *").bind(id).optional().await
}

/// Deletes the reservations of these sections that are over, and frees their places.
///
/// Whoever deletes a reservation lowers its section's count, by what the deletion gave back: two servers that do this at the
/// same moment lower it once.
///
/// # Errors
/// When the database fails.
pub async fn release_expired(tx: &mut Tx, sections: impl IntoIterator<Item = Id>, now: Timestamp) -> Result<()> {
    let sections: Vec<i64> = sections.into_iter().map(|id| id.0).collect();
    // The sections are one text, so that the statement is the same for any number of them.
    let delete = if tx.is_postgres() {
        "delete from reservations where expires <= $2
         and section_id in (select cast(value as bigint) from json_array_elements_text(cast($1 as json)))
         returning section_id, quantity"
    } else {
        "delete from reservations where expires <= $2
         and section_id in (select cast(value as bigint) from json_each($1))
         returning section_id, quantity"
    };
    let over: Vec<(Id, i64)> = tx.query(delete).bind(json(&sections)?).bind(now).all().await?;
    let mut places: BTreeMap<i64, i64> = BTreeMap::new();
    for (section, quantity) in over {
        *places.entry(section.0).or_default() += quantity;
    }
    if !places.is_empty() {
        free(tx, &places).await?;
    }
    Ok(())
}

/// Lowers the reserved places of each section by so many.
async fn free(tx: &mut Tx, places: &BTreeMap<i64, i64>) -> Result<()> {
    let update = if tx.is_postgres() {
        "update sections set reserved = reserved - cast(over.value as bigint) from json_each_text(cast($1 as json)) as over
         where id = cast(over.key as bigint)"
    } else {
        "update sections set reserved = reserved - cast(over.value as bigint) from json_each($1) as over
         where sections.id = cast(over.key as bigint)"
    };
    tx.query(update).bind(json(places)?).execute().await?;
    Ok(())
}

fn json<T: serde::Serialize>(value: &T) -> Result<String> {
    Ok(serde_json::to_string(value).map_err(anyhow::Error::from)?)
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
