//! The server is killed (SIGKILL) at random moments under load, and restarted on the same data: all acknowledged changes are
//! there, and none is incomplete.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use boxoffice::kernel::db::Db;
use parking_lot::Mutex;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use tempfile::TempDir;

use super::load::{Load, connect_without_retries};
use super::retrying_client::RetryingClient;
use super::{print_figure, seed, server, short_or_full};
use crate::support::server_process::{ServerProcess, boxoffice, first_credentials, last_word};
use crate::support::{FakeGateway, PgCluster, postgres, wait_until};

/// The number of users.
const BUYERS: usize = 8;

/// The data that all server processes share.
pub struct Site {
    folder: TempDir,
    database_url: String,
    /// An administrator's key.
    pub administrators_key: String,
    /// The public key.
    pub public_key: String,
}

impl Site {
    /// Starts the program for the first time, for its keys.
    pub fn open(database_url: Option<&str>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let embedded = || format!("sqlite:{}", folder.path().join("boxoffice.db").display());
        let database_url = database_url.map_or_else(embedded, str::to_owned);
        ServerProcess::start(program(&folder, &database_url)).stop();
        let printed = first_credentials(folder.path());
        let [administrators_key, public_key] = ["administrator's key", "public key"].map(|key| last_word(&printed, key));
        Self { folder, database_url, administrators_key, public_key }
    }

    /// Returns the folder of the data.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Returns the command of a server.
    pub fn program(&self) -> Command {
        program(&self.folder, &self.database_url)
    }

    /// Returns the command of a server with a remote gateway and a clock that is ahead.
    pub fn command_with_gateway(&self, gateway: std::net::SocketAddr, ahead: Duration) -> Command {
        let mut command = server::command(self.folder.path(), gateway, ahead);
        command.env("DATABASE_URL", &self.database_url);
        command
    }

    /// Opens the database.
    pub async fn db(&self) -> Db {
        Db::open(&self.database_url).await.unwrap()
    }
}

fn program(folder: &TempDir, database_url: &str) -> Command {
    let mut command = boxoffice(folder.path(), &["serve"]);
    command.env("DATABASE_URL", database_url);
    command
}

/// Requests mailed codes, and counts the successful requests by address.
#[derive(Default)]
struct MailRequests {
    promised: Mutex<BTreeMap<String, usize>>,
    stopped: AtomicBool,
}

