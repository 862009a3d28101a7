//! A PostgreSQL of a test's own, to be stopped, killed, frozen and started again. Unlike the one that all tests share it keeps
//! what it has acknowledged.
//!
//! A shell does it all, for the reason that `postgres` tells: when our process ends, however it ends, the shell's input does too,
//! and it stops the server and removes its folder.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::time::{Duration, Instant};
use std::{env, fs, thread};

use sqlx::{AssertSqlSafe, Connection, PgConnection};

use super::postgres::START_LIMIT;
use super::programs::{Programs, is_ready};

/// The server. It is stopped, and its folder removed, when this is dropped.
pub struct Cluster {
    /// Of its only database.
    pub url: String,
    folder: PathBuf,
    shell: Child,
    said: u32,
}

impl Cluster {
    /// A new server; `None` where no PostgreSQL is installed, as the tests' own server then tells.
    pub fn start() -> Option<Self> {
        let programs = Programs::find().ok()?;
        let folder = programs.make_folder(&env::temp_dir()).unwrap();
        let shell = programs.shell(folder.path(), SCRIPT).unwrap();
        let folder = folder.keep();
        let url = format!("postgres://postgres@localhost/postgres?host={}", folder.display());
        let mut cluster = Self { url, folder, shell, said: 0 };
        cluster.begin();
        Some(cluster)
    }

    /// The URL of a new database of this name, whose tables lie below `place` while what the server writes ahead stays with it:
    /// without room for that, the server would end.
    pub async fn database_in(&self, name: &str, place: &Path) -> String {
        // It must be the server's own, and Rust's temporary folders are gone with their values.
        let folder = Programs::find().unwrap().make_folder(place).unwrap().keep();
        let mut connection = PgConnection::connect(&self.url).await.unwrap();
        for sql in [
            format!("CREATE TABLESPACE {name} LOCATION '{}'", folder.display()),
            format!("CREATE DATABASE {name} TEMPLATE template0 TABLESPACE {name}"),
        ] {
            sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut connection).await.unwrap();
        }
        self.url.replace("/postgres?", &format!("/{name}?"))
    }

    /// Where it listens.
    pub fn socket(&self) -> PathBuf {
        self.folder.join(".s.PGSQL.5432")
    }

    /// Starts it, and waits until it can be connected to.
    pub fn begin(&mut self) {
        let server = self.say("start");
        self.until(|folder| {
            // The file of one that was killed is still there.
            let state = fs::read_to_string(folder.join("data/postmaster.pid")).unwrap_or_default();
            state.lines().next() == Some(server.trim()) && is_ready(folder)
        });
    }

    /// Stops it at once, as `pg_ctl stop -m immediate` does: connections are told, and what they were doing is cut.
    pub fn stop(&mut self) {
        self.say("stop");
    }

    /// Kills all its processes.
    pub fn kill(&mut self) {
        self.say("kill");
    }

    /// Has all its processes stand still: nobody is told, and nothing is answered.
    pub fn freeze(&mut self) {
        self.say("freeze");
    }

    /// Lets them go on.
    pub fn thaw(&mut self) {
        self.say("thaw");
    }

    /// Has the shell do something, and gives the server's process identifier.
    fn say(&mut self, word: &str) -> String {
        writeln!(self.shell.stdin.as_ref().unwrap(), "{word}").unwrap();
        self.said += 1;
        let answer = self.folder.join(format!("done-{}", self.said));
        self.until(|_| answer.exists());
        fs::read_to_string(answer).unwrap()
    }

    fn until(&self, is_so: impl Fn(&Path) -> bool) {
        let begin = Instant::now();
        while !is_so(&self.folder) {
            let log = || fs::read_to_string(self.folder.join("log")).unwrap_or_default();
            assert!(begin.elapsed() < START_LIMIT, "PostgreSQL does not do as it is told:\n{}", log());
            thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        drop(self.shell.stdin.take());
        // It may have ended by itself.
        let _ = self.shell.wait();
    }
}

/// Every backend is a child of the server and a process group of its own, so that all have to be named; when it is killed, it is
/// stopped before, so that it makes no other meanwhile, and all are waited for: one that is left keeps the next server from starting.
const SCRIPT: &str = r#"
trap '' HUP INT TERM
exec 3<&0 </dev/null
all() { echo $server $(cat /proc/$server/task/$server/children); }
"$BIN/initdb" -D "$FOLDER/data" -U postgres --auth=trust --encoding=UTF8 --locale=C.UTF-8 --no-sync --no-instructions || exit 1
said=0
while read -r word <&3; do
    case $word in
        start)
            "$BIN/postgres" -D "$FOLDER/data" -k "$FOLDER" -c listen_addresses= -c port=5432 -c max_connections=60 \
                -c shared_buffers=16MB -c fsync=off -c wal_level=minimal -c max_wal_senders=0 -c jit=off \
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
        freeze) kill -STOP $(all) ;;
        thaw) kill -CONT $(all) ;;
    esac
    said=$((said + 1))
    echo $server >"$FOLDER/saying"
    mv "$FOLDER/saying" "$FOLDER/done-$said"
done
kill -CONT $(all)
kill -QUIT $server
wait $server
rm -rf "$FOLDER"
"#;
