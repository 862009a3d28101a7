//! PostgreSQL for the tests: a private server per test process, started by the first test that needs it.
//!
//! ```ignore
//! let Some(database) = postgres::new_database().await else { return };
//! ```
//!
//! `TEST_POSTGRES_URL` selects another server; its user must be able to create databases. Without that and without an installed
//! PostgreSQL, the tests on PostgreSQL are skipped and one line on stderr says so; with `CI=true` they fail.
//!
//! The server's data is in the temporary folder. `TMPDIR=/dev/shm` keeps it in memory, which makes databases several times faster
//! if the disk is slow at creating files; each takes 10 MB until its test is over.
//!
//! Rust doesn't drop statics, and a killed process drops nothing, so our process can't be trusted to stop the server. A shell
//! does it: it starts the server and then reads from a pipe of our process. When our process ends for any reason, the kernel
//! closes the pipe; the shell then stops the server and removes its folder.

use std::env;
use std::fs;
use std::io::{self, Write};
use std::mem;
use std::process::Child;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use parking_lot::Mutex;
use sqlx::{AssertSqlSafe, Connection, PgConnection};
use tokio::sync::OnceCell;

use super::pg_binaries::{PgBinaries, is_ready};

/// The prefix of a test database's name. The Unix time, a random number of the process and a counter follow.
const PREFIX: &str = "boxoffice_test_";
/// No run takes longer, so older databases belong to a run that has ended.
const MAX_RUN: Duration = Duration::from_secs(3600);
/// The time that a server may take to start. A loaded machine takes a few seconds.
pub(super) const START_TIMEOUT: Duration = Duration::from_secs(60);

/// The names of databases to drop, because their tests are over.
static DROPPED: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// The database of one test. `drop` can't wait for the server, so the next database to be created drops it there.
pub struct Database {
    /// Its URL.
    pub url: String,
    name: String,
}

impl Drop for Database {
    fn drop(&mut self) {
        DROPPED.lock().push(mem::take(&mut self.name));
    }
}

/// Creates an empty database, if there is a PostgreSQL.
///
/// # Panics
///
/// If PostgreSQL is installed or selected but doesn't work, and if `CI=true` and there is none.
pub async fn new_database() -> Option<Database> {
    // template1 can't be copied while a connection to it is open; template0 always can.
    Some(create_database(server().await?, "template0").await)
}

/// Creates a copy of a template database, if there is a PostgreSQL. `fill` fills the template, given its URL; it is called once in
/// each process, and must close its connections.
pub async fn copy_template(fill: impl AsyncFnOnce(String)) -> Option<Database> {
    static TEMPLATE: OnceCell<Database> = OnceCell::const_new();

    let server = server().await?;
    let create_template = async || {
        let template = create_database(server, "template0").await;
        fill(template.url.clone()).await;
        template
    };
    let template = TEMPLATE.get_or_init(create_template).await;
    Some(create_database(server, &template.name).await)
}

async fn create_database(server: &Server, template: &str) -> Database {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    static RUN: OnceLock<String> = OnceLock::new();

    let run = RUN.get_or_init(|| format!("{PREFIX}{}_{:08x}", unix_seconds(), rand::random::<u32>()));
    let name = format!("{run}_{}", COUNT.fetch_add(1, Ordering::Relaxed));
    let dropped = mem::take(&mut *DROPPED.lock());
    let mut statements: Vec<_> = dropped.iter().map(|name| format!("DROP DATABASE {name} WITH (FORCE)")).collect();
    statements.push(format!("CREATE DATABASE {name} TEMPLATE {template} {}", server.strategy()));
    server.execute(&statements).await;
    Database { url: server.database(&name), name }
}

/// Returns the server of this process. Each test has its own runtime, so nothing here may belong to one.
async fn server() -> Option<&'static Server> {
    static SERVER: OnceLock<Result<Option<Server>, String>> = OnceLock::new();
    // Blocking, because it takes a second and must not be cancelled half-way, which an async cell would allow.
    let found = tokio::task::spawn_blocking(|| SERVER.get_or_init(Server::find)).await.expect("finding PostgreSQL");
    match found {
        Ok(server) => server.as_ref(),
        // Kept, so that each test fails with the reason and none waits again.
        Err(problem) => panic!("{problem}"),
    }
}

enum Server {
    /// Selected by `TEST_POSTGRES_URL`. The first use drops the databases that earlier runs have left on it.
    Selected { url: String, swept: OnceCell<()> },
    /// Our own. It stops when this child's standard input is closed.
    Private { url: String, strategy: &'static str, _shell: Child },
}

impl Server {
    fn find() -> Result<Option<Server>, String> {
        if let Some(url) = env::var("TEST_POSTGRES_URL").ok().filter(|url| !url.is_empty()) {
            return Ok(Some(Server::Selected { url, swept: OnceCell::new() }));
        }
        match PgBinaries::find() {
            Ok(binaries) => binaries.start().map(Some),
            Err(absent) if env::var("CI").is_ok_and(|value| value == "true") => {
                Err(format!("CI=true, but {absent}: install PostgreSQL, or select a server with TEST_POSTGRES_URL"))
            }
            Err(absent) => {
                // Not `eprintln!`, whose output is captured and shown for failed tests only.
                let _ = writeln!(io::stderr(), "tests on PostgreSQL are skipped: {absent}, and TEST_POSTGRES_URL is not set");
                Ok(None)
            }
        }
    }

