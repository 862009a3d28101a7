//! Operations on integrations. Permissions are checked by the contract's scopes (`x-scopes`).

use boxoffice_http::error::{Error, FieldError, Result, ensure_no_field_errors};

use super::model::{Integration, IntegrationCreate, IntegrationRow, IntegrationWithKey, ProgramKey, ProgramKeyRow};
use super::store;
use crate::features::identity::accounts::{self, AccountNumber};
use crate::kernel::auth::{self, Caller, KeyKind, NewKey};
use crate::kernel::db::{Tx, transaction};
use crate::kernel::types::api_types::{DateTime, NullableField, Uri};
use crate::kernel::types::clock::Timestamp;
use crate::kernel::types::id::Id;
use crate::kernel::types::paging::{Page, PageRequest};
use crate::state::{App, Ctx};

pub async fn list(ctx: &Ctx, paging: PageRequest) -> Result<Page<Integration>> {
    Ok(store::list(&mut ctx.unit.read().await?, paging).await?.map(view))
}

pub async fn create(ctx: &Ctx, caller: &Caller, new: IntegrationCreate) -> Result<IntegrationWithKey> {
    let (row, key) = transaction!(ctx.unit, |tx| create_in_tx(&ctx.app, tx, caller, &new).await)?;
    Ok(IntegrationWithKey { integration: view(row), key })
}

pub async fn get(ctx: &Ctx, id: Id) -> Result<Integration> {
    let row = store::find(&mut ctx.unit.read().await?, id).await?;
    Ok(view(row.ok_or(Error::NOT_FOUND)?))
}

/// Ends an integration's key.
pub async fn delete(ctx: &Ctx, id: Id) -> Result<()> {
    let now = ctx.app.clock.now();
    let ended = transaction!(ctx.unit, |tx| store::end(tx, id, now).await)?;
    if ended { Ok(()) } else { Err(Error::NOT_FOUND) }
}

/// Returns a page of all keys of client programs that have not ended, for an operator.
///
/// # Errors
/// Returns an error for a page past the end.
pub async fn list_keys(ctx: &Ctx, paging: PageRequest) -> Result<Page<ProgramKey>> {
    let page = store::list_keys(&mut ctx.unit.read().await?, paging).await?;
    let view = |row: ProgramKeyRow| ProgramKey {
        id: row.id.to_string(),
        name: row.name,
        role: row.role,
        account: row.number,
        created: row.created.format_rfc3339(),
        last_used: row.last_used.map(Timestamp::format_rfc3339),
        expires: row.expires.map(Timestamp::format_rfc3339),
    };
    Ok(page.map(view))
}

/// Ends a key of a client program, also of one without an account.
///
/// # Errors
/// [`Error::NOT_FOUND`] if there is no such key, or it has ended.
pub async fn end_key(ctx: &Ctx, id: Id) -> Result<()> {
    let now = ctx.app.clock.now();
    let ended = transaction!(ctx.unit, |tx| store::end_key(tx, id, now).await)?;
    if ended { Ok(()) } else { Err(Error::NOT_FOUND) }
}

/// Creates an integration and its key. If fields are invalid, the error lists all of them.
async fn create_in_tx(app: &App, tx: &mut Tx, caller: &Caller, new: &IntegrationCreate) -> Result<(IntegrationRow, String)> {
    let account = match &new.account {
        // Required if the caller's own key has no account.
        None => caller.account.ok_or_else(|| FieldError::missing("account")),
        Some(number) => {
            let account = accounts::find_by_number(tx, number).await?;
            account.map(|account| account.id).ok_or_else(|| FieldError::invalid("account", "names no account"))
        }
    };
    // The account may have been removed since it was read. It must not get a key then.
    let account = match account {
        Ok(id) if accounts::lock(tx, id).await?.is_none() => Err(FieldError::invalid("account", "names no account")),
        account => account,
    };
    auth::require_not_revoked(tx, caller).await?;
    let expires = new.expires.as_ref().map(|expires| match Timestamp::parse(&expires.0) {
        None => Err(FieldError::invalid("expires", "is no date and time")),
        Some(expires) if expires <= app.clock.now() => Err(FieldError::invalid("expires", "must be in the future")),
        Some(expires) => Ok(expires),
    });
    let expires = expires.transpose();
    let problems = [account.as_ref().err(), expires.as_ref().err()];
    ensure_no_field_errors(problems.into_iter().flatten().cloned().collect())?;
    let key = NewKey {
        kind: KeyKind::Integration,
        name: &new.name,
        scope: new.role.into(),
        account: account.ok(),
        token: None,
        expires: expires.ok().flatten(),
    };
    let (id, key) = auth::issue(app, tx, &key).await?;
    let row = store::find(tx, id).await?.ok_or(Error::NOT_FOUND)?;
    Ok((row, key))
}

fn view(row: IntegrationRow) -> Integration {
    Integration {
        uri: Uri(format!("/integrations/{}", row.id)),
        name: row.name,
        role: row.role,
        account: AccountNumber(row.number),
        expires: NullableField(row.expires.map(DateTime::from)),
        created: DateTime::from(row.created),
        last_used: NullableField(row.last_used.map(DateTime::from)),
    }
}
