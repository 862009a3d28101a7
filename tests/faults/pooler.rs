//! PgBouncer in transaction mode between the server and PostgreSQL.

use std::env;
use std::fs;
use std::io::{self, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Child;

use boxoffice::kernel::db::{Db, inspect};
use tempfile::TempDir;
use tokio::time::sleep;

use super::{check, create_load, fault_duration, print_figure};
use crate::support::{PgBinaries, PgCluster, TestApp, wait_until};

const PGBOUNCER: &str = "/usr/sbin/pgbouncer";

/// A running PgBouncer. Dropping it kills it.
struct PgBouncer {
    process: Child,
    /// Contains its socket.
    folder: TempDir,
}

impl PgBouncer {
    /// Starts it with four connections to a server, fewer than the pools of boxoffice have. `None` if it is not installed.
    ///
    /// # Panics
    /// If `CI=true` and it is not installed.
    async fn start(cluster: &PgCluster) -> Option<Self> {
        if !Path::new(PGBOUNCER).exists() {
            assert_ne!(env::var("CI").as_deref(), Ok("true"), "{PGBOUNCER} is not installed");
            let _written = writeln!(io::stderr(), "the test with PgBouncer is skipped: {PGBOUNCER} is not installed");
            return None;
        }
        let binaries = PgBinaries::find().unwrap();
        let folder = binaries.create_folder(&env::temp_dir()).unwrap();
        let text = format!(
            "[databases]\n* = host={} user=postgres\n[pgbouncer]\nlisten_addr =\nunix_socket_dir = {}\n\
             auth_type = any\npool_mode = transaction\ndefault_pool_size = 4\nmax_client_conn = 200\n",
            cluster.folder().display(),
            folder.path().display(),
        );
        fs::write(folder.path().join("pgbouncer.ini"), text).unwrap();
        let process = binaries.start_shell(folder.path(), &format!("exec {PGBOUNCER} pgbouncer.ini")).unwrap();
        let socket = folder.path().join(".s.PGSQL.6432");
        wait_until(async || UnixStream::connect(&socket).is_ok()).await;
        Some(Self { process, folder })
    }
}

impl Drop for PgBouncer {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Without the parameter of the URL, a pooler passes a statement to a connection that has not prepared it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lost_statement_names_the_pooler() {
    let Some(cluster) = PgCluster::create() else { return };
    let db = Db::open(&cluster.url).await.unwrap();
    let mut reader = db.read().await.unwrap();
    let select = "select count(*) from regions";
    assert_eq!(reader.query(select).scalar::<i64>().await.unwrap(), 0);
    reader.query("deallocate all").execute().await.unwrap();

    let lost = reader.query(select).scalar::<i64>().await.unwrap_err().into_log_text();

    assert!(lost.contains("add statement-cache-capacity=0") && lost.contains("prepared statement"), "{lost}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pooler_in_transaction_mode_fails_no_request() {
    let Some(cluster) = PgCluster::create() else { return };
    let Some(pooler) = PgBouncer::start(&cluster).await else { return };
    let undeclared = format!("postgres://postgres@localhost:6432/postgres?host={}", pooler.folder.path().display());
    for rejected in [inspect(&undeclared).await.map(drop), Db::open(&undeclared).await.map(drop)] {
        let rejected = format!("{:#}", rejected.unwrap_err());
        assert!(rejected.contains("add statement-cache-capacity=0"), "{rejected}");
    }

    let url = format!("{undeclared}&statement-cache-capacity=0");
    let app = TestApp::start(&url, tempfile::tempdir().unwrap()).await;
    let load = create_load(&app).await;

    let work = load.start(&app.address);
    wait_until(async || !load.records().transfers.is_empty()).await;
    // A second start finds the tables, the lock and no prepared statements of the first.
    Db::open(&url).await.unwrap().close().await;
    let state = inspect(&url).await.unwrap();
    sleep(fault_duration(1)).await;
    work.stop().await;

    check(&app, &load).await;
    assert_eq!(state.pending, Some(0));
    assert!(load.records().unavailable.is_empty(), "{}", load.figures());
    print_figure(format!("PgBouncer in transaction mode: {}", load.figures()));
}
