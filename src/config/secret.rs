//! Files with a secret.

use std::fs::File;
use std::io::Read;
use std::path::PathBuf;

use anyhow::{Context, ensure};
use slog::{Logger, warn};

use super::Setting;
use crate::kernel::private_files;
use crate::kernel::settings::Secret;

/// The largest file with a secret, in bytes.
const MAX_BYTES: u64 = 64 * 1024;

/// A file with a secret, such as a credential of systemd. It is read once, at the start.
#[derive(Debug, Clone)]
pub struct SecretFile {
    path: PathBuf,
    /// Its text, without the line break at its end.
    pub secret: Secret,
    is_readable_by_all: bool,
}

impl SecretFile {
    /// Reads a file.
    ///
    /// # Errors
    /// Returns an error if it can't be read, is empty or too large, or is not a text of one line.
    pub fn read(path: &str) -> anyhow::Result<Self> {
        ensure!(!path.is_empty(), "it is empty; give the file with the secret");
        let file = File::open(path).with_context(|| format!("cannot read {path}"))?;
        let metadata = file.metadata().with_context(|| format!("cannot read {path}"))?;
        ensure!(metadata.is_file(), "{path} is not a file");
        let mut text = String::new();
        let read = file.take(MAX_BYTES + 1).read_to_string(&mut text);
        read.with_context(|| format!("cannot read {path}"))?;
        ensure!(
            text.len() as u64 <= MAX_BYTES,
            "{path} is larger than {} KiB; give a file with only the secret",
            MAX_BYTES / 1024
        );
        let text = text.strip_suffix('\n').unwrap_or(&text);
        let text = text.strip_suffix('\r').unwrap_or(text);
        ensure!(!text.trim().is_empty(), "{path} is empty; give a file with the secret");
        ensure!(!text.contains('\n'), "{path} has several lines; give a file with only the secret");
        let is_readable_by_all = private_files::is_readable_by_all(&metadata);
        Ok(Self { path: path.into(), secret: text.into(), is_readable_by_all })
    }
}

/// Logs a warning for each file that all users of the machine may read.
///
/// # Errors
/// Returns an error if an option is invalid.
pub fn warn_of_readable_files<'f>(files: impl IntoIterator<Item = &'f Setting<SecretFile>>, log: &Logger) -> anyhow::Result<()> {
    for file in files {
        let SecretFile { path, is_readable_by_all, .. } = file.get()?;
        if *is_readable_by_all {
            warn!(log, "all users of this machine may read a file with a secret"; "path" => %path.display());
        }
    }
    Ok(())
}

/// Returns the problem of a secret that is given as a value and in a file. Both have the names of an option and its variable.
pub fn given_twice(is_given: bool, value: &str, is_in_file: bool, file: &str) -> Option<String> {
    (is_given && is_in_file).then(|| format!("{file}: {value} is set too; set only one of them"))
}
