//! What was measured, as a table and as JSON.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;

use crate::drive::Measured;

/// A scenario's figures.
#[derive(Debug, Serialize)]
pub struct Row {
    /// What was asked.
    pub scenario: String,
    /// Of a server on which database.
    pub database: &'static str,
    /// How many orders there were.
    pub orders: i64,
    /// How many were asked at the same time.
    pub connections: usize,
    /// How often a second it was asked; none where each asks as soon as it is answered.
    pub asked_per_second: Option<f64>,
    /// Successes a second.
    pub per_second: f64,
    /// Milliseconds within which so many of them came.
    pub milliseconds: Percentiles,
    /// How many answers there were of each other status; 0 stands for none at all.
    pub others: BTreeMap<u16, u64>,
    /// Seconds of processor time that the server, without its database, took for 1000 requests.
    pub processor_seconds_per_1000: f64,
    /// The most memory that the server had meanwhile, in MiB.
    pub peak_mebibytes: f64,
    /// How long was measured, in seconds.
    pub seconds: f64,
    /// Whether what could be asked for was used up before the time was over.
    pub is_exhausted: bool,
    /// What the machine allows, in the same run.
    pub yardstick: Option<Yardstick>,
}

/// Latencies, in milliseconds.
#[derive(Debug, Serialize)]
pub struct Percentiles {
    /// Of the median.
    pub p50: f64,
    /// 99 of 100.
    pub p99: f64,
    /// 999 of 1000.
    pub p999: f64,
    /// The last.
    pub max: f64,
}

/// What a scenario is compared with.
#[derive(Debug, Serialize)]
pub struct Yardstick {
    /// What it is.
    pub name: &'static str,
    /// How often a second that was done.
    pub per_second: f64,
    /// The scenario's part of it.
    pub ratio: f64,
}

impl From<&Measured> for Percentiles {
    fn from(measured: &Measured) -> Self {
        let at = |quantile| measured.latencies.value_at_quantile(quantile) as f64 / 1000.0;
        Self { p50: at(0.5), p99: at(0.99), p999: at(0.999), max: measured.latencies.max() as f64 / 1000.0 }
    }
}

/// The heads of the table.
pub const HEADS: &str = "\
scenario        database  orders   req/s    p50 ms   p99 ms  p99.9 ms  CPU s/1000   MiB  yardstick          ratio
--------------  --------  -------  -------  -------  -------  --------  ----------  ----  -----------------  -----";

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Percentiles { p50, p99, p999, .. } = self.milliseconds;
        write!(f, "{:14}  {:8}  {:>7}  ", self.scenario, self.database, self.orders)?;
        write!(f, "{:7.0}  {p50:7.2}  {p99:7.2}  {p999:8.2}  ", self.per_second)?;
        write!(f, "{:10.3}  {:4.0}  ", self.processor_seconds_per_1000, self.peak_mebibytes)?;
        if let Some(Yardstick { name, per_second, ratio }) = &self.yardstick {
            write!(f, "{name:8} {per_second:8.0}  {ratio:5.2}")?;
        }
        for (status, count) in &self.others {
            write!(f, "  {count} x {status}")?;
        }
        if self.is_exhausted { write!(f, "  used up after {:.1} s", self.seconds) } else { Ok(()) }
    }
}
