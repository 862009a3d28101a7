//! `admin accounts`.

use anyhow::bail;
use boxoffice_http::error::Code;
use clap::{Args, Subcommand};
use http::Method;
use serde_json::{Value, json};

use super::output::Field;
use super::{Admin, PageOptions, describe, encode};
use crate::bootstrap::FIRST_EMAIL;
use crate::cli::{not_blank, print_error};
use crate::features::identity::accounts::{self, AccountNumber};
use crate::features::identity::sessions;
use crate::kernel::http::run_as_operator;
use crate::state::Ctx;

const PROPERTIES: &[Field] = &[
    ("number", "/number"),
    ("username", "/username"),
    ("e-mail", "/email"),
    ("role", "/role"),
    ("verified", "/verified"),
    ("active", "/activated"),
    ("title", "/title"),
    ("first name", "/firstName"),
    ("last name", "/lastName"),
    ("phone", "/phone"),
    ("city", "/city"),
    ("country", "/country"),
];
/// The columns of the list: the first of the properties.
const COLUMNS: &[Field] = PROPERTIES.split_at(6).0;

#[derive(Debug, Subcommand)]
pub enum AccountsCommand {
    /// Find the accounts with a number, a username or an e-mail address; without any, list all
    Find {
        /// Number, username or e-mail address
        #[arg(value_parser = not_blank)]
        text: Option<String>,
        #[command(flatten)]
        page: PageOptions,
    },
    /// Show an account
    Show(AccountArgument),
    /// Activate an account, so that its owner can sign in
    Activate(AccountArgument),
    /// Deactivate an account: log-ins and the keys that act for it are rejected until it is activated again
    Deactivate(AccountArgument),
    /// Mail a code to the owner of an account, with which they can choose a new password
    ResetPassword(AccountArgument),
    /// End all sessions of an account
    EndSessions(AccountArgument),
}

#[derive(Debug, Args)]
pub struct AccountArgument {
    /// Number of the account, such as GH-4K7QW2MZ
    #[arg(value_parser = not_blank)]
    number: String,
}

pub async fn run(admin: &Admin, command: AccountsCommand) -> anyhow::Result<()> {
    match command {
        AccountsCommand::Find { text, page } => {
            let filter = text.map(|text| format!("&{}={}", kind(&text), encode(&text))).unwrap_or_default();
            match admin.operator.request(Method::GET, &format!("/accounts?{}{filter}", page.query()), None).await {
                // No account can have a text of this form.
                Err(error) if error.code() == Code::ARGUMENTS_INVALID => {
                    admin.output.page(&json!({ "total": 0, "entries": [] }), COLUMNS)
                }
                accounts => admin.output.page(&accounts.map_err(|error| describe(&error))?, COLUMNS),
            }
        }
        AccountsCommand::Show(AccountArgument { number }) => admin.output.resource(&load(admin, &number).await?, PROPERTIES),
        AccountsCommand::Activate(AccountArgument { number }) => set_active(admin, &number, true).await,
        AccountsCommand::Deactivate(AccountArgument { number }) => set_active(admin, &number, false).await,
        AccountsCommand::ResetPassword(AccountArgument { number }) => {
            let account = load(admin, &number).await?;
            if account["email"] == FIRST_EMAIL {
                print_error(format!(
                    "warning: no mail reaches {FIRST_EMAIL}; give the account another address with PUT /accounts/{number}"
                ));
            }
            let reset = admin.post("/resets", Some(&json!({ "email": account["email"] }))).await?;
            let uri = reset["self"].as_str().unwrap_or_default();
            let sentence = format!(
                "A code was mailed to {}. To set a new password, the owner sends it with PATCH to {uri}.",
                account["email"].as_str().unwrap_or_default()
            );
            admin.output.done(&reset, &sentence)
        }
        AccountsCommand::EndSessions(AccountArgument { number }) => end_sessions(admin, &number).await,
    }
}

/// Returns the parameter of the list that finds a text.
fn kind(text: &str) -> &'static str {
    let is_number = text.len() == 11 && text.as_bytes()[2] == b'-';
    if text.contains('@') {
        "email"
    } else if is_number && text.bytes().all(|byte| byte == b'-' || byte.is_ascii_uppercase() || byte.is_ascii_digit()) {
        "number"
    } else {
        "username"
    }
}

async fn load(admin: &Admin, number: &str) -> anyhow::Result<Value> {
    match admin.get(&format!("/accounts/{}", encode(number))).await {
        Err(_) if !number.contains('-') => bail!("`{number}` is no number of an account; `accounts find {number}` shows it"),
        account => account,
    }
}

async fn set_active(admin: &Admin, number: &str, is_active: bool) -> anyhow::Result<()> {
    let account = load(admin, number).await?;
    let state = if is_active { "active" } else { "inactive" };
    if account["activated"] == is_active {
        bail!("the account {number} is {state} already");
    }
    if !is_active {
        admin.confirm(&format!(
            "rejects all log-ins to the account {number} and all keys that act for it until it is activated again"
        ))?;
    }
    // The operation of the contract would activate an account that was deactivated during the question.
    let (caller, account) = (&admin.operator.caller, &AccountNumber(number.to_owned()));
    let set = |ctx: Ctx| async move { accounts::set_active(&ctx, caller, account, is_active).await };
    let toggles = format!("/accounts/{number}/toggles");
    let account =
        run_as_operator(&admin.operator.app, "account_toggle_create", toggles, set).await.map_err(|error| describe(&error))?;
    admin.output.done(&serde_json::to_value(account)?, &format!("The account {number} is {state} now."))
}

async fn end_sessions(admin: &Admin, number: &str) -> anyhow::Result<()> {
    load(admin, number).await?;
    admin.confirm(&format!("ends all sessions of the account {number}"))?;
    let (caller, account) = (&admin.operator.caller, &AccountNumber(number.to_owned()));
    let sessions = format!("/accounts/{number}/sessions");
    let end = |ctx: Ctx| async move { sessions::end_all(&ctx, caller, account).await };
    let ended =
        run_as_operator(&admin.operator.app, "account_session_delete", sessions, end).await.map_err(|error| describe(&error))?;
    admin.output.done(&json!({ "ended": ended }), &format!("{ended} sessions of the account {number} were ended."))
}
