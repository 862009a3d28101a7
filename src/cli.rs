//! The command line.

mod account;
mod admin;
mod backup;
mod checks;
mod config;
mod config_check;
mod copy;
mod invocation;
mod key;
mod manual;
mod mock;
mod proxy;
mod serve;
mod signals;
mod table;

use std::collections::BTreeSet;
use std::env;
use std::fmt::Display;
use std::io::{Write, stderr, stdout};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::thread;

use account::AccountCommand;
use anyhow::{Context, ensure};
use backup::{BackupOptions, RestoreOptions};
use boxoffice_conformance::options::CompareOptions;
use boxoffice_conformance::proxy::ProxyOptions;
use boxoffice_http::error::one_line;
use boxoffice_http::log;
use boxoffice_http::traces::Tracer;
use checks::{DiffOptions, DriftOptions};
use clap::{CommandFactory, Parser, Subcommand, ValueEnum};
use config::ConfigCommand;
use copy::CopyOptions;
use invocation::Invocation;
use key::KeyCommand;
use manual::{CompletionsOptions, ManualOptions};
use mock::MockOptions;
use rustix::fs::Access;
use serve::ServeOptions;
use slog::{Level, Logger};

use crate::bootstrap;
use crate::config::{CONFIG_FILE, InvalidSettings, PlatformOptions, StorageOptions, suggest};
use crate::contract;
use crate::demo;
use crate::error_catalogue;
use crate::kernel::db::{DatabaseLocation, Db};
use crate::kernel::settings::{LimitSettings, Settings};
use crate::kernel::{outbox, private_files};
use crate::routes::routes;
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
    #[command(subcommand)]
    Config(ConfigCommand),
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
    #[command(subcommand)]
    Account(AccountCommand),
    /// Manage API keys
    #[command(subcommand)]
    Key(KeyCommand),
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
    const SHOWN: [&str; 6] = ["json", "yes", "database", "database_url_file", "data_dir", CONFIG_FILE];
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
    let (log, level, _written_when_dropped) = match log::open(cli.log_level.into()) {
        Ok(opened) => opened,
        Err(error) => return fail(error.into()),
    };
    invocation.warn_of_readable_secrets(&log);
    if let Err(error) = invocation.reject_invalid_file(&cli.command) {
        return fail(error);
    }
    let outcome = match cli.command {
        Command::Serve(options) => block_on(serve::serve(&options, &log, &level)),
        Command::Drift(options) => return finish("drift", checks::find_drift(&options)),
        Command::Diff(options) => return finish("diff", checks::find_changes(&options)),
        Command::Errors => print_error_catalogue(),
        Command::Compare(options) => return finish("compare", block_on(checks::compare(&options))),
        Command::Proxy(options) => return finish("proxy", block_on(proxy::run(&options))),
        Command::Mock(options) => block_on(mock::serve(*options, &log, &level)),
        Command::Config(command) => return config::run(&command, &invocation, &log).unwrap_or_else(fail),
        Command::Migrate(storage) => block_on(migrate(&storage, &log)),
        Command::Backup(options) => block_on(backup::create(&options, &log)),
        Command::Restore(options) => block_on(backup::restore(&options, &log)),
        Command::Copy(options) => block_on(copy::copy(&options, &log)),
        Command::Check(storage) => block_on(backup::check(&storage)),
        Command::Account(AccountCommand::Create(options)) => block_on(account::create(&options, &log)),
        Command::Key(KeyCommand::Create(options)) => block_on(key::create(&options, &log)),
        Command::Admin(options) => block_on(admin::run(*options, &log)),
        Command::MailTemplates { folder } => write_mail_templates(&folder),
        Command::Demo(options) => block_on(seed_demo(&options, &log)),
        Command::Manual(options) => manual::write_pages(&options),
        Command::Completions(options) => {
            manual::print_completions(&options);
            Ok(())
        }
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(match error.downcast::<InvalidSettings>() {
            Ok(invalid) => invocation.locate(invalid).into(),
            Err(error) => error,
        }),
    }
}

