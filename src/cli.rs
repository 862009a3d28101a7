//! The command line.

mod admin;
mod backup;
mod config;
mod config_check;
mod copy;
mod invocation;
mod manual;
mod mock;
mod proxy;
mod table;

use std::collections::BTreeSet;
use std::env;
use std::fmt::Display;
use std::io::{self, IsTerminal, Write, stderr, stdout};
use std::net::SocketAddr;
use std::num::NonZeroU64;
use std::path::{self, Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, anyhow};
use backup::{BackupOptions, RestoreOptions};
use boxoffice_conformance::options::{BuiltinDocument, CompareOptions};
use boxoffice_conformance::progress::Progress;
use boxoffice_conformance::proxy::ProxyOptions;
use boxoffice_conformance::report;
use boxoffice_http::error::one_line;
use boxoffice_http::log::{self, LevelControl};
use boxoffice_http::traces::Tracer;
use boxoffice_http::{Certificate, Listener};
use boxoffice_openapi::diff::{self, Impact};
use boxoffice_openapi::{Contract, drift};
use clap::{Args, CommandFactory, Parser, Subcommand, ValueEnum};
use config::ConfigCommand;
use copy::CopyOptions;
use invocation::Invocation;
use listenfd::ListenFd;
use manual::{CompletionsOptions, ManualOptions};
use mock::MockOptions;
use sd_notify::NotifyState;
use slog::{Level, Logger, info, warn};
use tokio::net::TcpSocket;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::timeout;

use crate::bootstrap;
use crate::config::{
    CONFIG_FILE, InvalidSettings, PlatformOptions, Secret, SecretFile, Setting, Settings, StorageOptions, setting, suggest,
    whole_number,
};
use crate::contract;
use crate::demo;
use crate::error_catalogue;
use crate::features::identity::accounts::Role;
use crate::kernel::db::Db;
use crate::kernel::http::{LimitSettings, ListenAddress};
use crate::kernel::{open_files, outbox, private_files};
use crate::routes::routes;
use crate::server::RunningApp;
use crate::state::App;

/// An event-ticketing platform as a REST API, written against one OpenAPI document
#[derive(Debug, Parser)]
#[command(name = "boxoffice", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
    /// Least important messages to log: `error`, `warning`, `info` or `debug`
    #[arg(long, env = "BOXOFFICE_LOG_LEVEL", global = true, default_value = "info", value_name = "LEVEL", help_heading = "Logs")]
    log_level: LogLevel,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum LogLevel {
    Error,
    Warning,
    Info,
    Debug,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the platform
    Serve(Box<ServeOptions>),
    /// Compare the contract with the server's code; exit code 0: no differences, 1: differences, 2: the command could not run
    Drift(DriftOptions),
    /// Print the changes between two OpenAPI documents; exit code 0: no breaking change, 1: breaking changes, 2: the command could
    /// not run
    Diff(DiffOptions),
    /// Print the error catalogue: the status, operations, cause and remedy of each error code
    Errors,
    /// Check a running server against the contract; exit code 0: no findings, 1: findings, 2: the command could not run
    Compare(Box<CompareOptions>),
    /// Forward requests to a server, and check both against the contract; exit code 0: no findings, 1: findings, 2: the command could
    /// not run
    Proxy(Box<ProxyOptions>),
    /// Serve an OpenAPI document with its examples or with data generated from its schemas, without a database
    #[command(after_help = mock::HELP)]
    Mock(Box<MockOptions>),
    /// Show and check the settings of `serve`
    Config {
        #[command(subcommand)]
        command: ConfigCommand,
    },
    /// Bring the database's tables up to date
    Migrate(StorageOptions),
    /// Back up a SQLite database and its images to one file, also while the server runs
    Backup(Box<BackupOptions>),
    /// Check a backup and restore it into an empty data folder
    Restore(Box<RestoreOptions>),
    /// Copy a database to an empty one, from SQLite to PostgreSQL or back, while no server uses them
    Copy(CopyOptions),
    /// Check the database and the books in it
    Check(StorageOptions),
    /// Manage accounts
    Account {
        #[command(subcommand)]
        command: AccountCommand,
    },
    /// Manage API keys
    Key {
        #[command(subcommand)]
        command: KeyCommand,
    },
    /// Manage accounts, keys, orders, events, jobs and mail, also while the server runs
    #[command(
        after_help = "Exit codes: 0: done, 1: rejected or failed, 2: the command line or a setting is invalid, or --yes is missing"
    )]
    Admin(Box<admin::AdminOptions>),
    /// Write the templates of mails into a folder, to change them and to set it as `--mail-templates`
    MailTemplates {
        /// Folder, in which none of the files may exist
        folder: PathBuf,
    },
    /// Fill an empty database with sample data
    Demo(Box<PlatformOptions>),
    /// Write the manual pages of all commands
    Manual(ManualOptions),
    /// Print the completions of all commands for a shell
    Completions(CompletionsOptions),
}

