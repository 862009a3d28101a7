//! The command `copy`.

use std::collections::HashMap;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use boxoffice::kernel::db::{Checksum, CopiedValue};
use boxoffice_client::{Client, types};
use sqlx::{AssertSqlSafe, Connection, PgConnection, SqliteConnection};
use tempfile::TempDir;
use tokio::time::sleep;

use crate::support::postgres;
use crate::support::server_process::{CommandOutput, Run, ServerProcess, boxoffice, last_word};
use crate::support::wait_until;

/// A folder with sample data, which users have created through the API.
struct Sample {
    folder: TempDir,
    /// The output of `demo`.
    printed: String,
}

impl Sample {
    fn create() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let filled = boxoffice(folder.path(), &["demo"]).run();
        assert!(filled.succeeded(), "{}", filled.stderr);
        Self { printed: filled.stdout, folder }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn url(&self, name: &str) -> String {
        format!("sqlite:{}", self.path().join(name).display())
    }

    fn copy(&self, from: &str, to: &str) -> CommandOutput {
        boxoffice(self.path(), &["copy", "--from", from, "--to", to]).run()
    }

    fn serve(&self, url: &str) -> ServerProcess {
        ServerProcess::start(boxoffice(self.path(), &["serve", "--database", url]))
    }

    /// Logs in as a customer, orders a ticket and pays it. Returns the status of the order.
    async fn buy(&self, server: &ServerProcess) -> String {
        let anyone = Client::connect(&server.address, &last_word(&self.printed, "public key")).unwrap();
        let session =
            anyone.session_create().body_map(|body| body.identification("ama").password("a demo password")).send().await.unwrap();
        let ama = Client::connect(&server.address, &session.key).unwrap();
        let events = ama.published_event_list().send().await.unwrap();
        let on_sale = events.entries.iter().flat_map(|event| event.sections.iter().map(move |section| (event, section)));
        let (event, section) = on_sale.into_iter().find(|(_, section)| section.name == "Lawn").unwrap();
        let section = format!("{}{}", event.self_, section.self_);
        let items = HashMap::from([(section, 1)]);
        let order = ama.order_create().body_map(|body| body.items(items)).send().await.unwrap();
        let payment = ama.order_payment_create().order(order.number.as_str());
        payment.body_map(|body| body.method(types::PaymentMethod::Card).token("tok_approve".to_owned())).send().await.unwrap();
        ama.order_get().order(order.number.as_str()).send().await.unwrap().status.to_string()
    }
}

fn assert_succeeded(output: CommandOutput) -> String {
    assert!(output.succeeded(), "{}", output.stderr);
    output.stdout
}

async fn execute_sqlite(url: &str, sql: &'static str) {
    let mut connection = SqliteConnection::connect(url).await.unwrap();
    sqlx::raw_sql(sql).execute(&mut connection).await.unwrap();
    connection.close().await.unwrap();
}

/// Returns all rows and all definitions of a SQLite database.
async fn dump(url: &str) -> Vec<String> {
    let mut connection = SqliteConnection::connect(url).await.unwrap();
    let definitions = "select coalesce(sql, name) from sqlite_master where name not like 'sqlite%' order by type, name";
    let mut dump: Vec<String> = sqlx::query_scalar(definitions).fetch_all(&mut connection).await.unwrap();
    let columns = "select m.name, group_concat('quote(\"' || c.name || '\")', ' || '','' || ') from pragma_table_list m
        join pragma_table_info(m.name) c where m.schema = 'main' and m.type = 'table' and m.name not like 'sqlite%'
        and m.name <> '_sqlx_migrations' group by m.name";
    // Fails if the full-text index differs from its table.
    let check = "insert into event_search (event_search, rank) values ('integrity-check', 1)";
    sqlx::query(check).execute(&mut connection).await.unwrap();
    let tables: Vec<(String, String)> = sqlx::query_as(columns).fetch_all(&mut connection).await.unwrap();
    for (table, columns) in tables {
        let rows = AssertSqlSafe(format!("select '{table}: ' || {columns} from \"{table}\" order by 1"));
        dump.extend(sqlx::query_scalar::<_, String>(rows).fetch_all(&mut connection).await.unwrap());
    }
    connection.close().await.unwrap();
    dump
}

/// Rows that the sample data lack: escaped characters, a reference inside of a table, a stored response.
const SPECIAL_ROWS: &str = r"
    update events set description = 'tab' || char(9) || 'back\slash \N' || char(10) || 'line' || char(13) || '”ünï\'
        where id = (select min(id) from events);
    update tickets set replaced_by = (select max(id) from tickets) where id = (select min(id) from tickets);
    insert into idempotency (key_id, hash, fingerprint, attempt, claimed, answer)
        values (1, 'b', 'f', 9223372036854775807, 1, x'00ff5c0a'), (1, 'a', 'f', -1, 1, null), (1, 'Ä', 'f', 0, 1, x'');
