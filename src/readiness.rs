//! Readiness: the checks of what the server depends on.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::anyhow;
use boxoffice_http::error::one_line;
use tokio::sync::Mutex;
use tokio::time::timeout;

use crate::kernel::db::Batcher;
use crate::kernel::{disk_space, jobs};
use crate::state::App;

/// Requests for the readiness that share one check.
const MAX_READINESS_REQUESTS: usize = 1000;
/// Time limit of the check of one dependency.
pub const CHECK_TIMEOUT: Duration = Duration::from_secs(2);
/// Time limit of the check of the image store, below the usual interval of health checks: one that hangs must not delay the others.
const MEDIA_CHECK_TIMEOUT: Duration = Duration::from_millis(500);
/// Time for which a write to the database proves that it can be written, so that frequent checks cost nothing.
const WRITE_INTERVAL: Duration = Duration::from_secs(5);
/// Time after the last write, or the start, from which a write that takes longer than [`CHECK_TIMEOUT`] is a failure. Before,
/// another program may hold SQLite's lock for a moment.
const MAX_WRITE_AGE: Duration = Duration::from_secs(15);

/// The name of the database in the results.
const DATABASE: &str = "database";
/// The name of the image store in the results.
pub const MEDIA: &str = "media";

/// The results of all checks.
pub type Readiness = Vec<(&'static str, bool)>;

/// The state of the checks of the dependencies.
pub struct ReadinessState {
    /// Runs one check at a time. Requests that arrive during a check share the next one.
    batcher: Arc<Batcher<(), (), Readiness>>,
    /// The moment at which the database was opened.
    opened: Instant,
    /// The moment at which a check has last written to the database.
    last_write: Mutex<Option<Instant>>,
}

impl ReadinessState {
    /// Creates the state of checks that have not run yet. The database was opened at this moment.
    pub fn new(opened: Instant) -> Self {
        Self { batcher: Batcher::of(MAX_READINESS_REQUESTS), opened, last_write: Mutex::default() }
    }
}

/// Checks all dependencies, once for all requests that wait for it.
pub async fn check(app: &Arc<App>) -> Readiness {
    let checking = Arc::clone(app);
    let check = move |(), _| {
        let app = Arc::clone(&checking);
        async move { Ok(check_dependencies(&app).await) }
    };
    app.readiness.batcher.submit_shared((), (), check).await.unwrap_or_default()
}

/// Checks all dependencies at the same time. Logs the reason of each failure.
async fn check_dependencies(app: &App) -> Readiness {
    let database = async {
        let is_migrated = repeat_once(|| app.db.is_migrated()).await?;
        anyhow::ensure!(is_migrated, "the migrations are not complete");
        Ok(())
    };
    let media = async {
        let Some(free) = app.media.check().await? else { return Ok(()) };
        app.metrics.set_disk_free(MEDIA, free);
        anyhow::ensure!(free >= disk_space::FULL, "the disk is full: {free} bytes are free");
        Ok(())
    };
    // Not judged: SQLite commits for a while on a full disk, because its log has reserved space. The write fails when that is used.
    if let Some(free) = app.db.folder().and_then(|folder| disk_space::free_bytes(folder).ok().flatten()) {
        app.metrics.set_disk_free(DATABASE, free);
    }
    let (database, write, media) =
        tokio::join!(within(CHECK_TIMEOUT, database), check_write(app), within(MEDIA_CHECK_TIMEOUT, media));
    // A mail is queued by a write.
    let mail_queue = write.as_ref().copied().map_err(|error| anyhow!("{}", one_line(error)));
    let database = database.flatten().and(write);
    let media = media.flatten();
    if let Err(error) = &media {
        slog::warn!(app.log, "the image store can't be used"; "cause" => one_line(error));
    }
    let report = |name: &'static str, checked: anyhow::Result<()>| {
        if let Err(error) = &checked {
            slog::warn!(app.log, "not ready"; "dependency" => name, "cause" => one_line(error));
        }
        (name, checked.is_ok())
    };
    vec![report(DATABASE, database), report("mail_queue", mail_queue), (MEDIA, media.is_ok())]
}

/// Waits for a check, with a time limit.
async fn within<T>(limit: Duration, check: impl Future<Output = T>) -> anyhow::Result<T> {
    timeout(limit, check).await.map_err(|_| anyhow!("no answer within {limit:?}"))
}

/// Checks that the database can be written, unless it was written a moment ago.
async fn check_write(app: &App) -> anyhow::Result<()> {
    let mut last_write = app.readiness.last_write.lock().await;
    if last_write.is_some_and(|last| last.elapsed() < WRITE_INTERVAL) {
        return Ok(());
    }
    match timeout(CHECK_TIMEOUT, repeat_once(|| jobs::check_writable(&app.kernel))).await {
        Err(_) if last_write.unwrap_or(app.readiness.opened).elapsed() < MAX_WRITE_AGE => Ok(()),
        Err(_) => Err(anyhow!("the database could not be written within {} seconds", CHECK_TIMEOUT.as_secs())),
        Ok(Err(error)) => Err(anyhow::Error::from(error).context("the database can't be written")),
        Ok(Ok(())) => {
            *last_write = Some(Instant::now());
            Ok(())
        }
    }
}

/// Runs a check again if it fails. After the database has closed its connections, the first attempt may find one of them, although
/// the database answers. A load balancer would take all servers out of service at the same moment.
async fn repeat_once<T, F>(check: impl Fn() -> F) -> boxoffice_http::error::Result<T>
where
    F: Future<Output = boxoffice_http::error::Result<T>>,
{
    match check().await {
        Err(_) => check().await,
        checked => checked,
    }
}
