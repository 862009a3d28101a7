//! Work that runs beside the requests: orders whose reservations are over are timed out, and the gateway is asked for what it has
//! still to undo or to give back; mail is delivered; answers that are kept for retries are forgotten. Each job's step is a function
//! that a test can call; here they are only repeated.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use anyhow::anyhow;
use futures::FutureExt;
use futures::future::BoxFuture;
use slog::error;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{MissedTickBehavior, interval, timeout};

use crate::state::App;
use boxoffice_http::error::{Error, Result};
use crate::kernel::http::ApiError;
use crate::kernel::journal;
use crate::features::sales::orders;
use crate::kernel::outbox;

/// Work to be repeated.
#[derive(Clone, Copy)]
struct Job {
    /// What the log calls it.
    name: &'static str,
    /// How long it rests when there is nothing to do.
    interval: Duration,
    /// How long a stop waits for the step that is under way. Then the step is dropped, as when the machine fails: it must leave
    /// nothing behind that the next start doesn't put right.
    shutdown_timeout: Duration,
    /// Does a part of the work and tells how much that was; called again at once until it was none.
    run_once: for<'a> fn(&'a App) -> BoxFuture<'a, Result<u64>>,
}

/// Every job.
const JOBS: [Job; 3] = [
    // Readers and buyers don't wait for it: to them a reservation that has run out is over at once.
    Job {
        name: "expire reservations",
        interval: Duration::from_secs(5),
        shutdown_timeout: Duration::from_secs(60),
        run_once: |app| orders::expire_due(app).boxed(),
    },
    Job {
        name: "deliver mail",
        interval: Duration::from_secs(1),
        shutdown_timeout: Duration::from_secs(5),
        run_once: |app| outbox::deliver_due(app).boxed(),
    },
    Job {
        name: "forget answers",
        interval: Duration::from_secs(60),
        shutdown_timeout: Duration::from_secs(5),
        run_once: |app| journal::purge_expired(app).boxed(),
    },
];

/// The jobs that run.
#[derive(Debug)]
pub struct Jobs {
    stop: watch::Sender<bool>,
    tasks: Vec<(Duration, JoinHandle<()>)>,
}

impl Jobs {
    /// Starts every job.
    pub fn start(app: &Arc<App>) -> Self {
        let (stop, stopped) = watch::channel(false);
        let start = |job: Job| (job.shutdown_timeout, tokio::spawn(run(job, Arc::clone(app), stopped.clone())));
        Self { stop, tasks: JOBS.map(start).into() }
    }

    /// Lets every job finish its step, if that doesn't take too long, and ends them.
    pub async fn stop(self) {
        self.stop.send_replace(true);
        for (patience, mut task) in self.tasks {
            if timeout(patience, &mut task).await.is_err() {
                task.abort();
                // It was ended, which is no news.
                let _aborted = task.await;
            }
        }
    }
}

async fn run(job: Job, app: Arc<App>, mut stopped: watch::Receiver<bool>) {
    let mut ticks = interval(job.interval);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = ticks.tick() => {}
            _ = stopped.changed() => return,
        }
        loop {
            let done = AssertUnwindSafe((job.run_once)(&app)).catch_unwind().await;
            match done.unwrap_or_else(|_| Err(Error::Internal(anyhow!("the job panicked")))) {
                Ok(1..) if !*stopped.borrow() => {}
                Ok(_) => break,
                Err(error) => {
                    let failure = ApiError::from(error);
                    error!(app.log, "the job failed and will be tried again"; "job" => job.name,
                        "cause" => failure.cause().map(|cause| format!("{cause:#}")));
                    break;
                }
            }
        }
    }
}
