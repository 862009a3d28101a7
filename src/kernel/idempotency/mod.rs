//! Requests that carry an `Idempotency-Key` (draft-ietf-httpapi-idempotency-key-header).
//!
//! A row is claimed in the first transaction of the request's work, and filled with the answer in its last, which as a rule is the
//! same one: then neither can be there without the other, on however many servers. A twin of the request that comes while it is
//! under way is told at once on the same server; on another one it waits in the database for that transaction, and finds the
//! answer.
//!
//! Where the work takes several transactions (a payment, around the gateway), a server that ends between them leaves a row
//! without an answer. After [`LEASE`] the request may be tried anew.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use dropshot::Body;
use futures::FutureExt;
use http::Response;
use serde_json::Value;

use super::answer::{ResponseCipher, StoredResponse};
use crate::state::App;
use crate::kernel::types::clock::Timestamp;
use crate::kernel::types::id::Id;
use crate::kernel::types::secret;
use boxoffice_openapi::ParsedRequest;
use crate::kernel::db::{BeginHook, Tx, transaction};
use boxoffice_http::error::{Code, Error, Result};

/// How long an answer is kept (contract).
const RETENTION: Duration = Duration::from_secs(24 * 60 * 60);
/// How long a request without an answer counts as under way: longer than any takes, and longer than the two minutes for which a
/// payment may be pending, so that what an ended server has begun is given up before it is begun anew.
const LEASE: Duration = Duration::from_secs(3 * 60);

/// One try of a request that carries an `Idempotency-Key`.
pub struct IdempotentRequest {
    key: Id,
    hash: String,
    fingerprint: String,
    /// By which this try is told from another one of the same request.
    number: i64,
    began: Timestamp,
    seal: ResponseCipher,
    /// What another try had left when this one came to claim the row.
    found: Mutex<Option<PreviousOutcome>>,
}

/// What is known of a request already.
pub enum PreviousOutcome {
    /// It has this answer.
    Answer(StoredResponse),
    /// It is under way.
    InProgress,
    /// It was another one.
    KeyReused,
}

#[derive(sqlx::FromRow)]
struct Row {
    fingerprint: String,
    claimed: Timestamp,
    answer: Option<Vec<u8>>,
}

impl IdempotentRequest {
    /// A try of the request of this method and path, that says this, by whose key `key` is the identifier of and `api_key` the
    /// key itself.
    ///
    /// # Errors
    /// When the machine can't encrypt.
    pub fn new(
        (key, api_key): (Id, &str),
        idempotency_key: &str,
        (method, path): (&str, &str),
        said: &ParsedRequest,
        now: Timestamp,
    ) -> Result<Self> {
        // What the request says, as the contract reads it and in one order: another way to write the same is the same request.
        let (mut query, mut body) = (Value::from(said.query.clone()), said.body.clone());
        query.sort_all_objects();
        body.sort_all_objects();
        let said = [method, path, &query.to_string(), &body.to_string()];
        let seal = ResponseCipher::new(api_key, idempotency_key)?;
        Ok(Self {
            key,
            hash: secret::hash(idempotency_key),
            fingerprint: seal.fingerprint(&said.map(str::as_bytes)),
            number: rand::random(),
            began: now,
            seal,
            found: Mutex::new(None),
        })
    }

    /// What is known of the request, if it has come before.
    pub(super) async fn look_up(&self, tx: &mut Tx) -> Result<Option<PreviousOutcome>> {
        let row: Option<Row> = tx
            .query("select fingerprint, claimed, answer from idempotency where key_id = $1 and hash = $2")
            .bind(self.key)
            .bind(self.hash.clone())
            .optional()
            .await?;
        let Some(row) = row.filter(|row| row.claimed > self.began.minus(RETENTION)) else { return Ok(None) };
        if row.fingerprint != self.fingerprint {
            return Ok(Some(PreviousOutcome::KeyReused));
        }
        match row.answer {
            Some(sealed) => Ok(Some(PreviousOutcome::Answer(self.seal.decrypt(&sealed, &self.fingerprint)?))),
            None => Ok((row.claimed > self.began.minus(LEASE)).then_some(PreviousOutcome::InProgress)),
        }
    }

