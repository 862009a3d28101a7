//! Restoring a backup.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, bail, ensure};
use tokio::task::spawn_blocking;

use super::archive;
use super::manifest::Manifest;
use super::{BackupProgress, DATABASE, MAIL_KEY, MEDIA};
use crate::features::catalog::media;
use crate::invariants;
use crate::kernel::db::Db;
use crate::kernel::private_files::{self, FolderLock};
use crate::kernel::settings::RESTORING;
use crate::kernel::types::clock::Clock;

/// The places of a server's data.
#[derive(Debug, Clone)]
pub struct RestoreTarget {
    /// The data folder.
    pub data_dir: PathBuf,
    /// The file of the database.
    pub database: PathBuf,
    /// The folder of images; `None` if they are in a bucket.
    pub media: Option<PathBuf>,
    /// The file with the key of the mails.
    pub mail_key: PathBuf,
    /// The file with the key of the tickets, which no backup includes.
    pub ticket_key: PathBuf,
}

/// A restored backup.
#[derive(Debug)]
pub struct Restored {
    /// Its content.
    pub manifest: Manifest,
    /// False if the database is of an earlier version, so that the books can only be checked after its migration.
    pub is_current: bool,
}

/// Restores a backup into an empty data folder. The files appear under their names when everything was checked: the checksums, the
/// database, its foreign keys and the invariants of its data. Dropping the future leaves nothing behind.
///
/// # Errors
/// Returns an error if the folder is not empty or has another key of the mails than the backup, or if the backup is damaged, of a newer
/// version, or violates an invariant.
pub async fn restore(file: &Path, target: &RestoreTarget, progress: BackupProgress) -> Result<Restored> {
    let unchecked = Unchecked::create(target)?;
    progress("checking the backup");
    let (path, places) = (file.to_owned(), unchecked.clone());
    let manifest = spawn_blocking(move || archive::extract(&path, |name| places.of(name))).await??;
    ensure!(manifest.contains(DATABASE), "{} contains no database", file.display());
    unchecked.reject_other_key(target)?;
    let is_current = check_database(&unchecked.database, &manifest, progress).await?;
    unchecked.put_in_place(target)?;
    Ok(Restored { manifest, is_current })
}

/// Checks the database of a backup. Returns whether it is of this version.
async fn check_database(path: &Path, manifest: &Manifest, progress: BackupProgress) -> Result<bool> {
    let database = Db::open_existing(&format!("sqlite:{}", path.display())).await?;
    let newest = database.newest_schema();
    ensure!(
        manifest.schema <= newest,
        "the backup is of a newer version of boxoffice ({}, migration {}; this program has {newest}): restore it with that version",
        manifest.program,
        manifest.schema
    );
    progress("checking the database");
    let damage = database.damage().await?;
    ensure!(damage.is_empty(), "the database of the backup is damaged: {}", damage.join("; "));
    ensure!(
        database.sqlite_row_counts().await? == manifest.rows,
        "the database of the backup differs from its manifest in the number of rows"
    );
    let is_current = manifest.schema == newest;
    if is_current {
        progress("checking the books");
        let mut reader = database.read().await?;
        let violations = invariants::violations(&mut reader, Clock::default().now()).await?;
        ensure!(violations.is_empty(), "the data of the backup are inconsistent: {}", violations.join("; "));
        if manifest.bucket.is_none() {
            let images = media::stored_images(&mut reader).await?;
            let files: BTreeSet<&str> = manifest.files.iter().map(|file| file.name.as_str()).collect();
            let is_there = |image: &String| files.contains(format!("{MEDIA}/{image}").as_str());
            let missing = images.iter().find(|image| !is_there(image) && !manifest.missing_images.contains(image));
            ensure!(missing.is_none(), "the backup lacks an image to which its database refers: {missing:?}");
        }
    }
    database.close().await;
    Ok(is_current)
}

/// The extracted files, beside their final places and under other names. The images are in a folder within that of the media, which may
/// be the root of a disk. Dropping the last copy deletes what was not put in place.
#[derive(Debug, Clone)]
struct Unchecked {
    database: PathBuf,
    media: Option<PathBuf>,
    mail_key: PathBuf,
    _guard: Arc<Guard>,
}

#[derive(Debug)]
struct Guard {
    paths: Vec<PathBuf>,
    /// The folder of the media, if it did not exist. It is deleted if it is empty.
    new_media: Option<PathBuf>,
    /// Keeps other programs from restoring into the folder, and servers from starting on it.
    _lock: FolderLock,
}

