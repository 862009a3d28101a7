//! What the session operations mean.

use tokio::sync::OnceCell;

use super::model::{AccountSession, Credentials, Session, SessionCreate, SessionPath, SessionRow};
use super::store;
use crate::features::identity::accounts::{self, Account, AccountNumber, AccountRow};
use crate::state::App;
use crate::kernel::auth::{self, Caller, KeyKind, NewKey};
use crate::kernel::types::clock::Timestamp;
use crate::kernel::types::id::Id;
use crate::kernel::types::paging::{Page, PageRequest};
use crate::kernel::types::secret;
use crate::kernel::types::api_types::{DateTime, NullableField, Uri};
use crate::kernel::db::{Tx, transaction};
use boxoffice_http::error::{Code, Error, Result};

/// How often a log-in begins anew whose account was changed while the password was being checked.
const ATTEMPTS: usize = 3;

/// Opens a session for whoever knows the account's password.
pub async fn open(app: &App, new: SessionCreate) -> Result<Session> {
    for _ in 0..ATTEMPTS {
        if let Some(session) = try_to_open(app, &new).await? {
            return Ok(session);
        }
    }
    Err(Code::SessionWrongPassword.with_message("The password was changed or the account deactivated just now."))
}

/// Opens a session, unless the account was changed while the password was being checked: no lock is held for so long.
async fn try_to_open(app: &App, new: &SessionCreate) -> Result<Option<Session>> {
    let found = store::credentials(&mut app.db.read().await?, &new.identification).await?;
    let password = || new.password.0.clone();
    let Some(found) = found else {
        // The same work as for a known name, so that the time it takes tells nobody which names are known.
        app.passwords.verify(password(), dummy_hash(app).await?).await?;
        return Err(Code::AccountUnknown.into());
    };
    if !app.passwords.verify(password(), found.password_hash.clone()).await? {
        return Err(Code::SessionWrongPassword.into());
    }
    if !found.account.activated {
        return Err(Code::AccountDeactivated.into());
    }
    // Now is when the password is known. Where too many wait, the next log-in will do.
    let better = if auth::is_outdated(&found.password_hash) { app.passwords.hash(password()).await.ok() } else { None };
    let issued = transaction!(app.db, |tx| issue(app, tx, &found, better.as_deref()).await)?;
    Ok(issued.map(|(id, key, started)| view(id, key, started, found.account)))
}

/// The session that this key belongs to.
pub async fn active(app: &App, caller: &Caller, key: String) -> Result<Session> {
    let account = account_of(caller)?;
    let mut tx = app.db.read().await?;
    let started = store::started_at(&mut tx, caller.key).await?;
    let account = accounts::find(&mut tx, account).await?.ok_or(Error::NOT_FOUND)?;
    Ok(view(caller.key, key, started, account))
}

/// Ends the session that this key belongs to.
pub async fn end(app: &App, caller: &Caller) -> Result<()> {
    account_of(caller)?;
    transaction!(app.db, |tx| auth::end(tx, caller.key, app.clock.now()).await)
}

/// Every session of an account, whether or not it is open.
pub async fn list(app: &App, caller: &Caller, number: &AccountNumber, paging: PageRequest) -> Result<Page<AccountSession>> {
    let now = app.clock.now();
    let mut tx = app.db.read().await?;
    let account = accounts::load(&mut tx, caller, number).await?;
    let found = store::list(&mut tx, account.id, paging).await?;
    let account = accounts::view(account);
    Ok(paging.page(found.total, found.rows.into_iter().map(|row| account_view(&row, account.clone(), now)).collect()))
}

/// One session of an account.
pub async fn get(app: &App, caller: &Caller, path: &SessionPath) -> Result<AccountSession> {
    let mut tx = app.db.read().await?;
    let account = accounts::load(&mut tx, caller, &path.number).await?;
    let row = store::find(&mut tx, account.id, path.session).await?.ok_or(Error::NOT_FOUND)?;
    Ok(account_view(&row, accounts::view(account), app.clock.now()))
}

/// Ends one session of an account.
pub async fn revoke_one(app: &App, caller: &Caller, path: &SessionPath) -> Result<()> {
    let ended = transaction!(app.db, |tx| revoke_in_tx(tx, caller, path, app.clock.now()).await)?;
    if ended { Ok(()) } else { Err(Code::SessionEnded.into()) }
}

async fn revoke_in_tx(tx: &mut Tx, caller: &Caller, path: &SessionPath, now: Timestamp) -> Result<bool> {
    let account = accounts::load(tx, caller, &path.number).await?.id;
    store::find(tx, account, path.session).await?.ok_or(Error::NOT_FOUND)?;
    store::end(tx, path.session, now).await
}

/// The account of a session's key; any other key has no session.
fn account_of(caller: &Caller) -> Result<Id> {
    caller.account.filter(|_| caller.is_session).ok_or(Error::NOT_FOUND)
}

/// Issues a session's key; nothing when the password is another one now or the account not active. `better` is another hash of
/// the same password.
async fn issue(app: &App, tx: &mut Tx, who: &Credentials, better: Option<&str>) -> Result<Option<(Id, String, Timestamp)>> {
    if !store::lock(tx, who.account.id, &who.password_hash, better.unwrap_or(&who.password_hash)).await? {
        return Ok(None);
    }
    let new = NewKey {
        kind: KeyKind::Session,
        name: "",
        scope: who.account.role.into(),
        account: Some(who.account.id),
        token: None,
        expires: None,
    };
    let (id, key) = auth::issue(app, tx, &new).await?;
    let started = store::started_at(tx, id).await?;
    Ok(Some((id, key, started)))
}

/// A hash that no account has, made at its first use.
async fn dummy_hash(app: &App) -> Result<String> {
    static HASH: OnceCell<String> = OnceCell::const_new();
    HASH.get_or_try_init(|| app.passwords.hash(secret::api_key())).await.cloned()
}

fn view(id: Id, key: String, started: Timestamp, account: AccountRow) -> Session {
    Session {
        uri: uri(&account.number, id),
        id: id.0,
        open: true,
        started: started.to_plain_seconds(),
        key,
        account: accounts::view(account),
    }
}

fn account_view(row: &SessionRow, account: Account, now: Timestamp) -> AccountSession {
    AccountSession {
        uri: uri(&account.number.0, row.id),
        id: row.id.0,
        open: row.is_open(now),
        started: row.created.to_plain_seconds(),
        last_used: NullableField(row.last_used.map(|used| DateTime(used.format_rfc3339()))),
        account,
    }
}

fn uri(number: &str, session: Id) -> Uri {
    Uri(format!("/accounts/{number}/sessions/{session}"))
}
