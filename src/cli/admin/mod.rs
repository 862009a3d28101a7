//! The command `admin`: accounts, keys, orders, refunds, events, jobs and mail, for an operator on the server's machine.
//!
//! The commands use the same services and the same audit log as requests, and work while servers run.

mod accounts;
mod events;
mod jobs;
mod keys;
mod orders;
mod outbox;
mod output;
mod refunds;

use std::io::{BufRead, IsTerminal, Write, stderr, stdin};
use std::sync::Arc;

use anyhow::bail;
use boxoffice_http::ApiError;
use boxoffice_http::error::{Code, one_line};
use clap::{Args, Subcommand};
use http::Method;
use output::Output;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;
use slog::Logger;

use super::{MissingKeys, open_existing};
use crate::bootstrap;
use crate::config::{InvalidSettings, PlatformOptions};
use crate::contract;
use crate::kernel::http::Operator;
use crate::kernel::types::paging::PageRequest;
use crate::routes::routes;
use crate::state::App;

#[derive(Debug, Args)]
pub struct AdminOptions {
    #[command(subcommand)]
    command: AdminCommand,
    /// Print JSON instead of text
    #[arg(long)]
    json: bool,
    /// Do it without asking for confirmation
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    platform: PlatformOptions,
}

#[derive(Debug, Subcommand)]
enum AdminCommand {
    /// Find and manage accounts
    #[command(subcommand)]
    Accounts(accounts::AccountsCommand),
    /// List, create and end API keys of client programs
    #[command(subcommand)]
    Keys(keys::KeysCommand),
    /// Find and manage orders
    #[command(subcommand)]
    Orders(orders::OrdersCommand),
    /// List refunds that the payment gateway has not made, and settle those that it can't make
    #[command(subcommand)]
    Refunds(refunds::RefundsCommand),
    /// Find and manage events
    #[command(subcommand)]
    Events(events::EventsCommand),
    /// List background jobs, and run them now
    #[command(subcommand)]
    Jobs(jobs::JobsCommand),
    /// List, send and drop mails that wait or were given up
    #[command(subcommand)]
    Outbox(outbox::OutboxCommand),
}

impl AdminCommand {
    /// Returns whether it changes nothing.
    fn is_read_only(&self) -> bool {
        use accounts::AccountsCommand;
        use events::EventsCommand;
        use jobs::JobsCommand;
        use keys::KeysCommand;
        use orders::OrdersCommand;
        use outbox::OutboxCommand;
        use refunds::RefundsCommand;
        matches!(
            self,
            Self::Accounts(AccountsCommand::Find { .. } | AccountsCommand::Show(_))
                | Self::Keys(KeysCommand::List { .. })
                | Self::Orders(OrdersCommand::Find { .. } | OrdersCommand::Show(_))
                | Self::Refunds(RefundsCommand::List { .. })
                | Self::Events(EventsCommand::Find { .. } | EventsCommand::Show(_))
                | Self::Jobs(JobsCommand::List)
                | Self::Outbox(OutboxCommand::List { .. } | OutboxCommand::Show { .. })
        )
    }
}

/// A page of a list.
#[derive(Debug, Args)]
struct PageOptions {
    /// Number of the page, starting at 1
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    page: u32,
    /// Entries on a page, at most 100
    #[arg(long, default_value_t = 25, value_parser = clap::value_parser!(u32).range(1..=100))]
    records: u32,
}

impl PageOptions {
    fn request(&self) -> PageRequest {
        PageRequest::new(self.page, self.records)
    }

    /// Returns the parameters of a list.
    fn query(&self) -> String {
        format!("page={}&records={}", self.page, self.records)
    }
}

/// Executes the command.
///
/// # Errors
/// Returns an error if the command is rejected, or fails.
pub async fn run(options: AdminOptions, log: &Logger) -> anyhow::Result<()> {
    let AdminOptions { command, json, yes, platform } = options;
    let missing_keys = if command.is_read_only() { MissingKeys::Ignore } else { MissingKeys::Reject };
    let app = open_existing(&platform, missing_keys, log).await?;
    bootstrap::check_fixed_settings(&app).await?;
    let operator = Operator::new(Arc::clone(&app), routes(), contract::load_for(app.settings.currency)?).await?;
    let admin = Admin { operator, output: Output { json, currency: app.settings.currency }, is_confirmed: yes };
    let done = match command {
        AdminCommand::Accounts(command) => accounts::run(&admin, command).await,
        AdminCommand::Keys(command) => keys::run(&admin, command).await,
        AdminCommand::Orders(command) => orders::run(&admin, command).await,
        AdminCommand::Refunds(command) => refunds::run(&admin, command).await,
        AdminCommand::Events(command) => events::run(&admin, command).await,
        AdminCommand::Jobs(command) => jobs::run(&admin, command).await,
        AdminCommand::Outbox(command) => outbox::run(&admin, command).await,
    };
    app.db.close().await;
    done
}

/// Returns the parameters of these filters, each with a `&` before it.
fn filters(filters: [(&str, Option<String>); 3]) -> String {
    filters.into_iter().filter_map(|(name, value)| Some(format!("&{name}={}", encode(&value?)))).collect()
}

/// An operator, and how questions and results are printed.
struct Admin {
    operator: Operator<App>,
    output: Output,
    is_confirmed: bool,
}

impl Admin {
    async fn get(&self, path_and_query: &str) -> anyhow::Result<Value> {
        self.operator.request(Method::GET, path_and_query, None).await.map_err(|error| describe(&error))
    }

    async fn post(&self, path: &str, body: Option<&Value>) -> anyhow::Result<Value> {
        self.operator.request(Method::POST, path, body).await.map_err(|error| describe(&error))
    }

    /// Asks for a confirmation of a change that can't be undone, unless the command line has it.
    ///
    /// # Errors
    /// Returns an error if the operator declines, or if there is no terminal to ask on.
    fn confirm(&self, change: &str) -> anyhow::Result<()> {
        if self.is_confirmed {
            return Ok(());
        }
        if !stdin().is_terminal() {
            return Err(InvalidSettings::new(vec![format!("this {change}. Add --yes to do it; nothing was changed")]).into());
        }
        write!(stderr(), "This {change}. Do it? [y/N] ")?;
        let mut answer = String::new();
        stdin().lock().read_line(&mut answer)?;
        if !["y", "yes"].contains(&answer.trim().to_lowercase().as_str()) {
            bail!("not confirmed; nothing was changed");
        }
        Ok(())
    }
}

/// Converts the error of an operation for the command line. Names each invalid argument, and what a failure was.
fn describe(error: &ApiError) -> anyhow::Error {
    match error.cause() {
        Some(cause) => anyhow::anyhow!(one_line(cause)),
        // The text for clients speaks of a URI.
        None if error.code() == Code::RESOURCE_NOT_FOUND => anyhow::anyhow!(
            "nothing has this number or identifier; `find` or `list` shows those that exist ({})",
            error.code().as_str()
        ),
        None => anyhow::anyhow!("{error} ({})", error.code().as_str()),
    }
}

/// Encodes a text for a path or a query.
fn encode(text: &str) -> String {
    utf8_percent_encode(text, NON_ALPHANUMERIC).to_string()
}
