//! Idempotent requests: POST and PATCH with an `Idempotency-Key` (draft-ietf-httpapi-idempotency-key-header).
//!
//! The first transaction of a request claims a row; its last one, usually the same, stores the response in it. So neither exists
//! without the other, on any number of servers. A duplicate that arrives while the request is in progress is rejected at once on
//! the same server; on another one it waits in the database for that transaction and finds the response.
//!
//! An operation with several transactions (a payment, around the gateway) leaves a row without a response if it fails between
//! them. The server then releases the request when the database is back
//! ([`UnitOfWork::after_failure`](crate::kernel::unit_of_work::UnitOfWork)). If the server itself has ended, the request may be sent
//! again after [`LEASE`].

mod stored_response;

use std::collections::HashSet;
use std::time::Duration;

use boxoffice_http::error::{Code, Error, Result};
use boxoffice_openapi::ParsedRequest;
use parking_lot::Mutex;
use serde_json::Value;
pub use stored_response::{ResponseCipher, StoredResponse};

use crate::kernel::Kernel;
use crate::kernel::db::{Reader, Tx, transaction};
use crate::kernel::types::clock::Timestamp;
use crate::kernel::types::id::Id;
use crate::kernel::types::secret;

/// Retention of stored responses, as the contract states it.
const RETENTION: Duration = Duration::from_secs(24 * 60 * 60);
/// Time after which a request without a response no longer counts as in progress. It is longer than any request takes, and longer
/// than the two minutes for which a payment may be pending, so that an abandoned payment is given up before it is tried again.
pub const LEASE: Duration = Duration::from_secs(3 * 60);

/// One attempt of a request that carries an `Idempotency-Key`.
pub struct IdempotentRequest {
    key: Id,
    hash: String,
    fingerprint: String,
    /// Distinguishes this attempt from others of the same request.
    attempt: i64,
    started: Timestamp,
    cipher: ResponseCipher,
}

/// The data of a new [`IdempotentRequest`].
pub struct NewRequest<'a> {
    /// The identifier of the caller's API key.
    pub key: Id,
    /// The API key itself.
    pub api_key: &'a str,
    /// The value of the header `Idempotency-Key`.
    pub idempotency_key: &'a str,
    /// The HTTP method.
    pub method: &'a str,
    /// The path without the base path of the contract.
    pub path: &'a str,
    /// The arguments of the operation.
    pub arguments: &'a ParsedRequest,
    /// The time of the attempt.
    pub now: Timestamp,
}

#[derive(sqlx_macros::FromRow)]
struct Row {
    fingerprint: String,
    claimed: Timestamp,
    answer: Option<Vec<u8>>,
}

impl IdempotentRequest {
    /// Creates an attempt of a request.
    ///
    /// # Errors
    /// Returns an error if the cipher can't be created.
    pub fn new(new: &NewRequest<'_>) -> Result<Self> {
        let NewRequest { key, api_key, idempotency_key, method, path, arguments, now } = *new;
        // Parsed and sorted, so that the same request in another notation has the same fingerprint.
        let (mut query, mut body) = (Value::from(arguments.query.clone()), arguments.body.clone());
        query.sort_all_objects();
        body.sort_all_objects();
        let content = [method, path, &query.to_string(), &body.to_string()];
        let cipher = ResponseCipher::new(api_key, idempotency_key)?;
        Ok(Self {
            key,
            hash: secret::hash(idempotency_key),
            fingerprint: cipher.fingerprint(&content.map(str::as_bytes)),
            attempt: rand::random(),
            started: now,
            cipher,
        })
    }

    /// Requires that the request was not sent before.
    ///
    /// # Errors
    /// [`Error::Replayed`] with the stored response, [`Code::IDEMPOTENCY_UNDER_WAY`] if an earlier attempt has none yet, or
    /// [`Code::IDEMPOTENCY_OTHER_REQUEST`] if the key belongs to a different request.
    pub async fn require_new(&self, reader: &mut Reader) -> Result<()> {
        let row: Option<Row> = reader
            .query("select fingerprint, claimed, answer from idempotency where key_id = $1 and hash = $2")
            .bind(self.key)
            .bind(self.hash.clone())
            .optional()
            .await?;
        let Some(row) = row.filter(|row| row.claimed > self.started.minus(RETENTION)) else { return Ok(()) };
        if row.fingerprint != self.fingerprint {
            return Err(Code::IDEMPOTENCY_OTHER_REQUEST.into());
        }
        match row.answer {
            Some(encrypted) => Err(Error::Replayed(self.cipher.decrypt(&encrypted, &self.fingerprint)?.replay()?.into())),
            None if row.claimed > self.started.minus(LEASE) => Err(Code::IDEMPOTENCY_UNDER_WAY.into()),
            None => Ok(()),
        }
    }

    /// Claims the request in the first transaction of its work.
    ///
    /// # Errors
    /// Like [`require_new`](Self::require_new), if an earlier attempt has claimed it.
    pub async fn claim(&self, tx: &mut Tx) -> Result<()> {
        Self::claim_all(tx, &[Some(self)]).await?.into_iter().collect()
    }

