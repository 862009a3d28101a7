//! The content of a backup.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The version of the file's format. A program reads backups of its own version only.
pub const FORMAT: u32 = 1;

/// The list of everything that a backup contains, as JSON in its last entry. A file without it is incomplete.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// The version of the file's format.
    pub format: u32,
    /// The version of boxoffice that made the backup.
    pub program: String,
    /// The number of the last migration of the database.
    pub schema: i64,
    /// The time of the copy of the database.
    pub created: String,
    /// The number of rows of each table.
    pub rows: BTreeMap<String, i64>,
    /// The S3 bucket with the images, which the backup does not contain.
    pub bucket: Option<String>,
    /// The images to which the database refers but that were in the media folder no more.
    pub missing_images: Vec<String>,
    /// The files.
    pub files: Vec<ArchivedFile>,
}

/// A file in a backup.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArchivedFile {
    /// Its name in the archive.
    pub name: String,
    /// Its size.
    pub bytes: u64,
    /// The SHA-256 of its content.
    pub sha256: String,
}

impl Manifest {
    /// Returns the number of rows of a table.
    pub fn rows_of(&self, table: &str) -> i64 {
        self.rows.get(table).copied().unwrap_or(0)
    }

    /// Returns whether there is a file with this name.
    pub fn contains(&self, name: &str) -> bool {
        self.files.iter().any(|file| file.name == name)
    }

    /// Returns the number of images.
    pub fn images(&self) -> usize {
        self.files.iter().filter(|file| file.name.starts_with(super::MEDIA)).count()
    }
}
