//! SQL of the export.

use boxoffice_http::error::Result;

use super::tables::PersonalTable;
use crate::kernel::db::Reader;
use crate::kernel::types::id::Id;

/// Returns some rows of a table about an account, each as a JSON object with the stored values.
pub async fn rows(reader: &mut Reader, table: &PersonalTable, account: Id, skip: i64, most: i64) -> Result<Vec<String>> {
    let object = if reader.is_postgres() { "json_build_object" } else { "json_object" };
    let columns: Vec<String> = table.columns.iter().map(|(name, sql, _)| format!("'{name}', {sql}")).collect();
    let of_column = format!("{} = ?", table.column);
    let rows = reader.select(&format!("cast({object}({}) as text) from {} where true", columns.join(", "), table.table));
    let rows = rows.and_where(table.condition.unwrap_or(&of_column), Some(account));
    let rows = rows.push(&format!(" order by {}", table.order)).push_bind(" limit ?", most).push_bind(" offset ?", skip);
    rows.scalars().await
}
