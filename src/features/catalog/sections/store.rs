//! SQL of sections.
//!
//! Every select excludes expired reservations. So their places are free as soon as they expire, even if the job that times out
//! orders has not run yet.

use std::collections::HashMap;

use anyhow::Context as _;
use boxoffice_http::error::Result;

use super::model::{SectionRow, SectionUri};
use super::price::ActiveModifier;
use crate::kernel::db::{Reader, Statement, Tx};
use crate::kernel::types::clock::Timestamp;
use crate::kernel::types::folding::fold;
use crate::kernel::types::id::Id;
use crate::kernel::types::money::Money;

/// Returns the sections of these events, the oldest first.
pub async fn of_events(reader: &mut Reader, events: impl IntoIterator<Item = Id>, now: Timestamp) -> Result<Vec<SectionRow>> {
    fetch(select(reader, Modifiers::Sums, now).and_in("s.event_id", events)).await
}

/// Returns the sections with these identifiers, by identifier. Unknown identifiers are skipped.
pub async fn find_all(reader: &mut Reader, ids: impl IntoIterator<Item = Id>, now: Timestamp) -> Result<HashMap<Id, SectionRow>> {
    find(reader, ids, Modifiers::Sums, now).await
}

/// Returns these sections like [`find_all`], with each of their price modifiers.
pub async fn find_with_modifiers(
    reader: &mut Reader,
    ids: impl IntoIterator<Item = Id>,
    now: Timestamp,
) -> Result<HashMap<Id, SectionRow>> {
    find(reader, ids, Modifiers::Each, now).await
}

async fn find(
    reader: &mut Reader,
    ids: impl IntoIterator<Item = Id>,
    modifiers: Modifiers,
    now: Timestamp,
) -> Result<HashMap<Id, SectionRow>> {
    let rows = fetch(select(reader, modifiers, now).and_in("s.id", ids)).await?;
    Ok(rows.into_iter().map(|row| (row.id, row)).collect())
}

/// Name of a section `s` for filters. A server of an earlier version doesn't write the column, so it may be null.
pub const FOLDED_NAME: &str = "coalesce(s.folded_name, lower(s.name))";

/// Returns the section of an event with this identifier, either of its URIs, or its name, in this order.
pub async fn find_in_event(reader: &mut Reader, event: Id, text: &str) -> Result<Option<Id>> {
    let uri = SectionUri::parse(text).filter(|uri| uri.event.is_none_or(|id| id == event));
    let id = uri.map(|uri| uri.section).or_else(|| Id::parse(text)).unwrap_or(Id::NONE);
    let section = reader.select("s.id from sections s where true").and_where("s.event_id = ?", Some(event));
    let section = section.push_bind(" and (s.id = ?", id).push_bind(&format!(" or {FOLDED_NAME} = ?)"), fold(text));
    section.push_bind(" order by s.id <> ? limit 1", id).optional_scalar().await
}

/// SQL expression for the number of places of a section `s` that are reserved for open orders. `?` is the current time.
pub const RESERVED: &str = "s.reserved - coalesce((select cast(sum(r.quantity) as bigint) from reservations r
     where r.section_id = s.id and r.expires <= ?), 0) as reserved";

/// SQL expression for the size of a section `s` in a page, in bytes.
pub const BYTES: &str = "(800 + octet_length(s.name) + octet_length(s.description) + 130 * s.active_modifiers)";

/// Returns the sizes of these sections in a page, in bytes.
pub async fn sizes(reader: &mut Reader, ids: impl IntoIterator<Item = Id>) -> Result<HashMap<Id, i64>> {
    let sizes = reader.select(&format!("s.id, cast({BYTES} as bigint) from sections s where true"));
    Ok(sizes.and_in("s.id", ids).all::<(Id, i64)>().await?.into_iter().collect())
}

/// The price modifiers that are loaded with a section: those that are active and have not ended.
#[derive(Clone, Copy)]
enum Modifiers {
    /// Each of them. For an order, which lists those that have determined its prices.
    Each,
    /// The sum of those with the same bounds, which is enough for the price of the section.
    Sums,
}

/// A section, and its price modifiers as an array of [`StoredModifier`] in JSON.
#[derive(sqlx_macros::FromRow)]
struct PricedRow {
    #[sqlx(flatten)]
    section: SectionRow,
    modifiers: Option<String>,
}

