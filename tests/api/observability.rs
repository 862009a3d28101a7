//! Health checks, metrics, the access log, and the identifiers of requests.

use std::fs;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use boxoffice::kernel::settings::{LimitSettings, Settings};
use boxoffice::server::RunningApp;
use boxoffice_http::{ConnectionLimits, Listener, log};
use regex::Regex;
use serde_json::{Value, json};

use super::failures::LogBuffer;
use crate::support::{ANY_PORT, TestApp, entries_of, fetch_url, section, test_on, wait_until};

async fn get(address: impl std::fmt::Display, path: &str) -> (u16, Value) {
    let response = fetch_url(&format!("http://{address}{path}")).await;
    let status = response.status().as_u16();
    (status, response.json().await.unwrap_or_default())
}

#[test_on(sqlite, postgres)]
async fn health_checks_need_no_key(app: TestApp) {
    let ok = |name| json!({ "name": name, "status": "ok" });
    let checks = json!([ok("database"), ok("mail_queue"), ok("media")]);

    assert_eq!(get(app.server, "/healthz").await, (200, json!({ "status": "ok" })));
    assert_eq!(get(app.server, "/readyz").await, (200, json!({ "status": "ready", "checks": checks })));
    let head = app.request("HEAD", "/readyz").at(app.server).anonymous().send().await;
    assert_eq!(head.status, 200);
    let post = app.request("POST", "/healthz").at(app.server).anonymous().send().await;
    assert_eq!((post.status, post.header("allow")), (405, "GET, HEAD, OPTIONS"));
    // They may tell how busy the server is.
    assert_eq!(get(app.server, "/metrics").await.0, 404);
}

#[test_on(sqlite, postgres)]
async fn is_not_ready_without_database(app: TestApp) {
    let other = app.start_second_server(app.state.settings.clone()).await;
    other.state.db.close().await;

    let (status, body) = get(other.server, "/readyz").await;

    assert_eq!((status, &body["status"]), (503, &json!("not ready")));
    assert_eq!(body["checks"][0], json!({ "name": "database", "status": "failed" }));
    assert_eq!(body["checks"][2], json!({ "name": "media", "status": "ok" }));
    assert_eq!(get(other.server, "/healthz").await.0, 200);
}

#[test_on(sqlite, postgres)]
async fn is_not_ready_while_database_rejects_changes(app: TestApp) {
    let other = app.start_second_server(app.state.settings.clone()).await;
    // Stands for a full disk: the check can't write to its table.
    app.execute_sql("alter table job_runs rename to lost_job_runs").await;

    let (status, body) = get(other.server, "/readyz").await;

    app.execute_sql("alter table lost_job_runs rename to job_runs").await;
    let failed = |name| json!({ "name": name, "status": "failed" });
    let expected = json!([failed("database"), failed("mail_queue"), { "name": "media", "status": "ok" }]);
    assert_eq!((status, &body["checks"]), (503, &expected));
    assert_eq!(get(other.server, "/readyz").await.0, 200);
}

#[test_on(sqlite, postgres)]
async fn is_ready_without_media_folder(app: TestApp) {
    let folder = app.state.settings.media.folder().unwrap();
    fs::rename(folder, folder.with_extension("lost")).unwrap();

    let (status, body) = get(app.server, "/readyz").await;

    // Sales go on without images.
    assert_eq!((status, &body["status"]), (200, &json!("ready")));
    assert_eq!(body["checks"][2], json!({ "name": "media", "status": "failed" }));
    fs::rename(folder.with_extension("lost"), folder).unwrap();
    assert_eq!(get(app.server, "/readyz").await.1["checks"][2], json!({ "name": "media", "status": "ok" }));
}

