//! API keys of sessions, integrations and admission tokens.

use std::collections::HashMap;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use boxoffice_http::error::{Code, Result};
use boxoffice_http::traces::Span;
use boxoffice_openapi::Scope;
use futures::FutureExt;
use parking_lot::Mutex;
use slog::warn;

use crate::kernel::Kernel;
use crate::kernel::auth::{AdmissionClaims, Caller};
use crate::kernel::db::{Batcher, DbVersion, Tx, VersionedCache, transaction};
use crate::kernel::types::clock::Timestamp;
use crate::kernel::types::id::Id;
use crate::kernel::types::secret;
use crate::kernel::types::stored_text::stored_as_text;

/// Lifetime of a session's key after its last use.
const SESSION_TTL: Duration = Duration::from_secs(30 * 24 * 60 * 60);
/// Interval at which the last use of a key is stored, so that not every request writes.
const TOUCH_INTERVAL: Duration = Duration::from_secs(60 * 60);
/// Lifetime of an admission token's key after the end of its event. It follows changes of the event's end.
pub const ADMISSION_LIFE: Duration = Duration::from_secs(12 * 60 * 60);

/// The kind of an API key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::EnumString, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum KeyKind {
    /// A login.
    Session,
    /// A client program.
    Integration,
    /// A redeemer with an admission token.
    Admission,
}

stored_as_text!(KeyKind);

/// A scope in the database.
#[derive(Debug, Clone, Copy)]
struct StoredScope(Scope);

impl FromStr for StoredScope {
    type Err = strum::ParseError;

    fn from_str(text: &str) -> Result<Self, strum::ParseError> {
        text.parse().map(Self)
    }
}

impl From<StoredScope> for &'static str {
    fn from(StoredScope(scope): StoredScope) -> Self {
        scope.into()
    }
}

stored_as_text!(StoredScope);

/// A new key.
#[derive(Debug)]
pub struct NewKey<'a> {
    /// The kind.
    pub kind: KeyKind,
    /// The name that its owner chose.
    pub name: &'a str,
    /// The scope. It is ignored for a session, whose scope is the current role of its account.
    pub scope: Scope,
    /// The account that it acts for. A public key acts for none.
    pub account: Option<Id>,
    /// The admission token that it was issued for.
    pub token: Option<Id>,
    /// The time of expiry. It is ignored for a session, which has its own lifetime, and for an admission key, which expires with
    /// its event.
    pub expires: Option<Timestamp>,
}

/// Largest number of keys that are looked up in one query.
const BATCH: usize = 256;
/// Largest number of cached keys.
const CACHE_CAPACITY: usize = 50_000;

/// The hash of a key.
type Digest = [u8; 32];

/// Batched lookup and cache of API keys.
pub struct KeyStore {
    batches: Arc<Batcher<(), (Digest, Span), KeyLookup>>,
    cache: Mutex<KeyCache>,
}

/// Cache of keys by hash, valid for one value of the `key_changes` counter, which each change of a key, an account or a preferred
/// region changes. On PostgreSQL the values are random: with a count, a standby that takes over without the last commits would reach
/// the same values again.
///
/// Each batch of lookups reads the counter first, so a key that was revoked on any server is rejected immediately. Keys of
/// admission tokens are not cached, because they also depend on other tables.
type KeyCache = VersionedCache<i64, HashMap<Digest, Arc<KeyRow>>>;

/// The result of a lookup: the key, unless it is unknown or was revoked, and the version of the database that was read.
type KeyLookup = (Option<Arc<KeyRow>>, Arc<DbVersion>);

impl Default for KeyStore {
    fn default() -> Self {
        Self { batches: Batcher::of(BATCH), cache: Mutex::new(VersionedCache::with_capacity(CACHE_CAPACITY)) }
    }
}

impl KeyStore {
    async fn find(&self, kernel: &Arc<Kernel>, digest: Digest, span: &Span) -> Result<KeyLookup> {
        let kernel = Arc::clone(kernel);
        self.batches.submit((), (digest, span.clone()), move |(), keys| look_up(Arc::clone(&kernel), keys)).await
    }
}

#[derive(sqlx_macros::FromRow)]
struct KeyRow {
    hash: String,
    id: Id,
    kind: KeyKind,
    role: StoredScope,
    account_id: Option<Id>,
    account_number: Option<Arc<str>>,
    expires: Option<Timestamp>,
    last_used: Option<Timestamp>,
    account_role: Option<StoredScope>,
    preferred_region: Option<Id>,
    activated: Option<bool>,
    token_id: Option<Id>,
    event_id: Option<Id>,
    event_ends: Option<Timestamp>,
}

