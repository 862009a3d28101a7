//! The functions that run a test on a database. The attribute `test_on(NAME)` (`tests/macros`) calls `run_on_NAME`.

use std::env;

use super::TestApp;

/// Runs a test on a fresh SQLite database.
pub async fn run_on_sqlite<F: Future<Output = ()>>(test: fn(TestApp) -> F) {
    test(TestApp::on_sqlite().await).await;
}

/// Runs a test on a fresh PostgreSQL database. Without PostgreSQL the test does nothing; `postgres` prints that once.
pub async fn run_on_postgres<F: Future<Output = ()>>(test: fn(TestApp) -> F) {
    if let Some(app) = TestApp::on_postgres().await {
        test(app).await;
    }
}

/// Runs a test on two servers that share a fresh PostgreSQL database, if there is a PostgreSQL.
pub async fn run_on_two_servers<F: Future<Output = ()>>(test: fn(TestApp) -> F) {
    if let Some(app) = TestApp::on_two_servers().await {
        test(app).await;
    }
}

/// Returns the number of rounds of a race: by default `few`, and `all` with `BOXOFFICE_RACES=full`.
pub fn race_rounds(few: usize, all: usize) -> usize {
    if env::var("BOXOFFICE_RACES").is_ok_and(|form| form == "full") { all } else { few }
}
