//! Start and stop of the program: first starts, failed starts, settings, messages and signals.

use std::fs::{self, OpenOptions, Permissions};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, chown};
use std::os::unix::net::UnixDatagram;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::Duration;

use boxoffice::kernel::db::check_version;
use boxoffice_client::Client;
use rustix::fs::OFlags;
use sqlx::{Connection, PgConnection};
use tempfile::TempDir;
use tokio::time::timeout;

use crate::support::server_process::{CommandOutput, Run, ServerProcess, boxoffice, first_credentials, last_word};
use crate::support::{PgCluster, fetch_url, postgres, refusing_socket};

/// Time limit for a process that connects or notifies.
const PROCESS_TIMEOUT: Duration = Duration::from_secs(30);

fn send_term(process: u32) {
    assert!(Command::new("kill").args(["-s", "TERM", &process.to_string()]).status().unwrap().success());
}

/// Returns the lines that are not JSON: the error of the command, without log lines on the access rights of its folder.
fn without_log(text: &str) -> String {
    text.lines().filter(|line| !line.starts_with('{')).map(|line| format!("{line}\n")).collect()
}

/// Returns the URL of a SQLite database in a new folder, and of a PostgreSQL database if there is one.
async fn databases() -> Vec<(TempDir, String, Option<postgres::Database>)> {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", folder.path().join("boxoffice.db").display());
    let postgres =
        postgres::new_database().await.map(|database| (tempfile::tempdir().unwrap(), database.url.clone(), Some(database)));
    [(folder, url, None)].into_iter().chain(postgres).collect()
}

fn serve(folder: &Path, url: &str, arguments: &[&str]) -> Command {
    boxoffice(folder, &[&["serve", "--database", url], arguments].concat())
}

