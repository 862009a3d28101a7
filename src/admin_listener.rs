//! The admin listener: health checks and metrics, for operators.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::anyhow;
use boxoffice_http::error::one_line;
use boxoffice_http::{
    ApiError, AuthorizedRequest, Certificate, Connections, GracefulShutdown, IncomingRequest, Listener, RejectedRequest,
    RequestHandler, RequestLimit, ServerHandle, serve,
};
use boxoffice_openapi::{Contract, Operation};
use dropshot::Body;
use futures::FutureExt;
use futures::future::BoxFuture;
use http::{HeaderValue, Response, StatusCode, header};
use serde::Serialize;
use serde_json::json;
use slog::Logger;
use tokio::sync::Mutex;
use tokio::time::timeout;

use crate::bootstrap::plain;
use crate::features::catalog::sections;
use crate::features::sales::payments;
use crate::kernel::db::Batcher;
use crate::kernel::http::{OutsideContractFn, Routes};
use crate::kernel::{disk_space, jobs, metrics, outbox};
use crate::state::App;

/// Requests for the readiness that share one check.
const MAX_READINESS_REQUESTS: usize = 1000;
/// Time limit of the check of one dependency.
const CHECK_TIMEOUT: Duration = Duration::from_secs(2);
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
const MEDIA: &str = "media";

/// The resources on both listeners.
const HEALTH_CHECKS: [(&str, OutsideContractFn<App>); 2] = [
    ("/healthz", |_, _, _| async { healthz() }.boxed()),
    ("/readyz", |_, app, shutdown| async move { readyz(app, shutdown.is_draining()).await }.boxed()),
];
/// Adds the health checks to the main listener.
pub fn add_health_checks(routes: &mut Routes<App>) {
    for (path, respond) in HEALTH_CHECKS {
        routes.add_outside_contract(path, respond);
    }
}

/// The handler of the admin listener.
struct AdminHandler {
    app: Arc<App>,
    main: Arc<MainListener>,
}

/// The state of the main listener.
struct MainListener {
    shutdown: Arc<GracefulShutdown>,
    connections: Arc<Connections>,
    requests: Arc<RequestLimit>,
    certificate: Option<Arc<Certificate>>,
}

/// Starts the admin listener: health checks and metrics of the main listener, `server`.
///
/// # Errors
/// Returns an error if it can't listen on the address.
pub fn start(app: Arc<App>, server: &ServerHandle, listener: Listener, log: &Logger) -> anyhow::Result<ServerHandle> {
    let no_operations = Contract::new(json!({ "openapi": "3.0.3", "info": {}, "paths": {} }))?;
    let main = MainListener {
        shutdown: Arc::clone(server.shutdown_state()),
        connections: Arc::clone(server.connections()),
        requests: Arc::clone(server.requests()),
        certificate: server.certificate().cloned(),
    };
    serve(Arc::new(no_operations), AdminHandler { app, main: Arc::new(main) }, listener, log)
}

impl RequestHandler for AdminHandler {
    type Route = Infallible;
    type Principal = Infallible;
    const VALIDATES_RESPONSES: bool = false;

    fn look_up(&self, _: &Operation) -> Option<Infallible> {
        None
    }

    async fn authenticate(&self, _: &Operation, route: &Infallible, _: &IncomingRequest) -> Result<Infallible, ApiError> {
        match *route {}
    }

    fn respond_outside_contract(&self, path: &str, _: &Arc<GracefulShutdown>) -> Option<BoxFuture<'static, Response<Body>>> {
        let (app, main) = (Arc::clone(&self.app), Arc::clone(&self.main));
        if path == "/metrics" {
            return Some(async move { read_metrics(&app, &main).await }.boxed());
        }
        let (path, respond) = HEALTH_CHECKS.into_iter().find(|(known, _)| *known == path)?;
        Some(respond(path, app, Arc::clone(&main.shutdown)))
    }

    async fn reject(&self, _: RejectedRequest<'_, Self>, error: ApiError) -> Result<Response<Body>, ApiError> {
        Err(error)
    }

    async fn respond(&self, request: AuthorizedRequest<'_, Self>) -> Result<Response<Body>, ApiError> {
        match request.route {}
    }
}

/// The process responds.
fn healthz() -> Response<Body> {
    json_response(StatusCode::OK, &json!({ "status": "ok" }))
}