";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn copy_there_and_back_is_equal_and_sells() {
    let Some(database) = postgres::new_database().await else { return };
    let sample = Sample::create();
    let (source, back) = (sample.url("boxoffice.db"), sample.url("back.db"));
    execute_sqlite(&source, SPECIAL_ROWS).await;

    let there = assert_succeeded(sample.copy(&source, &database.url));
    assert_succeeded(sample.copy(&database.url, &back));
    let (expected, copied) = (dump(&source).await, dump(&back).await);
    let [check, copied_check, back_check] =
        [&source, &database.url, &back].map(|url| boxoffice(sample.path(), &["check", "--database", url]).run().stdout);
    let mut sold = Vec::new();
    for url in [&database.url, &back] {
        let server = sample.serve(url);
        sold.push(sample.buy(&server).await);
        server.stop();
    }

    assert!(expected.len() > 200, "{}", expected.len());
    assert_eq!(expected, copied);
    assert!(there.contains("the checksum of each table are equal") && there.contains("--media"), "{there}");
    // The replaced ticket is not void, which both copies show too.
    assert!(!check.is_empty());
    assert_eq!((&copied_check, &back_check), (&check, &check));
    assert_eq!(sold, ["Fulfilled", "Fulfilled"]);
}

/// The signal for a process that exceeds the limit for the size of files.
const SIGXFSZ: i32 = 25;

/// A target in PostgreSQL with a lock for which a copy waits in the middle of the audit log.
struct BlockedTarget(PgConnection);

impl BlockedTarget {
    async fn create(sample: &Sample, url: &str) -> Self {
        assert_succeeded(boxoffice(sample.path(), &["migrate", "--database", url]).run());
        let mut connection = PgConnection::connect(url).await.unwrap();
        let block = "create function wait_for_lock() returns boolean language plpgsql as
                $$ begin perform pg_advisory_xact_lock(1); return true; end $$;
            alter table audit add constraint waits check (id < 20000 or wait_for_lock());
            select pg_advisory_lock(1)";
        sqlx::raw_sql(block).execute(&mut connection).await.unwrap();
        Self(connection)
    }

