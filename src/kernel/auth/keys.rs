//! API keys: sessions, integrations and admission tokens, all looked up alike.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::FutureExt;
use slog::warn;

use crate::state::App;
use crate::kernel::auth::{AdmissionClaims, Caller, Scope};
use crate::kernel::types::clock::Timestamp;
use crate::kernel::types::id::Id;
use crate::kernel::types::secret;
use crate::kernel::db::{Batcher, DbVersion, Tx, VersionedCache, transaction};
use boxoffice_http::error::Result;

/// How long a session's key lives after its last use (decisions).
const SESSION_TTL: Duration = Duration::from_secs(30 * 24 * 60 * 60);
/// The use of a key is noted when the last one that was noted is this long ago, so that not every request writes.
const TOUCH_INTERVAL: Duration = Duration::from_secs(60 * 60);
/// How long an admission token's key lives after its event's end, wherever that is moved (decisions).
pub const ADMISSION_LIFE: Duration = Duration::from_secs(12 * 60 * 60);

/// What a key stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, sqlx::Type)]
#[sqlx(type_name = "text", rename_all = "lowercase")]
pub enum KeyKind {
    /// Somebody who has logged in.
    Session,
    /// A program.
    Integration,
    /// Whoever holds an admission token.
    Admission,
}

/// A key to be issued.
#[derive(Debug)]
pub struct NewKey<'a> {
    /// What it stands for.
    pub kind: KeyKind,
    /// What its owner calls it.
    pub name: &'a str,
    /// How far it reaches. A session reaches as far as its account's role at any moment, whatever this says.
    pub scope: Scope,
    /// The account it acts for.
    pub account: Option<Id>,
    /// The admission token that it comes from.
    pub token: Option<Id>,
    /// When it ends by itself. A session's is set here, an admission key's follows from its event.
    pub expires: Option<Timestamp>,
}

/// Keys that are looked up at a time, at the most.
const BATCH: usize = 256;
/// Keys that are remembered, at the most.
const CACHE_CAPACITY: usize = 50_000;

/// A key's hash.
type Digest = [u8; 32];

/// The keys that are being looked up, and those that were.
pub struct KeyStore {
    batches: Arc<Batcher<(), Digest, KeyLookup>>,
    known: Mutex<KeyCache>,
}

/// Keys by their hashes, as they are for as long as the database has counted so many changes of keys and accounts. It is asked for
/// that count before any of them is believed, once for all who ask at the same time: so a key that has been ended, by whichever
/// server, is not believed once more. An admission token's key is not among them: it depends on more.
type KeyCache = VersionedCache<i64, HashMap<Digest, Arc<KeyRow>>>;

/// The key that was looked up, unless it has been ended, and of which snapshot of the database that holds.
type KeyLookup = (Option<Arc<KeyRow>>, Arc<DbVersion>);

impl Default for KeyStore {
    fn default() -> Self {
        Self { batches: Batcher::of(BATCH), known: Mutex::new(VersionedCache::with_capacity(CACHE_CAPACITY)) }
    }
}

impl KeyStore {
    async fn find(&self, app: &Arc<App>, digest: Digest) -> Result<KeyLookup> {
        let asking = Arc::clone(app);
        self.batches.submit((), digest, move |(), digests| look_up(Arc::clone(&asking), digests)).await
    }

