//! Macros that turn an `async fn(TestApp)` into standard `#[tokio::test]` functions, and the functions they call.

use super::TestApp;

/// Declares two tests, `NAME::sqlite` and `NAME::postgres`, for each named `async fn(TestApp)`.
#[macro_export]
macro_rules! on_both_databases {
    ($($test:ident),* $(,)?) => {$(
        mod $test {
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn sqlite() {
                $crate::support::run_on_sqlite(super::$test).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn postgres() {
                $crate::support::run_on_postgres(super::$test).await;
            }
        }
    )*};
}

/// Declares the test `NAME::two_servers` for each named `async fn(TestApp)`: two servers share one PostgreSQL database.
#[macro_export]
macro_rules! on_two_servers {
    ($($test:ident),* $(,)?) => {$(
        mod $test {
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn two_servers() {
                $crate::support::run_on_two_servers(super::$test).await;
            }
        }
    )*};
}

/// Declares three tests for each named `async fn(TestApp)` with concurrent requests: `NAME::sqlite`, `NAME::postgres` and
/// `NAME::two_servers`.
#[macro_export]
macro_rules! race_tests {
    ($($test:ident),* $(,)?) => {$(
        mod $test {
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn sqlite() {
                $crate::support::run_on_sqlite(super::$test).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn postgres() {
                $crate::support::run_on_postgres(super::$test).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn two_servers() {
                $crate::support::run_on_two_servers(super::$test).await;
            }
        }
    )*};
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
