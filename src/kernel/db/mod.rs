//! Both databases: one SQL text, native drivers, transactions that are retried after transient errors.
//!
//! ```ignore
//! transaction!(ctx.unit, |tx| store::insert(tx, &order).await)?;
//! let mut reader = ctx.unit.read().await?;
//! let row: Option<OrderRow> = reader.query("select id, number from orders where id = $1").bind(id).optional().await?;
//! ```

mod batcher;
mod checkpoint;
mod connection_permits;
mod copy;
mod database;
mod database_log;
mod db_version;
mod existing;
mod inspect;
mod location;
mod max_id;
mod metrics;
mod open;
mod open_errors;
mod pages;
mod pool;
mod query;
mod standby;
mod statement;
mod statement_span;
mod transaction;
mod transient;
mod versioned_cache;
mod violation;
mod writes;

pub use batcher::Batcher;
pub use copy::{Checksum, CopySummary, Value as CopiedValue, copy};
pub use database::Db;
pub use db_version::{DbVersion, VersionReader};
pub use existing::back_up_sqlite;
pub use inspect::{DatabaseState, inspect};
pub use location::DatabaseLocation;
pub use metrics::{DatabaseMetrics, Label, PoolStatus, durations};
pub use open::check_version;
pub use pages::{LARGE_PAGE, list_count_sql, permit_page};
pub(crate) use query::define_sql;
pub use query::{DbRow, Param, Scalar, SqlQuery};
pub use standby::check_standby;
pub use statement::{Columns, Statement};
pub use statement_span::summary as statement_summary;
pub use transaction::{Reader, RetryState, StaleRead, Tx};
pub(crate) use transaction::{read_from_standby, transaction};
pub use versioned_cache::VersionedCache;
pub use violation::ViolationExt;
pub use writes::Writes;