    fn url(&self) -> &str {
        match self {
            Server::Selected { url, .. } | Server::Private { url, .. } => url,
        }
    }

    /// Returns the copy strategy for templates. Copying files causes two checkpoints, which are cheap without fsync: it was
    /// measured to be two to four times as fast as the default. On a selected server they could be expensive.
    fn strategy(&self) -> &'static str {
        match self {
            Server::Selected { .. } => "",
            Server::Private { strategy, .. } => strategy,
        }
    }

    /// Returns the server's URL with another database.
    fn database(&self, name: &str) -> String {
        let (address, parameters) = self.url().split_once('?').unwrap_or((self.url(), ""));
        let authority = address.find("://").map_or(0, |at| at + "://".len());
        let path = address[authority..].find('/').map_or(address.len(), |at| authority + at);
        let separator = if parameters.is_empty() { "" } else { "?" };
        format!("{}/{name}{separator}{parameters}", &address[..path])
    }

    async fn execute(&self, statements: &[String]) {
        let mut connection = self.connect().await;
        if let Server::Selected { swept, .. } = self {
            swept.get_or_init(|| drop_old_databases(&mut connection)).await;
        }
        for sql in statements {
            let result = sqlx::raw_sql(AssertSqlSafe(sql.clone())).execute(&mut connection).await;
            result.unwrap_or_else(|error| panic!("the tests' PostgreSQL rejects `{sql}`: {error}"));
        }
        // A connection that is only dropped makes the server log an error.
        let _ = connection.close().await;
    }

    /// Opens a connection. A pool would belong to the runtime of the first test.
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
        let created = name[PREFIX.len()..].split('_').next().and_then(|seconds| seconds.parse::<u64>().ok());
        if created.is_some_and(|created| created + MAX_RUN.as_secs() < unix_seconds()) {
            let sql = format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)");
            // This fails if another process does the same at this moment.
            let _ = sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut *connection).await;
        }
    }
}

fn unix_seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

impl PgBinaries {
    fn start(&self) -> Result<Server, String> {
        let folder =
            self.create_folder(&env::temp_dir()).map_err(|error| format!("cannot create a folder for PostgreSQL: {error}"))?;
        let shell =
            self.start_shell(folder.path(), SCRIPT).map_err(|error| format!("cannot start a shell for PostgreSQL: {error}"))?;
        // From here on the shell removes it, also if this function fails and closes the shell's input.
        let folder = folder.keep();
        let start = Instant::now();
        while !is_ready(&folder) {
            let has_stopped = folder.join("stopped").exists();
            if has_stopped || start.elapsed() > START_TIMEOUT {
                let problem = if has_stopped { "does not start" } else { "is not ready in time" };
                let log = fs::read_to_string(folder.join("log")).unwrap_or_default();
                return Err(format!("PostgreSQL in {} {problem}:\n{log}", self.folder.display()));
            }
            thread::sleep(Duration::from_millis(10));
        }
        let url = format!("postgres://postgres@localhost/postgres?host={}", folder.display());
        // The option exists since version 15.
        let version = fs::read_to_string(folder.join("data/PG_VERSION")).unwrap_or_default();
        let strategy = if version.trim().parse::<u32>().is_ok_and(|version| version >= 15) { "STRATEGY = file_copy" } else { "" };
        Ok(Server::Private { url, strategy, _shell: shell })
    }
}

/// Creates a server and runs it until our process ends. The file `stopped` means that it has ended.
///
/// It listens on a socket in its folder instead of a port, because a free port can be taken between finding and using it.
/// Durability is switched off and the write-ahead log is small, because no data has to survive a crash. Each statement of a connection
/// is planned once, because few are executed more than five times, after which PostgreSQL would decide so by itself. The signal is
/// repeated, because a server that is just starting ignores it.
const SCRIPT: &str = r#"
trap '' HUP INT TERM
exec 3<&0 </dev/null
if "$BIN/initdb" -D "$FOLDER/data" -U postgres --auth=trust --encoding=UTF8 --locale=C.UTF-8 --no-sync --no-instructions; then
    "$BIN/postgres" -D "$FOLDER/data" -k "$FOLDER" -c listen_addresses= -c port=5432 -c max_connections=300 \
        -c shared_buffers=32MB -c fsync=off -c synchronous_commit=off -c full_page_writes=off \
        -c wal_level=minimal -c max_wal_senders=0 -c max_wal_size=64MB -c autovacuum=off -c jit=off -c plan_cache_mode=force_generic_plan \
        -c log_line_prefix='%m [%p] %d ' &
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