/// Prints the error of a command, and returns its exit code.
fn fail(error: anyhow::Error) -> ExitCode {
    if let Some(invalid) = error.downcast_ref::<InvalidSettings>() {
        // Not on one line: each invalid setting has a line of its own.
        print_error(invalid);
        return ExitCode::from(if invalid.may_pass() { 1 } else { 2 });
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

fn print_error_catalogue() -> anyhow::Result<()> {
    print(error_catalogue::render(&contract::load()?.document, &routes().openapi()?)?.trim_end())
}

/// Writes the templates of mails into a folder.
fn write_mail_templates(folder: &Path) -> anyhow::Result<()> {
    outbox::write_embedded(folder)?;
    print(format!("The templates are in {}.", folder.display()))
}

/// Brings the database's tables up to date.
async fn migrate(storage: &StorageOptions, log: &Logger) -> anyhow::Result<()> {
    private_files::set_umask();
    storage.warn_of_readable_secrets(log)?;
    storage.require_access()?;
    storage.restrict_access(log)?;
    Db::open(&storage.database_url()?).await?.close().await;
    print("The database's tables are up to date.")
}

/// Fills an empty database with sample data.
async fn seed_demo(options: &PlatformOptions, log: &Logger) -> anyhow::Result<()> {
    // Without rate limits, because the requests come from this program.
    let settings = Settings { limits: LimitSettings::default(), ..options.settings()? };
    let app = open_with(options, settings, log, Tracer::default()).await?;
    bootstrap::check_fixed_settings(&app).await?;
    print(demo::seed(&app).await?)
}

/// Rejects a blank argument. In a script, it is usually an empty variable.
fn not_blank(argument: &str) -> anyhow::Result<String> {
    ensure!(!argument.trim().is_empty(), "it is blank");
    Ok(argument.to_owned())
}

/// The behavior of a command if the keys of the server don't exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MissingKeys {
    /// Creates them.
    Create,
    /// Changes nothing, and so creates no files.
    Ignore,
    /// Ends with an error.
    Reject,
}

/// Opens a database that exists. With wrong settings, a command would otherwise create one, and find nothing in it. A command that
/// changes nothing creates no other files either.
async fn open_existing(options: &PlatformOptions, missing_keys: MissingKeys, log: &Logger) -> anyhow::Result<Arc<App>> {
    let settings = Settings { creates_files: missing_keys != MissingKeys::Ignore, ..options.settings()? };
    if let DatabaseLocation::Sqlite(path) = options.database_url()?.parse()? {
        private_files::require_access(&path, Access::READ_OK, Some(options.storage.data_dir()?))?;
        let (path, is_there) = (path.display(), path.exists());
        ensure!(is_there, "there is no SQLite database {path}: give the settings of the server, such as --config");
    }
    if missing_keys == MissingKeys::Reject {
        options.require_keys()?;
    }
    open_with(options, settings, log, Tracer::default()).await
}

async fn open_with(options: &PlatformOptions, settings: Settings, log: &Logger, tracer: Tracer) -> anyhow::Result<Arc<App>> {
    private_files::set_umask();
    options.require_access(settings.creates_files)?;
    options.restrict_access(log)?;
    App::open(&options.database_url()?, settings, log.clone(), tracer).await
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

/// Prints the result of the command to standard output.
fn print(output: impl Display) -> anyhow::Result<()> {
    writeln!(stdout(), "{output}").context("cannot write to standard output")
}

/// Prints an error to standard error, separate from the result of the command.
fn print_error(error: impl Display) {
    let line = format!("boxoffice: {error}\n");
    // A thread, because a pipe that nobody reads blocks it. If standard error is closed, there is no way to report the failure.
    let print = |line: &str| _ = stderr().write_all(line.as_bytes());
    let in_thread = line.clone();
    let Ok(printing) = thread::Builder::new().spawn(move || print(&in_thread)) else { return print(&line) };
    log::wait_for_last_lines(&printing);
}
