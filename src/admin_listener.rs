//! The admin listener: health checks and metrics, for operators.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

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
use tokio::time::timeout;

use crate::features::catalog::sections;
use crate::features::sales::payments;
use crate::kernel::http::{OutsideContractFn, Routes};
use crate::kernel::{metrics, outbox};
use crate::readiness;
use crate::state::App;

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

/// 200 if the server can sell, and 503 otherwise. While the server is stopping, it isn't ready. Without images it is: all servers use the
/// same image store, so a load balancer would have no server left.
async fn readyz(app: Arc<App>, is_draining: bool) -> Response<Body> {
    let results = readiness::check(&app).await;
    let is_ready =
        !is_draining && !results.is_empty() && results.iter().all(|(name, is_usable)| *is_usable || *name == readiness::MEDIA);
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
        readiness::check(app),
        timeout(readiness::CHECK_TIMEOUT, outbox::waiting(&app.kernel)),
        timeout(readiness::CHECK_TIMEOUT, count_open_refunds(app)),
        timeout(readiness::CHECK_TIMEOUT, count_places(app))
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
