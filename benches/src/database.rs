//! Databases for the measured servers: an SQLite file, or a temporary PostgreSQL server with durable commits.

use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};
use std::{fs, thread};

use anyhow::{Context, bail};
use boxoffice::kernel::db::Db;
use clap::ValueEnum;
use tempfile::TempDir;

use crate::fixtures::execute_all;
use crate::pg_binaries::{PgBinaries, is_ready};

/// Timeout of PostgreSQL's start.
const START_TIMEOUT: Duration = Duration::from_secs(60);

/// Kind of database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum DatabaseKind {
    /// The embedded database
    Sqlite,
    /// A temporary server of the installed version, with default settings except for its memory
    Postgres,
}

/// A temporary database, removed on drop.
pub struct Database {
    /// Its URL.
    pub url: String,
    /// Folder for the boxoffice server's other files.
    pub folder: TempDir,
    cluster: Option<Cluster>,
}

struct Cluster {
    shell: Child,
    pgbench: PathBuf,
    socket: TempDir,
    /// Removed after the shell, which empties it even if this process is killed.
    _data: TempDir,
}

impl Database {
    /// Creates a database in the folder `place`. Its disk determines the cost of a commit.
    ///
    /// # Errors
    /// Returns an error if a folder can't be created or PostgreSQL doesn't start.
    pub fn new(kind: DatabaseKind, place: &Path) -> anyhow::Result<Self> {
        fs::create_dir_all(place).with_context(|| format!("cannot create the folder {}", place.display()))?;
        let folder = tempfile::Builder::new().prefix("boxoffice-load-").tempdir_in(place)?;
        match kind {
            DatabaseKind::Sqlite => {
                Ok(Self { url: format!("sqlite:{}", folder.path().join("boxoffice.db").display()), folder, cluster: None })
            }
            DatabaseKind::Postgres => {
                let (cluster, url) = Cluster::start(place)?;
                Ok(Self { url, folder, cluster: Some(cluster) })
            }
        }
    }

    /// Deletes the mails that wait, so that no server sends those of an earlier scenario.
    ///
    /// # Errors
    /// Returns an error if the database fails.
    pub async fn delete_unsent_mail(&self) -> anyhow::Result<()> {
        let db = Db::open(&self.url).await?;
        execute_all(&db, &["delete from outbox"]).await?;
        db.close().await;
        Ok(())
    }

    /// Returns a `pgbench` command with the connection arguments; `None` for SQLite.
    pub fn pgbench(&self) -> Option<Command> {
        let cluster = self.cluster.as_ref()?;
        let mut command = Command::new(&cluster.pgbench);
        command.arg("-h").arg(cluster.socket.path()).args(["-U", "postgres", "postgres"]);
        Some(command)
    }
}

impl Cluster {
    fn start(place: &Path) -> anyhow::Result<(Self, String)> {
        let programs = PgBinaries::find().map_err(anyhow::Error::msg)?;
        let data = programs.create_folder(place)?;
        // The length of a socket's path is limited.
        let socket = programs.create_folder(Path::new("/tmp"))?;
        let script = SCRIPT.replace("SOCKET", &socket.path().display().to_string());
        let shell = programs.start_shell(data.path(), &script)?;
        let started = Instant::now();
        while !is_ready(data.path()) {
            if started.elapsed() > START_TIMEOUT {
                bail!("PostgreSQL does not start:\n{}", fs::read_to_string(data.path().join("log")).unwrap_or_default());
            }
            thread::sleep(Duration::from_millis(20));
        }
        let url = format!("postgres://postgres@localhost/postgres?host={}", socket.path().display());
        // The folder may contain only links to the server's programs, and not `pgbench`.
        let pgbench = fs::canonicalize(programs.folder.join("postgres"))?.with_file_name("pgbench");
        Ok((Self { shell, pgbench, socket, _data: data }, url))
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        drop(self.shell.stdin.take());
        // The shell may have ended already.
        let _waited = self.shell.wait();
    }
}

/// Creates and runs a server until this process ends, even if it is killed, and then empties its folder. Commits are durable, as
/// by default.
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
