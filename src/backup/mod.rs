//! Backups of a server on SQLite: one file with a consistent copy of the database and the images that it refers to.
//!
//! - [`create`] makes a backup, also while the server runs.
//! - [`restore`] checks a backup and puts its files in place.
//! - `archive` reads and writes the file, a tar archive whose last entry is the [`Manifest`].

mod archive;
mod create;
mod manifest;
mod restore;

pub use archive::is_backup_file;
pub use create::{BackupSource, create};
pub use manifest::Manifest;
pub use restore::{RestoreTarget, restore};

/// Receives a line about the progress.
pub type BackupProgress = fn(&str);

/// The name of the database in a backup.
const DATABASE: &str = "boxoffice.db";
/// The name of the key of the mails in a backup.
pub const MAIL_KEY: &str = "mail.key";
/// The folder of the images in a backup.
const MEDIA: &str = "media";
/// The folder below the images with the operator's own icons, which no row refers to.
const ICONS: &str = "icons";
