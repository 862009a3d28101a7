//! Operations on sessions.

use std::net::IpAddr;
use std::time::Duration;

use boxoffice_http::client_ip::rate_limit_key;
use boxoffice_http::error::{Error, Result, reject_if};
use boxoffice_http::rate_limit::CountedUse;

use super::model::{AccountSession, Credentials, Session, SessionCreate, SessionPath, SessionRow};
use super::store;
use crate::features::codes;
use crate::features::identity::accounts::{self, Account, AccountNumber, AccountRow};
use crate::kernel::auth::{self, Caller, HashRequester, KeyKind, NewKey};
use crate::kernel::db::{Tx, transaction};
use crate::kernel::types::api_types::{DateTime, NullableField, Uri};
use crate::kernel::types::clock::Timestamp;
use crate::kernel::types::id::Id;
use crate::kernel::types::paging::{Page, PageRequest};
use crate::kernel::types::secret;
use crate::state::{App, Ctx};

/// Number of attempts at a log-in. An attempt fails if the account is changed while its password is being verified.
const ATTEMPTS: usize = 3;
/// Time for which an address is remembered after a log-in.
const ADDRESS_RETENTION: Duration = Duration::from_secs(30 * 24 * 60 * 60);
/// Largest number of remembered addresses of an account.
const MAX_ADDRESSES: i64 = 10;

/// Opens a session for a client at this address, if the password is correct.
pub async fn open(ctx: &Ctx, address: IpAddr, new: SessionCreate) -> Result<Session> {
    for _ in 0..ATTEMPTS {
        if let Some(session) = try_to_open(ctx, address, &new).await? {
            return Ok(session);
        }
    }
    Err(codes::SESSION_WRONG_PASSWORD.with_message("The password was changed or the account deactivated just now."))
}

/// Opens a session. Returns `None` if the account was changed while its password was being verified, because that takes too long
/// to hold a lock.
async fn try_to_open(ctx: &Ctx, address: IpAddr, new: &SessionCreate) -> Result<Option<Session>> {
    let credentials = store::credentials(&mut ctx.unit.read().await?, &new.identification).await?;
    let password = || new.password.0.clone();
    let credentials = credentials.ok_or(codes::ACCOUNT_UNKNOWN)?;
    let requester = HashRequester { account: Some(credentials.account.id), address: Some(address) };
    verify(ctx, &credentials, requester, address, password()).await?;
    reject_if(!credentials.account.activated, codes::ACCOUNT_DEACTIVATED)?;
    // Replace an outdated hash now: the plain-text password is available only at log-in. If too many passwords are waiting to be
    // hashed, a later log-in replaces it.
    let is_outdated = ctx.app.passwords.is_outdated(&credentials.password_hash);
    let new_hash = if is_outdated { ctx.app.passwords.hash(requester, password()).await.ok() } else { None };
    let issued = transaction!(ctx.unit, |tx| issue(&ctx.app, tx, &credentials, new_hash.as_deref(), address).await)?;
    Ok(issued.map(|(id, key, started)| view(id, key, started, credentials.account)))
}

/// Verifies an account's password, unless too many log-ins to the account have failed. Those don't block a client at an address
/// from which someone has signed in to the account before: otherwise, anyone could lock its owner out.
async fn verify(ctx: &Ctx, credentials: &Credentials, requester: HashRequester, address: IpAddr, password: String) -> Result<()> {
    let Credentials { account, password_hash } = credentials;
    let is_known = is_known_address(ctx, account.id, address).await?;
    let count = || ctx.app.limits.logins.count(account.id);
    // Before the password is verified, so that concurrent log-ins can't exceed the limit.
    let counted = if is_known { None } else { Some(count()?) };
    let is_correct = ctx.app.passwords.verify(requester, password, password_hash.clone()).await;
    if let Ok(false) = is_correct {
        // The attempt stays counted; one from a known address is counted now.
        let _failed = if is_known { Some(count()?) } else { None };
        return Err(codes::SESSION_WRONG_PASSWORD.into());
    }
    counted.into_iter().for_each(CountedUse::release);
    is_correct.map(drop)
}

/// Returns whether someone has signed in to the account from this address in the last 30 days.
pub async fn is_known_address(ctx: &Ctx, account: Id, address: IpAddr) -> Result<bool> {
    let since = ctx.app.clock.now().minus(ADDRESS_RETENTION);
    store::is_known_address(&mut ctx.unit.read().await?, account, &address_digest(account, address), since).await
}

/// Returns the form in which the address of a client is stored: 24 bits of a hash. That is enough to recognize an address, and too
/// few to find out which one it was: 256 addresses of IPv4 have the same. IPv6 addresses are those of networks.
fn address_digest(account: Id, address: IpAddr) -> String {
    secret::hash(&format!("{account} {}", rate_limit_key(address)))[..6].to_owned()
}

/// Job step: deletes the addresses from which no one has signed in for a while. Returns their number.
///
/// # Errors
/// Returns an error if the database fails.
pub async fn delete_expired_addresses(ctx: &Ctx, now: Timestamp) -> Result<u64> {
    let before = now.minus(ADDRESS_RETENTION);
    transaction!(ctx.unit, |tx| store::delete_addresses_before(tx, before).await)
}

