//! Results, as a table and as JSON.

use std::collections::BTreeMap;
use std::fmt;

use hdrhistogram::Histogram;
use serde::Serialize;

/// Results of a scenario.
#[derive(Debug, Serialize)]
pub struct Row {
    /// The scenario.
    pub scenario: String,
    /// The database of the server.
    pub database: &'static str,
    /// Number of orders in the database beforehand.
    pub orders: i64,
    /// Number of concurrent requests.
    pub connections: usize,
    /// Requests per second in an open loop; `None` in a closed loop.
    pub target_rate: Option<f64>,
    /// Successful responses per second.
    pub per_second: f64,
    /// Latencies of successful responses.
    pub milliseconds: Percentiles,
    /// If some of the requests were log-ins: those of the log-ins, and those of all others.
    pub parts: Option<Parts>,
    /// Number of other responses by status; 0 means no response.
    pub others: BTreeMap<u16, u64>,
    /// The second scenario, if there is one.
    pub beside: Option<Beside>,
    /// CPU seconds of the server, without its database, per 1000 requests of both scenarios.
    pub processor_seconds_per_1000: f64,
    /// Peak memory of the server, in MiB.
    pub peak_mebibytes: f64,
    /// Duration of the measurement, in seconds.
    pub seconds: f64,
    /// True if the requests of a scenario ran out before the end, which ended both.
    pub is_exhausted: bool,
    /// The upper bound on this machine, measured in the same run.
    pub baseline: Option<Baseline>,
}

/// Responses of the second scenario.
#[derive(Debug, Serialize)]
pub struct Beside {
    /// Successful responses per second.
    pub per_second: f64,
    /// Number of other responses by status; 0 means no response.
    pub others: BTreeMap<u16, u64>,
}

/// Latencies of log-ins and of all other requests.
#[derive(Debug, Serialize)]
pub struct Parts {
    /// Log-ins.
    pub log_ins: Percentiles,
    /// All other requests.
    pub without_log_ins: Percentiles,
}

/// Latencies, in milliseconds.
#[derive(Debug, Serialize)]
pub struct Percentiles {
    /// The median.
    pub p50: f64,
    /// The 99th percentile.
    pub p99: f64,
    /// The 99.9th percentile.
    pub p999: f64,
    /// The maximum.
    pub max: f64,
}

/// Baseline of a scenario.
#[derive(Debug, Serialize)]
pub struct Baseline {
    /// The kind of baseline.
    pub name: &'static str,
    /// Operations per second.
    pub per_second: f64,
    /// The scenario's rate divided by the baseline's.
    pub ratio: f64,
}

impl From<&Histogram<u64>> for Percentiles {
    fn from(latencies: &Histogram<u64>) -> Self {
        let at = |quantile| latencies.value_at_quantile(quantile) as f64 / 1000.0;
        Self { p50: at(0.5), p99: at(0.99), p999: at(0.999), max: latencies.max() as f64 / 1000.0 }
    }
}

/// Headings of the table.
pub const HEADINGS: &str = "\
scenario        database  orders   req/s    p50 ms   p99 ms  p99.9 ms  CPU s/1000   MiB  baseline           ratio
--------------  --------  -------  -------  -------  -------  --------  ----------  ----  -----------------  -----";

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Percentiles { p50, p99, p999, .. } = self.milliseconds;
        write!(f, "{:14}  {:8}  {:>7}  ", self.scenario, self.database, self.orders)?;
        write!(f, "{:7.0}  {p50:7.2}  {p99:7.2}  {p999:8.2}  ", self.per_second)?;
        write!(f, "{:10.3}  {:4.0}  ", self.processor_seconds_per_1000, self.peak_mebibytes)?;
        if let Some(Baseline { name, per_second, ratio }) = &self.baseline {
            write!(f, "{name:8} {per_second:8.0}  {ratio:5.2}")?;
        }
        for (status, count) in &self.others {
            write!(f, "  {count} x {status}")?;
        }
        if let Some(Parts { log_ins, without_log_ins }) = &self.parts {
            write!(f, "  p99.9 without log-ins {:.2}, p99 of log-ins {:.0}", without_log_ins.p999, log_ins.p99)?;
        }
        if self.is_exhausted {
            write!(f, "  requests ran out after {:.1} s", self.seconds)?;
        }
        if let Some(Beside { per_second, others }) = &self.beside {
            write!(f, "  second scenario {per_second:.0}/s")?;
            for (status, count) in others {
                write!(f, "  {count} x {status}")?;
            }
        }
        Ok(())
    }
}
