//! An installed PostgreSQL, and how to run it as a user of its own.

use std::env;
use std::fs;
use std::io;
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

/// The folder of an installed PostgreSQL's programs, and the user to run them as.
pub struct Programs {
    pub folder: PathBuf,
    /// User and group, where our own won't do: PostgreSQL refuses to run as root.
    user: Option<(u32, u32)>,
}

impl Programs {
    /// Says what is absent, if anything is.
    pub fn find() -> Result<Programs, &'static str> {
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
        Ok(Programs { folder, user })
    }

    /// A folder that only the server's user can enter, for its data, its log and its socket, whose path must be short.
    pub fn make_folder(&self, parent: &Path) -> io::Result<TempDir> {
        let folder = tempfile::Builder::new().prefix("boxoffice-pg-").tempdir_in(parent)?;
        if let Some((user, group)) = self.user {
            chown(folder.path(), Some(user), Some(group))?;
        }
        Ok(folder)
    }

    /// The shell that makes, starts, stops and removes the server, as its script says. What it says goes to the log.
    pub fn shell(&self, folder: &Path, script: &str) -> io::Result<Child> {
        let log = fs::File::create(folder.join("log"))?;
        let mut command = Command::new("sh");
        command.args(["-c", script]).env("BIN", &self.folder).env("FOLDER", folder).current_dir(folder);
        command.stdin(Stdio::piped()).stdout(log.try_clone()?).stderr(log);
        // A Ctrl-C goes to the whole group; the shell must outlive it to clean up.
        command.process_group(0);
        if let Some((user, group)) = self.user {
            command.uid(user).gid(group);
        }
        command.spawn()
    }
}

/// As `pg_ctl` does it: the last line of this file tells when connections are accepted.
pub fn is_ready(folder: &Path) -> bool {
    let state = fs::read_to_string(folder.join("data/postmaster.pid")).unwrap_or_default();
    state.lines().nth(7).is_some_and(|line| line.trim() == "ready")
}

/// Where Debian's packages put the programs, the newest version first.
fn debian_folders() -> Vec<PathBuf> {
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut versions: Vec<_> =
        versions.filter_map(|entry| Some((entry.file_name().to_str()?.parse::<u32>().ok()?, entry.path().join("bin")))).collect();
    versions.sort_unstable_by(|one, other| other.cmp(one));
    versions.into_iter().map(|(_, folder)| folder).collect()
}

/// What `id` says of a user, or of our own: the standard library has no way to ask.
fn user_number(what: &str, user: Option<&str>) -> Option<u32> {
    let output = Command::new("id").arg(what).args(user).stderr(Stdio::null()).output().ok()?;
    String::from_utf8(output.stdout).ok()?.trim().parse().ok()
}
