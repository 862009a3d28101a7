//! Group commit: concurrent requests of one kind are executed and committed in one transaction.
//!
//! At the start of a section's sale, every buyer changes the same row. In transactions of their own, the requests would wait for
//! each other's commits, each of which flushes the disk. Here, all requests that arrive while a batch is being committed form the
//! next batch: each has its own result, audit record and stored response, and one commit makes them durable.
//!
//! A rejected request doesn't affect the others. If a request fails while the batch is executed, because the database rejects its
//! statement or because of a bug, the batch is rolled back and each of its requests is executed again by itself. So only the request
//! that causes the failure fails. If the database is not available, or a row stays locked for longer than a statement may take, all
//! requests of the batch fail, because each would wait as long by itself. A failure after the execution, of an audit record or of the
//! commit, fails all of them, too.
//!
//! No precondition is checked: PUT and DELETE have preconditions, and the operations that are batched are POST.

use std::iter::repeat_with;
use std::marker::PhantomData;
use std::ops::ControlFlow;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use anyhow::anyhow;
use boxoffice_http::error::{Error, Result};
use boxoffice_http::traces::Span;
use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::sync::oneshot;

use crate::kernel::audit::{self, AuditRecord};
use crate::kernel::context::Context;
use crate::kernel::db::{Batcher, Db, RetryState, Tx};
use crate::kernel::idempotency::IdempotentRequest;

/// Requests in a batch. With as many, the cost that each of them has by itself outweighs their share of the commit.
const MAX_REQUESTS: usize = 100;

/// An operation that is executed for many requests at once. `A` is the application's state.
pub trait BatchOperation<A>: Send + Sync + Sized + 'static {
    /// The result of one request.
    type Output: Send + 'static;

    /// The largest sum of [`weight`](Self::weight) in a batch, because all of it is in memory at once.
    const MAX_WEIGHT: usize = MAX_REQUESTS;

    /// The part of a batch that this request fills.
    fn weight(&self) -> usize {
        1
    }

    /// Executes `batch` in its order and returns one result for each request.
    ///
    /// # Errors
    /// Returns an error if the database fails; then nothing is changed for any of them. A failure as the result of one request has
    /// the same effect.
    fn execute<'a>(app: &'a A, tx: &'a mut Tx, batch: &'a [&'a Self]) -> BoxFuture<'a, Result<Vec<Result<Self::Output>>>>;
}

/// Executes requests of one kind in batches.
pub struct GroupCommit<A, B: BatchOperation<A>>(Arc<Queue<B, B::Output>>, PhantomData<fn(A)>);

/// The requests that wait, each with its [`Participant`].
type Queue<B, R> = Batcher<(), (B, Participant<R>), Result<()>>;

/// A request that waits for its batch.
struct Participant<R> {
    request: Option<Arc<IdempotentRequest>>,
    span: Span,
    reply: oneshot::Sender<(Result<R>, oneshot::Sender<Option<AuditRecord>>)>,
}

/// A request's share of a batch that has been executed and not committed. Dropping it rolls the whole batch back, unless the request
/// was rejected or replayed.
pub struct PendingCommit {
    record: oneshot::Sender<Option<AuditRecord>>,
    committed: BoxFuture<'static, Result<()>>,
}

impl PendingCommit {
    /// Adds the request's audit record to the batch, and waits until the batch is committed.
    ///
    /// # Errors
    /// Returns an error if it is not committed.
    pub async fn commit(self, record: Option<AuditRecord>) -> Result<()> {
        // If the batch has ended already, `committed` has its error.
        let _ended = self.record.send(record);
        self.committed.await
    }
}

impl<A, B: BatchOperation<A>> Default for GroupCommit<A, B> {
    fn default() -> Self {
        Self(Batcher::with_max_weight(B::MAX_WEIGHT, |(operation, _): &(B, _)| operation.weight()), PhantomData)
    }
}

impl<A: Send + Sync + 'static, B: BatchOperation<A>> GroupCommit<A, B> {
    /// Executes `operation` in the next batch and returns its result. In a request the commit follows with the response.
    ///
    /// # Errors
    /// With the rejection, or when the database fails.
    pub async fn submit(&self, ctx: &Context<A>, operation: B) -> Result<B::Output> {
        ctx.unit.commit_now().await?;
        let (reply, result) = oneshot::channel();
        let participant = Participant { request: ctx.unit.unclaimed_request(), span: ctx.unit.span().clone(), reply };
        let (app, db) = (Arc::clone(&ctx.app), ctx.unit.db().clone());
        let run = move |(), batch| run_batch(Arc::clone(&app), db.clone(), batch);
        let committed = self.0.submit((), (operation, participant), run);
        let committed = committed.map(Result::flatten).boxed();
        let Ok((result, record)) = result.await else {
            committed.await?;
            return Err(no_result());
        };
        ctx.unit.join_batch(PendingCommit { record, committed }).await?;
        result
    }
}

