//! Durability of acknowledged changes on a power failure.

use boxoffice::kernel::db::Tx;

use crate::support::TestApp;

/// With a write-ahead log and this setting, every commit waits for the disk (<https://www.sqlite.org/wal.html>: "Writers sync the
/// WAL on every transaction commit if PRAGMA synchronous is set to FULL").
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sqlite_syncs_every_commit() {
    const FULL: i64 = 2;
    let app = TestApp::on_sqlite().await;
    let mut tx: Tx = app.state.db.begin().await.unwrap();

    assert_eq!(tx.query("pragma journal_mode").scalar::<String>().await.unwrap(), "wal");
    assert_eq!(tx.query("pragma synchronous").scalar::<i64>().await.unwrap(), FULL);
}