    /// Makes each of these requests its try's, for the rest of the transaction and after it; or tells what is known of it.
    pub(super) async fn claim_all(tx: &mut Tx, attempts: &[&Self]) -> Result<Vec<Option<PreviousOutcome>>> {
        if attempts.is_empty() {
            return Ok(Vec::new());
        }
        // In one order on all servers, so that they don't wait for one another in a circle.
        let mut sorted = attempts.to_vec();
        sorted.sort_by_key(|attempt| (attempt.key, &attempt.hash));
        let insert = tx.insert("idempotency (key_id, hash, fingerprint, attempt, claimed)").values(sorted, |attempt, values| {
            values.bind(attempt.key).bind(attempt.hash.clone()).bind(attempt.fingerprint.clone()).bind(attempt.number);
            values.bind(attempt.began);
        });
        let claimed: Vec<(Id, String)> = insert
            .push(
                " on conflict (key_id, hash) do update set fingerprint = excluded.fingerprint, attempt = excluded.attempt,
                      claimed = excluded.claimed, answer = null",
            )
            .push_bind(" where idempotency.claimed <= excluded.claimed - ?", micros(RETENTION))
            .push(" or (idempotency.answer is null and idempotency.fingerprint = excluded.fingerprint")
            .push_bind(
                " and (idempotency.claimed <= excluded.claimed - ? or idempotency.attempt = excluded.attempt))",
                micros(LEASE),
            )
            .push(" returning key_id, hash")
            .all()
            .await?;
        let claimed: HashSet<(Id, &str)> = claimed.iter().map(|(key, hash)| (*key, hash.as_str())).collect();
        let mut known = Vec::with_capacity(attempts.len());
        for attempt in attempts {
            let is_claimed = claimed.contains(&(attempt.key, attempt.hash.as_str()));
            known.push(if is_claimed { None } else { Some(attempt.look_up(tx).await?.unwrap_or(PreviousOutcome::InProgress)) });
        }
        Ok(known)
    }

    /// What claims the request in the first transaction of its work, and ends that where another try was first.
    pub(super) fn claim_hook(self: &Arc<Self>) -> BeginHook {
        let attempt = Arc::clone(self);
        Box::new(move |tx| {
            let attempt = Arc::clone(&attempt);
            async move {
                match Self::claim_all(tx, &[&attempt]).await?.pop().flatten() {
                    Some(known) => Err(attempt.set_previous(known)),
                    None => Ok(()),
                }
            }
            .boxed()
        })
    }

    /// Keeps what is known already, and gives what the work ends with for it.
    pub(super) fn set_previous(&self, known: PreviousOutcome) -> Error {
        *self.found.lock().unwrap_or_else(PoisonError::into_inner) = Some(known);
        Code::IdempotencyUnderWay.into()
    }

    /// What the first transaction of the work ended on.
    pub(super) fn previous(&self) -> Option<PreviousOutcome> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Keeps the answers to requests that are these tries'; one that has been taken from its try meanwhile gets the other's.
    pub(super) async fn keep_all(tx: &mut Tx, answers: impl IntoIterator<Item = (&Self, &StoredResponse)>) -> Result<()> {
        let seal = |(attempt, answer): (&Self, &StoredResponse)| {
            Ok((attempt.key, attempt.hash.clone(), attempt.number, attempt.seal.encrypt(answer, &attempt.fingerprint)?))
        };
        let answers = answers.into_iter().map(seal).collect::<Result<Vec<_>>>()?;
        if answers.is_empty() {
            return Ok(());
        }
        let update =
            tx.update("idempotency set answer = v.column4 from (").values(answers, |(key, hash, number, sealed), values| {
                values.bind(key).bind(hash).bind(number).bind(sealed);
            });
        let own =
            ") as v where idempotency.key_id = v.column1 and idempotency.hash = v.column2 and idempotency.attempt = v.column3";
        update.push(own).execute().await?;
        Ok(())
    }

    /// Forgets the request, so that it may be sent again.
    pub(super) async fn forget(&self, tx: &mut Tx) -> Result<()> {
        tx.query("delete from idempotency where key_id = $1 and hash = $2 and attempt = $3")
            .bind(self.key)
            .bind(self.hash.clone())
            .bind(self.number)
            .execute()
            .await?;
        Ok(())
    }
}

impl PreviousOutcome {
    /// What the request is answered with.
    ///
    /// # Errors
    /// With the refusal of a request that is under way, or another one.
    pub fn answer(self) -> Result<Response<Body>> {
        match self {
            Self::Answer(answer) => answer.replay(),
            Self::InProgress => Err(Code::IdempotencyUnderWay.into()),
            Self::KeyReused => Err(Code::IdempotencyOtherRequest.into()),
        }
    }
}

fn micros(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
}

/// The requests that this server is about.
#[derive(Default)]
pub struct InProgressSet(Mutex<HashSet<(Id, String)>>);

/// A request's place among those under way, until this is dropped.
pub struct InProgressGuard<'a> {
    under_way: &'a InProgressSet,
    request: (Id, String),
}

impl InProgressSet {
    /// Begins with a request, unless this server is about it already.
    pub(super) fn enter(&self, attempt: &IdempotentRequest) -> Option<InProgressGuard<'_>> {
        let request = (attempt.key, attempt.hash.clone());
        let is_new = self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(request.clone());
        is_new.then_some(InProgressGuard { under_way: self, request })
    }
}

impl Drop for InProgressGuard<'_> {
    fn drop(&mut self) {
        self.under_way.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.request);
    }
}

/// The step of a job: forgets requests whose answers need not be kept any more. Tells how many there were.
///
/// # Errors
/// When the database fails.
pub async fn purge_expired(app: &App) -> Result<u64> {
    let before = app.clock.now().minus(RETENTION);
    transaction!(app.db, |tx| tx.query("delete from idempotency where claimed <= $1").bind(before).execute().await)
}
