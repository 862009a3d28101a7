//! The highest identifier in the database, and the time of its clock.

use boxoffice_http::error::Result;

use super::database::Db;
use crate::kernel::types::clock::Timestamp;
use crate::kernel::types::id::Id;

impl Db {
    /// Returns the highest identifier in all tables, or [`Id::NONE`] in an empty database. Identifiers of images are left out,
    /// because they are random.
    pub async fn highest_id(&self) -> Result<Id> {
        let mut reader = self.read().await?;
        let tables = if reader.is_postgres() {
            // The views of the information schema take longer.
            "select c.relname::text from pg_class c join pg_attribute a on a.attrelid = c.oid
             where c.relnamespace = current_schema()::regnamespace and c.relkind = 'r'
                and a.attname = 'id' and a.atttypid = 'bigint'::regtype and not a.attisdropped"
        } else {
            "select l.name from pragma_table_list l join pragma_table_info(l.name) c
             where l.schema = 'main' and l.type = 'table' and c.type in ('INTEGER', 'BIGINT') and c.name = 'id'"
        };
        let tables: Vec<String> = reader.query(tables).scalars().await?;
        let columns: Vec<String> = tables.iter().map(|table| format!("select max(id) as id from {table}")).collect();
        let highest = reader.select(&format!("max(id) from ({}) as t", columns.join(" union all ")));
        let highest: Option<Option<Id>> = highest.optional_scalar().await?;
        Ok(highest.flatten().unwrap_or(Id::NONE))
    }

    /// Returns the time of PostgreSQL's clock; `None` on SQLite, which has the clock of this machine.
    pub async fn clock_time(&self) -> Result<Option<Timestamp>> {
        let mut reader = self.read().await?;
        if !reader.is_postgres() {
            return Ok(None);
        }
        Ok(Some(reader.query("select cast(extract(epoch from clock_timestamp()) * 1000000 as bigint)").scalar().await?))
    }
}
