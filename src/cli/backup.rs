//! The commands `backup`, `restore` and `check`.

use std::io::{Write, stderr};
use std::path::{Path, PathBuf};

use anyhow::{anyhow, bail, ensure};
use clap::Args;
use slog::Logger;

use super::print;
use super::signals::StopSignals;
use crate::backup::{self, BackupSource, Manifest, RestoreTarget};
use crate::config::{PlatformOptions, StorageOptions};
use crate::invariants;
use crate::kernel::db::{DatabaseLocation, Db};
use crate::kernel::private_files;
use crate::kernel::types::clock::Clock;

#[derive(Debug, Args)]
pub struct BackupOptions {
    /// The file to create
    file: PathBuf,
    /// Replace the file if it exists
    #[arg(long)]
    force: bool,
    /// Include the key of the mails. With it, the backup reveals the codes in mails that are not sent yet
    #[arg(long)]
    include_mail_key: bool,
    #[command(flatten)]
    platform: PlatformOptions,
}

#[derive(Debug, Args)]
pub struct RestoreOptions {
    /// The file of the backup
    file: PathBuf,
    #[command(flatten)]
    platform: PlatformOptions,
}

/// All users of a machine may read its command lines.
const PASSWORD_FILE: &str = "A password belongs in the file that PGPASSFILE names, not in the URL";

/// Makes a backup of a SQLite database and its images.
pub async fn create(options: &BackupOptions, log: &Logger) -> anyhow::Result<()> {
    let mut stop = StopSignals::listen()?;
    private_files::set_umask();
    let settings = options.platform.settings()?;
    let Some(database) = sqlite_path(&options.platform.database_url()?)? else {
        let images = if settings.media.folder().is_some() { ", and then copy the folder of images" } else { "" };
        bail!(
            "this command is for SQLite. Back up PostgreSQL, not through a pooler and without statement-cache-capacity in the URL, \
             with: pg_dump --format=custom --file=boxoffice.dump --dbname=URL{images}. {PASSWORD_FILE}"
        );
    };
    let mail_key = options.include_mail_key.then(|| settings.mail.key_file.clone());
    let source = BackupSource { database, media: settings.media, mail_key };
    let manifest = tokio::select! {
        created = backup::create(&source, &options.file, options.force, progress) => created?,
        () = stop.recv() => bail!("stopped; no backup was made"),
    };
    options.platform.restrict_access(log)?;
    print(describe(&options.file, &manifest))?;
    for image in &manifest.missing_images {
        progress(&format!("warning: the media folder has no file {image}, to which the database refers"));
    }
    Ok(())
}

/// Restores a backup into an empty data folder.
pub async fn restore(options: &RestoreOptions, log: &Logger) -> anyhow::Result<()> {
    let mut stop = StopSignals::listen()?;
    private_files::set_umask();
    let settings = options.platform.settings()?;
    let Some(database) = sqlite_path(&options.platform.database_url()?)? else {
        bail!(
            "this command is for SQLite. Restore a dump of PostgreSQL into an empty database, not through a pooler and without \
             statement-cache-capacity in the URL, with: pg_restore --no-owner --exit-on-error --dbname=URL boxoffice.dump. {PASSWORD_FILE}"
        );
    };
    let media = settings.media.folder().map(Path::to_owned);
    let data_dir = options.platform.storage.data_dir()?.to_owned();
    let target =
        RestoreTarget { data_dir, database, media, mail_key: settings.mail.key_file, ticket_key: settings.ticket_key_file };
    let restored = tokio::select! {
        restored = backup::restore(&options.file, &target, progress) => restored?,
        () = stop.recv() => bail!("stopped; nothing was restored"),
    };
    options.platform.restrict_access(log)?;
    print(describe(&options.file, &restored.manifest))?;
    if restored.is_current {
        print("Restored. The checksums, the database and the books are correct.")?;
    } else {
        print(
            "Restored. The checksums and the database are correct. It is of an earlier version: `boxoffice migrate` brings it up to \
             date, and `boxoffice check` then checks the books.",
        )?;
    }
    let images = restored.manifest.images();
    if images > 0 && target.media.is_none() {
        print(format!(
            "The {images} images of the backup were not restored, because --media is a bucket. If the bucket lacks them, restore the backup \
             into another folder, with `--data-dir` and without `--media`, and copy the folder `media` of it into the bucket."
        ))?;
    }
    let waiting = restored.manifest.rows_of("outbox");
    if waiting > 0 && !target.mail_key.exists() {
        print(format!(
            "{waiting} mails were not sent yet, and the backup is without their key. They are lost unless you copy the key to {} \
             before the next start.",
            target.mail_key.display()
        ))?;
    }
    Ok(())
}

/// Checks a database and the books in it.
pub async fn check(options: &StorageOptions) -> anyhow::Result<()> {
    let database = Db::open_existing(&options.database_url()?).await?;
    let (schema, newest) = (database.schema_version().await?, database.newest_schema());
    ensure!(
        schema == newest,
        "the tables are of another version of boxoffice (migration {schema}; this program has {newest}): use the program of that \
         version, or bring older tables up to date with `boxoffice migrate`"
    );
    progress("checking the database");
    let mut found = database.damage().await?;
    progress("checking the books");
    let mut reader = database.read().await?;
    found.extend(invariants::violations(&mut reader, Clock::default().now()).await?);
    drop(reader);
    database.close().await;
    for problem in &found {
        print(problem)?;
    }
    if !found.is_empty() {
        return Err(anyhow!("the data are inconsistent"));
    }
    print("The database and the books are correct.")
}

/// Returns the path of a SQLite database; `None` for PostgreSQL.
fn sqlite_path(url: &str) -> anyhow::Result<Option<PathBuf>> {
    Ok(match url.parse()? {
        DatabaseLocation::Sqlite(path) => Some(path),
        DatabaseLocation::Postgres(_) => None,
    })
}

fn describe(file: &Path, manifest: &Manifest) -> String {
    let bytes: u64 = manifest.files.iter().map(|file| file.bytes).sum();
    let images = match &manifest.bucket {
        Some(bucket) => format!("images: not included, they are in {bucket}"),
        None => format!("images: {}", manifest.images()),
    };
    let key = if manifest.contains(backup::MAIL_KEY) { "included" } else { "not included" };
    format!(
        "{}: boxoffice {}, {}, {:.1} MiB\n  accounts: {}, orders: {}, payments: {}, tickets: {}\n  {images}\n  key of the mails: {key}",
        file.display(),
        manifest.program,
        manifest.created,
        bytes as f64 / f64::from(1 << 20),
        manifest.rows_of("accounts"),
        manifest.rows_of("orders"),
        manifest.rows_of("payments"),
        manifest.rows_of("tickets"),
    )
}

/// Prints the progress to standard error.
pub fn progress(line: &str) {
    // A closed standard error must not stop the command.
    let _ignored = writeln!(stderr(), "{line}");
}
