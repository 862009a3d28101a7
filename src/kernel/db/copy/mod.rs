//! Copies a database to an empty one of either kind.
//!
//! Rows are copied page by page in the order of the primary key, each page in one transaction together with the progress. So an
//! interrupted copy is continued after its last page. Triggers and foreign keys of the target are removed for that time, and created
//! again in the last transaction, after the rows of both databases were counted and compared by checksums. Until then no server
//! starts on the target.

mod database;
mod table;
mod value;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
pub(super) use database::PROGRESS;
use database::{CopyDatabase, DEFERRED};
use serde_json::Value as Json;
use table::Table;
pub use value::{Checksum, Value};

use super::database::Db;
use super::inspect::inspect;
use super::location::DatabaseLocation;

/// Interval of the lines about the progress.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(2);

/// A complete copy.
#[derive(Debug)]
pub struct CopySummary {
    /// Number of tables.
    pub tables: usize,
    /// Number of rows in all tables.
    pub rows: u64,
    /// Number of rows that an earlier attempt had copied already.
    pub rows_before: u64,
}

/// Copies the database at the URL `from` to the empty database at `to`, and creates its tables if there are none. Continues an
/// interrupted copy. `report` receives lines about the progress.
///
/// # Errors
/// Returns an error if another program uses one of the databases, if the source is not of this version, if the target contains other
/// data, or if the copy differs from the source.
pub async fn copy(from: &str, to: &str, report: fn(&str)) -> Result<CopySummary> {
    let (source_location, target_location): (DatabaseLocation, DatabaseLocation) = (from.parse()?, to.parse()?);
    let state = inspect(from).await?;
    match state.pending {
        Some(0) => ensure!(!state.has_unfinished_copy, "{} is the target of an unfinished copy", state.name),
        Some(_) => {
            bail!("the tables of {} are of an earlier version of boxoffice: run `boxoffice migrate` on it first", state.name)
        }
        None => bail!("{} contains no tables of boxoffice", state.name),
    }
    let mut source = CopyDatabase::open_source(&source_location).await?;
    let target_state = inspect(to).await?;
    match target_state.pending {
        Some(0) => {}
        Some(_) => bail!(
            "the tables of {} are of an earlier version of boxoffice: give an empty database, in which this command creates the tables",
            target_state.name
        ),
        None => Db::open(to).await?.close().await,
    }
    let mut target = CopyDatabase::open_target(&target_location).await?;
    let tables = source.tables().await?;
    ensure!(
        tables == target.tables().await?,
        "the tables of the two databases differ, although they are of the same version: were they changed by hand?"
    );
    source.lock(&tables).await?;

    if !target.has_progress().await? {
        prepare(&mut target, &tables, &target_state.name).await?;
    }
    let summary = copy_rows(&mut source, &mut target, &tables, report).await?;
    verify(&mut source, &mut target, &tables, summary.rows, report).await?;
    report("creating foreign keys and triggers");
    complete(&mut target).await?;
    target.close().await?;
    source.close().await?;
    Ok(summary)
}

/// Checks that the target is empty, creates the tables of the progress, and removes triggers and foreign keys.
async fn prepare(target: &mut CopyDatabase, tables: &[Table], name: &str) -> Result<()> {
    let filled = target.filled_tables(tables).await?;
    ensure!(
        filled.is_empty(),
        "{name} contains data already (in {}): give an empty database, on which no server was started",
        filled.join(", ")
    );
    target.execute("begin").await?;
    target
        .execute(&format!(
            "create table {PROGRESS} (table_name text primary key, copied_rows bigint not null, last_key text,
                is_complete boolean not null);
             create table {DEFERRED} (position bigint primary key, statement text not null)"
        ))
        .await?;
    for (position, (suspend, restore)) in target.suspensions().await?.iter().enumerate() {
        target.defer(position, restore).await?;
        target.execute(suspend).await?;
    }
    target.execute("commit").await
}

