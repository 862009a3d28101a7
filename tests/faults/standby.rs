//! Reads from a standby that is behind, gone or wrong.

use std::fs::File;
use std::io::Read;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use boxoffice::kernel::db::check_standby;
use boxoffice::kernel::settings::{Secret, Settings};
use serde_json::{Value, json};
use slog::{Drain, Logger, o};
use sqlx::{AssertSqlSafe, Connection, PgConnection};
use tokio::time::sleep;

use super::{fault_duration, print_figure};
use crate::support::server_process::{Run, ServerProcess, boxoffice};
use crate::support::{ANY_PORT, Event, PgCluster, Response, SecondServer, TestApp, User, entries_of, section, wait_until};

/// A server without a standby, and another one on the same database that reads from a standby.
struct TwoServers {
    app: TestApp,
    reader: SecondServer,
    /// The log of the second server.
    log: File,
    standby: PgCluster,
    primary: PgCluster,
}

impl TwoServers {
    /// Starts them, with these parameters in the standby's URL.
    async fn start(parameters: &str) -> Option<Self> {
        let primary = PgCluster::create_primary()?;
        let standby = primary.create_standby();
        let app = TestApp::start(&primary.url, tempfile::tempdir().unwrap()).await;
        let url = Secret(format!("{}{parameters}", standby.url));
        let settings = Settings { read_database: Some(url), ..app.state.settings.clone() };
        let log = tempfile::NamedTempFile::new().unwrap();
        let logger = Logger::root(Mutex::new(slog_json::Json::default(log.reopen().unwrap())).fuse(), o!());
        let reader = app.start_second_server_on(settings, logger, ANY_PORT).await;
        let servers = Self { app, reader, log: log.into_file(), standby, primary };
        servers.wait_for_standby().await;
        Some(servers)
    }

    /// Waits until reads use the standby.
    async fn wait_for_standby(&self) {
        let before = count(&self.reader, "standby");
        wait_until(async || {
            self.get(&self.app.staff, "/events").await;
            count(&self.reader, "standby") > before
        })
        .await;
    }

    /// Sends a GET request to the server that reads from the standby.
    async fn get(&self, user: &User, path: &str) -> Response {
        let response = self.app.request("GET", path).at(self.reader.address).key(&user.key).send().await;
        assert_eq!(response.status, 200, "{path}: {}", response.body);
        response
    }

    async fn create_event(&self) -> (User, Event) {
        self.app.sign_up_host("kofi", &[section("Lawn", 0.0, 1000)]).await
    }
}

/// Returns the number of reads with this result.
fn count(reader: &SecondServer, result: &str) -> u64 {
    let name = format!("boxoffice_standby_reads_total{{result=\"{result}\"}} ");
    let text = reader.state.metrics.encode().unwrap();
    text.lines().find_map(|line| line.strip_prefix(&name)).map_or(0, |count| count.parse().unwrap())
}

/// Executes the SQL, and returns the number of its rows.
async fn execute(cluster: &PgCluster, sql: &str) -> u64 {
    let mut connection = PgConnection::connect(&cluster.url).await.unwrap();
    sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut connection).await.unwrap().rows_affected()
}

