//! A running server with its own database, gateway and mailbox.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use boxoffice::bootstrap::{self, InitialCredentials};
use boxoffice::kernel::auth::{PasswordCost, PasswordSettings};
use boxoffice::kernel::db::{Db, DbRow, Param, Scalar, Tx};
use boxoffice::kernel::settings::{
    FeeSchedule, LimitSettings, MailSettings, MailTransportSettings, MediaLocation, RetentionSettings, Settings,
};
use boxoffice::kernel::types::language::Language;
use boxoffice::server::RunningApp;
use boxoffice::state::App;
use boxoffice_http::Listener;
use boxoffice_http::log;
use boxoffice_http::traces::Tracer;
use slog::Logger;
use tempfile::TempDir;
use tokio::sync::{Mutex, OnceCell};

use super::failures::{FailureCheck, TestFailures};
use super::users::{client, plain_http};
use super::{Client, FakeGateway, Mailbox, Response, User, check_invariants, postgres, proxy, statements, wait_until};

/// Any free port on localhost.
pub const ANY_PORT: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// A day.
pub const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// The credentials of the first start, shared by all databases that are copied from one template.
#[derive(Clone)]
struct Credentials {
    username: String,
    account_number: String,
    administrator_key: String,
    public_key: String,
}

/// Another server on the database of a [`TestApp`].
pub struct SecondServer {
    /// Its state. Its clock is independent of the first server's.
    pub state: Arc<App>,
    /// The address of its proxy, which checks every response against the contract.
    pub address: SocketAddr,
    /// Its own address.
    pub server: SocketAddr,
    platform: RunningApp,
}

impl SecondServer {
    /// Returns the number of requests in flight.
    pub fn in_flight(&self) -> usize {
        self.platform.shutdown().in_flight()
    }

    /// Stops it.
    pub async fn stop(self) {
        self.platform.stop().await.unwrap();
    }
}

/// A server on a free port, with its first administrator and API keys.
pub struct TestApp {
    /// Fails the test on drop if a response was wrong. Dropped first, while the server still runs.
    failures: FailureCheck,
    /// The server's state, for what no request can do, such as moving the clock.
    pub state: Arc<App>,
    /// The URL of the proxy, which checks every response against the contract.
    pub address: String,
    /// The server's own address, for malformed requests and for responses that no operation declares.
    pub server: SocketAddr,
    /// The URL of the database, for a second server.
    pub database_url: String,
    /// The first administrator.
    pub staff: User,
    /// A client with the public key, which belongs to no account.
    pub public_client: Client,
    /// The public key.
    pub public_key: String,
    /// The payment gateway.
    pub gateway: FakeGateway,
    /// For plain HTTP requests.
    pub(super) http: reqwest::Client,
    /// The mail that the server sends.
    pub mailbox: Mailbox,
    /// The state of the second server, in tests on two servers.
    pub other_state: Option<Arc<App>>,
    platforms: Mutex<Vec<RunningApp>>,
    _folder: TempDir,
    _database: Option<postgres::Database>,
}

impl TestApp {
    /// Starts a server on a fresh SQLite database.
    pub async fn on_sqlite() -> Self {
        /// The bytes of a migrated database after the first start.
        static TEMPLATE: OnceCell<(Vec<u8>, Credentials)> = OnceCell::const_new();
        let (template, credentials) = TEMPLATE
            .get_or_init(async || {
                let folder = tempfile::tempdir().unwrap();
                let path = folder.path().join("boxoffice.db");
                let credentials = create_template(&format!("sqlite:{}", path.display()), folder.path()).await;
                (fs::read(path).unwrap(), credentials)
            })
            .await;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("boxoffice.db");
        fs::write(&path, template).unwrap();
        Self::start_servers(1, &format!("sqlite:{}", path.display()), folder, None, Some(credentials.clone())).await
    }

    /// Starts a server on a fresh PostgreSQL database, if there is a PostgreSQL.
    pub async fn on_postgres() -> Option<Self> {
        Self::on_shared_postgres(1).await
    }

    /// Starts two servers on one fresh PostgreSQL database. They receive the requests in turn, and share the gateway and the mailbox.
    pub async fn on_two_servers() -> Option<Self> {
        Self::on_shared_postgres(2).await
    }

