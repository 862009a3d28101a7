//! Metrics of a database, shared by its pools.

use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};

use super::slow_statements::SlowStatements;

/// Histograms of times in seconds, and of the size of batches.
#[derive(Debug)]
pub struct DatabaseMetrics {
    /// Time that a request waits for a connection.
    pub wait: Histogram,
    /// Time of a commit.
    pub commit: Histogram,
    /// Requests in a group commit.
    pub batch: Histogram,
    /// Log of slow statements.
    pub slow_statements: SlowStatements,
}

impl Default for DatabaseMetrics {
    fn default() -> Self {
        Self {
            wait: durations(),
            commit: durations(),
            batch: Histogram::new(exponential_buckets(1.0, 2.0, 8)),
            slow_statements: SlowStatements::default(),
        }
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
