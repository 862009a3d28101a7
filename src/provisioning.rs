//! Accounts and API keys that are created without a request, for the command line.

use std::sync::Arc;

use anyhow::{Context, anyhow};
use boxoffice_http::error::{Error, Result};
use boxoffice_openapi::Scope;
use http::HeaderMap;
use serde_json::json;

use crate::contract;
use crate::features::codes;
use crate::features::identity::accounts::{self, AccountCreate};
use crate::kernel::auth::{KeyKind, NewKey, issue};
use crate::kernel::db::{Tx, transaction};
use crate::kernel::http::run_as_operator;
use crate::kernel::types::clock::Timestamp;
use crate::kernel::types::id::Id;
use crate::state::{App, Ctx};

/// Creates an account and returns its number. Validates it against the contract like a request, and records it in the audit log.
///
/// # Errors
/// Returns an error if the contract or a rule rejects the account, or the database fails.
pub async fn create_account(app: &Arc<App>, username: &str, email: &str, password: &str, role: Scope) -> anyhow::Result<String> {
    let new = validate_account(username, email, password, role)?;
    let create = |ctx: Ctx| async move { accounts::create(&ctx, None, new).await };
    let created = run_as_operator(app, "account_create", "/accounts".to_owned(), create).await;
    Ok(created.map_err(|error| anyhow!(error.log_text()))?.number.0)
}

/// Returns a new account that the contract accepts.
///
/// # Errors
/// Returns an error that names the invalid properties.
pub fn validate_account(username: &str, email: &str, password: &str, role: Scope) -> anyhow::Result<AccountCreate> {
    let body = json!({ "username": username, "password": password, "email": email, "role": role });
    let contract = contract::load()?;
    let operation = contract.operation("account_create").context("the contract has no account_create")?;
    let arguments =
        operation.check(&operation.path, None, &HeaderMap::new(), body.to_string().as_bytes()).map_err(Error::from)?;
    Ok(serde_json::from_value(arguments.body)?)
}

/// Creates an API key of an integration, for the account with this number or for no account, and records it in the audit log.
///
/// # Errors
/// Returns an error if there is no such account, or the database fails.
pub async fn create_key(
    app: &Arc<App>,
    name: &str,
    scope: Scope,
    account: Option<&str>,
    expires: Option<Timestamp>,
) -> anyhow::Result<String> {
    let issue = |ctx: Ctx| async move { issue_key(&ctx, name, scope, account, expires).await };
    let issued = run_as_operator(app, "integration_create", "/integrations".to_owned(), issue).await;
    Ok(issued.map_err(|error| anyhow!(error.log_text()))?.1)
}

/// Issues a key like [`create_key`]. Returns its identifier and the key.
///
/// # Errors
/// Returns an error if there is no such account, or the database fails.
pub async fn issue_key(
    ctx: &Ctx,
    name: &str,
    scope: Scope,
    account: Option<&str>,
    expires: Option<Timestamp>,
) -> Result<(Id, String)> {
    transaction!(ctx.unit, |tx| {
        let account = match account {
            None => None,
            Some(number) => Some(lock_account(tx, number).await?),
        };
        issue(&ctx.app, tx, &NewKey { kind: KeyKind::Integration, name, scope, account, token: None, expires }).await
    })
}

/// Locks an account, so that it isn't removed while it gets a key.
async fn lock_account(tx: &mut Tx, number: &str) -> Result<Id> {
    let unknown = || codes::ACCOUNT_UNKNOWN.with_message(format!("no account has the number {number}"));
    let account = accounts::find_by_number(tx, number).await?.ok_or_else(unknown)?;
    Ok(accounts::lock(tx, account.id).await?.ok_or_else(unknown)?.id)
}
