//! Deletes old entries of the audit log, and writes them to files before.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use anyhow::Context;
use boxoffice_http::error::Result;
use serde::Serialize;
use tokio::task::spawn_blocking;

use super::model::{AuditEntry, AuditRow};
use super::store;
use crate::kernel::db::transaction;
use crate::kernel::private_files::{self, FolderLock};
use crate::kernel::types::clock::Timestamp;
use crate::kernel::types::id::Id;
use crate::state::Ctx;

/// Entries in a transaction.
const BATCH: i64 = 1000;

/// A line of a file.
#[derive(Serialize)]
struct ArchivedEntry {
    /// Distinguishes the entry from others, because a line may be written twice.
    id: i64,
    #[serde(flatten)]
    entry: AuditEntry,
}

/// Deletes the oldest entries before this time. With a folder, writes them to files there before. Returns their number; call it
/// until it returns 0. It is 0, too, while another run writes to the folder.
///
/// # Errors
/// Returns an error if a file can't be written, or the database fails. Entries that are in a file then may still be in the
/// database; the next call writes them once more.
pub async fn delete_before(ctx: &Ctx, before: Timestamp, folder: Option<PathBuf>) -> Result<u64> {
    let locked = match folder.clone() {
        Some(folder) => spawn_blocking(move || lock(&folder)).await.map_err(anyhow::Error::from)??.map(Some),
        None => Some(None),
    };
    // Held until the entries are deleted.
    let Some(_lock) = locked else { return Ok(0) };
    let rows = store::oldest_before(&mut ctx.unit.read().await?, before, BATCH).await?;
    let ids: Vec<Id> = rows.iter().map(|row| row.id).collect();
    if ids.is_empty() {
        return Ok(0);
    }
    if let Some(folder) = folder {
        spawn_blocking(move || write(&folder, rows)).await.map_err(anyhow::Error::from)??;
    }
    transaction!(ctx.unit, |tx| store::delete(tx, ids.clone(), before).await)
}

/// Creates the folder and locks it, so that a run of a server and one of the command line don't write the same entries. Returns
/// `None` if another run has the lock. Nothing is locked on a file system without locks.
fn lock(folder: &Path) -> anyhow::Result<Option<FolderLock>> {
    let cause = || format!("cannot open the folder {}", folder.display());
    private_files::create_folder(folder).with_context(cause)?;
    private_files::try_lock_folder(folder).with_context(cause)
}

/// Appends the entries to the file of their day.
fn write(folder: &Path, rows: Vec<AuditRow>) -> anyhow::Result<()> {
    let mut files: BTreeMap<String, Vec<u8>> = BTreeMap::new();
    for row in rows {
        let lines = files.entry(format!("audit-{}.jsonl", row.at.format_date())).or_default();
        serde_json::to_writer(&mut *lines, &ArchivedEntry { id: row.id.0, entry: row.view() })?;
        lines.push(b'\n');
    }
    for (name, lines) in files {
        let path = folder.join(name);
        append(&path, &lines).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

/// Appends whole lines to a file and waits until they are on the disk.
fn append(path: &Path, lines: &[u8]) -> anyhow::Result<()> {
    let mut file = OpenOptions::new().read(true).append(true).create(true).mode(private_files::FILE_MODE).open(path)?;
    // A crash may have left the beginning of a line.
    if file.metadata()?.len() > 0 {
        file.seek(SeekFrom::End(-1))?;
        let mut last = [0];
        file.read_exact(&mut last)?;
        if last != *b"\n" {
            file.write_all(b"\n")?;
        }
    }
    file.write_all(lines)?;
    file.sync_all()?;
    private_files::sync_folder_of(path)?;
    Ok(())
}
