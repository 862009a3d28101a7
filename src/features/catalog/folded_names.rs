//! Keys of names and titles ([`fold`]) for rows that have none, because a server of an earlier version wrote them.

use std::collections::HashSet;

use boxoffice_http::error::Result;
use slog::warn;

use crate::kernel::db::{Reader, Tx, transaction};
use crate::kernel::types::folding::fold;
use crate::kernel::types::id::Id;
use crate::state::App;

/// Number of rows that one transaction completes.
const BATCH: usize = 500;
/// Number of the lock with which servers on one PostgreSQL complete rows one after the other.
const ADVISORY_LOCK: i64 = 7_161_426_313;

/// A column with unique names, and the column of their keys.
struct NameColumn {
    table: &'static str,
    name: &'static str,
    folded: &'static str,
    /// Column of the parent within which names are unique; a constant if they are unique in the table.
    scope: &'static str,
    /// Condition of the rows whose names are unique.
    condition: &'static str,
}

const fn column(table: &'static str, scope: &'static str) -> NameColumn {
    NameColumn { table, name: "name", folded: "folded_name", scope, condition: "true" }
}

const NO_SCOPE: &str = "cast(0 as bigint)";

const COLUMNS: [NameColumn; 8] = [
    column("regions", NO_SCOPE),
    column("venues", NO_SCOPE),
    column("categories", NO_SCOPE),
    NameColumn { condition: "not removed", ..column("hosts", NO_SCOPE) },
    NameColumn { name: "title", folded: "folded_title", ..column("events", NO_SCOPE) },
    column("advertisements", NO_SCOPE),
    column("sections", "event_id"),
    column("modifiers", "section_id"),
];

/// Writes the missing keys, in transactions of some hundred rows. Of several rows with the same key, the oldest one has it; the
/// others keep their names, get a key with their identifier, and are logged.
pub async fn complete(app: &App) -> Result<()> {
    if !transaction!(app.db, |tx| is_incomplete(tx).await)? {
        return Ok(());
    }
    for column in COLUMNS {
        while transaction!(app.db, |tx| complete_batch(app, tx, &column).await)? == BATCH {}
    }
    Ok(())
}

/// Returns whether a key is missing. One statement, because at nearly each start there is nothing else to do.
async fn is_incomplete(reader: &mut Reader) -> Result<bool> {
    let is_missing = |NameColumn { table, folded, condition, .. }| {
        format!("exists (select 1 from {table} where {condition} and {folded} is null)")
    };
    reader.select(&format!("cast(1 as bigint) where {}", COLUMNS.map(is_missing).join(" or "))).exists().await
}

/// Completes up to [`BATCH`] rows. Returns their number.
async fn complete_batch(app: &App, tx: &mut Tx, column: &NameColumn) -> Result<usize> {
    let NameColumn { table, name, folded, scope, condition } = column;
    if tx.is_postgres() {
        tx.query("select pg_advisory_xact_lock($1)").bind(ADVISORY_LOCK).execute().await?;
    }
    let incomplete = format!("id, {scope}, {name} from {table} where {condition} and {folded} is null order by id limit {BATCH}");
    let rows: Vec<(Id, Id, String)> = tx.select(&incomplete).all().await?;
    if rows.is_empty() {
        return Ok(0);
    }
    let taken = tx.select(&format!("{scope}, {folded} from {table} where {condition}"));
    let taken: Vec<(Id, String)> = taken.and_in(folded, rows.iter().map(|(.., name)| fold(name))).all().await?;
    let mut taken: HashSet<(Id, String)> = taken.into_iter().collect();
    let keys: Vec<(Id, String, String)> = rows
        .into_iter()
        .map(|(id, scope, name)| {
            let key = fold(&name);
            if taken.insert((scope, key.clone())) {
                return (id, key, name);
            }
            warn!(app.log, "two names are equal but for case, white space or representation"; "table" => table, "id" => id.0);
            // No name has a line break, so no other row can have this key.
            (id, format!("{key}\n{id}"), name)
        })
        .collect();
    let update = tx.update(&format!("{table} set {folded} = v.column2 from (")).values(&keys, |columns| {
        columns.add(|(id, ..)| *id).add(|(_, key, _)| key.clone()).add(|(.., name)| name.clone());
    });
    // A server may rename a row, and write its key, while this waits.
    let unchanged = format!("{table}.{folded} is null and {table}.{name} = v.column3");
    update.push(&format!(") as v where {table}.id = v.column1 and {unchanged}")).execute().await?;
    Ok(keys.len())
}