/// Each write is sent to one server, and the reads after it to the other one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reads_see_every_write_before_them() {
    for parameters in ["", "&statement-cache-capacity=0"] {
        let Some(servers) = TwoServers::start(parameters).await else { return };
        let app = &servers.app;
        let (kofi, event) = servers.create_event().await;
        let seen = async |orders: usize| {
            kofi.order(&event.sections[0], 1).await.unwrap();
            let statistics = servers.get(&kofi, &format!("{}/statistics", event.uri)).await;
            assert_eq!(statistics.body["orders"], orders);
            let title = format!("Jazz number {orders}");
            let changed = app.request("PUT", &event.uri).key(&kofi.key).json(&json!({ "title": title }));
            assert_eq!(changed.send().await.status, 200);
            for list in [format!("{}/events", event.host.uri), "/published-events?search=jazz".to_owned()] {
                let body = servers.get(&kofi, &list).await.body;
                let titles: Vec<&Value> = entries_of(&body).iter().map(|event| &event["title"]).collect();
                assert_eq!(titles, [&title], "{list}");
            }
        };

        let before = count(&servers.reader, "standby");
        for orders in 1..=50 {
            seen(orders).await;
        }
        let by_standby = count(&servers.reader, "standby") - before;
        execute(&servers.standby, "select pg_wal_replay_pause()").await;
        let before = count(&servers.reader, "primary");
        for orders in 51..=60 {
            seen(orders).await;
        }
        let by_primary = count(&servers.reader, "primary") - before;
        execute(&servers.standby, "select pg_wal_replay_resume()").await;
        servers.wait_for_standby().await;
        for orders in 61..=70 {
            seen(orders).await;
        }

        print_figure(format!(
            "for 150 requests {by_standby} reads used the standby; while it was paused, for 30 {by_primary} the primary"
        ));
        assert!(by_standby > 0 && by_primary > 0);
        let scans = "select 1 from pg_stat_user_tables where relname = 'event_sales' and idx_scan + seq_scan > 0";
        // A server of PostgreSQL counts with a delay.
        wait_until(async || {
            servers.get(&kofi, &format!("{}/statistics", event.uri)).await;
            execute(&servers.standby, scans).await > 0
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn read_that_fails_on_the_standby_is_repeated() {
    let Some(servers) = TwoServers::start("").await else { return };
    let (kofi, event) = servers.create_event().await;
    kofi.order(&event.sections[0], 3).await.unwrap();
    let mut primary = PgConnection::connect(&servers.primary.url).await.unwrap();
    for (end, is_used_afterwards) in [("select pg_cancel_backend(pid)", true), ("select pg_terminate_backend(pid)", false)] {
        servers.wait_for_standby().await;
        let before = count(&servers.reader, "repeated");
        let path = format!("{}/statistics", event.uri);
        // The standby takes the lock too, as soon as it has replayed it.
        sqlx::raw_sql("begin; lock table event_sales; select pg_switch_wal()").execute(&mut primary).await.unwrap();
        let end_read = async {
            let end = format!("{end} from pg_stat_activity where wait_event_type = 'Lock' and query like '%event_sales%'");
            wait_until(async || execute(&servers.standby, &end).await > 0).await;
            wait_until(async || count(&servers.reader, "repeated") > before).await;
            sqlx::raw_sql("commit").execute(&mut primary).await.unwrap();
        };

        let (statistics, ()) = tokio::join!(servers.get(&kofi, &path), end_read);

        assert_eq!(statistics.body["tickets"], 3);
        let before = count(&servers.reader, "standby");
        servers.get(&kofi, &path).await;
        assert_eq!(count(&servers.reader, "standby") > before, is_used_afterwards, "{end}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lost_standby_fails_no_request() {
    let Some(mut servers) = TwoServers::start("").await else { return };
    let (kofi, event) = servers.create_event().await;
    kofi.order(&event.sections[0], 3).await.unwrap();
    let paths = [
        format!("{}/statistics", event.uri),
        format!("{}/exports/tickets", event.uri),
        format!("{}/transactions", event.host.uri),
        "/published-events".to_owned(),
    ];
    let (app, reader) = (&servers.app, servers.reader.address);
    let (is_over, requests) = (AtomicBool::new(false), AtomicUsize::new(0));
    let read = async |path: &String| {
        while !is_over.load(Ordering::Relaxed) {
            let response = app.request("GET", path).at(reader).key(&kofi.key).send().await;
            assert_eq!(response.status, 200, "{path}: {}", response.body);
            requests.fetch_add(1, Ordering::Relaxed);
        }
    };
    let faults = async {
        for fault in 0..3 {
            sleep(fault_duration(1)).await;
            match fault {
                0 => servers.standby.kill(),
                1 => servers.standby.stop(),
                _ => servers.standby.pause(),
            }
            let lost = count(&servers.reader, "primary");
            wait_until(async || count(&servers.reader, "primary") > lost).await;
            sleep(fault_duration(1)).await;
            if fault == 2 {
                servers.standby.resume()
            } else {
                servers.standby.start()
            }
            let back = count(&servers.reader, "standby");
            wait_until(async || count(&servers.reader, "standby") > back).await;
        }
        is_over.store(true, Ordering::Relaxed);
    };

    tokio::join!(faults, read(&paths[0]), read(&paths[1]), read(&paths[2]), read(&paths[3]));

    let mut log = String::new();
    servers.log.read_to_string(&mut log).unwrap();
    assert!(log.matches("reads use the primary instead of the standby").count() >= 3, "{log}");
    assert!(log.matches("reads use the standby").count() >= 4, "{log}");
    let (requests, repeated) = (requests.load(Ordering::Relaxed), count(&servers.reader, "repeated"));
    print_figure(format!("{requests} reads, of which {repeated} were repeated on the primary"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn promoted_standby_is_not_used() {
    let Some(servers) = TwoServers::start("").await else { return };
    let (kofi, event) = servers.create_event().await;
    execute(&servers.standby, "select pg_promote()").await;

    let before = count(&servers.reader, "standby");
    for number in 0..20 {
        let draft = servers.app.create_draft(&event.host).await;
        let list = servers.get(&kofi, &format!("{}/events?records=100", event.host.uri)).await.body;
        assert_eq!(entries_of(&list).len(), number + 2);
        assert_eq!(list["entries"][number + 1]["self"], draft.uri);
    }

    assert_eq!(count(&servers.reader, "standby"), before);
    let failed = check_standby(&servers.primary.url, &servers.standby.url).await.unwrap_err();
    assert!(format!("{failed:#}").contains("the server is not a standby"), "{failed:#}");
}

/// The former primary and its standby may have changes that the new primary lacks, at the same positions as other changes of it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn standby_is_used_after_it_follows_a_new_primary() {
    let Some(primary) = PgCluster::create_primary() else { return };
    let (next, standby) = (primary.create_standby(), primary.create_standby());
    execute(&next, "select pg_promote()").await;

    let failed = check_standby(&next.url, &standby.url).await.unwrap_err();
    let follow = format!("alter system set primary_conninfo = 'host={} user=postgres'", next.folder().display());
    execute(&standby, &follow).await;
    execute(&standby, "select pg_reload_conf()").await;
    execute(&next, "checkpoint").await;

    assert!(format!("{failed:#}").contains("no restart point on the primary's timeline 00000002"), "{failed:#}");
    wait_until(async || {
        execute(&standby, "checkpoint").await;
        check_standby(&next.url, &standby.url).await.is_ok()
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_a_standby_of_the_database_is_used() {
    let Some(primary) = PgCluster::create_primary() else { return };
    let (standby, other) = (primary.create_standby(), PgCluster::create_primary().unwrap());
    let other_standby = other.create_standby();
    let template = standby.url.replace("/postgres?", "/template1?");
    for (url, problem) in [
        (&primary.url, "the server is not a standby"),
        (&other_standby.url, "the server is a standby of another system"),
        (&template, "it is another database of the same system"),
        (&"postgres://boxoffice@127.0.0.1:1/postgres".to_owned(), "no server accepts connections there"),
    ] {
        let failed = check_standby(&primary.url, url).await.unwrap_err();
        assert!(format!("{failed:#}").contains(problem), "{failed:#}");
    }
    execute(&primary, "alter database postgres set synchronous_commit = off").await;
    let failed = check_standby(&primary.url, &standby.url).await.unwrap_err();
    assert!(format!("{failed:#}").contains("synchronous_commit is off"), "{failed:#}");
    execute(&primary, "alter database postgres reset synchronous_commit").await;

    let folder = tempfile::tempdir().unwrap();
    let with_standby = |arguments: &[&str], url: &str| {
        let mut command = boxoffice(folder.path(), arguments);
        command.env("DATABASE_URL", &primary.url).env("BOXOFFICE_READ_DATABASE", url);
        command
    };
    // A wrong standby doesn't stop the server.
    let server = ServerProcess::start(with_standby(&["serve"], &other_standby.url));
    server.stop();
    let check = |url: &str| {
        let checked = with_standby(&["config", "check"], url).run();
        (checked.code, checked.stdout)
    };
    let (usable, wrong) = (check(&standby.url), check(&other_standby.url));
    assert!(usable.0 == Some(0) && usable.1.contains("is a standby of the database"), "{usable:?}");
    assert!(wrong.0 == Some(1) && wrong.1.contains("a standby of another system"), "{wrong:?}");
}