impl Unchecked {
    /// Checks that there are no data, and deletes what a killed program has left.
    fn create(target: &RestoreTarget) -> Result<Self> {
        let folder = private_files::folder_of(&target.database);
        for folder in [folder, &target.data_dir] {
            private_files::create_folder(folder).with_context(|| format!("cannot create the folder {}", folder.display()))?;
        }
        let lock =
            private_files::try_lock_folder(folder).with_context(|| format!("cannot open the folder {}", folder.display()))?;
        let Some(lock) = lock else { bail!("another program is restoring or starting in {}", folder.display()) };
        reject_data(target)?;
        let unchecked = |path: &Path| {
            let mut name = path.as_os_str().to_owned();
            name.push(RESTORING);
            PathBuf::from(name)
        };
        let (database, mail_key) = (unchecked(&target.database), unchecked(&target.mail_key));
        let media = target.media.as_deref().map(|media| media.join(RESTORING));
        let paths: Vec<PathBuf> = [Some(&database), Some(&mail_key), media.as_ref()].into_iter().flatten().cloned().collect();
        let new_media = target.media.clone().filter(|media| !media.exists());
        let guard = Guard { paths, new_media, _lock: lock };
        guard.remove();
        Ok(Self { database, media, mail_key, _guard: guard.into() })
    }

    /// Returns the path of a file of the backup, unless it is not needed.
    fn of(&self, name: &str) -> Option<PathBuf> {
        match name {
            DATABASE => Some(self.database.clone()),
            MAIL_KEY => Some(self.mail_key.clone()),
            image => Some(self.media.as_ref()?.join(image.strip_prefix(MEDIA)?.trim_start_matches('/'))),
        }
    }

    /// Rejects a backup whose key of the mails is not the one that is in place.
    fn reject_other_key(&self, target: &RestoreTarget) -> Result<()> {
        let (extracted, existing) = (&self.mail_key, &target.mail_key);
        if extracted.exists() && existing.exists() {
            let read = |file: &Path| fs::read(file).with_context(|| format!("cannot read {}", file.display()));
            ensure!(
                read(extracted)? == read(existing)?,
                "{} is another key than that of the backup: move it away, and restore again",
                existing.display()
            );
        }
        Ok(())
    }

    /// Gives the files their names, the database last: without it, the folder has no data.
    fn put_in_place(&self, target: &RestoreTarget) -> Result<()> {
        let place = || {
            let folder = File::open(private_files::folder_of(&self.database))?;
            rustix::fs::syncfs(&folder)?;
            if let (Some(unchecked), Some(media)) = (&self.media, &target.media)
                && unchecked.exists()
            {
                for kind in fs::read_dir(unchecked)? {
                    let kind = kind?;
                    // It replaces an empty folder only.
                    fs::rename(kind.path(), media.join(kind.file_name()))?;
                }
                rustix::fs::syncfs(&File::open(media)?)?;
            }
            // Unlike a rename, a link fails if the file was created meanwhile.
            if self.mail_key.exists() && !target.mail_key.exists() {
                fs::hard_link(&self.mail_key, &target.mail_key)?;
                private_files::sync_folder_of(&target.mail_key)?;
            }
            fs::hard_link(&self.database, &target.database)?;
            private_files::sync_folder_of(&target.database)
        };
        place().context("cannot put the restored files in place")
    }
}

impl Guard {
    fn remove(&self) {
        for path in &self.paths {
            // What can't be deleted makes the extraction fail.
            let _removed = fs::remove_file(path);
            let _removed = fs::remove_dir_all(path);
        }
        if let Some(media) = &self.new_media {
            let _removed = fs::remove_dir(media);
        }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.remove();
    }
}

/// Rejects a folder with data. The keys may be there already: backups don't include that of the mails by default, and never that of the
/// tickets.
fn reject_data(target: &RestoreTarget) -> Result<()> {
    let mut occupied = private_files::sqlite_files(&target.database).to_vec();
    occupied.retain(|path| fs::symlink_metadata(path).is_ok());
    let is_foreign = |path: &Path| {
        let is_unchecked = path.file_name().is_some_and(|name| name.as_encoded_bytes().ends_with(RESTORING.as_bytes()));
        let is_media = target.media.as_deref() == Some(path);
        let is_key = path == target.mail_key || path == target.ticket_key;
        !is_unchecked && !is_media && !is_key && path.file_name() != Some(OsStr::new("lost+found"))
    };
    let entries = |folder: &Path| match fs::read_dir(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
        entries => entries?.map(|entry| Ok(entry?.path())).collect::<std::io::Result<Vec<_>>>(),
    };
    occupied.extend(entries(&target.data_dir)?.into_iter().filter(|path| is_foreign(path)));
    if let Some(media) = &target.media {
        occupied.extend(entries(media)?.into_iter().filter(|path| is_foreign(path)));
    }
    if let Some(path) = occupied.first() {
        bail!("{} exists: a backup is restored into an empty data folder only, with no server running on it", path.display());
    }
    Ok(())
}
