//! The highest identifier in the database.

use boxoffice_http::error::Result;

use super::transaction::Db;
use crate::kernel::types::id::Id;

impl Db {
    /// Returns the highest identifier in all tables, or [`Id::NONE`] in an empty database. Identifiers of images are left out,
    /// because they are random.
    pub async fn highest_id(&self) -> Result<Id> {
        let mut tx = self.read().await?;
        let tables = if tx.is_postgres() {
            "select table_name::text from information_schema.columns
             where table_schema = current_schema() and data_type = 'bigint' and column_name = 'id'"
        } else {
            "select m.name from sqlite_master m join pragma_table_info(m.name) c
             where m.type = 'table' and c.type in ('INTEGER', 'BIGINT') and c.name = 'id'"
        };
        let tables: Vec<(String,)> = tx.query(tables).all().await?;
        let mut highest = Id::NONE;
        for (table,) in tables {
            let last: Vec<(Option<Id>,)> = tx.select(&format!("max(id) from {table}")).all().await?;
            highest = last.into_iter().filter_map(|(id,)| id).fold(highest, Id::max);
        }
        Ok(highest)
    }
}
