//! Metrics in the OpenMetrics format.
//!
//! Counters and histograms are recorded where things happen. Gauges of the moment, such as the size of a pool, are set when the
//! metrics are read.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use boxoffice_http::{CloseReason, Connections, RequestLimit};
use chrono::{DateTime, Utc};
use procfs::WithCurrentSystemInfo;
use procfs::process::{LimitValue, Process};
use prometheus_client::encoding::{EncodeLabelSet, text};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Metric, Registry, Unit};

use super::db::{DatabaseMetrics, Label, PoolStatus, durations};
use super::worker_pool::WorkerPoolStatus;

/// The media type of the text that [`Metrics::encode`] returns.
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// A gauge of a value that is not whole.
pub type FloatGauge = Gauge<f64, AtomicU64>;

/// Every metric of the server. [`Metrics::new`] has the help texts.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    /// 1, with the version of the program.
    build: Family<Label, Gauge>,
    requests: Family<RequestLabels, Histogram>,
    in_flight: Gauge,
    /// Requests that count toward the limit.
    in_progress: Gauge,
    max_requests: Gauge,
    connections: Gauge,
    max_connections: Gauge,
    closed_connections: Family<Label, Counter>,
    /// Connections of each pool, in use and idle, and the tasks that wait for one.
    pools: Family<[(&'static str, &'static str); 2], Gauge>,
    /// Hashes of passwords, running and waiting.
    password_hashes: Family<Label, Gauge>,
    /// 1 for each dependency of the readiness that can be used, otherwise 0.
    dependencies: Family<Label, Gauge>,
    /// Free space of the disk of each dependency that is in files of this machine, in bytes.
    disk_free: Family<Label, Gauge>,
    /// Places of the events that are on sale.
    places: Family<Label, Gauge>,
    event_cache: Family<Label, Counter>,
    mails: Gauge,
    /// Age of the oldest of these mails, in seconds.
    oldest_mail: FloatGauge,
    mail_attempts: Family<Label, Counter>,
    refunds: Gauge,
    /// Age of the oldest of these refunds, in seconds.
    oldest_refund: FloatGauge,
    /// Runs of jobs.
    pub jobs: JobMetrics,
    /// Unix time at which the TLS certificate expires. The family is empty without a certificate.
    certificate_expiry: Family<[(&'static str, &'static str); 0], Gauge>,
    process_start: FloatGauge,
    /// CPU time of the process, in seconds.
    process_cpu: FloatGauge,
    /// Resident memory of the process, in bytes.
    process_memory: Gauge,
    process_files: Gauge,
    process_max_files: Gauge,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    operation: String,
    status: u16,
}

/// The result of an attempt to deliver a mail.
#[derive(Debug, Clone, Copy, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum MailResult {
    /// The mail server has accepted it.
    Sent,
    /// It is tried again later.
    Delayed,
    /// It is not tried again.
    GivenUp,
}

/// Metrics of jobs.
#[derive(Debug)]
pub struct JobMetrics {
    failures: Family<Label, Counter>,
    last_success: Family<Label, FloatGauge>,
}

impl JobMetrics {
    /// Begins the count of a job's failures at 0, so that its first failure is an increase, by which an alert sees it.
    pub fn start(&self, job: &'static str) {
        self.failures.get_or_create(&[("job", job)]).inc_by(0);
    }

    /// Records a step of a job.
    pub fn record(&self, job: &'static str, is_success: bool) {
        if is_success {
            self.last_success.get_or_create(&[("job", job)]).set(unix_time());
        } else {
            self.failures.get_or_create(&[("job", job)]).inc();
        }
    }
}

fn set_count(gauge: &Gauge, count: usize) {
    gauge.set(i64::try_from(count).unwrap_or(i64::MAX));
}

/// Returns the seconds since 1970, by the machine's clock.
fn unix_time() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64()
}

/// Registers a new metric and returns it.
fn add<M: Metric + Clone + Default>(registry: &mut Registry, name: &str, help: &str) -> M {
    let metric = M::default();
    registry.register(name, help, metric.clone());
    metric
}

/// Registers a new metric in this unit, which its name ends with, and returns it.
fn add_with_unit<M: Metric + Clone + Default>(registry: &mut Registry, name: &str, unit: Unit, help: &str) -> M {
    let metric = M::default();
    registry.register_with_unit(name, help, unit, metric.clone());
    metric
}

