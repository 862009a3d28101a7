//! A PostgreSQL server of one test, which can be stopped, killed, paused and restarted. Unlike the shared server of `postgres`, it
//! does not lose acknowledged writes.
//!
//! A shell runs the server, for the reason described in `postgres`: when our process ends for any reason, the shell's input is
//! closed, and the shell stops the server and removes its folder.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::time::{Duration, Instant};
use std::{env, fs, thread};

use sqlx::{AssertSqlSafe, Connection, PgConnection};

use super::pg_binaries::{PgBinaries, is_ready};
use super::postgres::START_TIMEOUT;

/// The server. Dropping it stops the server and removes its folder.
pub struct PgCluster {
    /// The URL of its default database.
    pub url: String,
    folder: PathBuf,
    shell: Child,
    commands: u32,
}

impl PgCluster {
    /// Creates and starts a server, if PostgreSQL is installed.
    pub fn create() -> Option<Self> {
        Self::prepare(INITDB, "-c wal_level=minimal -c max_wal_senders=0")
    }

    /// Creates and starts a server that can have standbys, if PostgreSQL is installed.
    pub fn create_primary() -> Option<Self> {
        Self::prepare(INITDB, REPLICATION)
    }

    /// Creates and starts a server with the settings of a file, if PostgreSQL is installed. It can make base backups.
    pub fn create_with_settings(file: &Path) -> Option<Self> {
        let create_data = format!(r#"{INITDB} && cat "{}" >>"$FOLDER/data/postgresql.conf""#, file.display());
        Self::prepare(&create_data, REPLICATION)
    }

    /// Restores a base backup with the settings of a file, and starts the server.
    pub fn restore(base: &Path, settings: &Path) -> Self {
        let copy = format!(r#"cp -a "{}" "$FOLDER/data""#, base.display());
        let recover =
            format!(r#"cat "{}" >>"$FOLDER/data/postgresql.conf" && touch "$FOLDER/data/recovery.signal""#, settings.display());
        Self::prepare(&format!("{copy} && {recover}"), REPLICATION).unwrap()
    }

    /// Creates and starts a standby of this server, which streams its log.
    pub fn create_standby(&self) -> Self {
        let source = self.folder.display();
        let copy = format!(
            r#"PATH="$BIN:$PATH" pg_basebackup -h {source} -U postgres -D "$FOLDER/data" -R -X stream -c fast --no-sync"#
        );
        Self::prepare(&copy, REPLICATION).unwrap()
    }

    /// Starts a server with these settings on the data that a command creates.
    fn prepare(create_data: &str, settings: &str) -> Option<Self> {
        let binaries = PgBinaries::find().ok()?;
        let folder = binaries.create_folder(&env::temp_dir()).unwrap();
        let script = SCRIPT.replace("CREATE_DATA", create_data).replace("SETTINGS", settings);
        let shell = binaries.start_shell(folder.path(), &script).unwrap();
        let folder = folder.keep();
        let url = format!("postgres://postgres@localhost/postgres?host={}", folder.display());
        let mut cluster = Self { url, folder, shell, commands: 0 };
        cluster.start();
        Some(cluster)
    }

    /// Creates a database whose tables are stored below `parent`, and returns its URL. The write-ahead log stays in the server's
    /// folder: without space for it, the server would stop.
    pub async fn create_database_in(&self, name: &str, parent: &Path) -> String {
        // The folder must belong to the server's user, and outlive this function.
        let folder = PgBinaries::find().unwrap().create_folder(parent).unwrap().keep();
        let mut connection = PgConnection::connect(&self.url).await.unwrap();
        for sql in [
            format!("CREATE TABLESPACE {name} LOCATION '{}'", folder.display()),
            format!("CREATE DATABASE {name} TEMPLATE template0 TABLESPACE {name}"),
        ] {
            sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut connection).await.unwrap();
        }
        self.url.replace("/postgres?", &format!("/{name}?"))
    }

    /// Returns the folder of its socket.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the path of its socket.
    pub fn socket(&self) -> PathBuf {
        self.folder.join(".s.PGSQL.5432")
    }

    /// Starts it after [`PgCluster::stop`] or [`PgCluster::kill`], and waits until it accepts connections.
    pub fn start(&mut self) {
        let server = self.run("start");
        self.wait_until(|folder| {
            // After a kill, the file of the previous process still exists.
            let state = fs::read_to_string(folder.join("data/postmaster.pid")).unwrap_or_default();
            state.lines().next() == Some(server.trim()) && is_ready(folder)
        });
    }

    /// Stops it like `pg_ctl stop -m immediate`: connections are closed, and transactions in progress are aborted.
    pub fn stop(&mut self) {
        self.run("stop");
    }

    /// Kills all its processes.
    pub fn kill(&mut self) {
        self.run("kill");
    }

    /// Pauses all its processes (SIGSTOP): connections stay open, and nothing responds.
    pub fn pause(&mut self) {
        self.run("pause");
    }

    /// Resumes its processes.
    pub fn resume(&mut self) {
        self.run("resume");
    }

    /// Has the shell execute a command, and returns the server's process id.
    fn run(&mut self, command: &str) -> String {
        writeln!(self.shell.stdin.as_ref().unwrap(), "{command}").unwrap();
        self.commands += 1;
        let done = self.folder.join(format!("done-{}", self.commands));
        self.wait_until(|_| done.exists());
        fs::read_to_string(done).unwrap()
    }

    fn wait_until(&self, condition: impl Fn(&Path) -> bool) {
        let start = Instant::now();
        while !condition(&self.folder) {
            let log = || fs::read_to_string(self.folder.join("log")).unwrap_or_default();
            assert!(start.elapsed() < START_TIMEOUT, "PostgreSQL does not respond:\n{}", log());
            thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for PgCluster {
    fn drop(&mut self) {
        drop(self.shell.stdin.take());
        // It may have exited already.
        let _ = self.shell.wait();
    }
}

const INITDB: &str =
    r#""$BIN/initdb" -D "$FOLDER/data" -U postgres --auth=trust --encoding=UTF8 --locale=C.UTF-8 --no-sync --no-instructions"#;
/// The primary keeps its log for a standby that is down.
const REPLICATION: &str = "-c wal_level=replica -c max_wal_senders=4 -c wal_keep_size=64MB";

/// Every backend is a child of the server in a process group of its own, so each must be signalled. Before a kill the server is
/// paused, so that it can't fork. All processes are waited for, because a remaining one keeps the next server from starting.
const SCRIPT: &str = r#"
trap '' HUP INT TERM
exec 3<&0 </dev/null
all() { echo $server $(cat /proc/$server/task/$server/children); }
CREATE_DATA || exit 1
commands=0
while read -r command <&3; do
    case $command in
        start)
            "$BIN/postgres" -D "$FOLDER/data" -k "$FOLDER" -c listen_addresses= -c port=5432 -c max_connections=60 \
                -c shared_buffers=16MB -c fsync=off SETTINGS -c jit=off \
                -c min_wal_size=32MB -c max_wal_size=64MB &
            server=$!
            ;;
        stop) kill -QUIT $server; wait $server ;;
        kill)
            kill -STOP $server
            killed=$(all)
            kill -KILL $killed
            wait $server
            for process in $killed; do
                tries=200
                while [ $tries -gt 0 ] && kill -0 $process; do sleep 0.01; tries=$((tries - 1)); done
            done
            ;;
        pause) kill -STOP $(all) ;;
        resume) kill -CONT $(all) ;;
    esac
    commands=$((commands + 1))
    echo $server >"$FOLDER/doing"
    mv "$FOLDER/doing" "$FOLDER/done-$commands"
done
kill -CONT $(all)
kill -QUIT $server
wait $server
rm -rf "$FOLDER"
"#;
