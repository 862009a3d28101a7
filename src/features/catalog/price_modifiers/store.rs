//! SQL of price modifiers. The sections' own store reads them with their sections.

use super::model::{ModifierPath, ModifierRow};
use crate::kernel::types::id::Id;
use crate::kernel::db::Tx;
use boxoffice_http::error::Result;

/// The modifier at this path, all of which must be right.
pub async fn find(tx: &mut Tx, path: ModifierPath) -> Result<Option<ModifierRow>> {
    tx.query(
        "select m.* from modifiers m join sections s on s.id = m.section_id
         where m.id = $1 and m.section_id = $2 and s.event_id = $3",
    )
    .bind(path.modifier)
    .bind(path.section)
    .bind(path.event)
    .optional()
    .await
}

/// The same as it is after everyone else's changes, which then wait until this transaction ends.
pub async fn lock(tx: &mut Tx, path: ModifierPath) -> Result<Option<ModifierRow>> {
    tx.query(
        "update modifiers set name = name where id = $1 and section_id = $2
         and section_id in (select s.id from sections s where s.event_id = $3) returning *",
    )
    .bind(path.modifier)
    .bind(path.section)
    .bind(path.event)
    .optional()
    .await
}

/// How many modifiers a section has.
pub async fn count_of_section(tx: &mut Tx, section: Id) -> Result<i64> {
    tx.query("select count(*) from modifiers where section_id = $1").bind(section).scalar().await
}

pub async fn insert(tx: &mut Tx, row: &ModifierRow) -> Result<()> {
    tx.query(
        "insert into modifiers (id, section_id, name, price_delta, available_from, available_to, min_order, max_order, active)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
    )
    .bind(row.id)
    .bind(row.section_id)
    .bind(row.name.clone())
    .bind(row.price_delta)
    .bind(row.available_from)
    .bind(row.available_to)
    .bind(row.min_order)
    .bind(row.max_order)
    .bind(row.active)
    .execute()
    .await?;
    Ok(())
}

pub async fn update(tx: &mut Tx, row: &ModifierRow) -> Result<()> {
    tx.query(
        "update modifiers set name = $2, price_delta = $3, available_from = $4, available_to = $5, min_order = $6,
         max_order = $7, active = $8 where id = $1",
    )
    .bind(row.id)
    .bind(row.name.clone())
    .bind(row.price_delta)
    .bind(row.available_from)
    .bind(row.available_to)
    .bind(row.min_order)
    .bind(row.max_order)
    .bind(row.active)
    .execute()
    .await?;
    Ok(())
}

pub async fn delete(tx: &mut Tx, id: Id) -> Result<()> {
    tx.query("delete from modifiers where id = $1").bind(id).execute().await?;
    Ok(())
}
