//! Jobs: work that is repeated in the background. Each job's step is a function that a test can call.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use anyhow::anyhow;
use boxoffice_http::ApiError;
use boxoffice_http::error::{Error, Result, one_line};
use futures::FutureExt;
use futures::future::BoxFuture;
use slog::{Logger, error};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{MissedTickBehavior, interval, timeout};

use super::metrics::JobMetrics;

/// A job. `A` is the application's state.
pub struct Job<A: 'static> {
    /// Its name in the log.
    pub name: &'static str,
    /// The pause after a step with nothing to do.
    pub interval: Duration,
    /// Time that a shutdown waits for the step in progress. The step is then dropped, as in a crash: it must leave nothing behind
    /// that the next start does not repair.
    pub shutdown_timeout: Duration,
    /// Does a part of the work and returns its size. It is called again at once until it returns 0.
    pub run_once: fn(Arc<A>) -> BoxFuture<'static, Result<u64>>,
}

/// The running jobs.
#[derive(Debug)]
pub struct Jobs {
    stop: watch::Sender<bool>,
    tasks: Vec<(Duration, JoinHandle<()>)>,
}

impl Jobs {
    /// Starts all jobs.
    pub fn start<A: Send + Sync + 'static>(
        app: &Arc<A>,
        log: &Logger,
        metrics: &JobMetrics,
        jobs: impl IntoIterator<Item = Job<A>>,
    ) -> Self {
        let (stop, stopped) = watch::channel(false);
        let start = |job: Job<A>| {
            let shutdown_timeout = job.shutdown_timeout;
            (shutdown_timeout, tokio::spawn(run(job, Arc::clone(app), log.clone(), metrics.clone(), stopped.clone())))
        };
        Self { stop, tasks: jobs.into_iter().map(start).collect() }
    }

    /// Stops every job once its step is finished, or after its shutdown timeout.
    pub async fn stop(self) {
        self.stop.send_replace(true);
        for (shutdown_timeout, mut task) in self.tasks {
            if timeout(shutdown_timeout, &mut task).await.is_err() {
                task.abort();
                // Its error says only that it was aborted.
                let _aborted = task.await;
            }
        }
    }
}

async fn run<A: Send + Sync + 'static>(
    job: Job<A>,
    app: Arc<A>,
    log: Logger,
    metrics: JobMetrics,
    mut stopped: watch::Receiver<bool>,
) {
    let mut ticks = interval(job.interval);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = ticks.tick() => {}
            _ = stopped.changed() => return,
        }
        loop {
            let done = AssertUnwindSafe((job.run_once)(Arc::clone(&app))).catch_unwind().await;
            let done = done.unwrap_or_else(|_| Err(Error::Internal(anyhow!("the job panicked"))));
            metrics.record(job.name, done.is_ok());
            match done {
                Ok(1..) if !*stopped.borrow() => {}
                Ok(_) => break,
                Err(error) => {
                    let error = ApiError::from(error);
                    error!(log, "the job failed and will be retried"; "job" => job.name,
                        "cause" => error.cause().map(one_line));
                    break;
                }
            }
        }
    }
}