#[derive(Debug, Args)]
struct ServeOptions {
    #[command(flatten)]
    platform: PlatformOptions,
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
    #[arg(long, env = "BOXOFFICE_OTLP_ENDPOINT", value_name = "URL", value_parser = setting(otlp_endpoint), help_heading = "Traces")]
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
    fn validate(&self) -> anyhow::Result<ServeSettings> {
        let mut problems = self.platform.problems();
        problems.extend([self.grace_seconds.problem(), self.drain_seconds.problem(), self.access_log_sample.problem()]);
        problems.push(self.admin_listen.as_ref().and_then(Setting::problem));
        problems.extend([self.otlp_endpoint.as_ref().and_then(Setting::problem), self.trace_sample.problem()]);
        let (listener, admin_listener) = (self.platform.listener(), self.admin_listener());
        for unusable in [listener.as_ref().err(), admin_listener.as_ref().err()] {
            let unusable = unusable.map(ToString::to_string);
            if !problems.contains(&unusable) {
                problems.push(unusable);
            }
        }
        InvalidSettings::reject(problems)?;
        let access_log_sample = NonZeroU64::new(u64::from(*self.access_log_sample.get()?));
        let drain_period = Duration::from_secs(u64::from(*self.drain_seconds.get()?));
        Ok(ServeSettings {
            listener: Listener { access_log_sample, drain_period, ..listener? },
            admin_listener: admin_listener?,
            settings: self.platform.settings()?,
            otlp_endpoint: self.otlp_endpoint.as_ref().map(Setting::get).transpose()?.cloned(),
            trace_sample: *self.trace_sample.get()?,
            max_stop_time: drain_period + Duration::from_secs(u64::from(*self.grace_seconds.get()?)),
        })
    }

    /// Returns the listener for operators, if one is set. Resolves the host name.
    fn admin_listener(&self) -> anyhow::Result<Option<Listener>> {
        let address = self.admin_listen.as_ref().map(Setting::get).transpose()?;
        let address = address.map(|address| address.resolve("--admin-listen")).transpose();
        Ok(address.map_err(|error| InvalidSettings::from_cause(&error))?.map(Listener::from))
    }
}

/// The valid settings of `serve`.
struct ServeSettings {
    listener: Listener,
    /// The listener for operators.
    admin_listener: Option<Listener>,
    settings: Settings,
    /// The collector of traces.
    otlp_endpoint: Option<String>,
    /// One in this many requests is traced.
    trace_sample: u32,
    /// Time after a stop signal in which requests are served and finished.
    max_stop_time: Duration,
}

#[derive(Debug, Args)]
struct DriftOptions {
    /// OpenAPI document to compare [default: the built-in contract]
    #[arg(long, env = "BOXOFFICE_SPEC", value_name = "FILE")]
    spec: Option<PathBuf>,
    /// Output format of the differences
    #[arg(long, env = "BOXOFFICE_FORMAT", default_value = "text")]
    format: Format,
}

