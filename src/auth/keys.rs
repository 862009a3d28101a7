//! API keys: sessions, integrations and admission tokens, all looked up alike.

use std::time::Duration;

use crate::app::App;
use crate::auth::{Caller, Redeemer, Scope};
use crate::base::clock::Timestamp;
use crate::base::id::Id;
use crate::base::secret;
use crate::db::{Tx, transaction};
use crate::error::Result;

/// How long a session's key lives after its last use (decisions).
const SESSION_LIFE: Duration = Duration::from_secs(30 * 24 * 60 * 60);
/// A session's life is extended when at least this much of it has passed, so that not every request writes.
const RENEWAL: Duration = Duration::from_secs(24 * 60 * 60);
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

#[derive(sqlx::FromRow)]
struct KeyRow {
    id: Id,
    kind: KeyKind,
    role: Scope,
    account_id: Option<Id>,
    expires: Option<Timestamp>,
    account_role: Option<Scope>,
    activated: Option<bool>,
    token_id: Option<Id>,
    event_id: Option<Id>,
}

/// Issues a key: its identifier, and the key itself, which is kept nowhere.
///
/// # Errors
/// When the database fails.
pub async fn issue(app: &App, tx: &mut Tx, new: &NewKey<'_>) -> Result<(Id, String)> {
    let key = secret::api_key();
    let id = app.clock.next_id();
    let now = app.clock.now();
    let expires = if new.kind == KeyKind::Session { Some(now.plus(SESSION_LIFE)) } else { new.expires };
    tx.query(
        "insert into api_keys (id, hash, kind, name, role, account_id, token_id, created, expires, ended)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, null)",
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
pub async fn authenticate(app: &App, key: &str) -> Result<Option<Caller>> {
    let now = app.clock.now();
    let mut tx = app.db.read().await?;
    let row: Option<KeyRow> = tx
        .query(
            "select k.id, k.kind, k.role, k.account_id, k.expires, a.role as account_role, a.activated, k.token_id, t.event_id
             from api_keys k left join accounts a on a.id = k.account_id left join tokens t on t.id = k.token_id
             left join events e on e.id = t.event_id
             where k.hash = $1 and k.ended is null
             and case when e.id is null then k.expires is null or k.expires > $2 else e.ends > $3 end",
        )
        .bind(secret::hash(key))
        .bind(now)
        .bind(now.minus(ADMISSION_LIFE))
        .optional()
        .await?;
    drop(tx);
    let Some(row) = row.filter(|row| row.activated != Some(false)) else { return Ok(None) };
    let is_session = row.kind == KeyKind::Session;
    if is_session && row.expires.is_some_and(|expires| now.plus(SESSION_LIFE - RENEWAL) > expires) {
        renew(app, row.id, now.plus(SESSION_LIFE)).await?;
    }
    let scope = row.account_role.filter(|_| is_session).unwrap_or(row.role);
    Ok(Some(Caller {
        key: row.id,
        scope,
        // Behind an application's key stands no person, whoever made it.
        account: row.account_id.filter(|_| scope != Scope::Public),
        is_session,
        redeemer: row.token_id.zip(row.event_id).map(|(token, event)| Redeemer { token, event }),
    }))
}

async fn renew(app: &App, key: Id, expires: Timestamp) -> Result<()> {
    transaction!(app.db, |tx| {
        tx.query("update api_keys set expires = $2 where id = $1").bind(key).bind(expires).execute().await
    })?;
    Ok(())
}