    /// Waits until PostgreSQL has noticed the end of the copy, too.
    async fn release(mut self) {
        let release = "alter table audit drop constraint waits; select pg_advisory_unlock_all()";
        let copies = "from pg_stat_activity where datname = current_database() and application_name = 'boxoffice copy'";
        let (end, count) = (format!("select pg_terminate_backend(pid) {copies}"), format!("select count(*) {copies}"));
        sqlx::raw_sql(AssertSqlSafe(end)).execute(&mut self.0).await.unwrap();
        let mut connections = 1_i64;
        for _ in 0..3000 {
            connections = sqlx::query_scalar(AssertSqlSafe(count.clone())).fetch_one(&mut self.0).await.unwrap();
            if connections == 0 {
                break;
            }
            sleep(Duration::from_millis(10)).await;
        }
        assert_eq!(connections, 0, "the copy's connections have not ended");
        sqlx::raw_sql(release).execute(&mut self.0).await.unwrap();
        self.0.close().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_copy_is_continued() {
    let Some(database) = postgres::new_database().await else { return };
    let sample = Sample::create();
    let (source, back) = (sample.url("boxoffice.db"), sample.url("back.db"));
    let many = "insert into audit (at, key_id, operation, resource, status, request)
        with recursive n(i) as (select 1 union all select i + 1 from n where i < 40000)
        select i, i, 'order_create', '/orders', 201, printf('%d %.*c', i, 300, 'x') from n";
    execute_sqlite(&source, many).await;
    let blocked = BlockedTarget::create(&sample, &database.url).await;
    let mut command = boxoffice(sample.path(), &["copy", "--from", &source, "--to", &database.url]);
    let mut copying = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();

    wait_until(async || copied_audit_rows(&database.url).await.is_some_and(|rows| rows > 0)).await;
    copying.kill().unwrap();
    copying.wait().unwrap();
    blocked.release().await;
    let unfinished = boxoffice(sample.path(), &["serve", "--database", &database.url]).run();
    let there = sample.copy(&source, &database.url);
    // In this direction, the limit for the size of files (in units of 512 bytes) kills it while it writes to SQLite.
    let command = boxoffice(sample.path(), &["copy", "--from", &database.url, "--to", &back]);
    let mut limited = Command::new("sh");
    limited.args(["-c", "ulimit -c 0; ulimit -f 12000; exec \"$@\"", "sh"]).arg(command.get_program()).args(command.get_args());
    limited.env_clear().envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let killed = limited.output().unwrap();
    let and_back = sample.copy(&database.url, &back);

    assert_eq!(killed.status.signal(), Some(SIGXFSZ), "{killed:?}");
    assert_eq!(unfinished.code, Some(1));
    assert!(unfinished.stderr.contains("target of an unfinished copy: run the same"), "{}", unfinished.stderr);
    for copied in [there, and_back] {
        assert!(copied.stderr.contains("continuing an interrupted copy after"), "{}", copied.stderr);
        assert_succeeded(copied);
    }
    assert_eq!(dump(&source).await, dump(&back).await);
}

/// Returns the number of rows of the audit log in the progress of a copy to PostgreSQL; `None` without progress.
async fn copied_audit_rows(url: &str) -> Option<i64> {
    let mut connection = PgConnection::connect(url).await.unwrap();
    let rows = sqlx::query_scalar("select copied_rows from copy_progress where table_name = 'audit'");
    let rows = rows.fetch_optional(&mut connection).await.ok().flatten();
    connection.close().await.unwrap();
    rows
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn copy_rejects_what_would_lose_data() {
    let Some(database) = postgres::new_database().await else { return };
    let sample = Sample::create();
    let source = sample.url("boxoffice.db");
    let rejection = |from: &str, to: &str| {
        let rejected = sample.copy(from, to);
        assert_eq!(rejected.code, Some(1), "{}", rejected.stderr);
        rejected.stderr
    };

    let other = sample.url("other.db");
    assert_succeeded(boxoffice(sample.path(), &["demo", "--database", &other]).run());
    let filled = rejection(&source, &other);
    let missing = rejection(&sample.url("missing.db"), &database.url);
    let older = sample.url("older.db");
    assert_succeeded(boxoffice(sample.path(), &["migrate", "--database", &older]).run());
    execute_sqlite(&older, "delete from _sqlx_migrations where version = (select max(version) from _sqlx_migrations)").await;
    let (older_source, older_target) = (rejection(&older, &database.url), rejection(&source, &older));
    assert_succeeded(sample.copy(&source, &database.url));
    let twice = rejection(&source, &database.url);
    // Both wait for the other program to end.
    let server = sample.serve(&source);
    let mut connection = PgConnection::connect(&database.url).await.unwrap();
    let (running, connected) = thread::scope(|scope| {
        let running = scope.spawn(|| rejection(&source, &database.url));
        let connected = rejection(&database.url, &sample.url("back.db"));
        (running.join().unwrap(), connected)
    });
    sqlx::raw_sql("select 1").execute(&mut connection).await.unwrap();
    connection.close().await.unwrap();
    server.stop();
    let invalid = boxoffice(sample.path(), &["copy", "--from", "mysql://a:secret@b/c", "--to", &source]).run();

    for (rejection, reason) in [
        (&running, "another program, such as a server, uses the database; stop it first"),
        (&filled, "contains data already (in "),
        (&missing, "contains no tables of boxoffice"),
        (&older_source, "are of an earlier version of boxoffice: run `boxoffice migrate` on it first"),
        (&older_target, "are of an earlier version of boxoffice: give an empty database"),
        (&twice, "contains data already"),
        (&connected, "other programs, such as servers, are connected to the database to copy; stop them first"),
    ] {
        assert!(rejection.contains(reason), "{rejection}");
    }
    assert_eq!(invalid.code, Some(2));
    assert!(invalid.stderr.contains("--from") && !invalid.stderr.contains("secret"), "{}", invalid.stderr);
}

#[test]
fn checksum_depends_on_rows_and_not_on_their_order() {
    let row = |text: &str, other: &str| vec![CopiedValue::Text(text.to_owned()), CopiedValue::Text(other.to_owned())];
    let checksum = |rows: &[Vec<CopiedValue>]| {
        let mut checksum = Checksum::default();
        rows.iter().for_each(|row| checksum.add(row));
        checksum
    };

    let sum = checksum(&[row("a", "b"), row("c", "d")]);
    assert_eq!(sum, checksum(&[row("c", "d"), row("a", "b")]));
    for other in [vec![row("ab", ""), row("c", "d")], vec![row("a", "b")], vec![row("a", "b"), row("a", "b"), row("c", "d")]] {
        assert_ne!(sum, checksum(&other));
    }
    assert_eq!(checksum(&[vec![CopiedValue::Double(-0.0)]]), checksum(&[vec![CopiedValue::Double(0.0)]]));
}
