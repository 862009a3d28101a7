//! The command `serve`.

use std::io::{self, IsTerminal, stdout};
use std::net::SocketAddr;
use std::num::NonZeroU64;
use std::path::{self, Path};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, anyhow};
use boxoffice_http::error::one_line;
use boxoffice_http::log::LevelControl;
use boxoffice_http::traces::Tracer;
use boxoffice_http::{Certificate, Listener};
use clap::Args;
use listenfd::ListenFd;
use sd_notify::NotifyState;
use slog::{Logger, info, warn};
use tokio::net::TcpSocket;
use tokio::time::timeout;

use super::config_check::check_folder;
use super::signals::{StopSignals, handle_other_signals};
use super::{open_with, print, unknown_variables};
use crate::bootstrap;
use crate::config::{InvalidSettings, ListenAddress, PlatformOptions, Setting, setting, whole_number};
use crate::kernel::settings::Settings;
use crate::kernel::{open_files, outbox};
use crate::server::RunningApp;
use crate::state::App;

/// Time after the last request in which the jobs stop and the database is closed.
const CLOSING_TIME: Duration = Duration::from_secs(2);
const ADMIN_LISTEN: &str = "--admin-listen (BOXOFFICE_ADMIN_LISTEN)";

#[derive(Debug, Args)]
pub struct ServeOptions {
    #[command(flatten)]
    pub platform: PlatformOptions,
    /// Seconds that requests in progress have to finish after `--drain-seconds`, up to 3600; then they are cancelled
    #[arg(long, env = "BOXOFFICE_GRACE_SECONDS", default_value = "30", value_name = "SECONDS", value_parser = setting(whole_number::<0, 3600>), help_heading = "Stopping the server")]
    grace_seconds: Setting<u32>,
    /// Seconds after a stop signal in which requests are still served, while `/readyz` returns 503 for load balancers [0: 250 ms]
    #[arg(long, env = "BOXOFFICE_DRAIN_SECONDS", default_value = "0", value_name = "SECONDS", value_parser = setting(whole_number::<0, 600>), help_heading = "Stopping the server")]
    drain_seconds: Setting<u32>,
    /// Address of a second listener for operators, with the health checks and the metrics: HOST:PORT
    #[arg(long, env = "BOXOFFICE_ADMIN_LISTEN", value_name = "ADDRESS", value_parser = setting(str::parse::<ListenAddress>), help_heading = "Health checks and metrics")]
    admin_listen: Option<Setting<ListenAddress>>,
    /// One in this many successful requests is logged, as is each other request; 0: requests are logged at level `debug` only
    #[arg(long, env = "BOXOFFICE_ACCESS_LOG_SAMPLE", default_value = "1", value_name = "NUMBER", value_parser = setting(whole_number::<0, 1_000_000>), help_heading = "Logs")]
    access_log_sample: Setting<u32>,
    /// Collector that receives traces by OTLP over HTTP, such as `http://127.0.0.1:4318`
    #[arg(long, env = "BOXOFFICE_OTLP_ENDPOINT", hide_env_values = true, value_name = "URL", value_parser = setting(otlp_endpoint), help_heading = "Traces")]
    otlp_endpoint: Option<Setting<String>>,
    /// One in this many requests is traced, unless a trusted proxy has decided it in `traceparent`
    #[arg(long, env = "BOXOFFICE_TRACE_SAMPLE", default_value = "100", value_name = "NUMBER", value_parser = setting(whole_number::<1, 1_000_000>), help_heading = "Traces")]
    trace_sample: Setting<u32>,
}