/// Copies the rows that are not in the target yet.
async fn copy_rows(
    source: &mut CopyDatabase,
    target: &mut CopyDatabase,
    tables: &[Table],
    report: fn(&str),
) -> Result<CopySummary> {
    let saved = target.progress().await?;
    let mut saved: BTreeMap<String, _> = saved.into_iter().map(|(table, rows, key, done)| (table, (rows, key, done))).collect();
    let rows_before = saved.values().map(|(rows, ..)| rows.unsigned_abs()).sum();
    let mut progress = Progress::start("copied", source.count(tables).await?, report);
    if rows_before > 0 {
        report(&format!("continuing an interrupted copy after {rows_before} rows"));
        progress.skip(rows_before);
    }
    for table in tables {
        let (rows, key, is_complete) = saved.remove(&table.name).unwrap_or((0, None, false));
        if is_complete {
            continue;
        }
        let (mut rows, mut after) = (rows.unsigned_abs(), key.as_deref().map(parse_key).transpose()?);
        loop {
            let page = source.read_page(table, after.as_deref()).await?;
            let is_last = page.is_empty() || !table.has_key();
            target.execute("begin").await?;
            if !table.has_key() {
                target.execute(&format!("delete from \"{}\"", table.name)).await?;
            }
            if let Some(last) = page.last() {
                target.write(table, &page).await?;
                rows += page.len() as u64;
                after = table.key_of(last).or(after);
            }
            let key = after.as_deref().map(format_key).transpose()?;
            target.save_progress(&table.name, rows, key, is_last).await?;
            target.execute("commit").await?;
            progress.add(&table.name, page.len());
            if is_last {
                break;
            }
        }
    }
    Ok(CopySummary { tables: tables.len(), rows: progress.done, rows_before })
}

/// Compares the number of rows and the checksum of each table.
async fn verify(
    source: &mut CopyDatabase,
    target: &mut CopyDatabase,
    tables: &[Table],
    rows: u64,
    report: fn(&str),
) -> Result<()> {
    let mut progress = Progress::start("verified", rows, report);
    let mut different = Vec::new();
    for table in tables {
        let (expected, copied) = tokio::join!(checksum(source, table), checksum(target, table));
        let (expected, copied) = (expected?, copied?);
        if expected != copied {
            different.push(format!("{} ({} rows in the source, {} in the copy)", table.name, expected.rows, copied.rows));
        }
        progress.add(&table.name, usize::try_from(expected.rows)?);
    }
    ensure!(
        different.is_empty(),
        "the source has been changed since the copy began, or the copy is damaged: {}. Delete the target and start again",
        different.join(", ")
    );
    Ok(())
}

async fn checksum(database: &mut CopyDatabase, table: &Table) -> Result<Checksum> {
    let (mut checksum, mut after) = (Checksum::default(), None);
    loop {
        let page = database.read_page(table, after.as_deref()).await?;
        page.iter().for_each(|row| checksum.add(row));
        let Some(last) = page.last() else { return Ok(checksum) };
        after = table.key_of(last);
        if after.is_none() {
            return Ok(checksum);
        }
    }
}

/// Creates triggers and foreign keys again, and removes the tables of the progress, in one transaction.
async fn complete(target: &mut CopyDatabase) -> Result<()> {
    target.execute("begin").await?;
    for statement in target.deferred().await? {
        target.execute(&statement).await?;
    }
    target.rebuild_search_index().await?;
    target.check_foreign_keys().await?;
    target.set_identities().await?;
    target.execute(&format!("drop table {PROGRESS}; drop table {DEFERRED}")).await?;
    target.execute("commit").await?;
    target.collect_statistics().await
}

fn format_key(key: &[Value]) -> Result<String> {
    let values: Option<Vec<Json>> = key.iter().map(Value::to_json).collect();
    Ok(serde_json::to_string(&values.context("a primary key is neither numbers nor text")?)?)
}

fn parse_key(key: &str) -> Result<Vec<Value>> {
    let values: Vec<Json> = serde_json::from_str(key)?;
    values.iter().map(Value::from_json).collect::<Option<_>>().context("the progress of the copy is damaged")
}

/// Reports the progress from time to time.
struct Progress {
    verb: &'static str,
    total: u64,
    done: u64,
    /// Rows of earlier attempts.
    skipped: u64,
    started: Instant,
    reported: Instant,
    report: fn(&str),
}

impl Progress {
    fn start(verb: &'static str, total: u64, report: fn(&str)) -> Self {
        let now = Instant::now();
        Self { verb, total, done: 0, skipped: 0, started: now, reported: now, report }
    }

    fn skip(&mut self, rows: u64) {
        self.skipped = rows;
        self.done = rows;
    }

    fn add(&mut self, table: &str, rows: usize) {
        self.done += rows as u64;
        if self.reported.elapsed() >= PROGRESS_INTERVAL || (self.done == self.total && rows > 0) {
            self.reported = Instant::now();
            let per_second = (self.done - self.skipped) as f64 / self.started.elapsed().as_secs_f64().max(0.001);
            (self.report)(&format!("{}: {} of {} rows ({table}), {per_second:.0} rows/s", self.verb, self.done, self.total));
        }
    }
}
