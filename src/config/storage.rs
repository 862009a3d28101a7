//! Location of the server's data.

use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::Args;
use rustix::fs::Access;
use slog::Logger;

use super::secret::{given_twice, warn_of_readable_files};
use super::{CONFIG_FILE, InvalidSettings, SecretFile, Setting, folder, setting};
use crate::kernel::db::DatabaseLocation;
use crate::kernel::private_files;

/// The beginnings of the names in the data folder.
const DATA_FILES: [&str; 5] = ["boxoffice.db", "first-start", "mail", "media", "ticket.key"];

/// Location of the server's data: the options of every command that uses the database.
#[derive(Debug, Clone, Args)]
pub struct StorageOptions {
    /// Database: `sqlite:PATH` or `postgres://USER@HOST/NAME` [default: sqlite:DATA_DIR/boxoffice.db]
    #[arg(long, env = "DATABASE_URL", hide_env_values = true, value_name = "URL", value_parser = setting(database_url), help_heading = "Databases")]
    database: Option<Setting<String>>,
    /// File with the URL of the database, such as a credential of systemd, because the URL may contain a password
    #[arg(long, env = "DATABASE_URL_FILE", value_name = "FILE", value_parser = setting(database_url_file), help_heading = "Databases")]
    database_url_file: Option<Setting<SecretFile>>,
    /// Folder for everything that is stored in files
    #[arg(long, env = "BOXOFFICE_DATA_DIR", default_value = "data", value_name = "FOLDER", value_parser = setting(folder))]
    data_dir: Setting<PathBuf>,
    /// Configuration file with settings, as TOML: `rate-limit = 300` is `--rate-limit 300`. Options and variables take precedence.
    #[arg(id = CONFIG_FILE, long = "config", env = "BOXOFFICE_CONFIG", value_name = "FILE")]
    pub config_file: Option<PathBuf>,
}

impl StorageOptions {
    /// Returns the database URL.
    ///
    /// # Errors
    /// Returns an error if an option is invalid.
    pub fn database_url(&self) -> anyhow::Result<String> {
        InvalidSettings::reject(self.problems())?;
        match (&self.database, &self.database_url_file) {
            (Some(url), _) => url.get().cloned(),
            (None, Some(file)) => Ok(file.get()?.secret.0.clone()),
            (None, None) => Ok(format!("sqlite:{}", self.data_dir()?.join("boxoffice.db").display())),
        }
    }

    /// Returns the folder for everything that is stored in files.
    ///
    /// # Errors
    /// Returns an error if the option is invalid.
    pub fn data_dir(&self) -> anyhow::Result<&Path> {
        self.data_dir.get().map(PathBuf::as_path)
    }

    /// Returns what is wrong with each option.
    pub(super) fn problems(&self) -> Vec<Option<String>> {
        const URL: &str = "--database (DATABASE_URL)";
        const URL_FILE: &str = "--database-url-file (DATABASE_URL_FILE)";
        vec![
            self.database.as_ref().and_then(Setting::problem),
            self.database_url_file.as_ref().and_then(Setting::problem),
            given_twice(self.database.is_some(), URL, self.database_url_file.is_some(), URL_FILE),
            self.data_dir.problem(),
        ]
    }

    /// Logs a warning if all users of the machine may read the file with the database's URL.
    ///
    /// # Errors
    /// Returns an error if the option is invalid.
    pub fn warn_of_readable_secrets(&self, log: &Logger) -> anyhow::Result<()> {
        warn_of_readable_files(&self.database_url_file, log)
    }

    /// Checks that this user can use the files of a SQLite database.
    ///
    /// # Errors
    /// Returns an error that says what to do, or if an option is invalid.
    pub fn require_access(&self) -> anyhow::Result<()> {
        let DatabaseLocation::Sqlite(path) = self.database_url()?.parse()? else { return Ok(()) };
        let data = self.data_dir()?;
        let [database, wal, shm, _] = private_files::sqlite_files(&path);
        [database, wal, shm]
            .iter()
            .try_for_each(|file| private_files::require_access(file, Access::READ_OK | Access::WRITE_OK, Some(data)))
    }

    /// Withdraws the access of other users to the data folder and to the files of the database that exist already. Logs each
    /// change.
    ///
    /// # Errors
    /// Returns an error if an option is invalid.
    pub fn restrict_access(&self, log: &Logger) -> anyhow::Result<()> {
        let is_own = |name: &str| DATA_FILES.iter().any(|prefix| name.starts_with(prefix));
        private_files::restrict_folder(self.data_dir()?, is_own, log);
        private_files::restrict_database(&self.database_url()?, log);
        Ok(())
    }
}

/// Reads a file with a database URL, and checks it.
fn database_url_file(path: &str) -> anyhow::Result<SecretFile> {
    let file = SecretFile::read(path)?;
    database_url(&file.secret.0).with_context(|| format!("in {path}"))?;
    Ok(file)
}

/// Checks a database URL.
///
/// # Errors
/// Returns an error that says what is wrong, without the password.
pub fn database_url(url: &str) -> anyhow::Result<String> {
    url.parse::<DatabaseLocation>()?;
    Ok(url.to_owned())
}
