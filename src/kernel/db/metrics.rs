//! Metrics of a database, shared by its pools.

use std::sync::OnceLock;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};

use super::database_log::DatabaseLog;

/// Histograms of times in seconds and of the size of batches, counters, and the log.
#[derive(Debug)]
pub struct DatabaseMetrics {
    /// Time that a request waits for a connection.
    pub wait: Histogram,
    /// Time of a commit.
    pub commit: Histogram,
    /// Requests in a group commit.
    pub batch: Histogram,
    /// Reads that may use the standby.
    pub standby_reads: Family<Label, Counter>,
    /// Connections that PostgreSQL has refused because it has too many.
    pub refused_connections: Counter,
    /// The log, once the kernel has set it.
    pub(super) log: OnceLock<DatabaseLog>,
}

impl Default for DatabaseMetrics {
    fn default() -> Self {
        Self {
            wait: durations(),
            commit: durations(),
            batch: Histogram::new(exponential_buckets(1.0, 2.0, 8)),
            standby_reads: Family::default(),
            refused_connections: Counter::default(),
            log: OnceLock::new(),
        }
    }
}

/// The name and the value of a label.
pub type Label = [(&'static str, &'static str); 1];

impl DatabaseMetrics {
    /// Counts a read that may use the standby. The result is `standby` or `primary`, and `repeated` for one that has failed on the
    /// standby and was run on the primary.
    pub(super) fn record_standby_read(&self, result: &'static str) {
        self.standby_reads.get_or_create(&[("result", result)]).inc();
    }
}

/// A histogram of durations from a tenth of a millisecond to 13 seconds.
pub fn durations() -> Histogram {
    Histogram::new(exponential_buckets(0.0001, 2.0, 18))
}

/// Connections of a pool at the moment.
#[derive(Debug)]
pub struct PoolStatus {
    /// The name of the pool.
    pub name: &'static str,
    /// Connections in use.
    pub used: usize,
    /// Open connections that are not in use.
    pub idle: usize,
    /// Tasks that wait for a connection.
    pub waiting: usize,
}
