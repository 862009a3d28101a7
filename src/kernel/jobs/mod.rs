//! Jobs: work that is repeated in the background. Each job's step is a function that a test can call.
//!
//! Of several servers, one runs a job that [`runs_on_one_server`](Job::runs_on_one_server): it holds a lease in the database and
//! renews it with each run, and between the steps of a long one. All servers run the other jobs, whose steps claim rows so that none is
//! processed twice.

mod runs;

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use anyhow::anyhow;
use boxoffice_http::error::{Error, Result};
use futures::FutureExt;
use futures::future::{BoxFuture, join_all};
pub use runs::{JobRun, last_runs};
use slog::{debug, error};
use tokio::task::JoinHandle;
use tokio::time::{Instant, MissedTickBehavior, interval_at, timeout};

use super::Kernel;
use super::db::transaction;
use super::http::AppState;

/// Pause between the first runs of two jobs. At a start, most statements are not yet prepared and few connections are open: the jobs
/// share them with the first requests.
const START_PAUSE: Duration = Duration::from_millis(200);
/// Interval at which a successful run of a frequent job is stored, so that not every run writes.
const RECORD_INTERVAL: Duration = Duration::from_secs(60);
/// Time limit for giving up the leases when the server stops.
const RELEASE_TIMEOUT: Duration = Duration::from_secs(2);

/// A job. `A` is the application's state.
pub struct Job<A: 'static> {
    /// Its name in the log.
    pub name: &'static str,
    /// The pause after a step with nothing to do.
    pub interval: Duration,
    /// Time that a shutdown waits for the step in progress. The step is then dropped, as in a crash: it must leave nothing behind
    /// that the next start does not repair.
    pub shutdown_timeout: Duration,
    /// True if one server runs it for all.
    pub runs_on_one_server: bool,
    /// True if its work is in the memory of a server, where another program can't do it.
    pub is_in_memory: bool,
    /// Does a part of the work and returns its size. It is called again at once until it returns 0.
    pub step: fn(Arc<A>) -> BoxFuture<'static, Result<u64>>,
}

impl<A: 'static> Job<A> {
    /// Declares a job that every server runs after a pause in seconds, and for whose step a shutdown waits 5 seconds.
    pub const fn every(seconds: u64, name: &'static str, step: fn(Arc<A>) -> BoxFuture<'static, Result<u64>>) -> Self {
        let (interval, shutdown_timeout) = (Duration::from_secs(seconds), Duration::from_secs(5));
        Self { name, interval, shutdown_timeout, runs_on_one_server: false, is_in_memory: false, step }
    }

    /// Declares that its step may take long: a shutdown waits a minute for it.
    pub const fn with_long_steps(mut self) -> Self {
        self.shutdown_timeout = Duration::from_secs(60);
        self
    }

    /// Declares that its work is in the memory of a server.
    pub const fn in_memory(mut self) -> Self {
        self.is_in_memory = true;
        self
    }

    /// Has one server run it for all.
    pub const fn on_one_server(mut self) -> Self {
        self.runs_on_one_server = true;
        self
    }
}

/// The running jobs.
pub struct Jobs {
    kernel: Arc<Kernel>,
    tasks: Vec<(Duration, JoinHandle<()>)>,
}

impl Jobs {
    /// Starts all jobs, one after the other.
    pub fn start<A: AppState>(app: &Arc<A>, jobs: impl IntoIterator<Item = Job<A>>) -> Self {
        let now = Instant::now();
        let start = |(job, number): (Job<A>, u32)| {
            let shutdown_timeout = job.shutdown_timeout;
            app.kernel().metrics.jobs.start(job.name);
            (shutdown_timeout, tokio::spawn(repeat(job, Arc::clone(app), now + START_PAUSE * number)))
        };
        Self { kernel: Arc::clone(app.kernel()), tasks: jobs.into_iter().zip(0..).map(start).collect() }
    }

    /// Stops every job once its step is finished, or after its shutdown timeout.
    pub async fn stop(&mut self) {
        self.kernel.stopping.send_replace(true);
        let ends = self.tasks.drain(..).map(|(shutdown_timeout, mut task)| async move {
            if timeout(shutdown_timeout, &mut task).await.is_err() {
                task.abort();
                // Its error says only that it was aborted.
                let _aborted = task.await;
            }
        });
        join_all(ends).await;
        // Without this, the leases end by themselves.
        let kernel = &self.kernel;
        let _released =
            timeout(RELEASE_TIMEOUT, async { transaction!(kernel.db, |tx| runs::release(tx, &kernel.server_name).await) }).await;
    }
}