impl KeyRow {
    /// Returns the scope: the current role of a session's account, and else the key's own role.
    fn scope(&self) -> Scope {
        let StoredScope(scope) = self.account_role.filter(|_| self.kind == KeyKind::Session).unwrap_or(self.role);
        scope
    }

    /// Returns whether the key is valid: it has not expired, its event has not ended too long ago, and the account that it acts for is
    /// active. A public key acts for no account, even if it was created for one.
    fn is_valid(&self, now: Timestamp) -> bool {
        let is_over = match self.event_ends {
            Some(ends) => ends <= now.minus(ADMISSION_LIFE),
            None => self.expires.is_some_and(|expires| expires <= now),
        };
        !is_over && (self.activated != Some(false) || self.scope() == Scope::Public)
    }
}

/// Issues a key. Returns its identifier and the key itself, of which only the hash is stored.
pub async fn issue(kernel: &Kernel, tx: &mut Tx, new: &NewKey<'_>) -> Result<(Id, String)> {
    let key = secret::api_key();
    let id = kernel.clock.next_id();
    let now = kernel.clock.now();
    // A login counts as use of the session.
    let (expires, last_used) =
        if new.kind == KeyKind::Session { (Some(now.plus(SESSION_TTL)), Some(now)) } else { (new.expires, None) };
    tx.query(
        "insert into api_keys (id, hash, kind, name, role, account_id, token_id, created, expires, last_used, ended)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, null)",
    )
    .bind(id)
    .bind(secret::hash(&key))
    .bind(new.kind)
    .bind(new.name.to_owned())
    .bind(StoredScope(new.scope))
    .bind(new.account)
    .bind(new.token)
    .bind(now)
    .bind(expires)
    .bind(last_used)
    .execute()
    .await?;
    Ok((id, key))
}

/// Corrects the keys that were used while the clock was ahead: at a time after `latest`. Returns their number.
///
/// A session then lasts as long as if it had been used now. The time at which a key was created is not changed.
pub async fn correct_future(tx: &mut Tx, now: Timestamp, latest: Timestamp) -> Result<u64> {
    // `hash = hash` fires the trigger that clears the caches of keys.
    tx.query(
        "update api_keys set hash = hash, last_used = case when last_used > $2 then $1 else last_used end,
             expires = case when kind = 'session' and expires > $3 then $4 else expires end
         where last_used > $2 or (kind = 'session' and expires > $3)",
    )
    .bind(now)
    .bind(latest)
    .bind(latest.plus(SESSION_TTL))
    .bind(now.plus(SESSION_TTL))
    .rows_affected()
    .await
}

/// Revokes a key immediately.
pub async fn revoke(tx: &mut Tx, key: Id, now: Timestamp) -> Result<()> {
    tx.query("update api_keys set ended = $2 where id = $1 and ended is null").bind(key).bind(now).execute().await
}

/// Requires that the caller's key was not revoked since the request was authenticated, and keeps it from being revoked until the
/// transaction ends. Call it after the lock for which a request may have waited, before a change of credentials or one that can't be
/// undone.
///
/// # Errors
/// [`Code::KEY_REFUSED`] if the key was revoked or the account that it acts for was deactivated.
pub async fn require_not_revoked(tx: &mut Tx, caller: &Caller) -> Result<()> {
    if caller.key == Id::NONE {
        // An operator's command.
        return Ok(());
    }
    let key = tx.select("id from api_keys where ended is null").and_where("id = ?", Some(caller.key));
    let key = key.and_where("not exists (select 1 from accounts a where a.id = ? and not a.activated)", caller.account);
    if key.for_share().exists().await? { Ok(()) } else { Err(Code::KEY_REFUSED.into()) }
}