async fn run_batch<A, B>(app: Arc<A>, db: Db, batch: Vec<(B, Participant<B::Output>)>) -> Result<Vec<Result<()>>>
where
    A: Send + Sync,
    B: BatchOperation<A>,
{
    let (operations, participants): (Vec<B>, Vec<Participant<B::Output>>) = batch.into_iter().unzip();
    let count = participants.len();
    db.metrics().batch.observe(count as f64);
    let all: Vec<&B> = operations.iter().collect();
    match execute(&*app, &db, &all, &participants.iter().collect::<Vec<_>>()).await {
        Ok((tx, results)) => {
            let committed = commit(tx, participants, results).await;
            Ok(repeat_with(|| committed.as_ref().copied().map_err(Error::clone_lossy)).take(count).collect())
        }
        Err(error) if error.is_definite() && count > 1 => {
            let mut committed = Vec::with_capacity(count);
            for (operation, participant) in operations.iter().zip(participants) {
                committed.push(match execute(&*app, &db, &[operation], &[&participant]).await {
                    Ok((tx, results)) => commit(tx, vec![participant], results).await,
                    Err(error) => Err(error),
                });
            }
            Ok(committed)
        }
        Err(error) => Err(error),
    }
}

/// Executes a batch in a transaction of its own, and retries it as `transaction!` does.
async fn execute<A, B>(
    app: &A,
    db: &Db,
    batch: &[&B],
    participants: &[&Participant<B::Output>],
) -> Result<(Tx, Vec<Result<B::Output>>)>
where
    A: Sync,
    B: BatchOperation<A>,
{
    let mut retries = RetryState::first();
    loop {
        let executed = async {
            let span = Span::of_batch("batch", participants.iter().map(|participant| &participant.span));
            span.set("boxoffice.batch.requests", || (participants.len() as i64).into());
            let mut tx = db.begin().await?.traced(&span);
            let results = execute_in(app, &mut tx, batch, participants).await?;
            Ok((tx, results))
        };
        if let ControlFlow::Break(executed) = retries.should_retry(executed.await).await {
            return executed;
        }
    }
}

async fn execute_in<A, B>(
    app: &A,
    tx: &mut Tx,
    batch: &[&B],
    participants: &[&Participant<B::Output>],
) -> Result<Vec<Result<B::Output>>>
where
    A: Sync,
    B: BatchOperation<A>,
{
    let requests: Vec<Option<&IdempotentRequest>> =
        participants.iter().map(|participant| participant.request.as_deref()).collect();
    let claims = IdempotentRequest::claim_all(tx, &requests).await?;
    let new: Vec<&B> = batch.iter().zip(&claims).filter(|(_, claim)| claim.is_ok()).map(|(new, _)| *new).collect();
    let results = AssertUnwindSafe(B::execute(app, tx, &new)).catch_unwind().await;
    let mut results = results.unwrap_or_else(|_| Err(Error::Internal(anyhow!("a batch has panicked"))))?.into_iter();
    let result =
        |claim: Result<()>| Error::split_rejection(claim.and_then(|()| results.next().unwrap_or_else(|| Err(no_result()))));
    claims.into_iter().map(result).collect()
}

/// Sends each request its result, collects the audit records and commits.
async fn commit<R>(mut tx: Tx, participants: Vec<Participant<R>>, results: Vec<Result<R>>) -> Result<()> {
    let mut sent = Vec::with_capacity(participants.len());
    for (participant, result) in participants.into_iter().zip(results) {
        let (record, receiver) = oneshot::channel();
        sent.push(SentResult { has_changed_nothing: result.is_err(), request: participant.request, record: receiver });
        // A request whose client has disconnected drops the record's sender, too.
        let _disconnected = participant.reply.send((result, record));
    }
    let mut records = Vec::with_capacity(sent.len());
    for SentResult { has_changed_nothing, request, record } in sent {
        match record.await {
            Ok(record) => records.extend(record),
            // It has changed nothing but its claim, if it has one, and may be sent again.
            Err(_) if has_changed_nothing => {
                if let Some(request) = request {
                    request.release(&mut tx).await?;
                }
            }
            Err(_) => return Err(Error::Unavailable(anyhow!("another request of the same batch has failed"))),
        }
    }
    audit::insert_records(&mut tx, &records).await?;
    tx.commit().await
}

/// A result that was sent to a request of a batch, which sends its audit record in return.
struct SentResult {
    /// True if the request was rejected or replayed, and so has changed nothing but its claim.
    has_changed_nothing: bool,
    /// The request if it carries an `Idempotency-Key`.
    request: Option<Arc<IdempotentRequest>>,
    record: oneshot::Receiver<Option<AuditRecord>>,
}

fn no_result() -> Error {
    Error::Internal(anyhow!("a request of a batch has no result"))
}
