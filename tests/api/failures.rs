//! Every operation with an unknown resource, without a database, and without tables.

use std::io;
use std::sync::{Arc, Mutex};

use boxoffice_http::error::Code;
use boxoffice_openapi::Scope;
use serde_json::{Value, json};
use slog::{Drain, Logger, o};

use crate::support::{ANY_PORT, Operation, Response, TestApp, operations, test_on};

/// Sends an operation's example with the highest scope that needs no event.
async fn send_example(app: &TestApp, operation: &Operation) -> Response {
    let is_for_staff = operation.scopes.contains(&Scope::Administrator);
    operation.send(app, |request| if is_for_staff { request.key(&app.staff.key) } else { request }).await
}

fn assert_failed_inside(response: &Response, operation: &Operation) {
    let message = "There was a server error while excuting this request. Please see system logs for details.";
    let expected = json!({ "message": message, "code": "server.error" });
    assert_eq!((response.status, &response.body), (500, &expected), "{}", operation.id);
}

fn assert_unavailable(response: &Response, operation: &Operation) {
    let expected = json!({ "error": Code::SERVER_UNAVAILABLE.text(), "code": "server.unavailable" });
    assert_eq!((response.status, &response.body), (503, &expected), "{}", operation.id);
    assert_eq!(response.header("retry-after"), "1", "{}", operation.id);
}

#[test_on(sqlite, postgres)]
async fn every_operation_returns_unavailable_without_database(app: TestApp) {
    app.state.db.close().await;
    for operation in operations() {
        assert_unavailable(&send_example(&app, operation).await, operation);
    }
}

/// The key lookup still succeeds, so the failure occurs in the operation itself.
#[test_on(sqlite, postgres)]
async fn every_operation_returns_server_error_without_tables(app: TestApp) {
    app.allow_server_errors();
    let (for_keys, others): (Vec<_>, Vec<_>) =
        app.tables().await.into_iter().partition(|table| ["accounts", "api_keys"].contains(&table.as_str()));
    rename_tables(&app, others).await;
    let mut failed = 0;
    for operation in operations() {
        let response = send_example(&app, operation).await;

        if response.status == 500 {
            assert_failed_inside(&response, operation);
            failed += 1;
        }
    }
    // The other operations read accounts and keys only, read no table, or reject the example earlier.
    assert!(failed * 4 > operations().len() * 3, "only {failed}");

    rename_tables(&app, for_keys).await;
    for operation in operations() {
        assert_failed_inside(&send_example(&app, operation).await, operation);
    }
}

/// Renames these tables: that keeps references to them intact on both databases.
async fn rename_tables(app: &TestApp, tables: Vec<String>) {
    for table in tables {
        app.execute_sql(format!("alter table {table} rename to gone_{table}").leak()).await;
    }
}

/// A log in memory.
#[derive(Clone, Default)]
pub struct LogBuffer(Arc<Mutex<Vec<u8>>>);

impl LogBuffer {
    /// A log that writes JSON lines into the buffer.
    pub fn logger(&self) -> Logger {
        Logger::root(Mutex::new(slog_json::Json::default(self.clone())).fuse(), o!())
    }

    pub fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }

    pub fn lines(&self) -> Vec<Value> {
        self.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

impl io::Write for LogBuffer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test_on(sqlite, postgres)]
async fn error_cause_is_logged_but_not_sent(app: TestApp) {
    let ama = app.sign_up("ama").await;
    let log = LogBuffer::default();
    let broken = app.start_second_server_on(app.state.settings.clone(), log.logger(), ANY_PORT).await;
    let keys = [&app.public_key, &ama.key, &app.staff.key];
    for key in keys {
        assert_eq!(app.request("GET", "/regions").at(broken.address).key(key).send().await.status, 200);
    }
    broken.state.db.close().await;

    let mut failed = Vec::new();
    for operation in operations() {
        for key in keys {
            let response = operation.send(&app, |request| request.at(broken.address).key(key)).await;
            assert_unavailable(&response, operation);
            failed.push((response.header("x-request-id").to_owned(), operation.id.clone()));
        }
    }

    let (text, lines) = (log.text(), log.lines());
    for (request, operation) in failed {
        let output = lines.iter().filter(|line| line["request"] == request.as_str() && line["msg"] == "unavailable");
        let output: Vec<_> = output.map(|line| (&line["operation"], line["cause"].as_str().unwrap_or_default())).collect();
        assert!(output.len() == 1 && output[0].0 == &operation && output[0].1.contains("closed pool"), "{request}: {output:?}");
    }
    let errors = lines.iter().filter(|line| line["level"] == "ERRO" && line["msg"] == "unavailable").count();
    assert!((1..=100).contains(&errors), "{errors} lines, although one a second is allowed");
    for key in keys {
        assert!(!text.contains(key.as_str()), "a key is in the log");
    }
}