    async fn on_shared_postgres(servers: usize) -> Option<Self> {
        static CREDENTIALS: OnceCell<Credentials> = OnceCell::const_new();
        let template = async |url: String| {
            let folder = tempfile::tempdir().unwrap();
            let credentials = create_template(&url, folder.path()).await;
            assert!(CREDENTIALS.set(credentials).is_ok(), "the template is created once");
        };
        let database = postgres::copy_template(template).await?;
        let (url, credentials) = (database.url.clone(), CREDENTIALS.get().cloned());
        Some(Self::start_servers(servers, &url, tempfile::tempdir().unwrap(), Some(database), credentials).await)
    }

    /// Starts a server on an empty database, with images and mail in `folder`.
    pub async fn start(database_url: &str, folder: TempDir) -> Self {
        Self::start_servers(1, database_url, folder, None, None).await
    }

    async fn start_servers(
        servers: usize,
        database_url: &str,
        folder: TempDir,
        database: Option<postgres::Database>,
        credentials: Option<Credentials>,
    ) -> Self {
        statements::start();
        let settings = test_settings(folder.path());
        let mailbox = Mailbox::new(&settings.mail, &folder.path().join("mail"));
        let gateway = FakeGateway::default();
        let state = open(database_url, settings.clone(), log::silent(), Tracer::default(), &gateway, &mailbox).await;
        let other_state = match servers {
            2 => Some(open(database_url, settings, log::silent(), Tracer::default(), &gateway, &mailbox).await),
            _ => None,
        };
        let credentials = match credentials {
            Some(credentials) => credentials,
            None => first_start(&state).await,
        };
        let start = |state: &Arc<App>| RunningApp::start(Arc::clone(state), ANY_PORT).unwrap();
        let platforms: Vec<RunningApp> = [&state].into_iter().chain(&other_state).map(start).collect();
        let failures = TestFailures::default();
        let servers = platforms.iter().map(RunningApp::address).collect();
        let address = format!("http://{}", proxy::start_balancing_proxy(servers, failures.clone()).await.unwrap());
        let Credentials { username, account_number, administrator_key, public_key } = credentials;
        Self {
            failures: FailureCheck(failures),
            staff: User {
                client: client(&address, &administrator_key),
                number: account_number,
                username,
                key: administrator_key,
            },
            public_client: client(&address, &public_key),
            public_key,
            gateway,
            mailbox,
            database_url: database_url.to_owned(),
            state,
            address,
            server: platforms[0].address(),
            http: plain_http().build().unwrap(),
            other_state,
            platforms: Mutex::new(platforms),
            _folder: folder,
            _database: database,
        }
    }

    /// Accepts 500 responses from now on. Without this they fail the test.
    pub fn allow_server_errors(&self) {
        self.failures.0.allow_server_errors();
    }

    /// Starts another server on the same database, with its own settings. It shares the gateway and the mailbox.
    pub async fn start_second_server(&self, settings: Settings) -> SecondServer {
        self.start_second_server_on(settings, log::silent(), ANY_PORT).await
    }

    /// Like [`TestApp::start_second_server`], with a log and a listener of its own. The proxy in front of it speaks plain HTTP.
    pub async fn start_second_server_on(&self, settings: Settings, log: Logger, listener: impl Into<Listener>) -> SecondServer {
        let state = open(&self.database_url, settings, log, Tracer::default(), &self.gateway, &self.mailbox).await;
        self.serve(state, listener).await
    }

    /// Like [`TestApp::start_second_server`], with this tracer.
    pub async fn start_traced_server(&self, settings: Settings, tracer: Tracer) -> SecondServer {
        let state = open(&self.database_url, settings, log::silent(), tracer, &self.gateway, &self.mailbox).await;
        self.serve(state, ANY_PORT).await
    }

    async fn serve(&self, state: Arc<App>, listener: impl Into<Listener>) -> SecondServer {
        let platform = RunningApp::start(Arc::clone(&state), listener).unwrap();
        let server = platform.address();
        let address = proxy::start_proxy(server, self.failures.0.clone()).await.unwrap();
        SecondServer { state, address, server, platform }
    }

