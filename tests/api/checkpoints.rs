//! The job that copies SQLite's write-ahead log into the database file.

use std::fs;

use crate::support::{TestApp, wait_until};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn large_wal_is_copied_without_a_commit() {
    let app = TestApp::on_sqlite().await;
    let file = app.database_url.strip_prefix("sqlite:").unwrap().to_owned();
    let size = || fs::metadata(&file).unwrap().len();
    let before = size();

    // About 9 MiB. A commit copies the WAL from 64 MiB on.
    app.execute_sql(
        "insert into audit (at, key_id, operation, resource, status, request)
         with recursive n(i) as (select 1 union all select i + 1 from n where i < 20000)
         select i, i, 'order_create', '/orders', 201, printf('%d %.*c', i, 300, 'x') from n",
    )
    .await;

    wait_until(async || size() > before + (6 << 20)).await;
    app.sign_up("ama").await;
    app.assert_invariants().await;
}
