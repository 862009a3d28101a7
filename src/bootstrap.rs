//! What is made without a request: the first start's administrator and keys, and what the command line makes.

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

/// What the first start made. It is told once; only hashes of it are kept.
#[derive(Debug)]
pub struct InitialCredentials {
    /// The administrator's username.
    pub username: String,
    /// The administrator's password.
    pub password: String,
    /// A key of the platform's staff.
    pub administrator_key: String,
    /// An application's key, with no person behind it.
    pub public_key: String,
}

impl fmt::Display for InitialCredentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "The database was empty. This was made, and is told only now:")?;
        writeln!(f, "  administrator's username  {}", self.username)?;
        writeln!(f, "  administrator's password  {}", self.password)?;
        writeln!(f, "  administrator's key       {}", self.administrator_key)?;
        write!(f, "  public key                {}", self.public_key)
    }
}

/// Makes an administrator and two keys where there is no account yet.
///
/// # Errors
/// When the database fails.
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

/// Makes an account, held to the contract like one that is made by a request; gives its number.
///
/// # Errors
/// When the contract or a rule stands against it, or the database fails.
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
    accounts::create(&Ctx::immediate(Arc::clone(app)), serde_json::from_value(arguments.body)?).await.map_err(plain)
}

/// Makes an integration's key, for the account of this number or for nobody.
///
/// # Errors
/// When there is no such account, or the database fails.
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

/// An error in words, for whoever is at the command line.
pub(crate) fn plain(error: boxoffice_http::error::Error) -> anyhow::Error {
    let failure = ApiError::from(error);
    match failure.cause() {
        Some(cause) => anyhow!("{cause:#}"),
        None => anyhow!("{failure}"),
    }
}