    /// Claims each of these requests, and returns the result of each [`claim`](Self::claim).
    pub async fn claim_all(tx: &mut Tx, requests: &[Option<&Self>]) -> Result<Vec<Result<()>>> {
        let mut sorted: Vec<&Self> = requests.iter().copied().flatten().collect();
        if sorted.is_empty() {
            return Ok(requests.iter().map(|_| Ok(())).collect());
        }
        // Servers take the row locks in the same order.
        sorted.sort_by_key(|request| (request.key, &request.hash));
        let insert = tx.insert("idempotency (key_id, hash, fingerprint, attempt, claimed)").values(&sorted, |columns| {
            columns
                .add(|request| request.key)
                .add(|request| request.hash.clone())
                .add(|request| request.fingerprint.clone())
                .add(|request| request.attempt);
            columns.add(|request| request.started);
        });
        let claimed: Vec<(Id, String)> =
            insert.push(" on conflict (key_id, hash) do nothing returning key_id, hash").all().await?;
        let claimed: HashSet<(Id, &str)> = claimed.iter().map(|(key, hash)| (*key, hash.as_str())).collect();
        let mut claims = Vec::with_capacity(requests.len());
        for request in requests {
            claims.push(match request {
                Some(request) if !claimed.contains(&(request.key, request.hash.as_str())) && !request.claim_again(tx).await? => {
                    let found = request.require_new(tx).await;
                    Error::split_rejection(found.and_then(|()| Err(Code::IDEMPOTENCY_UNDER_WAY.into())))?
                }
                _ => Ok(()),
            });
        }
        Ok(claims)
    }

    /// Claims a request that was sent before, if its earlier attempt has ended without a response, or its retention is over. Returns
    /// whether that is so. It locks no row of a request in progress, whose response is stored while other rows are locked.
    async fn claim_again(&self, tx: &mut Tx) -> Result<bool> {
        let update = "update idempotency set fingerprint = $3, attempt = $4, claimed = $5, answer = null
             where key_id = $1 and hash = $2 and (claimed <= $6
                 or (answer is null and fingerprint = $3 and (claimed <= $7 or attempt = $4)))";
        let update = tx.query(update).bind(self.key).bind(self.hash.clone()).bind(self.fingerprint.clone()).bind(self.attempt);
        let update = update.bind(self.started).bind(self.started.minus(RETENTION)).bind(self.started.minus(LEASE));
        Ok(update.rows_affected().await? == 1)
    }

    /// Stores responses. A request that another attempt has claimed meanwhile keeps that attempt's response.
    pub async fn store_all(tx: &mut Tx, responses: impl IntoIterator<Item = (&Self, &StoredResponse)>) -> Result<()> {
        let encrypt = |(request, response): (&Self, &StoredResponse)| {
            Ok((request.key, request.hash.clone(), request.attempt, request.cipher.encrypt(response, &request.fingerprint)?))
        };
        let rows = responses.into_iter().map(encrypt).collect::<Result<Vec<_>>>()?;
        if rows.is_empty() {
            return Ok(());
        }
        // Locks the rows in the order of the claims: the requests may have been claimed in an earlier transaction, and another
        // server may be claiming their duplicates.
        let update = tx.update(
            "idempotency set answer = v.answer from (select i.key_id, i.hash, w.column4 as answer from idempotency i join (",
        );
        let update = update.values(&rows, |columns| {
            columns.add(|(key, ..)| *key).add(|(_, hash, ..)| hash.clone());
            columns.add(|(.., attempt, _)| *attempt).add(|(.., encrypted)| encrypted.clone());
        });
        update
            .push(
                ") as w on i.key_id = w.column1 and i.hash = w.column2 and i.attempt = w.column3
                 order by i.key_id, i.hash",
            )
            .push_lock(" for no key update of i")
            .push(") as v where idempotency.key_id = v.key_id and idempotency.hash = v.hash")
            .execute()
            .await
    }

    /// Releases the claim, so that the request may be sent again. Does nothing if the response is stored.
    pub async fn release(&self, tx: &mut Tx) -> Result<()> {
        tx.query("delete from idempotency where key_id = $1 and hash = $2 and attempt = $3 and answer is null")
            .bind(self.key)
            .bind(self.hash.clone())
            .bind(self.attempt)
            .execute()
            .await
    }
}

/// The idempotent requests that are in progress on this server.
#[derive(Default)]
pub struct InProgressSet(Mutex<HashSet<(Id, String)>>);

/// Marks a request as in progress until it is dropped.
pub struct InProgressGuard<'a> {
    set: &'a InProgressSet,
    request: (Id, String),
}

impl InProgressSet {
    /// Marks a request as in progress. Returns `None` if it is already.
    pub fn enter(&self, request: &IdempotentRequest) -> Option<InProgressGuard<'_>> {
        let request = (request.key, request.hash.clone());
        let is_new = self.0.lock().insert(request.clone());
        is_new.then_some(InProgressGuard { set: self, request })
    }
}

impl Drop for InProgressGuard<'_> {
    fn drop(&mut self) {
        self.set.0.lock().remove(&self.request);
    }
}

/// Corrects the requests that were claimed while the clock was ahead: at a time after `latest`. Returns their number.
pub async fn correct_future(tx: &mut Tx, now: Timestamp, latest: Timestamp) -> Result<u64> {
    tx.query("update idempotency set claimed = $1 where claimed > $2").bind(now).bind(latest).rows_affected().await
}

/// Deletes some rows whose retention is over at `now`, and returns their number. One step of a job. On PostgreSQL it skips rows that a
/// request is claiming; SQLite has one writer at a time.
pub async fn delete_expired(kernel: &Kernel, now: Timestamp) -> Result<u64> {
    let before = now.minus(RETENTION);
    transaction!(kernel.db, |tx| {
        let expired = if tx.is_postgres() {
            "delete from idempotency where (key_id, hash) in (
                 select key_id, hash from idempotency where claimed <= $1 order by claimed limit 1000 for update skip locked)"
        } else {
            "delete from idempotency where (key_id, hash) in (
                 select key_id, hash from idempotency where claimed <= $1 order by claimed limit 1000)"
        };
        tx.query(expired).bind(before).rows_affected().await
    })
}