/// The fields of an [`ActiveModifier`], in their order.
type StoredModifier = (i64, i64, Option<i64>, Option<i64>, Option<i64>, Option<i64>);

fn active_modifier((modifier, delta, from, to, min_order, max_order): StoredModifier) -> ActiveModifier {
    ActiveModifier {
        modifier: Id(modifier),
        delta: Money(delta),
        from: from.map(Timestamp),
        to: to.map(Timestamp),
        min_order,
        max_order,
    }
}

/// Begins a statement that [`fetch`] ends. It reads the modifiers, too, so that a price is never computed from a section and
/// modifiers of different transactions.
fn select(reader: &mut Reader, modifiers: Modifiers, now: Timestamp) -> Statement<'_> {
    let group = match modifiers {
        Modifiers::Each => "m.id",
        Modifiers::Sums => "m.available_from, m.available_to, m.min_order, m.max_order",
    };
    let bound = |column: &str| format!("|| ',' || coalesce(cast(m.{column} as text), 'null')");
    let bounds: String = ["available_from", "available_to", "min_order", "max_order"].map(bound).concat();
    let active = format!(
        "case when s.active_modifiers > 0 then (select '[' || string_agg(active.modifier, ',') || ']' from (
             select '[' || min(m.id) || ',' || sum(m.price_delta) {bounds} || ']' as modifier from modifiers m
             where m.section_id = s.id and m.active and coalesce(m.available_to, 9223372036854775807) > ? group by {group}) active)
         end as modifiers"
    );
    reader.select("s.id, s.event_id, s.name, s.description, s.base_price, s.capacity, s.sold, s.waiting, s.sales_start, s.sales_end, s.active, ")
        .push_bind(RESERVED, now)
        .push(", s.maximum_per_account, ")
        .push_bind(&active, now)
        .push(" from sections s where true")
}

/// Returns the selected sections with their price modifiers, both the oldest first.
async fn fetch(select: Statement<'_>) -> Result<Vec<SectionRow>> {
    let rows: Vec<PricedRow> = select.push(" order by s.id").all().await?;
    let with_modifiers = |PricedRow { section, modifiers }| {
        let stored: Option<Vec<StoredModifier>> = modifiers.as_deref().map(serde_json::from_str).transpose()?;
        let mut stored = stored.unwrap_or_default();
        stored.sort_unstable();
        Ok(SectionRow { modifiers: stored.into_iter().map(active_modifier).collect(), ..section })
    };
    let rows: serde_json::Result<Vec<SectionRow>> = rows.into_iter().map(with_modifiers).collect();
    Ok(rows.context("a section's price modifiers are JSON")?)
}

/// Returns the number of sections of an event.
pub(super) async fn count_of_event(reader: &mut Reader, event: Id) -> Result<i64> {
    reader.query("select count(*) from sections where event_id = $1").bind(event).scalar().await
}

/// Locks these sections until the transaction ends, by ascending identifier.
///
/// The lock of a section guards its counts and its reservations: they are only changed while it is held.
pub async fn lock_all(tx: &mut Tx, sections: impl IntoIterator<Item = Id>) -> Result<()> {
    tx.select("id from sections where true").and_in("id", sections).for_update().lock().await
}

/// Locks all sections of an event like [`lock_all`].
pub async fn lock_of_event(tx: &mut Tx, event: Id) -> Result<()> {
    let sections = tx.select("id from sections where true").and_where("event_id = ?", Some(event));
    sections.for_update().lock().await
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
        .rows_affected()
        .await?;
    Ok(updated == 1)
}

/// Deletes a section. Returns false if it has sales or reservations.
pub(super) async fn delete(tx: &mut Tx, id: Id) -> Result<bool> {
    let deleted = tx.query("delete from sections where id = $1 and sold = 0 and reserved = 0").bind(id).rows_affected().await?;
    Ok(deleted == 1)
}

/// Returns the numbers of sold and of reserved places, and the capacity, of all listed events that are not over.
pub async fn count_places(reader: &mut Reader, now: Timestamp) -> Result<(i64, i64, i64)> {
    let count = "select coalesce(cast(sum(s.sold) as bigint), 0), coalesce(cast(sum(s.reserved) as bigint), 0),
             coalesce(cast(sum(s.capacity) as bigint), 0)
         from events e join sections s on s.event_id = e.id where e.status = 'Listed' and e.ends > $1";
    reader.query(count).bind(now).one().await
}
