//! Making a backup.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use chrono::{SecondsFormat, Utc};
use tokio::task::spawn_blocking;

use super::archive::{ArchiveWriter, is_backup_file};
use super::manifest::{FORMAT, Manifest};
use super::{BackupProgress, DATABASE, ICONS, MAIL_KEY, MEDIA};
use crate::features::catalog::media;
use crate::kernel::db::{self, Db};
use crate::kernel::private_files::{self, FolderLock};
use crate::kernel::settings::MediaLocation;

/// Interval of the lines about the progress.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(2);

/// The data of a server, and the parts of them to include in a backup.
#[derive(Debug, Clone)]
pub struct BackupSource {
    /// The file of the database.
    pub database: PathBuf,
    /// The images. Those in a bucket are not included.
    pub media: MediaLocation,
    /// The key of the mails, if it is to be included.
    pub mail_key: Option<PathBuf>,
}

/// Makes a backup, also while a server uses the database. All changes that were committed before the call are in it, and none in
/// part. The file appears under its name when it is complete; dropping the future leaves nothing behind.
///
/// # Errors
/// Returns an error if the file exists and is not to be replaced, the database is not of this version, or the disk is full.
pub async fn create(source: &BackupSource, file: &Path, replace: bool, progress: BackupProgress) -> Result<Manifest> {
    ensure!(replace || fs::symlink_metadata(file).is_err(), "{} exists; choose another name, or add --force", file.display());
    let url = format!("sqlite:{}", source.database.display());
    let live = Db::open_existing(&url).await?;
    let (schema, newest) = (live.schema_version().await?, live.newest_schema());
    ensure!(
        schema == newest,
        "the tables of {} are of another version of boxoffice (migration {schema}; this program has {newest}): make the backup with \
         the program that the server runs",
        source.database.display()
    );
    let partial = PartialFolder::create(file)?;
    let archive =
        ArchiveWriter::create(&partial.backup()).with_context(|| format!("cannot create {}", partial.backup().display()))?;
    let mut writer = BackupWriter { archive, media: source.media.folder().map(Path::to_owned), archived: BTreeSet::new() };

    let mut missing_images = Vec::new();
    // Most images now, because this takes long: an image that is replaced after the copy of the database was made may be deleted
    // before it is read.
    let images = media::stored_images(&mut live.read().await?).await?;
    writer = writer.add_images(images, progress).await?.0.add_icons(progress).await?;
    let (snapshot, created) = loop {
        progress("copying the database");
        let created = Utc::now().to_rfc3339_opts(SecondsFormat::Secs, true);
        let path = partial.snapshot();
        db::back_up_sqlite(&source.database, &path).await?;
        let snapshot = Db::open_existing(&format!("sqlite:{}", path.display())).await?;
        let images = media::stored_images(&mut snapshot.read().await?).await?;
        let (next, missing) = writer.add_images(images, progress).await?;
        writer = next;
        // An image gets a new name with each upload. One that a later copy still refers to was not replaced: its file is lost.
        if missing.iter().all(|image| missing_images.contains(image)) {
            missing_images = missing;
            break (snapshot, created);
        }
        missing_images = missing;
        snapshot.close().await;
        remove_sqlite(&path)?;
    };
    let rows = snapshot.sqlite_row_counts().await?;
    let schema = snapshot.schema_version().await?;
    snapshot.close().await;
    live.close().await;

    progress("writing the database");
    let (path, mail_key) = (partial.snapshot(), source.mail_key.clone());
    let bucket = source.media.folder().is_none().then(|| source.media.to_string());
    let manifest = blocking(move || {
        let mut archive = writer.archive;
        archive.add(DATABASE, &path)?;
        if let Some(key) = mail_key {
            archive.add(MAIL_KEY, &key)?;
        }
        let program = env!("CARGO_PKG_VERSION").to_owned();
        let files = archive.files.clone();
        let manifest = Manifest { format: FORMAT, program, schema, created, rows, bucket, missing_images, files };
        archive.finish(&manifest)?;
        Ok(manifest)
    })
    .await?;
    partial.move_to(file, replace)?;
    Ok(manifest)
}

/// A backup that is being written, with the names of the images in it.
struct BackupWriter {
    archive: ArchiveWriter,
    /// The folder of images; `None` if they are in a bucket.
    media: Option<PathBuf>,
    archived: BTreeSet<String>,
}

