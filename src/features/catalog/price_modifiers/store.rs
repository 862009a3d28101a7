//! SQL of price modifiers. The store of sections reads them together with their sections.

use boxoffice_http::error::Result;

use super::model::{ModifierPath, ModifierRow};
use crate::kernel::db::{Reader, Tx, define_sql};
use crate::kernel::types::folding::fold;
use crate::kernel::types::id::Id;
use crate::kernel::types::paging::{PageRequest, PagedRows};

// The columns of `ModifierRow`.
define_sql!(
    columns,
    "m.id, m.section_id, m.name, m.price_delta, m.available_from, m.available_to, m.min_order, m.max_order, m.active"
);

/// Returns the modifier at this path. All parts of the path must match.
pub async fn find(reader: &mut Reader, path: ModifierPath) -> Result<Option<ModifierRow>> {
    reader
        .query(concat!(
            "select ",
            columns!(),
            " from modifiers m join sections s on s.id = m.section_id where m.id = $1 and m.section_id = $2 and s.event_id = $3"
        ))
        .bind(path.modifier)
        .bind(path.section)
        .bind(path.event)
        .optional()
        .await
}

/// Returns a page of the modifiers of a section, the oldest first.
pub async fn list(reader: &mut Reader, section: Id, paging: PageRequest) -> Result<PagedRows<ModifierRow>> {
    reader.list(columns!(), "from modifiers m where true").and_where("m.section_id = ?", Some(section)).page("m.id", paging).await
}

/// Returns all modifiers of the sections of an event, the oldest first.
pub async fn of_event(reader: &mut Reader, event: Id) -> Result<Vec<ModifierRow>> {
    reader
        .query(concat!(
            "select ",
            columns!(),
            " from sections s join modifiers m on m.section_id = s.id where s.event_id = $1 order by m.id"
        ))
        .bind(event)
        .all()
        .await
}

/// Locks and returns the modifier at this path. The row includes all earlier changes; later changes by other transactions wait
/// until this one ends.
pub async fn lock(tx: &mut Tx, path: ModifierPath) -> Result<Option<ModifierRow>> {
    let modifier = tx
        .select(concat!(columns!(), " from modifiers m where true"))
        .and_where("m.id = ?", Some(path.modifier))
        .and_where("m.section_id = ?", Some(path.section))
        .and_where("m.section_id in (select s.id from sections s where s.event_id = ?)", Some(path.event));
    modifier.for_update().optional().await
}

/// Returns the number of modifiers of a section.
pub async fn count_of_section(reader: &mut Reader, section: Id) -> Result<i64> {
    reader.query("select count(*) from modifiers where section_id = $1").bind(section).scalar().await
}

pub async fn insert(tx: &mut Tx, rows: &[ModifierRow]) -> Result<()> {
    let into = "modifiers (id, section_id, name, price_delta, available_from, available_to, min_order, max_order, active,
         folded_name)";
    tx.insert_rows(into, rows, |columns| {
        columns
            .add(|row| row.id)
            .add(|row| row.section_id)
            .add(|row| row.name.clone())
            .add(|row| row.price_delta)
            .add(|row| row.available_from)
            .add(|row| row.available_to)
            .add(|row| row.min_order)
            .add(|row| row.max_order)
            .add(|row| row.active)
            .add(|row| fold(&row.name));
    })
    .await
}

pub async fn update(tx: &mut Tx, row: &ModifierRow) -> Result<()> {
    tx.query(
        "update modifiers set name = $2, price_delta = $3, available_from = $4, available_to = $5, min_order = $6,
         max_order = $7, active = $8, folded_name = case when name = $2 then folded_name else $9 end where id = $1",
    )
    .bind(row.id)
    .bind(row.name.clone())
    .bind(row.price_delta)
    .bind(row.available_from)
    .bind(row.available_to)
    .bind(row.min_order)
    .bind(row.max_order)
    .bind(row.active)
    .bind(fold(&row.name))
    .execute()
    .await
}

pub async fn delete(tx: &mut Tx, id: Id) -> Result<()> {
    tx.query("delete from modifiers where id = $1").bind(id).execute().await
}