#[derive(Debug, Args)]
struct DiffOptions {
    /// The older OpenAPI document
    old: PathBuf,
    /// The newer OpenAPI document [default: the built-in contract]
    new: Option<PathBuf>,
    /// Output format of the changes
    #[arg(long, default_value = "text")]
    format: DiffFormat,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum DiffFormat {
    /// A line for each change
    Text,
    /// An array with an object for each change
    Json,
    /// A section of the change log
    Markdown,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Format {
    Text,
    Json,
}

#[derive(Debug, Subcommand)]
enum AccountCommand {
    /// Create an account and print its number
    Create(Box<AccountOptions>),
}

#[derive(Debug, Args)]
struct AccountOptions {
    #[command(flatten)]
    platform: PlatformOptions,
    /// Username: 3 to 32 letters, digits, `.`, `_` or `-`
    #[arg(long, env = "BOXOFFICE_USERNAME")]
    username: String,
    /// E-mail address
    #[arg(long, env = "BOXOFFICE_EMAIL")]
    email: String,
    /// Password: 8 to 128 characters
    #[arg(long, env = "BOXOFFICE_PASSWORD", hide_env_values = true, required_unless_present = "password_file")]
    password: Option<Secret>,
    /// File with the password
    #[arg(long, env = "BOXOFFICE_PASSWORD_FILE", value_name = "FILE", conflicts_with = "password", value_parser = setting(SecretFile::read))]
    password_file: Option<Setting<SecretFile>>,
    /// Role of the account
    #[arg(long, env = "BOXOFFICE_ROLE", default_value = "customer")]
    role: Role,
}

#[derive(Debug, Subcommand)]
enum KeyCommand {
    /// Create an API key for a client program and print only the key
    Create(Box<KeyOptions>),
}

#[derive(Debug, Args)]
struct KeyOptions {
    #[command(flatten)]
    platform: PlatformOptions,
    /// Scope of the key
    #[arg(long, env = "BOXOFFICE_ROLE")]
    role: Role,
    /// Number of the account that the key acts for
    #[arg(long, env = "BOXOFFICE_ACCOUNT", value_name = "NUMBER")]
    account: Option<String>,
    /// Name of the key, for its purpose
    #[arg(long, env = "BOXOFFICE_NAME", default_value = "command line")]
    name: String,
}

impl From<LogLevel> for Level {
    fn from(level: LogLevel) -> Self {
        match level {
            LogLevel::Error => Self::Error,
            LogLevel::Warning => Self::Warning,
            LogLevel::Info => Self::Info,
            LogLevel::Debug => Self::Debug,
        }
    }
}

/// Returns the command line's parser. All options of `admin` may follow its subcommands, whose help shows the most useful ones.
fn parser() -> clap::Command {
    const SHOWN: [&str; 5] = ["json", "yes", "database", "data_dir", CONFIG_FILE];
    Cli::command().mut_subcommand("admin", |admin| {
        admin.mut_args(|option| {
            let is_shown = SHOWN.contains(&option.get_id().as_str());
            option.global(true).hide(!is_shown)
        })
    })
}

/// Executes the command of the command line.
pub fn run() -> ExitCode {
    let (cli, invocation) = match Invocation::parse() {
        Ok(parsed) => parsed,
        Err(error) => return fail(error),
    };
    let (log, level, _written_when_dropped) = log::open(cli.log_level.into());
    invocation.warn_of_readable_secrets(&log);
    if let Command::Config { command } = &cli.command {
        return config::run(command, &invocation, &log).unwrap_or_else(fail);
    }
    if let Err(error) = invocation.reject_invalid_file(&cli.command) {
        return fail(error);
    }
    let done = match cli.command {
        Command::Drift(options) => return finish("drift", find_drift(&options)),
        Command::Diff(options) => return finish("diff", find_changes(&options)),
        Command::Compare(options) => return finish("compare", block_on(compare(&options))),
        Command::Proxy(options) => return finish("proxy", block_on(proxy::run(&options))),
        Command::Manual(options) => manual::write_pages(&options),
        Command::Completions(options) => {
            manual::print_completions(&options);
            Ok(())
        }
        command => block_on(execute(command, &log, &level)),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(match error.downcast::<InvalidSettings>() {
            Ok(invalid) => invocation.locate(invalid).into(),
            Err(error) => error,
        }),
    }
}

/// Prints the error of a command, and returns its exit code.
fn fail(error: anyhow::Error) -> ExitCode {
    if error.is::<InvalidSettings>() {
        // Not on one line: each invalid setting has a line of its own.
        print_error(error);
        return ExitCode::from(2);
    }
    print_error(one_line(&error));
    ExitCode::FAILURE
}

fn block_on<T>(work: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.context("cannot start the asynchronous runtime")?;
    let done = runtime.block_on(work);
    // Cancelled requests may still occupy threads. The shutdown must not wait for them.
    runtime.shutdown_background();
    done
}

async fn execute(command: Command, log: &Logger, level: &LevelControl) -> anyhow::Result<()> {
    match command {
        Command::Serve(options) => serve(&options, log, level).await,
        Command::Drift(_) | Command::Diff(_) | Command::Compare(_) | Command::Proxy(_) | Command::Config { .. } => Ok(()),
        Command::Manual(_) | Command::Completions(_) => Ok(()),
        Command::Errors => print(error_catalogue::render(&contract::load()?.document, &routes().openapi()?)?.trim_end()),
        Command::MailTemplates { folder } => {
            outbox::write_embedded(&folder)?;
            print(format!("The templates are in {}.", folder.display()))
        }
        Command::Mock(options) => mock::serve(*options, log, level).await,
        Command::Migrate(storage) => {
            private_files::set_umask();
            storage.warn_of_readable_secrets(log)?;
            storage.restrict_access(log)?;
            Db::open(&storage.database_url()?).await?.close().await;
            print("The database's tables are up to date.")
        }
        Command::Backup(options) => backup::create(&options, log).await,
        Command::Restore(options) => backup::restore(&options, log).await,
        Command::Copy(options) => copy::copy(&options, log).await,
        Command::Check(storage) => backup::check(&storage).await,
        Command::Account { command: AccountCommand::Create(options) } => {
            let file = options.password_file.as_ref().map(Setting::get).transpose()?;
            file.into_iter().for_each(|file| file.warn_if_readable_by_all(log));
            let password = options.password.as_ref().or(file.map(|file| &file.secret));
            let Secret(password) = password.context("account create needs --password or --password-file")?;
            let app = open(&options.platform, log).await?;
            print(bootstrap::create_account(&app, &options.username, &options.email, password, options.role.into()).await?)
        }
        Command::Key { command: KeyCommand::Create(options) } => {
            let app = open(&options.platform, log).await?;
            print(bootstrap::create_key(&app, &options.name, options.role.into(), options.account.as_deref()).await?)
        }
        Command::Admin(options) => admin::run(*options, log).await,
        Command::Demo(options) => {
            // Without rate limits, because the requests come from this program.
            let settings = Settings { limits: LimitSettings::default(), ..options.settings()? };
            let app = open_with(&options, settings, log).await?;
            bootstrap::check_fixed_settings(&app).await?;
            print(demo::seed(&app).await?)
        }
    }
}

async fn open(options: &PlatformOptions, log: &Logger) -> anyhow::Result<Arc<App>> {
    open_with(options, options.settings()?, log).await
}

async fn open_with(options: &PlatformOptions, settings: Settings, log: &Logger) -> anyhow::Result<Arc<App>> {
    private_files::set_umask();
    options.restrict_access(log)?;
    App::open(&options.database_url()?, settings, log.clone()).await
}

async fn serve(options: &ServeOptions, log: &Logger, level: &LevelControl) -> anyhow::Result<()> {
    let mut stop = StopSignals::listen()?;
    let ServeSettings { listener, admin_listener, settings, otlp_endpoint, trace_sample, max_stop_time } = options.validate()?;
    let traces = otlp_endpoint.map(|endpoint| Tracer::open(&endpoint, trace_sample, log)).transpose()?;
    let (tracer, trace_exporter) = traces.unzip();
    let settings = Settings { tracer: tracer.unwrap_or_default(), ..settings };
    let socket = ListenFd::from_env().take_tcp_listener(0).context("cannot use the socket of the service manager")?;
    let listener = Listener { socket: socket.map(Arc::new), ..listener };
    handle_other_signals(listener.certificate.clone(), log, level)?;
    warn_of_unknown_variables(log);
    open_files::raise_limit(log);
    let platform = tokio::select! {
        started = start(&options.platform, listener, admin_listener, settings, log) => started?,
        () = stop.recv() => return Err(anyhow!("stopped before the start was complete")),
    };
    notify_service_manager(NotifyState::Ready, log);
    stop.recv().await;
    notify_service_manager(NotifyState::Stopping, log);
    info!(log, "stopping: requests in progress are finished first"; "max_seconds" => max_stop_time.as_secs());
    let shutdown = platform.shutdown();
    let cancelled = |why: &str| anyhow!("{why} (requests cancelled: {})", shutdown.in_flight());
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
    let mut url = url.with_context(|| format!("`{text}` is not an address of a collector, such as http://127.0.0.1:4318"))?;
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
) -> anyhow::Result<RunningApp> {
    let reserved = if listener.socket.is_none() { Some(reserve(listener.address)?) } else { None };
    let app = open_with(options, settings, log).await?;
    bootstrap::check_fixed_settings(&app).await?;
    drop(reserved);
    let platform = RunningApp::start_with_admin(Arc::clone(&app), listener, admin_listener)?;
    if let Err(error) = complete_first_start(&app, options.storage.data_dir()?).await {
        platform.stop().await?;
        return Err(error);
    }
    if let Some(address) = platform.admin_address() {
        info!(log, "serving health checks and metrics"; "address" => address);
    }
    info!(log, "serving"; "address" => platform.address(), "public_url" => &app.settings.public_url);
    Ok(platform)
}

/// Binds an address without accepting connections, so that a server whose address is in use changes no database.
fn reserve(address: SocketAddr) -> anyhow::Result<TcpSocket> {
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
        return bootstrap::first_start(app).await?.map_or(Ok(()), print);
    }
    // Standard output may be a log, which others can read.
    if let Some(file) = bootstrap::first_start_to_file(app, data_dir).await? {
        warn!(app.log, "first start: the administrator's password and the first keys are in a file; keep them and delete it";
            "file" => path::absolute(&file)?.display().to_string());
    }
    Ok(())
}

/// Handles the signals that would otherwise end the program without a graceful shutdown: SIGHUP reloads the TLS certificate, if
/// there is one, SIGUSR1 sets the log's level to `debug`, and SIGUSR2 back to the configured one. (SIGPIPE is ignored by every Rust
/// program.)
fn handle_other_signals(certificate: Option<Arc<Certificate>>, log: &Logger, level: &LevelControl) -> anyhow::Result<()> {
    let listen = |kind| signal(kind).context("cannot listen for signals");
    let mut hangup = listen(SignalKind::hangup())?;
    let mut user_defined = [listen(SignalKind::user_defined1())?, listen(SignalKind::user_defined2())?];
    let (log, level) = (log.clone(), level.clone());
    tokio::spawn(async move {
        let [first, second] = &mut user_defined;
        loop {
            tokio::select! {
                _ = hangup.recv() => reload(certificate.as_deref(), &log),
                _ = first.recv() => set_debug(&level, true, &log),
                _ = second.recv() => set_debug(&level, false, &log),
            }
        }
    });
    Ok(())
}

fn set_debug(level: &LevelControl, is_debug: bool, log: &Logger) {
    let level = level.set_debug(is_debug);
    warn!(log, "the level of the log was changed by a signal"; "to" => level.as_str().to_lowercase());
}

fn reload(certificate: Option<&Certificate>, log: &Logger) {
    match certificate.map(Certificate::reload) {
        None => info!(log, "SIGHUP is ignored: there is no TLS certificate to reload"),
        Some(Ok(())) => info!(log, "certificate reloaded"),
        Some(Err(error)) => {
            warn!(log, "certificate not reloaded; the previous one stays in use"; "cause" => one_line(&error));
        }
    }
}

/// Logs the environment variables that look like settings but are none, because a misspelled setting has no effect.
fn warn_of_unknown_variables(log: &Logger) {
    for (name, similar) in unknown_variables() {
        warn!(log, "this environment variable is no setting and has no effect{similar}"; "variable" => name);
    }
}

/// Returns the environment variables that look like settings but are none, each with a suggestion.
fn unknown_variables() -> Vec<(String, String)> {
    let mut known = BTreeSet::new();
    let mut commands = vec![parser()];
    while let Some(command) = commands.pop() {
        known.extend(
            command.get_arguments().filter_map(|option| option.get_env()).map(|name| name.to_string_lossy().into_owned()),
        );
        commands.extend(command.get_subcommands().cloned());
    }
    let set = env::vars_os().map(|(name, _)| name.to_string_lossy().into_owned());
    let unknown = set.filter(|name| name.starts_with("BOXOFFICE_") && !known.contains(name));
    unknown.map(|name| (name.clone(), suggest(&name, known.iter().map(String::as_str)))).collect()
}

/// Handlers of Ctrl-C, SIGTERM and SIGQUIT. Without them, these signals end the program at once, so a server installs them before
/// it prints its address.
struct StopSignals {
    interrupt: Signal,
    terminate: Signal,
    quit: Signal,
}

impl StopSignals {
    fn listen() -> anyhow::Result<Self> {
        let listen = |kind| signal(kind).context("cannot listen for stop signals");
        Ok(Self {
            interrupt: listen(SignalKind::interrupt())?,
            terminate: listen(SignalKind::terminate())?,
            quit: listen(SignalKind::quit())?,
        })
    }

