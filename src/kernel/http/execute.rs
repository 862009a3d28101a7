//! Carrying a request out: its work, and what is kept of it, as one.

use std::future::Future;
use std::sync::Arc;

use anyhow::anyhow;
use dropshot::Body;
use futures::FutureExt;
use http::{Response, Uri};

use super::answer::StoredResponse;
use super::desk::RequestSlot;
use super::group::AuditRecord;
use super::idempotency::{IdempotentRequest, PreviousOutcome};
use super::resource::resource;
use super::trail::{self, AuditEntry};
use crate::state::App;
use crate::kernel::types::id::Id;
use boxoffice_openapi::{Contract, Operation};
use crate::kernel::db::{Tx, UnitOfWork};
use boxoffice_http::error::{Code, Error};
use crate::kernel::http::ApiError;

/// What is answered.
type Outcome = Result<Response<Body>, ApiError>;

/// Who asks for what.
pub struct AuditContext<'a> {
    /// What the request was held against.
    pub contract: &'a Contract,
    /// What is asked for.
    pub operation: &'a Operation,
    /// The key that it came with.
    pub key: Id,
    /// The account that the key acts for.
    pub account: Option<Id>,
    /// The address that was asked for.
    pub uri: Uri,
    /// The request's identifier.
    pub request: String,
}

impl AuditContext<'_> {
    /// Whether its method asks for a change: then it has a row in the trail whatever comes of it. A GET that changes something has
    /// one only where it did.
    fn asks_for_change(&self) -> bool {
        self.operation.method != "GET"
    }

    fn entry(&self, app: &App, outcome: &Outcome) -> AuditEntry {
        AuditEntry {
            at: app.clock.now(),
            key: self.key,
            account: self.account,
            operation: self.operation.id.clone(),
            resource: resource(self.operation, self.contract.without_prefix(self.uri.path())),
            request: self.request.clone(),
            status: status(outcome),
            code: outcome.as_ref().err().map(ApiError::code),
        }
    }
}

/// Carries a request out in one unit of work, of which `work` is its endpoint.
///
/// # Errors
/// With the refusal or the failure to be answered.
pub async fn execute(
    app: &App,
    visit: AuditContext<'_>,
    attempt: Option<Arc<IdempotentRequest>>,
    work: impl Future<Output = Outcome> + Send,
) -> Outcome {
    match attempt {
        None => commit(app, visit, None, work).await,
        // Boxed, as all that few requests come to: so that the way of most is short, which is moved from one to the next.
        Some(attempt) => execute_idempotent(app, visit, attempt, work).boxed().await,
    }
}

/// Carries out a request that changes nothing, of which nothing is kept. In a development build one that does is a failure, so that
/// a test shows it.
///
/// # Errors
/// With the refusal or the failure to be answered.
pub async fn read(work: impl Future<Output = Outcome>) -> Outcome {
    if !cfg!(debug_assertions) {
        return work.await;
    }
    let unit = UnitOfWork::new(None);
    let outcome = unit.run(work).await;
    if unit.take_deferred().is_some() || unit.is_committed() {
        return Err(Error::Internal(anyhow!("a request that only reads has changed something")).into());
    }
    outcome
}

async fn execute_idempotent(
    app: &App,
    visit: AuditContext<'_>,
    attempt: Arc<IdempotentRequest>,
    work: impl Future<Output = Outcome> + Send,
) -> Outcome {
    // What is under way will stand in the trail when it has been done.
    let _turn = app.journal.under_way.enter(&attempt).ok_or(Code::IdempotencyUnderWay)?;
    // Not within the `match`, which would hold the connection while a refusal waits for one to write with.
    let known = attempt.look_up(&mut app.db.read().await?).await?;
    match known {
        Some(PreviousOutcome::KeyReused) => return audit_rejection(app, visit, Code::IdempotencyOtherRequest.into()).await,
        Some(known) => return Ok(known.answer()?),
        None => {}
    }
    commit(app, visit, Some(attempt), work).await
}

