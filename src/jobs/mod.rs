//! Work that runs beside the requests. Each job's step is a function that a test can call; here they are only repeated.

use std::sync::Arc;
use std::time::Duration;

use slog::error;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{MissedTickBehavior, interval};

use crate::app::App;
use crate::error::Error;
use crate::http::Failure;
use crate::orders;

/// How often reservations that have run out are released. Readers and buyers don't wait for it: to them they are over at once.
const EXPIRY: Duration = Duration::from_secs(5);

/// The jobs that run.
#[derive(Debug)]
pub struct Jobs {
    stop: watch::Sender<bool>,
    tasks: Vec<JoinHandle<()>>,
}

impl Jobs {
    /// Starts every job.
    pub fn start(app: &Arc<App>) -> Self {
        let (stop, stopped) = watch::channel(false);
        Self { stop, tasks: vec![tokio::spawn(expire_reservations(Arc::clone(app), stopped))] }
    }

    /// Lets every job finish its step, and ends them.
    pub async fn stop(self) {
        self.stop.send_replace(true);
        for task in self.tasks {
            // A job that panicked has said so; there is nothing left to stop.
            let _ended = task.await;
        }
    }
}

async fn expire_reservations(app: Arc<App>, mut stopped: watch::Receiver<bool>) {
    let mut ticks = interval(EXPIRY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = ticks.tick() => {}
            _ = stopped.changed() => return,
        }
        if let Err(error) = until_done(&app).await {
            let failure = Failure::from(error);
            error!(app.log, "the job failed and will be tried again"; "job" => "expire reservations",
                "cause" => failure.cause().map(|cause| format!("{cause:#}")));
        }
    }
}

async fn until_done(app: &App) -> Result<(), Error> {
    while orders::expire_due(app).await? > 0 {}
    Ok(())
}