impl ServeOptions {
    /// Returns the settings.
    ///
    /// # Errors
    /// Returns an error that names everything that is wrong.
    pub fn validate(&self) -> anyhow::Result<ServeSettings> {
        let mut problems = self.platform.problems();
        problems.extend([self.grace_seconds.problem(), self.drain_seconds.problem(), self.access_log_sample.problem()]);
        problems.push(self.admin_listen.as_ref().and_then(Setting::problem));
        problems.extend([self.otlp_endpoint.as_ref().and_then(Setting::problem), self.trace_sample.problem()]);
        let (listener, admin_listener) = (self.platform.listener(), self.admin_listener());
        let unusable = [listener.as_ref().err(), admin_listener.as_ref().err()];
        let unusable: Vec<&InvalidSettings> = unusable.into_iter().flatten().filter_map(anyhow::Error::downcast_ref).collect();
        // An option that is invalid does not become valid.
        let is_only_unusable = problems.iter().all(Option::is_none) && !unusable.is_empty();
        let may_pass = is_only_unusable && unusable.iter().all(|unusable| unusable.may_pass());
        for unusable in unusable {
            let unusable = Some(unusable.to_string());
            if !problems.contains(&unusable) {
                problems.push(unusable);
            }
        }
        if let (Ok(listener), Ok(Some(admin))) = (&listener, &admin_listener) {
            let is_same = listener.address == admin.address && admin.address.port() != 0;
            problems.push(is_same.then(|| format!("{ADMIN_LISTEN}: it is the address of --listen; give another port")));
        }
        let problems: Vec<String> = problems.into_iter().flatten().collect();
        if !problems.is_empty() {
            return Err(InvalidSettings::new(problems).with_may_pass(may_pass).into());
        }
        let access_log_sample = NonZeroU64::new(u64::from(*self.access_log_sample.get()?));
        let drain_period = Duration::from_secs(u64::from(*self.drain_seconds.get()?));
        Ok(ServeSettings {
            listener: Listener { access_log_sample, drain_period, ..listener? },
            admin_listener: admin_listener?,
            settings: self.platform.settings()?,
            otlp_endpoint: self.otlp_endpoint.as_ref().map(Setting::get).transpose()?.cloned(),
            trace_sample: *self.trace_sample.get()?,
            max_stop_time: drain_period + Duration::from_secs(u64::from(*self.grace_seconds.get()?)) + CLOSING_TIME,
        })
    }

    /// Returns the admin listener, if one is set. Resolves the host name.
    fn admin_listener(&self) -> anyhow::Result<Option<Listener>> {
        let address = self.admin_listen.as_ref().map(Setting::get).transpose()?;
        let address = address.map(|address| address.resolve("--admin-listen")).transpose();
        Ok(address.map_err(|error| InvalidSettings::from_use(&error))?.map(Listener::from))
    }
}

/// The valid settings of `serve`.
pub struct ServeSettings {
    /// The listener for clients.
    pub listener: Listener,
    /// The admin listener.
    pub admin_listener: Option<Listener>,
    /// The settings of the platform.
    pub settings: Settings,
    /// The collector of traces.
    pub otlp_endpoint: Option<String>,
    /// One in this many requests is traced.
    pub trace_sample: u32,
    /// Time after a stop signal in which requests are served and finished, and the rest is closed.
    pub max_stop_time: Duration,
}

/// Serves the platform until a stop signal.
pub async fn serve(options: &ServeOptions, log: &Logger, level: &LevelControl) -> anyhow::Result<()> {
    let mut stop = StopSignals::listen()?;
    let ServeSettings { listener, admin_listener, settings, otlp_endpoint, trace_sample, max_stop_time } = options.validate()?;
    let traces = otlp_endpoint.map(|endpoint| Tracer::open(&endpoint, trace_sample, log)).transpose()?;
    let (tracer, trace_exporter) = traces.unzip();
    let socket = ListenFd::from_env().take_tcp_listener(0).context("cannot use the socket of the service manager")?;
    let listener = Listener { socket: socket.map(Arc::new), ..listener };
    handle_other_signals(listener.certificate.clone(), log, level)?;
    if let Some(Err(error)) = listener.certificate.as_deref().map(Certificate::require_valid) {
        warn!(log, "the TLS certificate is not valid, so clients reject it"; "cause" => one_line(&error));
    }
    warn_of_unknown_variables(log);
    open_files::raise_limit(log);
    let platform = tokio::select! {
        started = start(&options.platform, listener, admin_listener, settings, log, tracer.unwrap_or_default()) => started?,
        () = stop.recv() => return Err(anyhow!("stopped before the start was complete")),
    };
    notify_service_manager(NotifyState::Ready, log);
    stop.recv().await;
    notify_service_manager(NotifyState::Stopping, log);
    info!(log, "stopping: requests in progress are finished first"; "max_seconds" => max_stop_time.as_secs());
    let shutdown = platform.shutdown();
    let cancelled = |why: &str| match shutdown.in_flight() {
        // A request is in progress until its response begins.
        0 => anyhow!("{why} (responses that were still being sent were cut off)"),
        requests => anyhow!("{why} (requests cancelled: {requests})"),
    };
    let stopped = tokio::select! {
        stopped = timeout(max_stop_time, platform.stop()) => stopped.unwrap_or_else(|_| Err(cancelled("the grace period is over"))),
        () = stop.recv() => Err(cancelled("stopped by a second signal")),
    };
    if let Some(exporter) = trace_exporter {
        exporter.stop().await;
    }
    stopped
}

