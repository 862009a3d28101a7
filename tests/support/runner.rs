//! Macros that turn an `async fn(TestApp)` into standard `#[tokio::test]` functions, and the functions they call.

use std::env;

use super::TestApp;

/// Declares a module of tests for each named `async fn(TestApp)`, with a test for each way to run it.
macro_rules! tests_on {
    ([$($test:ident),* $(,)?] $runs:tt) => { $(tests_on!(@module $test $runs);)* };
    (@module $test:ident { $($name:ident: $run:ident),* }) => {
        mod $test {
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $name() {
                    $crate::support::$run(super::$test).await;
                }
            )*
        }
    };
}

/// Declares two tests, `NAME::sqlite` and `NAME::postgres`, for each named `async fn(TestApp)`.
macro_rules! on_both_databases {
    ($($test:tt)*) => { tests_on!([$($test)*] { sqlite: run_on_sqlite, postgres: run_on_postgres }); };
}

/// Declares the test `NAME::two_servers` for each named `async fn(TestApp)`: two servers share one PostgreSQL database.
macro_rules! on_two_servers {
    ($($test:tt)*) => { tests_on!([$($test)*] { two_servers: run_on_two_servers }); };
}

/// Declares three tests for each named `async fn(TestApp)` with concurrent requests: `NAME::sqlite`, `NAME::postgres` and
/// `NAME::two_servers`.
macro_rules! race_tests {
    ($($test:tt)*) => {
        tests_on!([$($test)*] { sqlite: run_on_sqlite, postgres: run_on_postgres, two_servers: run_on_two_servers });
    };
}

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
