//! What is on the disk when it is acknowledged, for a machine that loses its power.

use boxoffice::db::Tx;

use crate::plain_tests;
use crate::support::World;

plain_tests![async the_embedded_database_waits_for_the_disk];

/// With a write-ahead log and this setting, every commit waits until the log is on the disk (<https://www.sqlite.org/wal.html>:
/// "Writers sync the WAL on every transaction commit if PRAGMA synchronous is set to FULL").
async fn the_embedded_database_waits_for_the_disk() {
    const FULL: i64 = 2;
    let world = World::on_sqlite().await;
    let mut tx: Tx = world.app.db.begin().await.unwrap();

    assert_eq!(tx.query("pragma journal_mode").scalar::<String>().await.unwrap(), "wal");
    assert_eq!(tx.query("pragma synchronous").scalar::<i64>().await.unwrap(), FULL);
}
