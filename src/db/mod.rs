//! The door to both databases: one SQL text, native drivers, transactions that are run again when the database asks for it.
//!
//! ```ignore
//! transaction!(app.db, |tx| store::insert(tx, &order).await)?;
//! let mut tx = app.db.read().await?;
//! let row: Option<OrderRow> = tx.query("select * from orders where id = $1").bind(id).optional().await?;
//! ```

mod batches;
mod column;
mod condition;
mod identifiers;
mod insert;
mod lent;
mod outage;
mod pool;
mod query;
mod remembered;
mod snapshot;
mod statement;
mod unit;
mod violation;

pub use batches::Batcher;
pub use condition::Precondition;

pub(crate) use pool::transaction;
pub use pool::{Db, RetryState, Tx};
pub use query::{DbRow, Param, Query, Scalar};
pub use remembered::VersionedCache;
pub use snapshot::{DbVersion, SnapshotReader};
pub use statement::{Statement, Values};
pub use unit::{BeginHook, UnitOfWork, after_commit, commit_now};
pub use violation::{Violation, ViolationExt};
