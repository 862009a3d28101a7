//! Accounts and API keys that are created without a request: those of the first start, and those of the command line.

use std::fmt;
use std::sync::Arc;

use anyhow::{Context, anyhow};
use boxoffice_http::ApiError;
use boxoffice_http::error::Error;
use boxoffice_openapi::Scope;
use http::HeaderMap;
use serde_json::json;

use crate::contract;
use crate::features::identity::accounts::{self, Account};
use crate::kernel::auth::{KeyKind, NewKey, issue};
use crate::kernel::db::transaction;
use crate::kernel::types::id::Id;
use crate::kernel::types::secret;
use crate::state::{App, Ctx};

/// The credentials that the first start created. They are printed once; the database stores only hashes.
#[derive(Debug)]
pub struct InitialCredentials {
    /// The administrator's username.
    pub username: String,
    /// The administrator's password.
    pub password: String,
    /// An API key of the administrator.
    pub administrator_key: String,
    /// A public API key, which acts for no account.
    pub public_key: String,
}

impl fmt::Display for InitialCredentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "The database was empty. These credentials were created and are printed only once:")?;
        writeln!(f, "  administrator's username  {}", self.username)?;
        writeln!(f, "  administrator's password  {}", self.password)?;
        writeln!(f, "  administrator's key       {}", self.administrator_key)?;
        write!(f, "  public key                {}", self.public_key)
    }
}

/// Creates an administrator and two API keys if there is no account yet.
pub async fn first_start(app: &Arc<App>) -> anyhow::Result<Option<InitialCredentials>> {
    let any = accounts::exists_any(&mut app.db.read().await.map_err(plain)?).await.map_err(plain)?;
    if any {
        return Ok(None);
    }
    let (username, password) = ("administrator", secret::api_key());
    let account = new_account(app, username, "administrator@localhost.localdomain", &password, Scope::Administrator).await?;
    Ok(Some(InitialCredentials {
        username: username.to_owned(),
        administrator_key: create_key(app, "first start", Scope::Administrator, Some(&account.number.0)).await?,
        public_key: create_key(app, "first start", Scope::Public, None).await?,
        password,
    }))
}

/// Creates an account and returns its number. Validates it against the contract like a request.
///
/// # Errors
/// Returns an error if the contract or a rule rejects the account, or the database fails.
pub async fn create_account(app: &Arc<App>, username: &str, email: &str, password: &str, role: Scope) -> anyhow::Result<String> {
    Ok(new_account(app, username, email, password, role).await?.number.0)
}

async fn new_account(app: &Arc<App>, username: &str, email: &str, password: &str, role: Scope) -> anyhow::Result<Account> {
    let body = json!({ "username": username, "password": password, "email": email, "role": role });
    let contract = contract::load()?;
    let operation = contract.operation("account_create").context("the contract has no account_create")?;
    let arguments = operation
        .check(&operation.path, None, &HeaderMap::new(), body.to_string().as_bytes())
        .map_err(Error::from)
        .map_err(plain)?;
    accounts::create(&Ctx::immediate(Arc::clone(app)), None, serde_json::from_value(arguments.body)?).await.map_err(plain)
}

/// Creates an API key of an integration, for the account with this number or for no account.
///
/// # Errors
/// Returns an error if there is no such account, or the database fails.
pub async fn create_key(app: &Arc<App>, name: &str, role: Scope, account: Option<&str>) -> anyhow::Result<String> {
    let account = match account {
        None => None,
        Some(number) => Some(find_account(app, number).await?),
    };
    let new = NewKey { kind: KeyKind::Integration, name, scope: role, account, token: None, expires: None };
    let (_, key) = transaction!(app.db, |tx| issue(app, tx, &new).await).map_err(plain)?;
    Ok(key)
}

async fn find_account(app: &Arc<App>, number: &str) -> anyhow::Result<Id> {
    let mut tx = app.db.read().await.map_err(plain)?;
    let account = accounts::find_by_number(&mut tx, number).await.map_err(plain)?;
    Ok(account.with_context(|| format!("no account has the number {number}"))?.id)
}

/// Converts an error for output on the command line.
pub(crate) fn plain(error: boxoffice_http::error::Error) -> anyhow::Error {
    let failure = ApiError::from(error);
    match failure.cause() {
        Some(cause) => anyhow!("{cause:#}"),
        None => anyhow!("{failure}"),
    }
}