/// Returns the caller of a key, or `None` if the key is unknown, revoked, expired or acts for a deactivated account.
pub async fn authenticate(kernel: &Arc<Kernel>, key: &str, span: &Span) -> Result<Option<Caller>> {
    let (now, digest) = (kernel.clock.now(), secret::digest(key));
    let (mut row, mut db_version) = kernel.keys.find(kernel, digest, span).await?;
    if row.as_ref().is_some_and(|row| !row.is_valid(now)) {
        // Another server may have extended the session since the key was cached.
        kernel.keys.cache.lock().entries().remove(&digest);
        (row, db_version) = kernel.keys.find(kernel, digest, span).await?;
    }
    let Some(row) = row.filter(|row| row.is_valid(now)) else { return Ok(None) };
    let is_session = row.kind == KeyKind::Session;
    if row.last_used.is_none_or(|last_used| last_used <= now.minus(TOUCH_INTERVAL)) {
        touch(kernel, &row, now).boxed().await;
        kernel.keys.cache.lock().entries().remove(&digest);
    }
    let scope = row.scope();
    Ok(Some(Caller {
        key: row.id,
        scope,
        // A public key acts for no account, even if it was created for one.
        account: row.account_id.filter(|_| scope != Scope::Public),
        account_number: row.account_number.clone().filter(|_| scope != Scope::Public),
        preferred_region: row.preferred_region.filter(|_| scope != Scope::Public),
        is_session,
        admission_claims: row.token_id.zip(row.event_id).map(|(token, event)| AdmissionClaims { token, event }),
        db_version,
    }))
}

/// Loads the keys with these hashes, in the same order.
async fn look_up(kernel: Arc<Kernel>, keys: Vec<(Digest, Span)>) -> Result<Vec<KeyLookup>> {
    let (digests, spans): (Vec<Digest>, Vec<Span>) = keys.into_iter().unzip();
    let mut reader = kernel.db.version_reader().await?.traced(&Span::of_batch("key lookup", &spans));
    let (changes, db_version) = reader.key_changes_with_version().await?;
    let mut rows: Vec<Option<Arc<KeyRow>>> = {
        let mut cache = kernel.keys.cache.lock();
        let entries = cache.get_mut(&changes);
        digests.iter().map(|digest| entries.get(digest).cloned()).collect()
    };
    let hashes = digests.iter().zip(&rows).filter(|(_, row)| row.is_none()).map(|(digest, _)| secret::hex(digest));
    let hashes: Vec<String> = hashes.collect();
    if !hashes.is_empty() {
        let keys = reader.reader().select(
            "k.hash, k.id, k.kind, k.role, k.account_id, k.expires, k.last_used, a.number as account_number, a.role as account_role,
             a.activated, p.region_id as preferred_region, k.token_id, t.event_id, e.ends as event_ends
             from api_keys k left join accounts a on a.id = k.account_id left join account_preferences p on p.account_id = a.id
             left join tokens t on t.id = k.token_id left join events e on e.id = t.event_id where k.ended is null",
        );
        let loaded: Vec<KeyRow> = keys.and_in("k.hash", hashes.iter().cloned()).all().await?;
        let loaded: HashMap<String, Arc<KeyRow>> =
            loaded.into_iter().map(|mut row| (std::mem::take(&mut row.hash), Arc::new(row))).collect();
        let mut cache = kernel.keys.cache.lock();
        let missing = digests.iter().zip(&mut rows).filter(|(_, row)| row.is_none());
        for ((digest, row), hash) in missing.zip(&hashes) {
            *row = loaded.get(hash).cloned();
            if let Some(row) = row.as_ref().filter(|row| row.token_id.is_none()) {
                cache.reserve(&changes, 1).insert(*digest, Arc::clone(row));
            }
        }
    }
    let db_version = Arc::new(db_version);
    Ok(rows.into_iter().map(|row| (row, Arc::clone(&db_version))).collect())
}

/// Stores the time of use of a key, which extends a session. A failure is only logged and doesn't fail the request.
async fn touch(kernel: &Kernel, key: &KeyRow, now: Timestamp) {
    // Because of `TOUCH_INTERVAL`, a session of thirty days may end up to an hour early.
    let expires = (key.kind == KeyKind::Session).then(|| now.plus(SESSION_TTL));
    let result = transaction!(kernel.db, |tx| {
        // The condition lets only one of several concurrent requests write.
        tx.query(
            "update api_keys set last_used = $2, expires = coalesce($3, expires)
             where id = $1 and (last_used is null or last_used <= $4)",
        )
        .bind(key.id)
        .bind(now)
        .bind(expires)
        .bind(now.minus(TOUCH_INTERVAL))
        .rows_affected()
        .await
    });
    if let Err(error) = result {
        warn!(kernel.log, "the last use of a key could not be stored"; "key" => key.id.0, "cause" => error.into_log_text());
    }
}