    /// Waits for the next stop signal.
    async fn recv(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
            _ = self.quit.recv() => {}
        }
    }
}

/// Returns the exit code of a command that looks for differences: 0 without any, 1 with some, 2 if the command could not run.
fn finish(command: &str, is_clean: anyhow::Result<bool>) -> ExitCode {
    match is_clean {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            print_error(format!("{command} could not run: {}", one_line(&error)));
            ExitCode::from(2)
        }
    }
}

/// Stops a comparison at the first stop signal, so that it deletes the data that it created. Returns at the second signal.
async fn stop_comparing(mut stop: StopSignals, stopped: &AtomicBool) -> anyhow::Error {
    for message in ["Stopping. The data created on the server is deleted first; a second signal leaves it there.", "Stopped."] {
        stop.recv().await;
        print_error(message);
        stopped.store(true, Ordering::Relaxed);
    }
    anyhow!("it was stopped by a second signal, and the data that it created stays on the server")
}

/// Runs a comparison and prints its findings. Returns whether there are none.
async fn compare(options: &CompareOptions) -> anyhow::Result<bool> {
    let builtin = BuiltinDocument { contract: contract::load()?, emitted: routes().openapi()? };
    let mut progress = Progress::default();
    let stopped = Arc::default();
    let compared = tokio::select! {
        compared = options.compare(builtin, &stopped, |coverage, count| progress.update(coverage, count)) => compared,
        second_signal = stop_comparing(StopSignals::listen()?, &stopped) => Err(second_signal),
    };
    progress.finish();
    let report = compared?;
    print(report::text(&report, options.max_findings).trim_end())?;
    Ok(report.findings.is_empty())
}

