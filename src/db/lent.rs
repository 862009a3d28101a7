//! A connection to PostgreSQL that is given back, whatever has become of its server.

use std::ops::{Deref, DerefMut};
use std::time::Duration;

use sqlx::pool::PoolConnection;
use sqlx::{Executor, PgConnection, PgPool, Postgres};
use tokio::time::timeout;

use super::outage::in_time;
use crate::error::Result;

/// How long a connection may take to be given back, with what was done on it rolled back. Longer, and it is closed.
const PATIENCE: Duration = Duration::from_secs(1);
const LENT: &str = "the connection is here until this is dropped";

/// A connection out of a pool.
///
/// sqlx gives one back by asking it whether it is alive, and waits without end for its answer: the place of one that was cut off
/// without a word would never be free again. So it is given back from here, within a limit.
#[derive(Debug)]
pub struct Lent {
    connection: Option<PoolConnection<Postgres>>,
    is_in_transaction: bool,
}

impl From<PoolConnection<Postgres>> for Lent {
    fn from(connection: PoolConnection<Postgres>) -> Self {
        Self { connection: Some(connection), is_in_transaction: false }
    }
}

impl Lent {
    /// Begins a transaction on a connection out of this pool.
    pub(super) async fn begin(pool: &PgPool) -> Result<Self> {
        let mut lent = Self::from(pool.acquire().await?);
        // Before there is an answer, which may be given up.
        lent.is_in_transaction = true;
        in_time(lent.execute("begin")).await?;
        Ok(lent)
    }

    /// Commits what was done.
    pub(super) async fn commit(mut self) -> Result<()> {
        in_time(self.execute("commit")).await?;
        self.is_in_transaction = false;
        Ok(())
    }
}

impl Deref for Lent {
    type Target = PgConnection;

    fn deref(&self) -> &PgConnection {
        self.connection.as_ref().expect(LENT)
    }
}

impl DerefMut for Lent {
    fn deref_mut(&mut self) -> &mut PgConnection {
        self.connection.as_mut().expect(LENT)
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        let Some(mut connection) = self.connection.take() else { return };
        let is_in_transaction = self.is_in_transaction;
        tokio::spawn(async move {
            let rolled_back = async { if is_in_transaction { connection.execute("rollback").await.is_ok() } else { true } };
            if timeout(PATIENCE, rolled_back).await.unwrap_or(false) {
                // Given up, it is closed, and its place is free.
                let _is_back = timeout(PATIENCE, connection.return_to_pool()).await;
            } else {
                // Closed outside the pool, which ends its transaction.
                drop(connection.detach());
            }
        });
    }
}
