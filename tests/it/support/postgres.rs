//! PostgreSQL for the tests: a private server, started at the first call and gone when the test process is.
//!
//! ```ignore
//! let Some(database) = postgres::new_database().await else { return };
//! ```
//!
//! `TEST_POSTGRES_URL` names a server to use instead, as a URL whose user may create databases. Where there is neither that nor
//! an installed PostgreSQL, tests do without and one line on stderr says so; with `CI=true` that is a failure.
//!
//! The server lies in the usual temporary folder. `TMPDIR=/dev/shm` puts it in memory, which makes databases several times
//! faster where the disk is slow at making files; each takes 8 MB until the test that has it is over.
//!
//! Rust drops no statics and a killed process drops nothing, so our process can't be relied on to stop the server. A shell
//! does it: it starts the server, then reads from a pipe that only our process can write to. However our process ends, the
//! kernel closes the pipe; the shell then stops the server and removes its folder.

use std::env;
use std::fs;
use std::io::{self, Write};
use std::mem;
use std::process::Child;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, OnceLock};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use sqlx::{AssertSqlSafe, Connection, PgConnection};
use tokio::sync::OnceCell;

use super::programs::{Programs, is_ready};

/// Tests' databases start with this, then come the second of their making, a random number for the process, and a count.
const PREFIX: &str = "boxoffice_test_";
/// No run takes longer, so older databases are left from one that has ended.
const OLDEST_RUN: Duration = Duration::from_secs(3600);
/// A loaded machine takes a few seconds to make and start a server.
pub(super) const START_LIMIT: Duration = Duration::from_secs(60);

/// Names of the databases whose tests are over.
static LEFT: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// A database of one test. Nobody can wait for a server in a drop, so the next that is made takes it away.
pub struct Database {
    /// Where it is.
    pub url: String,
    name: String,
}

impl Drop for Database {
    fn drop(&mut self) {
        LEFT.lock().unwrap().push(mem::take(&mut self.name));
    }
}

/// A fresh empty database, or nothing where there is no PostgreSQL.
///
/// # Panics
///
/// Where PostgreSQL is installed or named but doesn't work, and where `CI=true` and there is none.
pub async fn new_database() -> Option<Database> {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    static RUN: OnceLock<String> = OnceLock::new();

    let server = server().await?;
    let run = RUN.get_or_init(|| format!("{PREFIX}{}_{:08x}", unix_seconds(), rand::random::<u32>()));
    let name = format!("{run}_{}", COUNT.fetch_add(1, Ordering::Relaxed));
    let left = mem::take(&mut *LEFT.lock().unwrap());
    let mut statements: Vec<_> = left.iter().map(|name| format!("DROP DATABASE {name} WITH (FORCE)")).collect();
    // template1 can't be copied while anybody is connected to it; template0 always can.
    statements.push(format!("CREATE DATABASE {name} TEMPLATE template0 {}", server.strategy()));
    server.execute(&statements).await;
    Some(Database { url: server.database(&name), name })
}

/// The one server of this process. Tests run on runtimes of their own, so nothing in here belongs to any of them.
async fn server() -> Option<&'static Server> {
    static SERVER: OnceLock<Result<Option<Server>, String>> = OnceLock::new();
    // Off the runtime, because it takes a second; and not to be cancelled half-way, as it would be in an async cell.
    let found = tokio::task::spawn_blocking(|| SERVER.get_or_init(Server::find)).await.expect("looking for PostgreSQL");
    match found {
        Ok(server) => server.as_ref(),
        // Kept and repeated, so that each test tells why it failed and none waits again.
        Err(problem) => panic!("{problem}"),
    }
}

enum Server {
    /// Named by `TEST_POSTGRES_URL`. Nobody throws its databases away, so the first use removes what earlier runs left.
    Named { url: String, swept: OnceCell<()> },
    /// Our own, which ends when this child's standard input does.
    Private { url: String, strategy: &'static str, _shell: Child },
}

impl Server {
    fn find() -> Result<Option<Server>, String> {
        if let Some(url) = env::var("TEST_POSTGRES_URL").ok().filter(|url| !url.is_empty()) {
            return Ok(Some(Server::Named { url, swept: OnceCell::new() }));
        }
        match Programs::find() {
            Ok(programs) => programs.start().map(Some),
            Err(absent) if env::var("CI").is_ok_and(|value| value == "true") => {
                Err(format!("CI=true, but {absent}: install PostgreSQL, or name a server in TEST_POSTGRES_URL"))
            }
            Err(absent) => {
                // Past the capturing of print macros, which would show it for failed tests only.
                let _ = writeln!(io::stderr(), "tests on PostgreSQL are skipped: {absent}, and TEST_POSTGRES_URL is not set");
                Ok(None)
            }
        }
    }

    fn url(&self) -> &str {
        match self {
            Server::Named { url, .. } | Server::Private { url, .. } => url,
        }
    }