/// Prints all differences between contract and code. Returns whether there are none.
fn find_drift(options: &DriftOptions) -> anyhow::Result<bool> {
    let contract = options.spec.as_deref().map_or_else(contract::load, |file| Contract::read(file).map(Arc::new))?;
    let mut differences = drift::compare(&contract.document, &routes().openapi()?);
    differences.extend(drift::compare_policies(&contract.document, &contract::load()?.document));
    match options.format {
        Format::Json => print(serde_json::to_string_pretty(&differences)?)?,
        Format::Text => {
            for difference in &differences {
                print(difference)?;
            }
            print(format!("{} operations, {} differences", contract.operations().count(), differences.len()))?;
        }
    }
    Ok(differences.is_empty())
}

/// Prints all changes between two documents. Returns whether none is breaking.
fn find_changes(options: &DiffOptions) -> anyhow::Result<bool> {
    let old = Contract::read(&options.old)?;
    let new = options.new.as_deref().map_or_else(contract::load, |file| Contract::read(file).map(Arc::new))?;
    let changes = diff::diff(&old.document, &new.document);
    let count = |impact: Impact| changes.iter().filter(|change| change.impact == impact).count();
    match options.format {
        DiffFormat::Json => print(serde_json::to_string_pretty(&changes)?)?,
        DiffFormat::Markdown => print(diff::to_markdown(&changes).trim_end())?,
        DiffFormat::Text => {
            for change in &changes {
                print(change)?;
            }
            let [breaking, compatible, prose] = [Impact::Breaking, Impact::NonBreaking, Impact::Prose].map(count);
            print(format!("{breaking} breaking, {compatible} non-breaking, {prose} prose"))?;
        }
    }
    Ok(count(Impact::Breaking) == 0)
}

/// Prints the result of the command to standard output.
fn print(output: impl Display) -> anyhow::Result<()> {
    writeln!(stdout(), "{output}").context("cannot write to standard output")
}

/// Prints an error to standard error, separate from the result of the command.
fn print_error(error: impl Display) {
    // If standard error is closed, there is no way to report the failure.
    let _ignored = writeln!(stderr(), "boxoffice: {error}");
}
