//! The identifiers that were given.

use boxoffice_http::error::Result;

use super::transaction::Db;
use crate::kernel::types::id::Id;

impl Db {
    /// The highest identifier of all that is kept, without those of images, which are drawn by chance; [`Id::NONE`] in an empty
    /// database.
    ///
    /// # Errors
    /// When the database fails.
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