/// Writes down that a request is refused which asks for a change, and gives the refusal.
///
/// # Errors
/// With the refusal, or that it can't be written down.
pub async fn audit_rejection(app: &App, visit: AuditContext<'_>, failure: ApiError) -> Outcome {
    let refused = Err(failure);
    if visit.asks_for_change() && !is_unrecorded(&refused) {
        let entry = visit.entry(app, &refused);
        app.journal.group.keep(&app.db, AuditRecord { entry, answer: None }).await?;
    }
    refused
}

async fn commit(
    app: &App,
    visit: AuditContext<'_>,
    attempt: Option<Arc<IdempotentRequest>>,
    work: impl Future<Output = Outcome>,
) -> Outcome {
    let unit = UnitOfWork::new(attempt.as_ref().map(IdempotentRequest::claim_hook));
    let seat = RequestSlot::new(Arc::clone(&unit), attempt.clone());
    let outcome = unit.run(seat.run(work)).await;
    if let Some(known) = attempt.as_ref().and_then(|attempt| attempt.previous()) {
        return Ok(known.answer()?);
    }
    let (answer, outcome) = match attempt {
        None => (None, outcome),
        Some(attempt) => {
            let (answer, outcome) = answer_of(outcome).await?;
            (Some((attempt, answer)), outcome)
        }
    };
    if let Some(part) = seat.part() {
        // Dropped with all that was done in its transaction.
        if is_unrecorded(&outcome) {
            return outcome;
        }
        part.keep(Some(AuditRecord { entry: visit.entry(app, &outcome), answer })).await?;
        unit.run_after_commit(app).await;
        return outcome;
    }
    match unit.take_deferred() {
        // Dropped with all that was done in it.
        Some(_) if is_internal(&outcome) => return outcome,
        Some(tx) => {
            let entry = visit.entry(app, &outcome);
            conclude(tx, &entry, answer.as_ref(), is_unrecorded(&outcome)).boxed().await?;
        }
        // A failure after a part has been committed stands in the trail, and its request is under way until that is given up.
        None if visit.asks_for_change() && (!is_unrecorded(&outcome) || unit.is_committed()) => {
            let answer = answer.filter(|_| !is_unrecorded(&outcome));
            let kept = AuditRecord { entry: visit.entry(app, &outcome), answer };
            if let Some(known) = app.journal.group.keep(&app.db, kept).boxed().await? {
                return Ok(known.answer()?);
            }
        }
        None => {}
    }
    unit.run_after_commit(app).await;
    outcome
}

/// Adds what is kept of a request to the transaction of its change, and commits.
async fn conclude(
    mut tx: Tx,
    entry: &AuditEntry,
    answer: Option<&(Arc<IdempotentRequest>, StoredResponse)>,
    is_lost: bool,
) -> Result<(), Error> {
    trail::insert(&mut tx, [entry]).await?;
    match answer {
        // What the gateway has failed to do may be asked for again.
        Some((attempt, _)) if is_lost => attempt.forget(&mut tx).await?,
        Some((attempt, answer)) => IdempotentRequest::keep_all(&mut tx, [(&**attempt, answer)]).await?,
        None => {}
    }
    tx.commit().await
}

/// The answer to be kept.
async fn answer_of(outcome: Outcome) -> Result<(StoredResponse, Outcome), ApiError> {
    match outcome {
        Ok(response) => {
            let (answer, response) = StoredResponse::of(response).await?;
            Ok((answer, Ok(response)))
        }
        Err(failure) => Ok((StoredResponse::from_error(&failure)?, Err(failure))),
    }
}

fn status(outcome: &Outcome) -> u16 {
    outcome.as_ref().map_or_else(ApiError::status, Response::status).as_u16()
}

/// Whether it is an answer that nobody keeps: one of a failure, which the log tells of, or to one who asks too often.
fn is_unrecorded(outcome: &Outcome) -> bool {
    matches!(status(outcome), 429 | 500..)
}

/// Whether nothing may have been changed, because the server has failed.
fn is_internal(outcome: &Outcome) -> bool {
    outcome.as_ref().is_err_and(|failure| matches!(failure.code(), Code::ServerError | Code::ServerUnavailable))
}