    fn known(&self) -> MutexGuard<'_, KeyCache> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(sqlx::FromRow)]
struct KeyRow {
    hash: String,
    id: Id,
    kind: KeyKind,
    role: Scope,
    account_id: Option<Id>,
    expires: Option<Timestamp>,
    last_used: Option<Timestamp>,
    account_role: Option<Scope>,
    activated: Option<bool>,
    token_id: Option<Id>,
    event_id: Option<Id>,
    event_ends: Option<Timestamp>,
}

impl KeyRow {
    /// Whether it counts: neither it nor the event that it admits to is over, and its account is active.
    fn is_valid(&self, now: Timestamp) -> bool {
        let is_over = match self.event_ends {
            Some(ends) => ends <= now.minus(ADMISSION_LIFE),
            None => self.expires.is_some_and(|expires| expires <= now),
        };
        !is_over && self.activated != Some(false)
    }
}

/// Issues a key: its identifier, and the key itself, which is kept nowhere.
///
/// # Errors
/// When the database fails.
pub async fn issue(app: &App, tx: &mut Tx, new: &NewKey<'_>) -> Result<(Id, String)> {
    let key = secret::api_key();
    let id = app.clock.next_id();
    let now = app.clock.now();
    // To sign in is to use the session.
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
    .bind(new.scope)
    .bind(new.account)
    .bind(new.token)
    .bind(now)
    .bind(expires)
    .bind(last_used)
    .execute()
    .await?;
    Ok((id, key))
}

/// Ends a key at once.
///
/// # Errors
/// When the database fails.
pub async fn end(tx: &mut Tx, key: Id, now: Timestamp) -> Result<()> {
    tx.query("update api_keys set ended = $2 where id = $1 and ended is null").bind(key).bind(now).execute().await?;
    Ok(())
}

/// Whom a key stands for; `None` when it is unknown, ended, expired or of a deactivated account.
///
/// # Errors
/// When the database fails.
pub async fn authenticate(app: &Arc<App>, key: &str) -> Result<Option<Caller>> {
    let (now, digest) = (app.clock.now(), secret::digest(key));
    let (mut row, mut snapshot) = app.keys.find(app, digest).await?;
    if row.as_ref().is_some_and(|row| !row.is_valid(now)) {
        // Another server may have prolonged a session's life since it was remembered here.
        app.keys.known().entries().remove(&digest);
        (row, snapshot) = app.keys.find(app, digest).await?;
    }
    let Some(row) = row.filter(|row| row.is_valid(now)) else { return Ok(None) };
    let is_session = row.kind == KeyKind::Session;
    if row.last_used.is_none_or(|last_used| last_used <= now.minus(TOUCH_INTERVAL)) {
        touch(app, &row, now).boxed().await;
        app.keys.known().entries().remove(&digest);
    }
    let scope = row.account_role.filter(|_| is_session).unwrap_or(row.role);
    Ok(Some(Caller {
        key: row.id,
        scope,
        // Behind an application's key stands no person, whoever made it.
        account: row.account_id.filter(|_| scope != Scope::Public),
        is_session,
        redeemer: row.token_id.zip(row.event_id).map(|(token, event)| AdmissionClaims { token, event }),
        snapshot,
    }))
}

/// The keys of these hashes, in their order.
async fn look_up(app: Arc<App>, digests: Vec<Digest>) -> Result<Vec<KeyLookup>> {
    let mut tx = app.db.snapshot_reader().await?;
    let (changes, snapshot) = tx.scalar_in_snapshot("count", "key_changes").await?;
    let mut found: Vec<Option<Arc<KeyRow>>> = {
        let mut known = app.keys.known();
        let known = known.get_mut(&changes);
        digests.iter().map(|digest| known.get(digest).cloned()).collect()
    };
    let unknown: Vec<String> =
        digests.iter().zip(&found).filter(|(_, row)| row.is_none()).map(|(digest, _)| secret::hex(digest)).collect();
    if !unknown.is_empty() {
        let keys = tx.tx().select(
            "k.hash, k.id, k.kind, k.role, k.account_id, k.expires, k.last_used, a.role as account_role, a.activated, k.token_id,
             t.event_id, e.ends as event_ends
             from api_keys k left join accounts a on a.id = k.account_id left join tokens t on t.id = k.token_id
             left join events e on e.id = t.event_id where k.ended is null",
        );
        let rows: Vec<KeyRow> = keys.and_in("k.hash", unknown).all().await?;
        let rows: HashMap<String, Arc<KeyRow>> =
            rows.into_iter().map(|mut row| (std::mem::take(&mut row.hash), Arc::new(row))).collect();
        let mut known = app.keys.known();
        for (digest, row) in digests.iter().zip(&mut found).filter(|(_, row)| row.is_none()) {
            *row = rows.get(&secret::hex(digest)).cloned();
            if let Some(row) = row.as_ref().filter(|row| row.token_id.is_none()) {
                known.reserve(&changes, 1).insert(*digest, Arc::clone(row));
            }
        }
    }
    let snapshot = Arc::new(snapshot);
    Ok(found.into_iter().map(|row| (row, Arc::clone(&snapshot))).collect())
}

/// Notes that a key is used, which prolongs a session's life. Where that can't be written, the log tells, and the request, which may
/// be one that only reads, goes on.
async fn touch(app: &App, key: &KeyRow, now: Timestamp) {
    // An hour in thirty days is what a session's life may be too short by.
    let expires = (key.kind == KeyKind::Session).then(|| now.plus(SESSION_TTL));
    let noted = transaction!(app.db, |tx| {
        // Of requests at the same moment one writes.
        tx.query(
            "update api_keys set last_used = $2, expires = coalesce($3, expires)
             where id = $1 and (last_used is null or last_used <= $4)",
        )
        .bind(key.id)
        .bind(now)
        .bind(expires)
        .bind(now.minus(TOUCH_INTERVAL))
        .execute()
        .await
    });
    if let Err(error) = noted {
        warn!(app.log, "the use of a key was not noted"; "key" => key.id.0, "cause" => format!("{error:?}"));
    }
}