/// Runs a job at each tick of its interval from `start` on, until the server stops.
async fn repeat<A: AppState>(job: Job<A>, app: Arc<A>, start: Instant) {
    let kernel = app.kernel();
    let mut stopping = kernel.stopping.subscribe();
    let mut ticks = interval_at(start, job.interval);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    // The time and the outcome of the last run that was stored.
    let mut recorded: Option<(Instant, bool)> = None;
    loop {
        // A tick is due when a run took longer than the interval, as in an outage. The server still stops.
        tokio::select! {
            biased;
            _ = stopping.wait_for(|is_stopping| *is_stopping) => return,
            _ = ticks.tick() => {}
        }
        let leased = job.runs_on_one_server.then(Instant::now);
        if leased.is_some() && !lease(&job, kernel).await {
            continue;
        }
        let run = run_to_end(&job, &app, leased).await;
        if kernel.is_stopping() {
            return;
        }
        let is_due = recorded.is_none_or(|(at, success)| success != run.is_success || at.elapsed() >= RECORD_INTERVAL);
        if is_due && record(kernel, &run).await {
            recorded = Some((Instant::now(), run.is_success));
        }
    }
}

/// Leases a job to this server until well after its next run. Returns whether it may run.
async fn lease<A>(job: &Job<A>, kernel: &Kernel) -> bool {
    let now = kernel.clock.now();
    let until = now.plus(job.interval + job.interval / 2);
    match transaction!(kernel.db, |tx| runs::lease(tx, job.name, &kernel.server_name, now, until).await) {
        Ok(is_leased) => is_leased,
        Err(error) => {
            kernel.metrics.jobs.record(job.name, false);
            log_failure(job.name, kernel, &error.into_log_text());
            false
        }
    }
}

/// Runs a job now, whichever server holds its lease, and stores the outcome.
pub async fn run_now<A: AppState>(job: &Job<A>, app: &Arc<A>) -> JobRun {
    let run = run_to_end(job, app, None).await;
    record(app.kernel(), &run).await;
    run
}

/// Calls the step of a job until there is nothing more to do, it fails, or the server stops. If the job was leased, it renews the lease
/// between steps, and ends when another server has it.
async fn run_to_end<A: AppState>(job: &Job<A>, app: &Arc<A>, mut leased: Option<Instant>) -> JobRun {
    let kernel = app.kernel();
    let (started, mut processed) = (kernel.clock.now(), 0);
    let failure = loop {
        let done = AssertUnwindSafe((job.step)(Arc::clone(app))).catch_unwind().await;
        let done = done.unwrap_or_else(|_| Err(Error::Internal(anyhow!("the job panicked"))));
        kernel.metrics.jobs.record(job.name, done.is_ok());
        match done {
            Ok(count) => {
                processed += count;
                if count == 0 || kernel.is_stopping() {
                    break None;
                }
                if leased.is_some_and(|at| at.elapsed() >= job.interval / 2) {
                    leased = Some(Instant::now());
                    if !lease(job, kernel).await {
                        break None;
                    }
                }
            }
            Err(error) => break Some(error.into_log_text()),
        }
    };
    if let Some(cause) = &failure {
        log_failure(job.name, kernel, cause);
    }
    JobRun {
        name: job.name.to_owned(),
        server: kernel.server_name.clone(),
        started,
        finished: Some(kernel.clock.now()),
        is_success: failure.is_none(),
        processed: i64::try_from(processed).unwrap_or(i64::MAX),
        error: failure.unwrap_or_default(),
    }
}

/// Writes to the database, to check that this is possible: stores the time in the table of the jobs, in a row that belongs to no job and
/// is in no list. It commits the row, because SQLite doesn't notice a full disk before.
///
/// # Errors
/// Returns an error if the database rejects changes.
pub async fn check_writable(kernel: &Kernel) -> Result<()> {
    let now = kernel.clock.now();
    let run = JobRun {
        name: "check the database".to_owned(),
        server: kernel.server_name.clone(),
        started: now,
        finished: Some(now),
        is_success: true,
        processed: 0,
        error: String::new(),
    };
    transaction!(kernel.db, |tx| runs::record(tx, &run).await)
}

fn log_failure(job: &str, kernel: &Kernel, cause: &str) {
    error!(kernel.log, "the job failed and will be retried"; "job" => job, "cause" => cause);
}

/// Stores the outcome of a run for the operator. Returns whether that succeeded.
async fn record(kernel: &Kernel, run: &JobRun) -> bool {
    match transaction!(kernel.db, |tx| runs::record(tx, run).await) {
        Ok(()) => true,
        Err(error) => {
            debug!(kernel.log, "the run of a job could not be recorded"; "job" => &run.name, "cause" => error.into_log_text());
            false
        }
    }
}
