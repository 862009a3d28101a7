//! Finds an installed PostgreSQL, and runs it as a user that it accepts.

use std::env;
use std::fs;
use std::io;
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

/// The binaries of an installed PostgreSQL, and the user to run them as.
pub struct PgBinaries {
    pub folder: PathBuf,
    /// User and group, if they differ from our own: PostgreSQL refuses to run as root.
    user: Option<(u32, u32)>,
}

impl PgBinaries {
    /// Finds the binaries on the `PATH` or in Debian's folders.
    ///
    /// # Errors
    /// A text that says what is missing.
    pub fn find() -> Result<PgBinaries, &'static str> {
        let on_path = env::var_os("PATH").map(|path| env::split_paths(&path).collect()).unwrap_or_default();
        let folder = [on_path, debian_folders()]
            .into_iter()
            .flatten()
            .find(|folder| folder.join("postgres").is_file() && folder.join("initdb").is_file())
            .ok_or("no PostgreSQL is installed")?;
        let is_root = user_number("-u", None) == Some(0);
        let user = match (user_number("-u", Some("postgres")), user_number("-g", Some("postgres"))) {
            _ if !is_root => None,
            (Some(user), Some(group)) => Some((user, group)),
            _ => return Err("PostgreSQL refuses to run as root and there is no user `postgres` to run it as"),
        };
        Ok(PgBinaries { folder, user })
    }

    /// Creates a folder for the server's data, log and socket, which only its user can enter. A socket's path must be short.
    pub fn create_folder(&self, parent: &Path) -> io::Result<TempDir> {
        let folder = tempfile::Builder::new().prefix("boxoffice-pg-").tempdir_in(parent)?;
        if let Some((user, group)) = self.user {
            chown(folder.path(), Some(user), Some(group))?;
        }
        Ok(folder)
    }

    /// Starts a shell with a script that runs the server. Its output goes to the log.
    pub fn start_shell(&self, folder: &Path, script: &str) -> io::Result<Child> {
        let log = fs::File::create(folder.join("log"))?;
        let mut command = Command::new("sh");
        command.args(["-c", script]).env("BIN", &self.folder).env("FOLDER", folder).current_dir(folder);
        command.stdin(Stdio::piped()).stdout(log.try_clone()?).stderr(log);
        // Ctrl-C signals the whole process group; the shell must survive it to clean up.
        command.process_group(0);
        if let Some((user, group)) = self.user {
            command.uid(user).gid(group);
        }
        command.spawn()
    }
}

/// Returns whether the server accepts connections. Like `pg_ctl`, it reads the last line of `postmaster.pid`.
pub fn is_ready(folder: &Path) -> bool {
    let state = fs::read_to_string(folder.join("data/postmaster.pid")).unwrap_or_default();
    state.lines().nth(7).is_some_and(|line| line.trim() == "ready")
}

/// Returns the folders of Debian's packages, newest version first.
fn debian_folders() -> Vec<PathBuf> {
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut versions: Vec<_> =
        versions.filter_map(|entry| Some((entry.file_name().to_str()?.parse::<u32>().ok()?, entry.path().join("bin")))).collect();
    versions.sort_unstable_by(|one, other| other.cmp(one));
    versions.into_iter().map(|(_, folder)| folder).collect()
}

/// Returns the output of `id` for a user, or for our own: the standard library can't look users up.
fn user_number(option: &str, user: Option<&str>) -> Option<u32> {
    let output = Command::new("id").arg(option).args(user).stderr(Stdio::null()).output().ok()?;
    String::from_utf8(output.stdout).ok()?.trim().parse().ok()
}