fn register_database(registry: &mut Registry, database: &DatabaseMetrics) {
    let wait = "Time that a request waits for a database connection";
    registry.register_with_unit("database_wait", wait, Unit::Seconds, database.wait.clone());
    registry.register_with_unit("database_commit", "Time of a commit", Unit::Seconds, database.commit.clone());
    registry.register("database_batch_requests", "Requests that are committed together", database.batch.clone());
    let refused = "Connections that PostgreSQL has refused because it has too many";
    registry.register("database_refused_connections", refused, database.refused_connections.clone());
    let reads = "Reads that may use the standby, by the database that they used";
    registry.register("standby_reads", reads, database.standby_reads.clone());
}

impl Metrics {
    /// Creates the metrics with those of a database.
    pub fn new(database: &DatabaseMetrics) -> Self {
        let mut registry = Registry::with_prefix("boxoffice");
        register_database(&mut registry, database);
        // A histogram has no default.
        let requests: Family<RequestLabels, Histogram> = Family::new_with_constructor(durations);
        let help = "Time from the head of a request until its response is ready";
        registry.register_with_unit("request_duration", help, Unit::Seconds, requests.clone());
        let metrics = Self {
            build: add(&mut registry, "build_info", "Version of the program"),
            requests,
            in_flight: add(&mut registry, "requests_in_flight", "Requests whose head has arrived and that have no response yet"),
            in_progress: add(&mut registry, "requests_in_progress", "Requests that are received and have no response"),
            max_requests: add(&mut registry, "max_requests", "Limit of the requests in progress"),
            connections: add(&mut registry, "connections", "Open connections"),
            max_connections: add(&mut registry, "max_connections", "Limit of the open connections"),
            closed_connections: add(&mut registry, "connections_closed", "Connections that were closed at a limit"),
            pools: add(&mut registry, "database_connections", "Database connections, and tasks that wait for one"),
            password_hashes: add(&mut registry, "password_hashes", "Hashes of passwords that run or wait"),
            dependencies: add(&mut registry, "dependency_usable", "Whether a dependency can be used"),
            disk_free: add_with_unit(&mut registry, "disk_free", Unit::Bytes, "Free space of the disk of a dependency"),
            places: add(&mut registry, "places", "Places of the listed events that are not over"),
            event_cache: add(&mut registry, "event_cache_reads", "Reads of an event, from the cache or not"),
            mails: add(&mut registry, "mails_waiting", "Mails that wait to be delivered"),
            oldest_mail: add_with_unit(&mut registry, "oldest_mail_age", Unit::Seconds, "Age of the oldest waiting mail"),
            mail_attempts: add(&mut registry, "mail_attempts", "Attempts to deliver a mail, by result"),
            refunds: add(&mut registry, "refunds_waiting", "Refunds that the payment gateway has not made"),
            oldest_refund: add_with_unit(&mut registry, "oldest_refund_age", Unit::Seconds, "Age of the oldest waiting refund"),
            jobs: JobMetrics {
                failures: add(&mut registry, "job_failures", "Failed runs of a job"),
                last_success: add_with_unit(
                    &mut registry,
                    "job_last_success_timestamp",
                    Unit::Seconds,
                    "Unix time of a job's last successful run",
                ),
            },
            certificate_expiry: add_with_unit(
                &mut registry,
                "tls_certificate_expiry_timestamp",
                Unit::Seconds,
                "Unix time at which the TLS certificate expires",
            ),
            process_start: add_with_unit(
                &mut registry,
                "process_start_time",
                Unit::Seconds,
                "Unix time of the start of the process",
            ),
            process_cpu: add_with_unit(&mut registry, "process_cpu", Unit::Seconds, "CPU time of the process"),
            process_memory: add_with_unit(&mut registry, "process_resident_memory", Unit::Bytes, "Memory of the process"),
            process_files: add(&mut registry, "process_open_files", "Open files of the process"),
            process_max_files: add(&mut registry, "process_max_files", "Limit of the open files of the process"),
            registry,
        };
        // All results exist from the start on, so that the first mail that is given up is an increase.
        for result in [MailResult::Sent, MailResult::Delayed, MailResult::GivenUp] {
            metrics.mail_attempts.get_or_create(&[("result", result.into())]).inc_by(0);
        }
        metrics.build.get_or_create(&[("version", env!("CARGO_PKG_VERSION"))]).set(1);
        // The program creates the metrics at its start. The time is read once, because a later step of the clock is no new start.
        metrics.process_start.set(unix_time());
        metrics
    }

    /// Records a request that was answered.
    pub fn record_request(&self, operation: &str, status: u16, duration: Duration) {
        let labels = RequestLabels { operation: operation.to_owned(), status };
        self.requests.get_or_create(&labels).observe(duration.as_secs_f64());
    }