    /// How to copy the template. Copying files means two checkpoints, which cost little without fsync: it was measured two to
    /// four times as fast as the default, also when many are made at once. On somebody's server it could cost much.
    fn strategy(&self) -> &'static str {
        match self {
            Server::Named { .. } => "",
            Server::Private { strategy, .. } => strategy,
        }
    }

    /// The server's URL with another database in its path.
    fn database(&self, name: &str) -> String {
        let (address, parameters) = self.url().split_once('?').unwrap_or((self.url(), ""));
        let authority = address.find("://").map_or(0, |at| at + "://".len());
        let path = address[authority..].find('/').map_or(address.len(), |at| authority + at);
        let separator = if parameters.is_empty() { "" } else { "?" };
        format!("{}/{name}{separator}{parameters}", &address[..path])
    }

    async fn execute(&self, statements: &[String]) {
        let mut connection = self.connect().await;
        if let Server::Named { swept, .. } = self {
            swept.get_or_init(|| drop_old_databases(&mut connection)).await;
        }
        for sql in statements {
            let result = sqlx::raw_sql(AssertSqlSafe(sql.clone())).execute(&mut connection).await;
            result.unwrap_or_else(|error| panic!("the tests' PostgreSQL refuses `{sql}`: {error}"));
        }
        // Otherwise the server logs an error about a lost client.
        let _ = connection.close().await;
    }

    /// A connection for each use: a pool would belong to the runtime of the test that came first.
    async fn connect(&self) -> PgConnection {
        PgConnection::connect(self.url()).await.unwrap_or_else(|error| panic!("cannot connect to the tests' PostgreSQL: {error}"))
    }
}

async fn drop_old_databases(connection: &mut PgConnection) {
    let names: Vec<String> = sqlx::query_scalar("SELECT datname::text FROM pg_database WHERE starts_with(datname, $1)")
        .bind(PREFIX)
        .fetch_all(&mut *connection)
        .await
        .expect("listing the databases");
    for name in names {
        let made = name[PREFIX.len()..].split('_').next().and_then(|seconds| seconds.parse::<u64>().ok());
        if made.is_some_and(|made| made + OLDEST_RUN.as_secs() < unix_seconds()) {
            let sql = format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)");
            // Another process may be doing the same at this moment, and then this fails.
            let _ = sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut *connection).await;
        }
    }
}

fn unix_seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

impl Programs {
    fn start(&self) -> Result<Server, String> {
        let folder =
            self.make_folder(&env::temp_dir()).map_err(|error| format!("cannot make a folder for PostgreSQL: {error}"))?;
        let shell = self.shell(folder.path(), SCRIPT).map_err(|error| format!("cannot start a shell for PostgreSQL: {error}"))?;
        // From here on the shell removes it, also where this function fails and so closes the shell's input.
        let folder = folder.keep();
        let begin = Instant::now();
        while !is_ready(&folder) {
            let has_stopped = folder.join("stopped").exists();
            if has_stopped || begin.elapsed() > START_LIMIT {
                let how = if has_stopped { "does not start" } else { "is not ready in time" };
                let log = fs::read_to_string(folder.join("log")).unwrap_or_default();
                return Err(format!("PostgreSQL in {} {how}:\n{log}", self.folder.display()));
            }
            thread::sleep(Duration::from_millis(10));
        }
        let url = format!("postgres://postgres@localhost/postgres?host={}", folder.display());
        // Version 15 brought the other way, and with it the option.
        let version = fs::read_to_string(folder.join("data/PG_VERSION")).unwrap_or_default();
        let strategy = if version.trim().parse::<u32>().is_ok_and(|version| version >= 15) { "STRATEGY = file_copy" } else { "" };
        Ok(Server::Private { url, strategy, _shell: shell })
    }
}

/// Makes a server and runs it until our process ends; `stopped` says that it doesn't run, or no longer.
///
/// It has a socket in its folder instead of a port, because a free port can be taken between finding and using it. What makes
/// writes survive a crash is switched off, and its log is kept short: nothing here is to survive anything. The signal is repeated
/// because a server that has just been started doesn't hear it.
const SCRIPT: &str = r#"
trap '' HUP INT TERM
exec 3<&0 </dev/null
if "$BIN/initdb" -D "$FOLDER/data" -U postgres --auth=trust --encoding=UTF8 --locale=C.UTF-8 --no-sync --no-instructions; then
    "$BIN/postgres" -D "$FOLDER/data" -k "$FOLDER" -c listen_addresses= -c port=5432 -c max_connections=300 \
        -c shared_buffers=32MB -c fsync=off -c synchronous_commit=off -c full_page_writes=off \
        -c wal_level=minimal -c max_wal_senders=0 -c max_wal_size=64MB -c autovacuum=off -c jit=off &
    server=$!
    {
        cat <&3
        while [ ! -e "$FOLDER/stopped" ] && kill -QUIT $server; do sleep 1; done
    } &
    wait $server
fi
touch "$FOLDER/stopped"
cat <&3
rm -rf "$FOLDER"
"#;
