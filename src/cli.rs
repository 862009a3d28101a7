//! The command line.

mod admin;
mod backup;
mod checks;
mod config;
mod config_check;
mod copy;
mod invocation;
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
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, bail, ensure};
use backup::{BackupOptions, RestoreOptions};
use boxoffice_conformance::options::CompareOptions;
use boxoffice_conformance::proxy::ProxyOptions;
use boxoffice_http::error::one_line;
use boxoffice_http::log::{self, LevelControl};
use boxoffice_http::traces::Tracer;
use checks::{DiffOptions, DriftOptions};
use clap::{Args, CommandFactory, Parser, Subcommand, ValueEnum};
use config::ConfigCommand;
use copy::CopyOptions;
use invocation::Invocation;
use manual::{CompletionsOptions, ManualOptions};
use mock::MockOptions;
use rustix::fs::Access;
use serve::ServeOptions;
use slog::{Level, Logger};

use crate::bootstrap;
use crate::config::{CONFIG_FILE, InvalidSettings, PlatformOptions, SecretFile, Setting, StorageOptions, setting, suggest};
use crate::contract;
use crate::demo;
use crate::error_catalogue;
use crate::features::identity::accounts::{AccountRole, Role};
use crate::kernel::db::{DatabaseLocation, Db};
use crate::kernel::settings::{LimitSettings, Secret, Settings};
use crate::kernel::types::clock::{Clock, Timestamp};
use crate::kernel::{outbox, private_files};
use crate::provisioning;
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
    #[arg(long, env = "BOXOFFICE_PASSWORD", hide_env_values = true)]
    password: Option<Secret>,
    /// File with the password
    #[arg(long, env = "BOXOFFICE_PASSWORD_FILE", value_name = "FILE", conflicts_with = "password", value_parser = setting(SecretFile::read))]
    password_file: Option<Setting<SecretFile>>,
    /// Role of the account
    #[arg(long, env = "BOXOFFICE_ACCOUNT_ROLE", default_value = "customer")]
    role: AccountRole,
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
    #[arg(long, env = "BOXOFFICE_KEY_ROLE")]
    role: Role,
    /// Number of the account that the key acts for
    #[arg(long, env = "BOXOFFICE_ACCOUNT", value_name = "NUMBER")]
    account: Option<String>,
    /// Name of the key, for its purpose
    #[arg(long, env = "BOXOFFICE_NAME", default_value = "command line", value_parser = not_blank)]
    name: String,
    /// End of the key: a day, or a time, in UTC such as `2027-01-31T18:00` [default: none, it is valid until it is ended]
    #[arg(long, env = "BOXOFFICE_EXPIRES", value_name = "TIME", value_parser = expiry)]
    expires: Option<Timestamp>,
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
    if let Command::Config { command } = &cli.command {
        return config::run(command, &invocation, &log).unwrap_or_else(fail);
    }
    if let Err(error) = invocation.reject_invalid_file(&cli.command) {
        return fail(error);
    }
    let done = match cli.command {
        Command::Drift(options) => return finish("drift", checks::find_drift(&options)),
        Command::Diff(options) => return finish("diff", checks::find_changes(&options)),
        Command::Compare(options) => return finish("compare", block_on(checks::compare(&options))),
        Command::Proxy(options) => return finish("proxy", block_on(proxy::run(&options))),
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

async fn execute(command: Command, log: &Logger, level: &LevelControl) -> anyhow::Result<()> {
    match command {
        Command::Serve(options) => serve::serve(&options, log, level).await,
        Command::Drift(_) | Command::Diff(_) | Command::Compare(_) | Command::Proxy(_) | Command::Config { .. } => {
            bail!("`run` executes this command, which has an exit code of its own")
        }
        Command::Manual(options) => manual::write_pages(&options),
        Command::Completions(options) => {
            manual::print_completions(&options);
            Ok(())
        }
        Command::Errors => print(error_catalogue::render(&contract::load()?.document, &routes().openapi()?)?.trim_end()),
        Command::MailTemplates { folder } => {
            outbox::write_embedded(&folder)?;
            print(format!("The templates are in {}.", folder.display()))
        }
        Command::Mock(options) => mock::serve(*options, log, level).await,
        Command::Migrate(storage) => {
            private_files::set_umask();
            storage.warn_of_readable_secrets(log)?;
            storage.require_access()?;
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
            let Some(Secret(password)) = password else {
                let needed = "--password-file or --password is needed: a file with the password, or the password itself";
                return Err(InvalidSettings::new(vec![needed.to_owned()]).into());
            };
            let app = open_existing(&options.platform, true, log).await?;
            print(
                provisioning::create_account(&app, &options.username, &options.email, password, Role::from(options.role).into())
                    .await?,
            )
        }
        Command::Key { command: KeyCommand::Create(options) } => {
            let app = open_existing(&options.platform, true, log).await?;
            let KeyOptions { role, account, name, expires, .. } = *options;
            print(provisioning::create_key(&app, &name, role.into(), account.as_deref(), expires).await?)
        }
        Command::Admin(options) => admin::run(*options, log).await,
        Command::Demo(options) => {
            // Without rate limits, because the requests come from this program.
            let settings = Settings { limits: LimitSettings::default(), ..options.settings()? };
            let app = open_with(&options, settings, log, Tracer::default()).await?;
            bootstrap::check_fixed_settings(&app).await?;
            print(demo::seed(&app).await?)
        }
    }
}

/// Parses the end of a key, which must be in the future. A day alone is its beginning.
fn expiry(text: &str) -> anyhow::Result<Timestamp> {
    let time = Timestamp::parse(text).or_else(|| Timestamp::parse(&format!("{text}T00:00")));
    let time = time.context("it is no day such as 2027-01-31, and no time such as 2027-01-31T18:00")?;
    ensure!(time > Clock::default().now(), "it has passed; give a later time");
    Ok(time)
}

/// Rejects a blank argument. In a script, it is usually an empty variable.
fn not_blank(argument: &str) -> anyhow::Result<String> {
    ensure!(!argument.trim().is_empty(), "it is blank");
    Ok(argument.to_owned())
}

/// Opens a database that exists. With wrong settings, a command would otherwise create one, and find nothing in it. A command that
/// changes nothing creates no other files either.
async fn open_existing(options: &PlatformOptions, creates_files: bool, log: &Logger) -> anyhow::Result<Arc<App>> {
    let settings = Settings { creates_files, ..options.settings()? };
    if let DatabaseLocation::Sqlite(path) = options.database_url()?.parse()? {
        private_files::require_access(&path, Access::READ_OK, Some(options.storage.data_dir()?))?;
        let (path, is_there) = (path.display(), path.exists());
        ensure!(is_there, "there is no SQLite database {path}: give the settings of the server, such as --config");
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
    // If standard error is closed, there is no way to report the failure.
    let _ignored = writeln!(stderr(), "boxoffice: {error}");
}