impl BackupWriter {
    /// Adds the images that are not in the backup yet. Returns the names of those that don't exist.
    async fn add_images(mut self, images: Vec<String>, progress: BackupProgress) -> Result<(Self, Vec<String>)> {
        let Some(folder) = self.media.clone() else { return Ok((self, Vec::new())) };
        blocking(move || {
            let new: Vec<String> = images.into_iter().filter(|image| !self.archived.contains(image)).collect();
            let (mut missing, mut reported) = (Vec::new(), Instant::now());
            for (number, image) in new.iter().enumerate() {
                let path = folder.join(image);
                match fs::symlink_metadata(&path) {
                    Err(error) if error.kind() == ErrorKind::NotFound => missing.push(image.clone()),
                    _ => match self.archive.add(&format!("{MEDIA}/{image}"), &path) {
                        // Deleted just now.
                        Err(_) if !path.exists() => missing.push(image.clone()),
                        added => {
                            added?;
                            self.archived.insert(image.clone());
                        }
                    },
                }
                if reported.elapsed() >= PROGRESS_INTERVAL {
                    progress(&format!("images: {} of {}", number + 1, new.len()));
                    reported = Instant::now();
                }
            }
            Ok((self, missing))
        })
        .await
    }

    /// Adds the operator's own icons. Other files in their folder are no icons: the server never sends them.
    async fn add_icons(mut self, progress: BackupProgress) -> Result<Self> {
        let Some(folder) = self.media.clone() else { return Ok(self) };
        blocking(move || {
            for icon in fs::read_dir(folder.join(ICONS)).into_iter().flatten() {
                let icon = icon?;
                let name = format!("{MEDIA}/{ICONS}/{}", icon.file_name().to_string_lossy());
                if icon.path().is_file() && is_backup_file(&name) {
                    self.archive.add(&name, &icon.path())?;
                } else {
                    progress(&format!("warning: {} is not in the backup, because it is no icon", icon.path().display()));
                }
            }
            Ok(self)
        })
        .await
    }
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    spawn_blocking(work).await?
}

fn remove_sqlite(path: &Path) -> std::io::Result<()> {
    for file in private_files::sqlite_files(path) {
        match fs::remove_file(file) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

/// A folder beside the backup with its unfinished parts. Dropping it deletes it.
struct PartialFolder {
    path: PathBuf,
    /// Keeps other programs from using the folder.
    _lock: FolderLock,
}

impl PartialFolder {
    /// Creates `FILE.partial`. Deletes what a killed program has left there.
    fn create(file: &Path) -> Result<Self> {
        let mut path: OsString = file.as_os_str().to_owned();
        path.push(".partial");
        let path = PathBuf::from(path);
        let problem = || format!("cannot create the folder {}", path.display());
        // Of a folder of another user, that user could read the copy of the database.
        private_files::create_own_folder(&path).with_context(problem)?;
        let Some(lock) = private_files::try_lock_folder(&path).with_context(problem)? else {
            bail!("another program is making this backup: {} is in use", path.display());
        };
        let partial = Self { path, _lock: lock };
        remove_sqlite(&partial.snapshot()).with_context(|| format!("cannot delete {}", partial.snapshot().display()))?;
        remove_sqlite(&partial.backup()).with_context(|| format!("cannot delete {}", partial.backup().display()))?;
        Ok(partial)
    }

    /// The copy of the database.
    fn snapshot(&self) -> PathBuf {
        self.path.join(DATABASE)
    }

    /// The backup.
    fn backup(&self) -> PathBuf {
        self.path.join("backup.tar")
    }

    /// Gives the finished backup its name.
    fn move_to(self, file: &Path, replace: bool) -> Result<()> {
        let rename = || {
            if replace {
                fs::rename(self.backup(), file)?;
            } else {
                // Unlike a rename, it fails if the file was created meanwhile.
                fs::hard_link(self.backup(), file)?;
            }
            private_files::sync_folder_of(file)
        };
        rename().with_context(|| format!("cannot create {}", file.display()))
    }
}

impl Drop for PartialFolder {
    fn drop(&mut self) {
        // The next backup with the same name deletes what remains.
        let _removed = fs::remove_dir_all(&self.path);
    }
}