    /// Executes a statement on the database, for states that no operation creates or that would take many requests.
    pub async fn execute_sql(&self, sql: &'static str) {
        let mut tx = self.state.db.begin().await.unwrap();
        tx.query(sql).execute().await.unwrap();
        tx.commit().await.unwrap();
    }

    /// Executes a statement with this value, which changes one row.
    pub async fn execute(&self, sql: &'static str, value: impl for<'q> Param<'q>) {
        let mut tx = self.state.db.begin().await.unwrap();
        assert_eq!(tx.query(sql).bind(value).rows_affected().await.unwrap(), 1);
        tx.commit().await.unwrap();
    }

    /// Begins a transaction that others wait for. SQLite has one writer at a time; on PostgreSQL, this statement takes the locks.
    pub async fn begin_with_lock(&self, sql: &'static str) -> Tx {
        let mut tx = self.state.db.begin().await.unwrap();
        if tx.is_postgres() {
            tx.query(sql).execute().await.unwrap();
        }
        tx
    }

    /// Reads a value from the database that no operation returns.
    pub async fn scalar<T: Scalar>(&self, sql: &'static str) -> T
    where
        (T,): DbRow,
    {
        self.state.db.read().await.unwrap().query(sql).scalar().await.unwrap()
    }

    /// Returns the names of the tables of the database.
    pub async fn tables(&self) -> Vec<String> {
        let mut reader = self.state.db.read().await.unwrap();
        let sql = if reader.is_postgres() {
            "select tablename::text from pg_tables where schemaname = 'public' and tablename not like '\\_sqlx%'"
        } else {
            "select name from pragma_table_list where schema = 'main' and type = 'table' and name not like 'sqlite%' and name not like '_sqlx%'"
        };
        let rows: Vec<(String,)> = reader.query(sql).all().await.unwrap();
        rows.into_iter().map(|(name,)| name).collect()
    }

    /// Waits until this many transactions wait for a lock of PostgreSQL, or for SQLite's only connection that writes.
    pub async fn wait_for_lock_waits(&self, number: usize) {
        wait_until(async || self.lock_waits().await >= number).await;
    }

    async fn lock_waits(&self) -> usize {
        if let Db::Sqlite { .. } = self.state.db {
            return self.state.db.pools().into_iter().find(|pool| pool.name == "writer").unwrap().waiting;
        }
        let waiting = "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'";
        self.scalar::<i64>(waiting).await.try_into().unwrap()
    }

    /// Commits a transaction when this many others wait for its locks. Jobs may wait, too, so stop them before it begins.
    pub async fn commit_when_awaited(&self, lock: Tx, number: usize) {
        self.wait_for_lock_waits(number).await;
        lock.commit().await.unwrap();
    }

    /// Reads rows from the database that no operation returns.
    pub async fn rows<R: DbRow>(&self, sql: &'static str) -> Vec<R> {
        self.state.db.read().await.unwrap().query(sql).all().await.unwrap()
    }

    /// Requests `path` 50 times and checks each response. Returns the number of rows of a table that PostgreSQL reads for them. It
    /// plans for the values of each request, as by default and unlike in other tests.
    pub async fn rows_read_by_50_requests(&self, table: &str, key: &str, path: &str, check: impl Fn(&Response)) -> i64 {
        self.execute_sql(
            "do $$ begin execute format('alter database %I set plan_cache_mode = force_custom_plan', current_database()); end $$",
        )
        .await;
        let rows_read = async || {
            let rows =
                "select coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0) from pg_stat_user_tables where relname = $1";
            self.state.db.read().await.unwrap().query(rows).bind(table.to_owned()).scalar::<i64>().await.unwrap()
        };

        // They would open connections that stay.
        self.stop_jobs().await;
        let before = rows_read().await;
        let start: String = self.scalar("select cast(clock_timestamp() as text)").await;
        let server = self.start_second_server(self.state.settings.clone()).await;
        for _ in 0..50 {
            check(&self.request("GET", path).at(server.address).key(key).send().await);
        }
        server.stop().await;
        // A connection publishes its statistics at its end, which PostgreSQL reaches a little later than the server.
        let newer = "select count(*) from pg_stat_activity
            where datname = current_database() and backend_start >= cast($1 as timestamptz)";
        let open = async || self.state.db.read().await.unwrap().query(newer).bind(start.clone()).scalar::<i64>().await.unwrap();
        wait_until(async || open().await == 0).await;
        rows_read().await - before
    }

    /// Checks the invariants of the stored data.
    pub async fn assert_invariants(&self) {
        assert_eq!(check_invariants(&mut self.state.db.read().await.unwrap(), self.state.clock.now()).await, [""; 0]);
    }

    /// Stops the jobs of all servers, so that only requests change the database. Like on a server that stops, they can't be started
    /// again, and [`deliver_due`](boxoffice::features::sales::mail::deliver_due) claims mails only once in each call.
    pub async fn stop_jobs(&self) {
        for platform in self.platforms.lock().await.iter_mut() {
            platform.stop_jobs().await;
        }
    }

    /// Returns the state of every server.
    pub fn states(&self) -> impl Iterator<Item = &Arc<App>> {
        [&self.state].into_iter().chain(&self.other_state)
    }

    /// Moves the clock of every server forward.
    pub fn advance_clock(&self, duration: Duration) {
        self.states().for_each(|state| state.clock.advance(duration));
    }
}

/// Returns the settings of a test server with its files in `folder`.
pub fn test_settings(folder: &Path) -> Settings {
    Settings {
        read_database: None,
        media_secret_key: None,
        image_accesses: 256,
        public_url: "https://boxoffice.example".to_owned(),
        site_url: None,
        media: MediaLocation::Folder(folder.join("media")),
        ticket_key_file: folder.join("ticket.key"),
        creates_files: true,
        currency: "GHS".parse().unwrap(),
        reservation: Duration::from_secs(15 * 60),
        fee_steps: "50:0.99,100:1.99,150:2.99,200:3.99,4.99".parse::<FeeSchedule>().unwrap(),
        minimum_client_version: "3.0.0".parse().unwrap(),
        // The cheapest hashes: tests create many accounts.
        passwords: PasswordSettings { cost: PasswordCost::MINIMUM, ..PasswordSettings::default() },
        limits: LimitSettings::default(),
        mail: MailSettings {
            from: "Box office <tickets@boxoffice.example>".parse().unwrap(),
            key_file: folder.join("mail.key"),
            templates: None,
            language: Language::En,
            time_zone: chrono_tz::UTC,
            transport: MailTransportSettings::Folder(folder.join("mail")),
        },
        retention: RetentionSettings {
            audit: None,
            audit_archive: None,
            sessions: DAY * 30,
            codes: DAY,
            mail: DAY * 30,
            unpaid_orders: Some(DAY * 365),
        },
        slow_statement: None,
    }
}

/// Opens the server's state, with the gateway and the mailbox of a test.
async fn open(
    database_url: &str,
    settings: Settings,
    log: Logger,
    tracer: Tracer,
    gateway: &FakeGateway,
    mailbox: &Mailbox,
) -> Arc<App> {
    let mut state = App::open(database_url, settings, log, tracer).await.unwrap();
    let parts = Arc::get_mut(&mut state).unwrap();
    parts.gateway = Box::new(gateway.clone());
    Arc::get_mut(&mut parts.kernel).unwrap().mail_transport = Box::new(mailbox.clone());
    bootstrap::store_ticket_key(&state).await.unwrap();
    state
}

/// Migrates an empty database and runs the first start on it.
async fn create_template(database_url: &str, folder: &Path) -> Credentials {
    let state = App::open(database_url, test_settings(folder), log::silent(), Tracer::default()).await.unwrap();
    let credentials = first_start(&state).await;
    state.db.close().await;
    credentials
}

/// Creates the first administrator and the keys in an empty database.
async fn first_start(state: &Arc<App>) -> Credentials {
    let InitialCredentials { username, administrator_key, public_key, .. } =
        bootstrap::first_start(state).await.unwrap().unwrap();
    let mut reader = state.db.read().await.unwrap();
    let account_number = reader.query("select number from accounts").scalar().await.unwrap();
    Credentials { username, account_number, administrator_key, public_key }
}
