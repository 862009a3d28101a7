//! The door to both databases: one SQL text, native drivers, transactions that are run again when the database asks for it.
//!
//! ```ignore
//! transaction!(app.db, |tx| store::insert(tx, &order).await)?;
//! let mut tx = app.db.read().await?;
//! let row: Option<OrderRow> = tx.query("select * from orders where id = $1").bind(id).optional().await?;
//! ```

mod batcher;
mod pg_array;
mod precondition;
mod max_id;
mod insert;
mod pool;
mod transient;
mod transaction;
mod query;
mod versioned_cache;
mod snapshot;
mod statement;
mod unit_of_work;
mod violation;

pub use batcher::Batcher;
pub use precondition::Precondition;

pub(crate) use transaction::transaction;
pub use transaction::{Db, RetryState, Tx};
pub use query::{DbRow, Param, Query, Scalar};
pub use versioned_cache::VersionedCache;
pub use snapshot::{DbVersion, SnapshotReader};
pub use statement::{Statement, Values};
pub use unit_of_work::{BeginHook, UnitOfWork, after_commit, commit_now};
pub use violation::{Violation, ViolationExt};