impl MailRequests {
    /// Requests codes from this server until it is stopped.
    async fn send(self: Arc<Self>, address: String, public_key: String) {
        let public_client = connect_without_retries(&address, &public_key);
        for buyer in (0..BUYERS).cycle() {
            if self.stopped.load(Ordering::Relaxed) {
                return;
            }
            let email = format!("buyer-{buyer}@example.com");
            if public_client.verification_create().body_map(|body| body.email(email.clone())).send().await.is_ok() {
                *self.promised.lock().entry(email).or_default() += 1;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Asserts that every acknowledged mail is in the outbox or delivered. Returns the number of acknowledged mails.
    async fn check(&self, site: &Site, db: &Db) -> usize {
        // The outbox first: a mail may be delivered meanwhile.
        let waiting: Vec<(i64, String)> = db.read().await.unwrap().query("select id, recipient from outbox").all().await.unwrap();
        let mut mails: BTreeMap<String, BTreeSet<i64>> = BTreeMap::new();
        for (id, recipient) in waiting {
            mails.entry(recipient).or_default().insert(id);
        }
        let folder = fs::read_dir(site.folder.path().join("mail")).into_iter().flatten();
        let delivered: Vec<PathBuf> = folder.map(|file| file.unwrap().path()).collect();
        for file in delivered.iter().filter(|file| file.extension().is_some_and(|end| end == "eml")) {
            let mail = fs::read_to_string(file).unwrap();
            let recipient = mail.lines().find_map(|line| line.strip_prefix("To: ")).unwrap().to_owned();
            let id = file.file_name().unwrap().to_str().unwrap().split('.').next().unwrap().parse().unwrap();
            mails.entry(recipient).or_default().insert(id);
        }
        let promised = self.promised.lock();
        for (email, promised) in promised.iter() {
            let there = mails.get(email).map_or(0, BTreeSet::len);
            assert!(there >= *promised, "{email} was promised {promised} mails, and there are {there}");
        }
        promised.values().sum()
    }
}

/// Kills and restarts a server repeatedly, together with its database if it has its own, and checks the data each time.
async fn kill_repeatedly(what: &str, site: &Site, mut database: Option<PgCluster>, start: impl Fn() -> Command) -> ServerProcess {
    let (kills, seed): (usize, u64) = (short_or_full(3, 50), seed());
    let mut random = StdRng::seed_from_u64(seed);
    let mut server = ServerProcess::start(start());
    let load = Load::create(&server.address, &site.administrators_key, &site.public_key, BUYERS, 5000).await;
    let retrying = RetryingClient::sign_up(&server.address, &site.administrators_key, &site.public_key, &load.event).await;
    let mail_requests = Arc::new(MailRequests::default());
    let (mut repeated, mut promised, mut slowest) = (0, 0, Duration::ZERO);

    for _ in 0..kills {
        let work = load.start(&server.address);
        let asks = tokio::spawn(Arc::clone(&mail_requests).send(server.address.clone(), site.public_key.clone()));
        let orders = tokio::spawn(Arc::clone(&retrying).order(server.address.clone()));
        // On a slow machine, too, something must be in progress.
        let before = load.records().done_at.len();
        wait_until(async || load.records().done_at.len() > before + BUYERS).await;
        tokio::time::sleep(Duration::from_millis(random.random_range(0..1500))).await;
        if let Some(database) = &mut database {
            database.kill();
            tokio::time::sleep(Duration::from_millis(random.random_range(0..300))).await;
            database.start();
            tokio::time::sleep(Duration::from_millis(random.random_range(0..600))).await;
        }
        server.signal("KILL");
        mail_requests.stopped.store(true, Ordering::Relaxed);
        retrying.stop(true);
        work.stop().await;
        asks.await.unwrap();
        orders.await.unwrap();
        mail_requests.stopped.store(false, Ordering::Relaxed);
        retrying.stop(false);
        server.wait();

        let begun = Instant::now();
        server = ServerProcess::start(start());
        slowest = slowest.max(begun.elapsed());
        let db = site.db().await;
        load.check(&mut db.read().await.unwrap()).await;
        promised = mail_requests.check(site, &db).await;
        retrying.repeat(&server.address).await;
        repeated = retrying.check(&db).await;
        db.close().await;
    }

    print_figure(format!(
        "{what}: killed and started {kills} times, at most {:.1} s until it answered; {}; {promised} mails promised; 0 lost; \
         {repeated} orders whose answers were lost were sent again, each made once \
         (BOXOFFICE_SEED={seed})",
        slowest.as_secs_f64(),
        load.figures(),
    ));
    server
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn acknowledged_changes_survive_kill_on_sqlite() {
    let site = Site::open(None);
    kill_repeatedly("SQLite", &site, None, || site.program()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn acknowledged_changes_survive_kill_on_postgres() {
    let Some(database) = postgres::new_database().await else { return };
    let site = Site::open(Some(&database.url));
    kill_repeatedly("PostgreSQL", &site, None, || site.program()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn acknowledged_changes_survive_kill_of_server_and_database() {
    let Some(database) = PgCluster::create() else { return };
    let site = Site::open(Some(&database.url));
    kill_repeatedly("PostgreSQL, killed before the server", &site, Some(database), || site.program()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn payments_are_consistent_after_kill_on_sqlite() {
    check_payments_after_kills("SQLite", Site::open(None)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn payments_are_consistent_after_kill_on_postgres() {
    let Some(database) = postgres::new_database().await else { return };
    check_payments_after_kills("PostgreSQL", Site::open(Some(&database.url))).await;
}

/// Asserts that the gateway's balances equal the payments in the database, once all payments are settled.
async fn check_payments_after_kills(what: &str, site: Site) {
    let gateway = FakeGateway::default();
    let address = gateway.listen().await;

    let server = kill_repeatedly(&format!("{what} with a remote gateway"), &site, None, || {
        site.command_with_gateway(address, Duration::ZERO)
    })
    .await;

    drop(server);
    // The clock is ahead, so that the payments of killed servers are abandoned.
    let _server = ServerProcess::start(site.command_with_gateway(address, Duration::from_secs(3 * 60)));
    let db = site.db().await;
    let unfinished = "select (select count(*) from payments where status in ('Pending', 'Abandoned'))
        + (select count(*) from refunds where status = 'Owed')";
    wait_until(async || db.read().await.unwrap().query(unfinished).scalar::<i64>().await.unwrap() == 0).await;
    let kept: Vec<(i64, i64)> = db
        .read()
        .await
        .unwrap()
        .query(
            "select * from (select p.id, p.amount
                - coalesce((select cast(sum(r.amount) as bigint) from refunds r where r.payment_id = p.id), 0) as kept
             from payments p where p.status in ('Confirmed', 'Refunded')) as payments where kept <> 0",
        )
        .all()
        .await
        .unwrap();
    assert_eq!(gateway.balances(), BTreeMap::from_iter(kept));
    print_figure(format!(
        "{what}: {} charges, {} kept, each by its payment; 0 lost, 0 twice",
        gateway.charge_count(),
        gateway.balances().len()
    ));
}