    /// Sets the number of requests in flight, and the metrics of connections and requests in progress.
    pub fn set_listener(&self, in_flight: usize, connections: &Connections, requests: &RequestLimit) {
        let gauges = [
            (&self.in_flight, in_flight),
            (&self.in_progress, requests.count()),
            (&self.max_requests, requests.maximum()),
            (&self.connections, connections.count()),
            (&self.max_connections, connections.maximum()),
        ];
        for (gauge, value) in gauges {
            set_count(gauge, value);
        }
        for reason in CloseReason::ALL {
            let counter = self.closed_connections.get_or_create(&[("reason", reason.name())]);
            // Two scrapes at the same time must not set it back.
            counter.inner().fetch_max(connections.closed(reason), Ordering::Relaxed);
        }
    }

    /// Sets the gauges of a database pool.
    pub fn set_pool(&self, status: &PoolStatus) {
        let counts = [("used", status.used), ("idle", status.idle), ("waiting", status.waiting)];
        for (state, count) in counts {
            set_count(&self.pools.get_or_create(&[("pool", status.name), ("state", state)]), count);
        }
    }

    /// Sets the numbers of running and waiting hashes of passwords.
    pub fn set_password_hashes(&self, status: &WorkerPoolStatus) {
        for (state, count) in [("running", status.running), ("waiting", status.waiting)] {
            set_count(&self.password_hashes.get_or_create(&[("state", state)]), count);
        }
    }

    /// Sets the number of mails that wait to be delivered, and the age of the oldest.
    pub fn set_mails(&self, count: i64, oldest_age: Duration) {
        self.mails.set(count);
        self.oldest_mail.set(oldest_age.as_secs_f64());
    }

    /// Records an attempt to deliver a mail.
    pub fn record_mail_attempt(&self, result: MailResult) {
        self.mail_attempts.get_or_create(&[("result", result.into())]).inc();
    }

    /// Sets the number of refunds that the payment gateway has not made, and the age of the oldest.
    pub fn set_refunds(&self, count: i64, oldest_age: Duration) {
        self.refunds.set(count);
        self.oldest_refund.set(oldest_age.as_secs_f64());
    }

    /// Sets whether a dependency, with its name in the response of `/readyz`, can be used.
    pub fn set_dependency(&self, dependency: &'static str, is_usable: bool) {
        self.dependencies.get_or_create(&[("dependency", dependency)]).set(i64::from(is_usable));
    }

    /// Sets the free space of the disk of a dependency, with its name in the response of `/readyz`, in bytes.
    pub fn set_disk_free(&self, dependency: &'static str, free: u64) {
        self.disk_free.get_or_create(&[("dependency", dependency)]).set(i64::try_from(free).unwrap_or(i64::MAX));
    }

    /// Sets the numbers of sold, reserved and free places of the listed events that are not over.
    pub fn set_places(&self, sold: i64, reserved: i64, capacity: i64) {
        for (state, count) in [("sold", sold), ("reserved", reserved), ("free", capacity - sold - reserved)] {
            self.places.get_or_create(&[("state", state)]).set(count);
        }
    }

    /// Sets the time at which the TLS certificate expires.
    pub fn set_certificate_expiry(&self, expiry: DateTime<Utc>) {
        self.certificate_expiry.get_or_create(&[]).set(expiry.timestamp());
    }

    /// Sets the metrics of the process, as far as the system shows them.
    pub fn read_process(&self) {
        let Ok(process) = Process::myself() else { return };
        if let Ok(stat) = process.stat() {
            self.process_cpu.set((stat.utime + stat.stime) as f64 / procfs::ticks_per_second() as f64);
            self.process_memory.set(i64::try_from(stat.rss_bytes().get()).unwrap_or(i64::MAX));
        }
        if let Ok(files) = process.fd_count() {
            self.process_files.set(i64::try_from(files).unwrap_or(i64::MAX));
        }
        if let Ok(limits) = process.limits() {
            let maximum = match limits.max_open_files.soft_limit {
                LimitValue::Value(maximum) => i64::try_from(maximum).unwrap_or(i64::MAX),
                LimitValue::Unlimited => i64::MAX,
            };
            self.process_max_files.set(maximum);
        }
    }

    /// Records whether a read of an event was answered from the cache.
    pub fn record_event_read(&self, is_hit: bool) {
        let result = if is_hit { "hit" } else { "miss" };
        self.event_cache.get_or_create(&[("result", result)]).inc();
    }

    /// Returns all metrics as text.
    ///
    /// # Errors
    /// Never in practice: writing to a string doesn't fail.
    pub fn encode(&self) -> anyhow::Result<String> {
        let mut encoded = String::new();
        text::encode(&mut encoded, &self.registry)?;
        Ok(encoded)
    }
}