#[test_on(sqlite, postgres)]
async fn is_not_ready_while_stopping(app: TestApp) {
    let listener = Listener { drain_period: Duration::from_secs(3), ..ANY_PORT.into() };
    let other = app.start_second_server_on(app.state.settings.clone(), log::silent(), listener).await;
    let server = other.server;
    let stopping = tokio::spawn(other.stop());

    let (status, body) = loop {
        let (status, body) = get(server, "/readyz").await;
        if status != 200 {
            break (status, body);
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    };

    assert_eq!((status, &body["status"]), (503, &json!("stopping")));
    stopping.await.unwrap();
}

#[test_on(sqlite, postgres)]
async fn metrics_count_requests(app: TestApp) {
    let connections = ConnectionLimits { maximum: Some(50), ..ConnectionLimits::default() };
    let listener = Listener { connections, ..ANY_PORT.into() };
    let platform = RunningApp::start_with_admin(Arc::clone(&app.state), listener, Some(Listener::from(ANY_PORT))).unwrap();
    let admin = platform.admin_address().unwrap();
    let _idle = std::net::TcpStream::connect(platform.address()).unwrap();
    let (kofi, event) = app.sign_up_host("kofi", &[section("Floor", 0.0, 10)]).await;
    kofi.order_free_tickets(&event.sections[0], 3).await;
    for _ in 0..3 {
        get(platform.address(), "/time").await;
    }
    app.request("GET", "/time").send().await;

    let metrics = async || fetch_url(&format!("http://{admin}/metrics")).await;
    // The jobs run for the first time while the server handles requests.
    let job = r#"boxoffice_job_last_success_timestamp_seconds{job="deliver mail"}"#;
    wait_until(async || metrics().await.text().await.unwrap().contains(job)).await;
    let response = metrics().await;
    let media_type = response.headers()["content-type"].to_str().unwrap().to_owned();
    let text = response.text().await.unwrap();

    assert!(media_type.starts_with("application/openmetrics-text"), "{media_type}");
    let outdated = r#"boxoffice_request_duration_seconds_count{operation="time_get",status="412"} 3"#;
    let served = r#"boxoffice_request_duration_seconds_count{operation="time_get",status="200"} 1"#;
    let has_pool = |name: &str| text.contains(&format!(r#"boxoffice_database_connections{{pool="{name}",state="idle"}}"#));
    assert!(text.contains(outdated) && text.contains(served), "{text}");
    assert!(has_pool("readers") && has_pool("writer") || has_pool("main"), "{text}");
    assert!(text.contains("boxoffice_mails_waiting ") && text.ends_with("# EOF\n"), "{text}");
    assert!(text.contains(job), "{text}");
    assert!(text.contains("boxoffice_dependency_usable{dependency=\"media\"} 1\n"), "{text}");
    assert!(text.contains("boxoffice_disk_free_bytes{dependency=\"media\"} "), "{text}");
    // The disk of PostgreSQL is not this machine's.
    let has_disk = text.contains("boxoffice_disk_free_bytes{dependency=\"database\"} ");
    assert_eq!(has_disk, app.database_url.starts_with("sqlite:"), "{text}");
    let value = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(&format!("boxoffice_{name} ")));
        line.unwrap_or_else(|| panic!("{name} in {text}")).parse::<usize>().unwrap()
    };
    assert_eq!(value("max_connections"), 50);
    assert!((1..50).contains(&value("connections")), "{text}");
    assert_eq!((value(r#"password_hashes{state="running"}"#), value(r#"password_hashes{state="waiting"}"#)), (0, 0));
    let files = rustix::process::getrlimit(rustix::process::Resource::Nofile).current.unwrap();
    assert_eq!(value("process_max_files") as u64, files);
    assert!((1..files as usize).contains(&value("process_open_files")), "{text}");
    let version = concat!("boxoffice_build_info{version=\"", env!("CARGO_PKG_VERSION"), "\"} 1\n");
    assert!(text.contains(version), "{text}");
    let start = text.lines().find_map(|line| line.strip_prefix("boxoffice_process_start_time_seconds ")).unwrap();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs_f64();
    assert!((1e9..=now).contains(&start.parse::<f64>().unwrap()), "{text}");
    let places = |state: &str, count: i64| text.contains(&format!("boxoffice_places{{state=\"{state}\"}} {count}\n"));
    assert!(places("sold", 3) && places("reserved", 0) && places("free", 7), "{text}");
    assert_eq!(get(admin, "/readyz").await.0, 200);
    assert_eq!(get(admin, "/time").await.0, 404);
}

#[test_on(sqlite, postgres)]
async fn metrics_count_failures_of_jobs_from_the_start(app: TestApp) {
    app.execute_sql("alter table job_runs rename to lost_job_runs").await;
    let platform = RunningApp::start_with_admin(Arc::clone(&app.state), ANY_PORT, Some(Listener::from(ANY_PORT))).unwrap();
    let admin = platform.admin_address().unwrap();
    let metrics = async || fetch_url(&format!("http://{admin}/metrics")).await.text().await.unwrap();
    let last = Regex::new(r#"boxoffice_job_failures_total\{job="apply the retention"\} \d"#).unwrap();
    let failed = Regex::new(r#"boxoffice_job_failures_total\{job="delete stored responses"\} [1-9]"#).unwrap();

    let at_the_start = metrics().await;
    // The job is not run, because it can't be leased.
    wait_until(async || failed.is_match(&metrics().await)).await;

    assert!(last.is_match(&at_the_start), "{at_the_start}");
    app.execute_sql("alter table lost_job_runs rename to job_runs").await;
}

#[test_on(sqlite, postgres)]
async fn access_log_names_caller_but_no_secret(app: TestApp) {
    let (kofi, host) = app.sign_up_with_host("kofi").await;
    let buffer = LogBuffer::default();
    let listener = Listener { access_log_sample: std::num::NonZeroU64::new(1), ..ANY_PORT.into() };
    let server = app.start_second_server_on(app.state.settings.clone(), buffer.logger(), listener).await;

    let found = app.request("GET", &host.uri).at(server.address).key(&kofi.key).send().await;
    let code = "4K7QW2MZ";
    let unknown = app.request("GET", &format!("/tokens/{code}")).at(server.address).key(&kofi.key).send().await;
    let of_program = app.request("GET", "/regions").at(server.address).key(&app.public_key).send().await;

    let lines = buffer.lines();
    let line = |response: &crate::support::Response| {
        let id = response.header("x-request-id").to_owned();
        let of_request = lines.iter().filter(|line| line["msg"] == "request" && line["request"] == id.as_str());
        let [line] = of_request.collect::<Vec<_>>()[..] else { panic!("{id}: {lines:?}") };
        line.clone()
    };
    let first = line(&found);
    let names = ["method", "operation", "status", "client"].map(|name| first[name].clone());
    assert_eq!(names, [json!("GET"), json!("host_get"), json!(200), json!("127.0.0.1")]);
    assert!(first["duration_ms"].as_f64().is_some_and(|duration| duration > 0.0), "{first}");
    assert_eq!((&first["account"], first["key"].is_i64()), (&json!(kofi.number), true), "{first}");
    let second = line(&unknown);
    assert_eq!((&second["status"], &second["code"]), (&json!(unknown.status), &unknown.body["code"]));
    let third = line(&of_program);
    let keys = super::admin_commands::json_of(&app, &["keys", "list"]);
    let id = third["key"].to_string();
    let key = entries_of(&keys).iter().find(|key| key["id"] == id.as_str()).unwrap_or_else(|| panic!("{third}: {keys}"));
    assert_eq!((&key["role"], &third["account"]), (&json!("public"), &Value::Null));
    let text = buffer.text();
    assert!([&kofi.key, &app.public_key, code].iter().all(|secret| !text.contains(*secret)), "{text}");
}

#[test_on(sqlite, postgres)]
async fn successful_health_checks_are_logged_at_debug(app: TestApp) {
    let buffer = LogBuffer::default();
    let listener = Listener { access_log_sample: std::num::NonZeroU64::new(2), ..ANY_PORT.into() };
    let server = app.start_second_server_on(app.state.settings.clone(), buffer.logger(), listener).await;
    let mut sent = Vec::new();
    for (path, status, level) in [
        ("/time", 200, "INFO"),
        ("/healthz", 200, "DEBG"),
        ("/time", 200, "DEBG"),
        ("/readyz", 200, "DEBG"),
        ("/time", 200, "INFO"),
        ("/none", 404, "INFO"),
    ] {
        let response = app.request("GET", path).at(server.server).send().await;
        assert_eq!(response.status, status, "{path}");
        sent.push((response.header("x-request-id").to_owned(), level));
    }
    server.state.db.close().await;
    let not_ready = app.request("GET", "/readyz").at(server.server).send().await;
    assert_eq!(not_ready.status, 503);
    sent.push((not_ready.header("x-request-id").to_owned(), "INFO"));

    let lines = buffer.lines();
    let level = |id: &str| lines.iter().find(|line| line["msg"] == "request" && line["request"] == id).unwrap()["level"].clone();
    for (id, expected) in &sent {
        assert_eq!(level(id), *expected, "{lines:?}");
    }
}

#[test_on(sqlite, postgres)]
async fn takes_request_id_of_trusted_proxy(app: TestApp) {
    let limits = LimitSettings { trusted_proxies: "127.0.0.0/8".parse().unwrap(), ..LimitSettings::default() };
    let settings = Settings { limits, ..app.state.settings.clone() };
    let behind_proxy = app.start_second_server(settings).await;
    let ask = async |server, id: &str| {
        let response = app.request("GET", "/healthz").at(server).anonymous().header("X-Request-ID", id).send().await;
        response.header("x-request-id").to_owned()
    };

    assert_eq!(ask(behind_proxy.server, "from-the-proxy").await, "from-the-proxy");
    assert_ne!(ask(behind_proxy.server, &"x".repeat(129)).await, "x".repeat(129));
    assert_ne!(ask(app.server, "from-a-client").await, "from-a-client");
}

#[test_on(sqlite, postgres)]
async fn slow_statements_are_logged_without_values(app: TestApp) {
    let buffer = LogBuffer::default();
    let settings = Settings { slow_statement: Some(Duration::from_nanos(1)), ..app.state.settings.clone() };
    let server = app.start_second_server_on(settings, buffer.logger(), ANY_PORT).await;

    let body = json!({ "identification": "ama@example.com", "password": "a-secret-of-hers" });
    app.request("POST", "/sessions").at(server.address).json(&body).send().await;
    app.request("GET", "/accounts?email=ama@example.com").at(server.address).key(&app.staff.key).send().await;

    let lines = buffer.lines();
    let slow: Vec<&Value> = lines.iter().filter(|line| line["msg"] == "a database statement was slow").collect();
    assert!(!slow.is_empty() && slow.iter().all(|line| line["duration_ms"].is_u64()), "{lines:?}");
    assert!(slow.iter().any(|line| line["statement"].as_str().unwrap().contains(' ')), "{slow:?}");
    assert!(!buffer.text().contains("ama@example.com"), "{}", buffer.text());
}

#[test_on(sqlite, postgres)]
async fn slow_statements_name_their_request(app: TestApp) {
    let buffer = LogBuffer::default();
    let settings = Settings { slow_statement: Some(Duration::from_nanos(1)), ..app.state.settings.clone() };
    let server = app.start_second_server_on(settings, buffer.logger(), ANY_PORT).await;

    // One statement is logged per second, which may be that of a job.
    wait_until(async || {
        let found = app.request("GET", "/accounts?email=ama@example.com").at(server.address).key(&app.staff.key).send().await;
        let id = found.header("x-request-id");
        let is_logged = |line: &Value| line["msg"] == "a database statement was slow" && line["request"] == id;
        buffer.lines().iter().any(is_logged)
    })
    .await;
}

/// `packaging/fail2ban/check` runs fail2ban itself.
#[test_on(sqlite, postgres)]
async fn fail2ban_filter_matches_rejected_requests(app: TestApp) {
    let buffer = LogBuffer::default();
    let listener = Listener { access_log_sample: std::num::NonZeroU64::new(1), ..ANY_PORT.into() };
    let settings = Settings { limits: LimitSettings { guesses: 2, ..LimitSettings::default() }, ..app.state.settings.clone() };
    let server = app.start_second_server_on(settings, buffer.logger(), listener).await;
    let log_in = async || {
        let body = json!({ "identification": app.staff.username, "password": "not the password" });
        app.request("POST", "/sessions").at(server.address).json(&body).send().await.status
    };
    let statuses = [
        log_in().await,
        log_in().await,
        log_in().await,
        app.request("GET", "/time").at(server.address).key("an unknown key").send().await.status,
        app.request("GET", "/time").at(server.address).send().await.status,
        app.request("GET", "/regions/17637000000001").at(server.address).send().await.status,
    ];

    let filter = include_str!("../../packaging/fail2ban/filter.d/boxoffice.conf");
    let expressions = filter.lines().skip_while(|line| !line.starts_with("failregex")).take_while(|line| line.contains("msg"));
    let expressions: Vec<Regex> = expressions
        .map(|line| Regex::new(&line.trim_start_matches("failregex =").trim().replace("<HOST>", r"127\.0\.0\.1")).unwrap())
        .collect();
    let text = buffer.text();
    let found = text.lines().filter(|line| expressions.iter().any(|expression| expression.is_match(line))).count();
    assert_eq!((expressions.len(), statuses, found), (3, [401, 401, 429, 403, 200, 404], 4), "{text}");
}