/// Job step: deletes some sessions that expired before this time. Returns their number.
///
/// # Errors
/// Returns an error if the database fails.
pub async fn delete_expired_before(ctx: &Ctx, before: Timestamp) -> Result<u64> {
    transaction!(ctx.unit, |tx| store::delete_expired_before(tx, before).await)
}

/// Returns the session of the caller's key.
pub async fn active(ctx: &Ctx, caller: &Caller, key: String) -> Result<Session> {
    let account = account_of(caller)?;
    let mut reader = ctx.unit.read().await?;
    let started = store::started_at(&mut reader, caller.key).await?;
    let account = accounts::find(&mut reader, account).await?.ok_or(Error::NOT_FOUND)?;
    Ok(view(caller.key, key, started, account))
}

/// Ends the session of the caller's key.
pub async fn end(ctx: &Ctx, caller: &Caller) -> Result<()> {
    account_of(caller)?;
    transaction!(ctx.unit, |tx| auth::revoke(tx, caller.key, ctx.app.clock.now()).await)
}

/// Returns a page of all sessions of an account, open or not.
pub async fn list(ctx: &Ctx, caller: &Caller, number: &AccountNumber, paging: PageRequest) -> Result<Page<AccountSession>> {
    let now = ctx.app.clock.now();
    let mut reader = ctx.unit.read().await?;
    let account = accounts::load(&mut reader, caller, number).await?;
    let page = store::list(&mut reader, account.id, paging).await?;
    let account = accounts::view(account);
    Ok(page.map(|row| account_view(&row, account.clone(), now)))
}

/// Returns one session of an account.
pub async fn get(ctx: &Ctx, caller: &Caller, path: &SessionPath) -> Result<AccountSession> {
    let mut reader = ctx.unit.read().await?;
    let account = accounts::load(&mut reader, caller, &path.number).await?;
    let row = store::find(&mut reader, account.id, path.session).await?.ok_or(Error::NOT_FOUND)?;
    Ok(account_view(&row, accounts::view(account), ctx.app.clock.now()))
}

/// Ends one session of an account.
pub async fn end_one(ctx: &Ctx, caller: &Caller, path: &SessionPath) -> Result<()> {
    let ended = transaction!(ctx.unit, |tx| end_one_in_tx(tx, caller, path, ctx.app.clock.now()).await)?;
    if ended { Ok(()) } else { Err(codes::SESSION_ENDED.into()) }
}

/// Ends all open sessions of an account, and returns their number.
///
/// # Errors
/// [`Error::NOT_FOUND`] if there is no such account, [`Error::FORBIDDEN`] for a caller who may not see it.
pub async fn end_all(ctx: &Ctx, caller: &Caller, number: &AccountNumber) -> Result<u64> {
    let now = ctx.app.clock.now();
    transaction!(ctx.unit, |tx| {
        let account = accounts::load(tx, caller, number).await?.id;
        store::end_all(tx, account, now).await
    })
}

async fn end_one_in_tx(tx: &mut Tx, caller: &Caller, path: &SessionPath, now: Timestamp) -> Result<bool> {
    let account = accounts::load(tx, caller, &path.number).await?.id;
    store::find(tx, account, path.session).await?.ok_or(Error::NOT_FOUND)?;
    store::end(tx, path.session, now).await
}

/// Returns the account of the caller's session. Any other kind of key has no session, which is a 404.
fn account_of(caller: &Caller) -> Result<Id> {
    caller.account.filter(|_| caller.is_session).ok_or(Error::NOT_FOUND)
}

/// Issues a session key. Returns `None` if the password has been changed or the account is not active. `new_hash` is another hash
/// of the same password, if the stored one is outdated.
async fn issue(
    app: &App,
    tx: &mut Tx,
    credentials: &Credentials,
    new_hash: Option<&str>,
    address: IpAddr,
) -> Result<Option<(Id, String, Timestamp)>> {
    let Credentials { account, password_hash } = credentials;
    if !store::lock(tx, account.id, password_hash, new_hash.unwrap_or(password_hash)).await? {
        return Ok(None);
    }
    let new = NewKey {
        kind: KeyKind::Session,
        name: "",
        scope: account.role.into(),
        account: Some(account.id),
        token: None,
        expires: None,
    };
    let (id, key) = auth::issue(app, tx, &new).await?;
    let started = store::started_at(tx, id).await?;
    store::remember_address(tx, account.id, &address_digest(account.id, address), started).await?;
    store::delete_older_addresses(tx, account.id, MAX_ADDRESSES).await?;
    Ok(Some((id, key, started)))
}

fn view(id: Id, key: String, started: Timestamp, account: AccountRow) -> Session {
    Session {
        uri: uri(&account.number, id),
        id: id.0,
        open: true,
        started: started.format_plain_seconds(),
        key,
        account: accounts::view(account),
    }
}

fn account_view(row: &SessionRow, account: Account, now: Timestamp) -> AccountSession {
    AccountSession {
        uri: uri(&account.number.0, row.id),
        id: row.id.0,
        open: row.is_open(now),
        started: row.created.format_plain_seconds(),
        last_used: NullableField(row.last_used.map(DateTime::from)),
        account,
    }
}

fn uri(number: &str, session: Id) -> Uri {
    Uri(format!("/accounts/{number}/sessions/{session}"))
}