/// The state of one dependency.
#[derive(Debug, Clone, Serialize)]
struct DependencyCheck {
    name: &'static str,
    status: &'static str,
}

/// The results of all checks.
type Readiness = Vec<(&'static str, bool)>;

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

/// 200 if the server can sell, and 503 otherwise. While the server is stopping, it isn't ready. Without images it is: all servers use the
/// same image store, so a load balancer would have no server left.
async fn readyz(app: Arc<App>, is_draining: bool) -> Response<Body> {
    let results = check_readiness(&app).await;
    let is_ready = !is_draining && !results.is_empty() && results.iter().all(|(name, is_usable)| *is_usable || *name == MEDIA);
    let checks: Vec<DependencyCheck> = results
        .into_iter()
        .map(|(name, is_usable)| DependencyCheck { name, status: if is_usable { "ok" } else { "failed" } })
        .collect();
    let status = if is_ready {
        "ready"
    } else if is_draining {
        "stopping"
    } else {
        "not ready"
    };
    let code = if is_ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    json_response(code, &json!({ "status": status, "checks": checks }))
}

/// Checks all dependencies, once for all requests that wait for it.
async fn check_readiness(app: &Arc<App>) -> Readiness {
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
        let is_migrated = repeat_once(|| app.db.is_migrated()).await.map_err(plain)?;
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
    let is_usable = |name: &'static str, checked: anyhow::Result<()>| {
        if let Err(error) = &checked {
            slog::warn!(app.log, "not ready"; "dependency" => name, "cause" => one_line(error));
        }
        (name, checked.is_ok())
    };
    vec![is_usable(DATABASE, database), is_usable("mail_queue", mail_queue), (MEDIA, media.is_ok())]
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
        Ok(Err(error)) => Err(plain(error).context("the database can't be written")),
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

/// All metrics, with the gauges of this moment. During an outage of the database, those that it doesn't have are still of use.
async fn read_metrics(app: &Arc<App>, main: &MainListener) -> Response<Body> {
    let metrics = &app.metrics;
    metrics.set_listener(main.shutdown.in_flight(), &main.connections, &main.requests);
    app.db.pools().iter().for_each(|pool| metrics.set_pool(pool));
    metrics.set_password_hashes(&app.passwords.status());
    // It may have been reloaded.
    if let Some(Ok((_, expiry))) = main.certificate.as_ref().map(|certificate| certificate.validity()) {
        metrics.set_certificate_expiry(expiry);
    }
    metrics.read_process();
    let (dependencies, waiting, refunds, places) = tokio::join!(
        check_readiness(app),
        timeout(CHECK_TIMEOUT, outbox::waiting(&app.kernel)),
        timeout(CHECK_TIMEOUT, count_open_refunds(app)),
        timeout(CHECK_TIMEOUT, count_places(app))
    );
    dependencies.into_iter().for_each(|(name, is_usable)| metrics.set_dependency(name, is_usable));
    if let Ok(Ok(waiting)) = waiting {
        metrics.set_mails(waiting.count, waiting.oldest_age);
    }
    if let Ok(Ok((count, oldest_age))) = refunds {
        metrics.set_refunds(count, oldest_age);
    }
    if let Ok(Ok((sold, reserved, capacity))) = places {
        metrics.set_places(sold, reserved, capacity);
    }
    match metrics.encode() {
        Ok(text) => {
            let mut response = Response::new(Body::from(text));
            response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(metrics::CONTENT_TYPE));
            response
        }
        Err(error) => {
            slog::error!(app.log, "cannot write the metrics"; "cause" => one_line(&error));
            json_response(StatusCode::INTERNAL_SERVER_ERROR, &json!({ "status": "failed" }))
        }
    }
}

async fn count_places(app: &App) -> boxoffice_http::error::Result<(i64, i64, i64)> {
    sections::count_places(&mut app.db.read().await?, app.clock.now()).await
}

/// Returns the number of open refunds, and the age of the oldest; zero if there is none.
async fn count_open_refunds(app: &App) -> boxoffice_http::error::Result<(i64, Duration)> {
    let (count, oldest) = payments::count_open_refunds(&mut app.db.read().await?).await?;
    Ok((count, oldest.map_or(Duration::ZERO, |oldest| app.clock.now().since(oldest))))
}

fn json_response(status: StatusCode, body: &serde_json::Value) -> Response<Body> {
    let mut response = Response::new(Body::from(body.to_string()));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
