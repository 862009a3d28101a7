//! The databases that servers are measured on: a file, and a PostgreSQL of our own that keeps what it has acknowledged.

use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};
use std::{fs, thread};

use anyhow::{Context, bail};
use clap::ValueEnum;
use tempfile::TempDir;

use crate::programs::{Programs, is_ready};

/// How long PostgreSQL may take to start.
const START_LIMIT: Duration = Duration::from_secs(60);

/// Which database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Kind {
    /// The embedded one
    Sqlite,
    /// A server of our own, as it is installed here, with its own settings but for its memory
    Postgres,
}

/// An empty database. It is gone when this is dropped.
pub struct Database {
    /// Its URL.
    pub url: String,
    /// A folder for whatever else its server keeps.
    pub folder: TempDir,
    cluster: Option<Cluster>,
}

struct Cluster {
    shell: Child,
    pgbench: PathBuf,
    socket: TempDir,
    /// Removed after the shell has ended, which empties it also when nobody is left to do this.
    _data: TempDir,
}

impl Database {
    /// A new one below `place`, which decides what a commit costs.
    ///
    /// # Errors
    /// When it can't be made.
    pub fn new(kind: Kind, place: &Path) -> anyhow::Result<Self> {
        fs::create_dir_all(place).with_context(|| format!("cannot make the folder {}", place.display()))?;
        let folder = tempfile::Builder::new().prefix("boxoffice-load-").tempdir_in(place)?;
        match kind {
            Kind::Sqlite => {
                Ok(Self { url: format!("sqlite:{}", folder.path().join("boxoffice.db").display()), folder, cluster: None })
            }
            Kind::Postgres => {
                let (cluster, url) = Cluster::start(place)?;
                Ok(Self { url, folder, cluster: Some(cluster) })
            }
        }
    }

    /// `pgbench`, with the arguments that lead it here; `None` for SQLite.
    pub fn pgbench(&self) -> Option<Command> {
        let cluster = self.cluster.as_ref()?;
        let mut command = Command::new(&cluster.pgbench);
        command.arg("-h").arg(cluster.socket.path()).args(["-U", "postgres", "postgres"]);
        Some(command)
    }
}

impl Cluster {
    fn start(place: &Path) -> anyhow::Result<(Self, String)> {
        let programs = Programs::find().map_err(anyhow::Error::msg)?;
        let data = programs.make_folder(place)?;
        // A socket's path is short.
        let socket = programs.make_folder(Path::new("/tmp"))?;
        let script = SCRIPT.replace("SOCKET", &socket.path().display().to_string());
        let shell = programs.shell(data.path(), &script)?;
        let begin = Instant::now();
        while !is_ready(data.path()) {
            if begin.elapsed() > START_LIMIT {
                bail!("PostgreSQL does not start:\n{}", fs::read_to_string(data.path().join("log")).unwrap_or_default());
            }
            thread::sleep(Duration::from_millis(20));
        }
        let url = format!("postgres://postgres@localhost/postgres?host={}", socket.path().display());
        // Where it was found there may be links to the server's programs alone.
        let pgbench = fs::canonicalize(programs.folder.join("postgres"))?.with_file_name("pgbench");
        Ok((Self { shell, pgbench, socket, _data: data }, url))
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        drop(self.shell.stdin.take());
        // It may have ended by itself.
        let _waited = self.shell.wait();
    }
}

/// Makes and runs a server until our process ends, however it does: its folder is removed then. Commits are durable, as by default.
const SCRIPT: &str = r#"
trap '' HUP INT TERM
exec 3<&0 </dev/null
"$BIN/initdb" -D "$FOLDER/data" -U postgres --auth=trust --encoding=UTF8 --locale=C.UTF-8 --no-instructions || exit 1
"$BIN/postgres" -D "$FOLDER/data" -k SOCKET -c listen_addresses= -c port=5432 -c max_connections=120 \
    -c shared_buffers=1GB -c max_wal_size=4GB &
server=$!
cat <&3
kill -INT $server
wait $server
rm -rf "$FOLDER"/* SOCKET/*
"#;
