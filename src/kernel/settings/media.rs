//! Location of the images.

use std::fmt;
use std::path::{Path, PathBuf};

/// The end of the names of files that `restore` has not checked yet, and the name of the folder with the images that it has not.
pub const RESTORING: &str = ".restoring";

/// Location of the images.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MediaLocation {
    /// A folder of this machine.
    Folder(PathBuf),
    /// A bucket of S3.
    Bucket {
        /// The name of the bucket.
        name: String,
        /// The start of the names in it; may be empty.
        prefix: String,
    },
}

impl MediaLocation {
    /// Returns whether an entry of the folder has the name of one of the platform's. A folder of images may be the root of a disk, and
    /// have images of a restore that was killed.
    pub fn is_own_entry(name: &str) -> bool {
        ["artwork", "banner", "icons", "lost+found", "thumbnail", RESTORING].contains(&name)
    }

    /// Returns the folder; `None` if the images are in a bucket.
    pub fn folder(&self) -> Option<&Path> {
        match self {
            Self::Folder(folder) => Some(folder),
            Self::Bucket { .. } => None,
        }
    }
}

impl fmt::Display for MediaLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Folder(folder) => folder.display().fmt(f),
            Self::Bucket { name, prefix } if prefix.is_empty() => write!(f, "s3://{name}"),
            Self::Bucket { name, prefix } => write!(f, "s3://{name}/{prefix}"),
        }
    }
}
