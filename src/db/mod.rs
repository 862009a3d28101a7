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

pub use batches::Batches;
pub use condition::Condition;

pub(crate) use pool::transaction;
pub use pool::{Attempts, Db, Tx};
pub use query::{Param, Query, Record, Scalar};
pub use remembered::Remembered;
pub use snapshot::{Observer, Snapshot};
pub use statement::{Statement, Values};
pub use unit::{Opening, Unit, afterwards, settle};
pub use violation::{Violation, ViolationExt};