/// Checks the URL of a collector. Without a path, it is that of OTLP.
fn otlp_endpoint(text: &str) -> anyhow::Result<String> {
    let url = text.parse::<reqwest::Url>().ok().filter(|url| ["http", "https"].contains(&url.scheme()) && url.has_host());
    let mut url = url.context("it is not an address of a collector, such as http://127.0.0.1:4318")?;
    if url.path() == "/" {
        url.set_path("/v1/traces");
    }
    Ok(url.into())
}

/// Reports the state to systemd or a compatible service manager, if one has started the program.
fn notify_service_manager(state: NotifyState<'_>, log: &Logger) {
    if let Err(error) = sd_notify::notify(&[state]) {
        warn!(log, "cannot notify the service manager"; "error" => %error);
    }
}

/// Starts the platform. The first start is completed last, so that it leaves nothing behind on a server that can't start.
async fn start(
    options: &PlatformOptions,
    listener: Listener,
    admin_listener: Option<Listener>,
    settings: Settings,
    log: &Logger,
    tracer: Tracer,
) -> anyhow::Result<RunningApp> {
    let addresses = listener.socket.is_none().then_some(listener.address).into_iter();
    let addresses = addresses.chain(admin_listener.as_ref().map(|admin| admin.address));
    let reserved: Vec<TcpSocket> = addresses.map(reserve).collect::<anyhow::Result<_>>()?;
    let app = open_with(options, settings, log, tracer).await?;
    bootstrap::check_fixed_settings(&app).await?;
    bootstrap::store_ticket_key(&app).await.context("cannot store the public key of tickets")?;
    drop(reserved);
    let platform = RunningApp::start_with_admin(Arc::clone(&app), listener, admin_listener)?;
    if let Err(error) = complete_first_start(&app, options.storage.data_dir()?).await {
        platform.stop().await?;
        return Err(error);
    }
    if let Some(address) = platform.admin_address() {
        info!(log, "serving health checks and metrics"; "address" => address);
    }
    info!(log, "serving"; "address" => platform.address(), "public_url" => &app.settings.public_url,
        "version" => env!("CARGO_PKG_VERSION"));
    Ok(platform)
}

/// Binds an address without accepting connections, so that a server whose address is in use changes no database.
pub fn reserve(address: SocketAddr) -> anyhow::Result<TcpSocket> {
    let bind = || {
        let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
        // As for the server's own socket. An address on which another program listens can't be bound in any case.
        socket.set_reuseaddr(true)?;
        socket.bind(address)?;
        Ok::<_, io::Error>(socket)
    };
    bind().with_context(|| format!("cannot listen on {address}"))
}

/// On an empty database: fixes the settings that later starts can't change, and creates the first credentials.
async fn complete_first_start(app: &Arc<App>, data_dir: &Path) -> anyhow::Result<()> {
    bootstrap::store_fixed_settings(app).await?;
    if stdout().is_terminal() {
        bootstrap::first_start(app).await?.map_or(Ok(()), print)?;
    } else if let Some(file) = bootstrap::first_start_to_file(app, data_dir).await? {
        // Standard output may be a log, which others can read.
        warn!(app.log, "first start: the administrator's password and the first keys are in a file; keep them and delete it";
            "file" => path::absolute(&file)?.display().to_string());
    }
    if let Some(folder) = &app.settings.retention.audit_archive
        && let Err(error) = check_folder(folder)
    {
        warn!(app.log, "the archive of the audit log can't be written; old entries stay in the database until it can";
            "cause" => one_line(&error));
    }
    outbox::warn_of_other_keys(app).await?;
    bootstrap::warn_of_administrators(app).await
}

/// Logs the environment variables that look like settings but are none, because a misspelled setting has no effect.
fn warn_of_unknown_variables(log: &Logger) {
    for (name, similar) in unknown_variables() {
        warn!(log, "this environment variable is no setting and has no effect{similar}"; "variable" => name);
    }
}