#[test]
fn first_start_prints_credentials_on_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let serve = boxoffice(folder.path(), &["serve"]);
    let program = serve.get_program().to_str().unwrap();
    // `script` runs a command on a terminal, and passes SIGTERM on to it.
    let command = format!("exec timeout --signal=TERM --preserve-status 20 {program} serve");
    let mut terminal = Command::new("script");
    terminal.args(["--quiet", "--flush", "--return", "--command", &command, "/dev/null"]).env_clear();
    terminal.env("PATH", "/usr/bin:/bin").envs(serve.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let spawned = terminal.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
    let mut child = spawned.unwrap_or_else(|error| panic!("`script` of util-linux can't be run: {error}"));

    let (mut shown, mut part) = (String::new(), [0; 1024]);
    while !shown.contains("public key") {
        let length = child.stdout.as_mut().unwrap().read(&mut part).unwrap();
        assert!(length > 0, "{shown}");
        shown.push_str(&String::from_utf8_lossy(&part[..length]));
    }
    send_term(child.id());
    child.wait().unwrap();

    assert!(shown.contains("administrator's password"), "{shown}");
    assert!(!folder.path().join("first-start.txt").exists());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn failed_start_creates_no_credentials() {
    for (folder, url, _database) in databases().await {
        let occupied = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = occupied.local_addr().unwrap().to_string();

        let failed = serve(folder.path(), &url, &["--listen", &address]).run();
        let failed_admin = serve(folder.path(), &url, &["--admin-listen", &address]).run();
        let nothing = fs::read_dir(folder.path()).unwrap().count() == 0;
        let server = ServerProcess::start(serve(folder.path(), &url, &[]));

        assert_eq!(failed.code, Some(1));
        let last = failed.stderr.lines().last().unwrap().to_owned();
        assert!(last.contains(&format!("cannot listen on {address}")) && last.matches("in use").count() == 1, "{last}");
        assert!(nothing && failed.stdout.is_empty());
        assert!(failed_admin.code == Some(1) && failed_admin.stderr.contains(&format!("cannot listen on {address}")));
        let key = last_word(&first_credentials(folder.path()), "administrator's key");
        assert_eq!(Client::connect(&server.address, &key).unwrap().account_list().send().await.unwrap().total, 1);
        server.stop();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn simultaneous_first_starts_create_one_administrator() {
    for (folder, url, _database) in databases().await {
        let start = |_| {
            let command = serve(folder.path(), &url, &[]);
            thread::spawn(move || ServerProcess::start(command))
        };
        let starts: Vec<_> = (0..4).map(start).collect();
        let servers: Vec<ServerProcess> = starts.into_iter().map(|start| start.join().unwrap()).collect();

        let files = fs::read_dir(folder.path()).unwrap().map(|file| file.unwrap().path());
        let files: Vec<_> = files.filter(|file| file.extension().is_some_and(|end| end == "txt")).collect();
        assert_eq!(files.len(), 1, "{files:?}");
        let key = last_word(&fs::read_to_string(&files[0]).unwrap(), "administrator's key");
        for server in servers {
            assert_eq!(Client::connect(&server.address, &key).unwrap().account_list().send().await.unwrap().total, 1);
            server.stop();
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn currency_is_fixed_by_first_start() {
    for (folder, url, _database) in databases().await {
        assert!(boxoffice(folder.path(), &["migrate", "--database", &url]).run().succeeded());
        ServerProcess::start(serve(folder.path(), &url, &["--currency", "EUR"])).stop();

        let other = serve(folder.path(), &url, &[]).run();
        let key = boxoffice(folder.path(), &["key", "create", "--role", "public", "--database", &url]).run();

        assert_eq!(other.code, Some(2));
        let expected = "--currency (BOXOFFICE_CURRENCY): it is GHS, but all amounts in this database are in EUR";
        assert!(other.stderr.contains(expected), "{}", other.stderr);
        assert!(key.succeeded(), "commands that show no amounts need no currency: {}", key.stderr);
        ServerProcess::start(serve(folder.path(), &url, &["--currency", "EUR"])).stop();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn start_warns_of_administrators_without_mail() {
    for (folder, url, _database) in databases().await {
        let is_lost = |arguments: &[&str]| {
            let log = log_of_start(serve(folder.path(), &url, arguments));
            assert!(!log.contains("no administrator is active"), "{log}");
            log.contains("mails to the first administrator are lost")
        };
        assert_eq!((is_lost(&[]), is_lost(&["--smtp", "127.0.0.1:1"])), (false, true));
        assert!(first_credentials(folder.path()).contains("set your own address"));
    }
}

/// The sale goes on without the archive, and no entry is deleted.
#[test]
fn start_warns_of_audit_archive_that_cannot_be_written() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    let url = format!("sqlite:{}", folder.path().join("boxoffice.db").display());
    for (archive, has_warning) in [(file.join("archive"), true), (folder.path().join("archive"), false)] {
        let arguments = ["--keep-audit-days", "30", "--audit-archive", archive.to_str().unwrap()];
        let log = log_of_start(serve(folder.path(), &url, &arguments));
        assert_eq!(log.contains("the archive of the audit log can't be written"), has_warning, "{log}");
    }
}

#[test]
fn start_warns_without_administrator() {
    let folder = tempfile::tempdir().unwrap();
    let esi = ["account", "create", "--username", "esi", "--email", "esi@example.com", "--password", "correct horse"];
    assert!(boxoffice(folder.path(), &["migrate"]).run().succeeded() && boxoffice(folder.path(), &esi).run().succeeded());

    let log = log_of_start(boxoffice(folder.path(), &["serve"]));

    assert!(log.contains("no administrator is active: create one with `boxoffice account create"), "{log}");
}

#[test]
fn start_logs_version() {
    let folder = tempfile::tempdir().unwrap();

    let log = log_of_start(boxoffice(folder.path(), &["serve"]));

    assert!(log.contains(concat!("\"version\":\"", env!("CARGO_PKG_VERSION"), "\"")), "{log}");
}

/// Starts a server, and returns its log until it serves.
fn log_of_start(mut serve: Command) -> String {
    let mut server = serve.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut log = String::new();
    for line in BufReader::new(server.stderr.take().unwrap()).lines() {
        log += &line.unwrap();
        if log.contains("\"serving\"") {
            break;
        }
    }
    server.kill().unwrap();
    server.wait().unwrap();
    log
}

/// `config check` and the start name the same reasons.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unusable_databases_of_postgres_are_rejected() {
    let Some(cluster) = PgCluster::create() else { return };
    let url = |user: &str, name: &str| cluster.url.replace("postgres@localhost/postgres", &format!("{user}@localhost/{name}"));
    let execute = async |name: &str, statement: &'static str| {
        let mut connection = PgConnection::connect(&url("postgres", name)).await.unwrap();
        sqlx::raw_sql(statement).execute(&mut connection).await.unwrap();
    };
    execute("postgres", "create database latin encoding 'LATIN1' locale 'C' template template0").await;
    execute("postgres", "create database guarded").await;
    execute("postgres", "create role guest login").await;
    execute("guarded", "revoke create on schema public from public").await;
    execute("postgres", "create database frozen").await;
    execute("postgres", "alter database frozen set default_transaction_read_only = on").await;

    for (user, name, problem) in [
        ("postgres", "latin", "its encoding is LATIN1"),
        ("guest", "guarded", "make this user the owner of the database"),
        ("postgres", "frozen", "it is read-only"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let check = boxoffice(folder.path(), &["config", "check", "--database", &url(user, name)]).run();
        let start = serve(folder.path(), &url(user, name), &[]).run();
        let (found, reported) = (check.stdout, start.stderr);
        assert_eq!((check.code, start.code), (Some(1), Some(1)), "{found}{reported}");
        assert!(found.contains(problem) && reported.contains(problem), "{problem}: {found}{reported}");
        assert!(reported.contains(&format!("as user {user}")) && !reported.contains(" line "), "{reported}");
    }
}

#[test]
fn reports_all_invalid_settings_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let expected = [
        (
            "--database",
            "postgres://me:hidden@localhost/x?sslmod=require",
            "the parameter `sslmod` is unknown; the parameters are sslmode,",
        ),
        ("--listen", "localhost", "`localhost` has no valid port; give HOST:PORT, such as 127.0.0.1:8080"),
        ("--tls-key", "key.pem", "it needs --tls-certificate (BOXOFFICE_TLS_CERTIFICATE)"),
        ("--public-url", "example.com", "`example.com` is not an address that begins with http:// or https://"),
        ("--media", "gs://bucket", "`gs://bucket` is neither a folder nor an S3 bucket"),
        ("--currency", "GSH", "`GSH` is not a currency code of ISO 4217"),
        ("--reservation-minutes", "0", "`0` is not a whole number from 1 to 10080"),
        ("--fee-steps", "50,1.99", "`50,1.99` is not a list of steps"),
        ("--minimum-client-version", "three", "`three` is not a version of one to three numbers, such as 3.0.0"),
        ("--login-rate-limit", "-1", "`-1` is not a whole number from 0 to"),
        ("--rate-limit", "many", "`many` is not a whole number from 0 to"),
        ("--trusted-proxies", "proxy", "neither an address nor a network such as 10.0.0.0/8: proxy"),
        ("--mail-from", "nobody", "`nobody` is not a mail address, such as tickets@example.com"),
        ("--smtp", "smtp://x", "`smtp://x` has a scheme; give HOST or HOST:PORT, such as mail.example.com"),
        ("--smtp-tls", "ssl", "`ssl` is none of none, starttls and tls"),
        ("--smtp-timeout-seconds", "0", "`0` is not a whole number from 1 to 600"),
        ("--smtp-user", "me", "it needs --smtp-password"),
        ("--smtp-ca", "no such file", "cannot read no such file"),
        ("--grace-seconds", "4000", "`4000` is not a whole number from 0 to 3600"),
    ];
    let wrong: Vec<String> = expected.iter().map(|(option, value, _)| format!("{option}={value}")).collect();
    let wrong: Vec<&str> = ["serve"].into_iter().chain(wrong.iter().map(String::as_str)).collect();

    let rejected = boxoffice(folder.path(), &wrong).run();
    let reported = rejected.stderr;

    assert_eq!(rejected.code, Some(2), "{reported}");
    for (option, _, text) in expected {
        let line = reported.lines().find(|line| line.trim_start().starts_with(&format!("{option} (")));
        assert!(line.is_some_and(|line| line.contains(text)), "{option}: {reported}");
    }
    assert!(!reported.contains("hidden"), "{reported}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "nothing was created");
}

#[test]
fn rejects_each_invalid_setting_with_an_example() {
    let folder = tempfile::tempdir().unwrap();
    let no_certificate = folder.path().join("ca.pem");
    fs::write(&no_certificate, "nothing").unwrap();
    let root = format!("postgres://localhost/x?sslrootcert={}", no_certificate.display());
    for (option, value, text) in [
        ("--database", root.as_str(), "ca.pem, the file of the parameter sslrootcert, is no PEM file with BEGIN CERTIFICATE"),
        ("--database", "", "a database is sqlite:PATH or postgres://USER@HOST/NAME"),
        ("--database", "sqlite:", "the path of the file is missing"),
        ("--database", "sqlite::memory:", "a database in memory is not supported"),
        ("--database", "sqlite:x.db?mode=rwc", "a SQLite database has no parameters"),
        ("--database", "postgres://localhost/x?sslmode=full", "`sslmode=full` is none of disable, allow, prefer, require"),
        (
            "--database",
            "postgres://localhost/x?sslmode=verify-full&sslrootcert=/no/ca.pem",
            "cannot read /no/ca.pem, the file of",
        ),
        ("--database", "postgres://me:a/b@localhost/x", "write %2F for `/`"),
        ("--database", "postgres://me:a?b@localhost/x", "%3F for `?`"),
        ("--database", "postgres://me:a#b@localhost/x", "%23 for `#`"),
        ("--database", "postgres://localhost:port/x", "not a PostgreSQL URL such as postgres://USER@HOST/NAME"),
        ("--data-dir", "/dev/null", "`/dev/null` is not a folder"),
        ("--data-dir", "", "it is empty; give a folder"),
        ("--listen", ":8080", "`:8080` is not an address to listen on; give HOST:PORT"),
        ("--listen", "127.0.0.1:80800", "`127.0.0.1:80800` has no valid port"),
        ("--public-url", "https://example.com/?a=b", "is not an address"),
        ("--public-url", "https://me@example.com", "is not an address"),
        ("--public-url", "ftp://example.com", "is not an address"),
        ("--media", "s3://", "`s3://` names no bucket; give a folder, or a bucket such as s3://tickets/images"),
        ("--currency", "ghs", "`ghs` is not a currency code of ISO 4217 in capitals, such as GHS or EUR"),
        ("--fee-steps", "50,1.99", "`50,1.99` is not a list of steps such as 50:0.99,100:1.99,2.99: `50` has no fee"),
        ("--fee-steps", "50:1,40:2,3", "the prices must rise"),
        ("--smtp", "mail.example.com:0", "`mail.example.com:0` has no valid port"),
        ("--smtp", "::1", "brackets"),
        ("--smtp-password", "a secret", "it has no effect without --smtp, the mail server"),
        ("--tls-certificate", "certificate.pem", "it needs --tls-key (BOXOFFICE_TLS_KEY)"),
    ] {
        let rejected = boxoffice(folder.path(), &["serve", &format!("{option}={value}")]).run();
        let reported = rejected.stderr;
        assert_eq!(rejected.code, Some(2), "{option}={value}: {reported}");
        assert!(
            reported.contains(text) && reported.contains(option) && !reported.contains("a secret"),
            "{option}={value}: {reported}"
        );
    }
}

#[test]
fn rejects_variable_that_is_neither_true_nor_false() {
    let folder = tempfile::tempdir().unwrap();
    for (command, variable) in [
        (&["serve"][..], "BOXOFFICE_ALLOW_COMMON_PASSWORDS"),
        (&["config", "show"], "BOXOFFICE_ALLOW_COMMON_PASSWORDS"),
        (&["mock"], "BOXOFFICE_STATEFUL"),
        (&["mock"], "BOXOFFICE_WATCH"),
    ] {
        let rejected = boxoffice(folder.path(), command).env(variable, "flase").run();
        assert_eq!(rejected.code, Some(2), "{variable}: {}", rejected.stderr);
        assert!(rejected.stderr.contains("`flase` is neither true nor false"), "{variable}: {}", rejected.stderr);
    }
    for value in ["true", "off", ""] {
        let accepted = boxoffice(folder.path(), &["config", "show"]).env("BOXOFFICE_ALLOW_COMMON_PASSWORDS", value).run();
        assert!(accepted.succeeded(), "{value}: {}", accepted.stderr);
    }
}

/// The data folder, or a file in it, belongs to root, after a command that root has run.
#[test]
fn start_names_what_belongs_to_another_user() {
    const NOBODY: u32 = 65_534;
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let start = || boxoffice(&data, &["serve"]).uid(NOBODY).gid(NOBODY).current_dir("/").run();
    fs::create_dir(&data).unwrap();
    for (folder, mode) in [(folder.path(), 0o755), (&data, 0o700)] {
        fs::set_permissions(folder, Permissions::from_mode(mode)).unwrap();
    }
    if fs::metadata(&data).unwrap().uid() != 0 {
        eprintln!("not tested: only root can start a program as another user");
        return;
    }
    let remedy = format!("run `chown -R nobody: {}` as root", data.display());
    let missing = folder.path().join("missing").join("data");
    let database = folder.path().join("of-root.db");
    fs::write(&database, "").unwrap();
    fs::set_permissions(&database, Permissions::from_mode(0o600)).unwrap();
    let check = format!("--database=sqlite:{}", database.display());

    let root_owns_folder = start();
    let folder_is_missing = boxoffice(&missing, &["serve"]).uid(NOBODY).gid(NOBODY).current_dir("/").run();
    let root_owns_database = boxoffice(&data, &["check", &check]).uid(NOBODY).gid(NOBODY).current_dir("/").run();
    chown(&data, Some(NOBODY), Some(NOBODY)).unwrap();
    let key = data.join("mail.key");
    fs::write(&key, "").unwrap();
    fs::set_permissions(&key, Permissions::from_mode(0o600)).unwrap();
    let root_owns_key = start();
    fs::remove_file(&key).unwrap();
    let [(media, root_owns_media), (mail, root_owns_mail)] = ["media", "mail"].map(|name| {
        let folder = data.join(name);
        fs::create_dir(&folder).unwrap();
        fs::set_permissions(&folder, Permissions::from_mode(0o755)).unwrap();
        let failed = start();
        fs::remove_dir(&folder).unwrap();
        (folder, failed)
    });

    for (failed, path) in [(root_owns_folder, &data), (root_owns_key, &key), (root_owns_media, &media), (root_owns_mail, &mail)] {
        let message = failed.stderr;
        assert_eq!((failed.code, message.lines().count()), (Some(1), 1), "{message}");
        assert!(message.contains(&format!("boxoffice: {} belongs to root", path.display())), "{message}");
        assert!(message.contains(&remedy), "{message}");
    }
    for (failed, remedy) in [
        (folder_is_missing, format!("run `install -d -m 700 -o nobody {}` as root", missing.display())),
        (root_owns_database, format!("run `chown nobody: {}` as root", database.display())),
    ] {
        assert!(failed.stderr.contains(&remedy), "{}", failed.stderr);
    }
}

/// After a boot, the resolver or a disk may not be ready yet: systemd starts the server again, which it doesn't after the exit code 2.
#[test]
fn host_or_certificate_that_cannot_be_read_is_no_invalid_setting() {
    let folder = tempfile::tempdir().unwrap();
    let unknown = "no-such-host.invalid:80";
    let of_host = "cannot find the address of the host `no-such-host.invalid`";
    let certificate = ["--tls-certificate", "/no/such/certificate.pem", "--tls-key", "/no/such/key.pem"];
    for (command, arguments, code, text) in [
        ("serve", &["--listen", unknown][..], 1, of_host),
        ("serve", &["--admin-listen", unknown], 1, of_host),
        ("serve", &["--admin-listen", unknown, "--currency", "GSH"], 2, of_host),
        ("mock", &["--listen", unknown], 1, of_host),
        ("serve", &certificate, 1, "cannot read /no/such/certificate.pem, which --tls-certificate names"),
    ] {
        let failed = boxoffice(folder.path(), &[&[command], arguments].concat()).run();

        assert_eq!(failed.code, Some(code), "{arguments:?}: {}", failed.stderr);
        assert!(failed.stderr.contains(text), "{arguments:?}: {}", failed.stderr);
    }
    let checked = boxoffice(folder.path(), &["config", "check", "--listen", unknown]).run();
    assert_eq!(checked.code, Some(1), "{}", checked.stderr);
}

#[test]
fn resolves_names_of_addresses_to_listen_on() {
    let folder = tempfile::tempdir().unwrap();
    let server = ServerProcess::start(boxoffice(folder.path(), &["serve", "--listen", "localhost:0"]));

    assert!(server.address.starts_with("http://127.0.0.1:"), "{}", server.address);
    server.stop();
    let mock = ServerProcess::start(boxoffice(folder.path(), &["mock", "--listen", "localhost:0"]));
    mock.stop();
}

#[test]
fn warns_of_unknown_variables() {
    let folder = tempfile::tempdir().unwrap();
    let occupied = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = occupied.local_addr().unwrap().to_string();
    let mut command = boxoffice(folder.path(), &["serve", "--listen", &address]);

    let log = command.env("BOXOFFICE_CURENCY", "EUR").run().stderr;

    let warnings = log.lines().filter(|line| line.contains("this environment variable is no setting"));
    assert_eq!(warnings.filter(|line| line.contains("BOXOFFICE_CURENCY")).count(), 1, "{log}");
    assert!(!log.contains("BOXOFFICE_RATE_LIMIT"), "{log}");
}

#[test]
fn other_signals_do_not_end_a_server() {
    let folder = tempfile::tempdir().unwrap();
    for command in ["serve", "mock"] {
        let server = ServerProcess::start(boxoffice(folder.path(), &[command]));

        server.signal("HUP");
        server.wait_for_log("msg", "SIGHUP is ignored: there is no TLS certificate");
        server.signal("USR1");
        server.wait_for_log("msg", "the level of the log was changed");
        server.signal("USR2");
        server.wait_for_log("msg", "the level of the log was changed");
        server.signal("PIPE");
        server.signal("QUIT");

        let (_, ended, log) = server.wait();
        assert!(ended.success(), "{command}: {log:#?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn closed_log_does_not_stop_a_server() {
    let folder = tempfile::tempdir().unwrap();
    let mut process = boxoffice(folder.path(), &["serve"]).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(process.stderr.take().unwrap()).lines().map_while(Result::ok);
    let address = lines.find_map(|line| {
        let entry = serde_json::from_str::<serde_json::Value>(&line).unwrap_or_default();
        entry["address"].as_str().map(str::to_owned)
    });
    drop(lines);
    let signal = |name: &str| {
        assert!(Command::new("kill").args(["-s", name, &process.id().to_string()]).status().unwrap().success());
    };

    for _ in 0..3 {
        signal("USR1");
        thread::sleep(Duration::from_millis(50));
    }
    let response = fetch_url(&format!("http://{}/time", address.unwrap())).await;
    signal("TERM");

    assert_eq!(response.status(), 412, "it had no version");
    assert!(process.wait().unwrap().success());
}

/// Fills a pipe, so that the next write to it blocks.
fn fill(pipe: &str) {
    // Opened again, so that it does not block here, and still does for others.
    let mut pipe = OpenOptions::new().write(true).custom_flags(OFlags::NONBLOCK.bits() as i32).open(pipe).unwrap();
    while pipe.write(b"\n").is_ok() {}
}

#[test]
fn log_that_nobody_reads_does_not_keep_a_program() {
    let folder = tempfile::tempdir().unwrap();
    let occupied = TcpListener::bind("127.0.0.1:0").unwrap();
    let (reader, writer) = io::pipe().unwrap();
    fill(&format!("/proc/self/fd/{}", writer.as_raw_fd()));
    let mut failing = boxoffice(folder.path(), &["serve", "--listen", &occupied.local_addr().unwrap().to_string()]);
    let failed = wait_for_end(failing.stderr(writer).stdout(Stdio::null()).spawn().unwrap());

    let mut server = boxoffice(folder.path(), &["serve"]).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut log = BufReader::new(server.stderr.take().unwrap());
    let mut line = String::new();
    while !line.contains(r#""msg":"serving""#) {
        line.clear();
        assert_ne!(log.read_line(&mut line).unwrap(), 0, "the server has ended");
    }
    fill(&format!("/proc/{}/fd/2", server.id()));
    send_term(server.id());

    assert_eq!(failed.code(), Some(1));
    assert!(wait_for_end(server).success());
    drop((reader, log));
}

/// Waits for the end of a program, for at most 30 seconds.
fn wait_for_end(mut program: Child) -> ExitStatus {
    for _ in 0..300 {
        if let Some(status) = program.try_wait().unwrap() {
            return status;
        }
        thread::sleep(Duration::from_millis(100));
    }
    program.kill().unwrap();
    panic!("the program has not ended in time");
}

/// A server that speaks enough of PostgreSQL's protocol to reject every connection with this error.
fn rejecting_postgres(code: &'static str, message: &'static str) -> u16 {
    fn read(connection: &mut TcpStream) -> Vec<u8> {
        let mut length = [0; 4];
        connection.read_exact(&mut length).unwrap();
        let mut body = vec![0; usize::try_from(u32::from_be_bytes(length)).unwrap() - 4];
        connection.read_exact(&mut body).unwrap();
        body
    }
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for connection in listener.incoming() {
            let mut connection = connection.unwrap();
            // A request for TLS comes first.
            if read(&mut connection) == 80_877_103_u32.to_be_bytes() {
                connection.write_all(b"N").unwrap();
                read(&mut connection);
            }
            let fields = format!("SFATAL\0VFATAL\0C{code}\0M{message}\0Fauth.c\0L329\0Rauth_failed\0\0");
            let length = u32::try_from(fields.len() + 4).unwrap().to_be_bytes();
            connection.write_all(&[b"E", &length[..], fields.as_bytes()].concat()).unwrap();
        }
    });
    port
}

#[test]
fn names_reason_of_failed_postgres_connection() {
    let folder = tempfile::tempdir().unwrap();
    let refusing = refusing_socket();
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let silent_port = silent.local_addr().unwrap().port();
    let at = |port: u16| format!("postgres://me:hidden@127.0.0.1:{port}/tickets");
    let rejecting = |code, message| at(rejecting_postgres(code, message));
    let cases = [
        (at(refusing.local_addr().unwrap().port()), "no server accepts connections there (Connection refused (os error 111))"),
        (at(silent_port), "the server has not answered within 5 seconds"),
        ("postgres://me:hidden@no-such-host.invalid/tickets".to_owned(), "the host no-such-host.invalid is unknown"),
        ("postgres://me@localhost/tickets?host=/no/such/folder".to_owned(), "there is no such socket"),
        (
            rejecting("28P01", "password authentication failed for user \"me\""),
            "the password is wrong or missing (password authentication failed for user \"me\")",
        ),
        (rejecting("28000", "no pg_hba.conf entry"), "the server rejects this user or this machine (no pg_hba.conf entry)"),
        (rejecting("3D000", "database \"tickets\" does not exist"), "the database does not exist; create it first"),
        (
            rejecting("08P01", "unsupported startup parameter: extra_float_digits"),
            "a connection pooler rejects the connection; let it ignore the parameter",
        ),
        (format!("{}?sslmode=require", rejecting("28000", "")), "the server has no TLS; sslmode=disable connects without"),
    ];
    let started: Vec<_> = cases
        .iter()
        .map(|(url, _)| boxoffice(folder.path(), &["migrate", "--database", url]).stderr(Stdio::piped()).spawn().unwrap())
        .collect();
    for (process, (url, reason)) in started.into_iter().zip(&cases) {
        let output = CommandOutput::from(process.wait_with_output().unwrap());
        let reported = without_log(&output.stderr);
        assert_eq!(output.code, Some(1), "{url}: {reported}");
        assert!(
            reported.starts_with("boxoffice: cannot open the PostgreSQL database tickets at ") && reported.contains(reason),
            "{reported}"
        );
        assert!(reported.contains("as user me: ") && !reported.contains("hidden") && !reported.contains("auth.c"), "{reported}");
        assert_eq!((reported.lines().count(), reported.matches(reason).count()), (1, 1), "{reported}");
    }
}

#[test]
fn log_names_reason_of_postgres_outage() {
    let Some(mut cluster) = PgCluster::create() else { return };
    let folder = tempfile::tempdir().unwrap();
    let server = ServerProcess::start(serve(folder.path(), &cluster.url, &[]));

    cluster.stop();

    // Jobs need the database too. The first errors are about the connections that were closed.
    let expected = "cannot open the PostgreSQL database postgres at socket ";
    let cause = server.wait_for_log("cause", expected);
    assert!(cause.contains(" as user postgres: ") && cause.matches("No such file or directory").count() == 1, "{cause}");
    server.stop();
}

#[test]
fn names_reason_of_unusable_sqlite_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("notes.txt");
    fs::write(&file, "no database ".repeat(100)).unwrap();
    for (path, reason) in [(file.as_path(), "file is not a database"), (folder.path(), "unable to open database file")] {
        let failed = boxoffice(folder.path(), &["migrate", "--database", &format!("sqlite:{}", path.display())]).run();
        let reported = without_log(&failed.stderr);
        assert_eq!(failed.code, Some(1), "{reported}");
        assert!(reported.starts_with(&format!("boxoffice: cannot open the SQLite database {}: ", path.display())), "{reported}");
        assert_eq!((reported.lines().count(), reported.matches(reason).count()), (1, 1), "{reported}");
    }
}

#[tokio::test]
async fn stop_signal_ends_a_start_in_progress() {
    let folder = tempfile::tempdir().unwrap();
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("postgres://me@{}/tickets", silent.local_addr().unwrap());
    let mut process = serve(folder.path(), &url, &[]).stderr(Stdio::piped()).spawn().unwrap();
    // The server connects after it has installed its handlers.
    let connection = timeout(PROCESS_TIMEOUT, silent.accept()).await.expect("the server does not connect").unwrap();

    thread::sleep(Duration::from_millis(50));
    send_term(process.id());
    let ended = process.wait().unwrap();

    assert_eq!(ended.code(), Some(1), "not ended by the signal");
    drop(connection);
}

#[test]
fn notifies_service_manager() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notify");
    let manager = UnixDatagram::bind(&path).unwrap();
    manager.set_read_timeout(Some(PROCESS_TIMEOUT)).unwrap();
    let receive = || {
        let mut buffer = [0; 100];
        let length = manager.recv(&mut buffer).unwrap();
        String::from_utf8_lossy(&buffer[..length]).trim().to_owned()
    };
    let mut serve = boxoffice(folder.path(), &["serve"]);
    serve.env("NOTIFY_SOCKET", &path);

    let server = ServerProcess::start(serve);
    assert_eq!(receive(), "READY=1");
    assert!(TcpStream::connect(server.address.trim_start_matches("http://")).is_ok(), "the server is ready");
    server.signal("TERM");
    assert_eq!(receive(), "STOPPING=1");

    assert!(server.wait().1.success());
}

#[test]
fn rejects_old_postgres_by_name() {
    let rejected = check_version(Some(120_017)).map_err(|error| error.to_string());

    assert_eq!(rejected, Err("the server is PostgreSQL 12; boxoffice needs version 13 or newer".to_owned()));
    assert!([Some(130_000), Some(150_014), None].map(check_version).iter().all(Result::is_ok));
}
