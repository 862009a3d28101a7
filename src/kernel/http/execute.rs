//! Executes a request in its unit of work, and commits its changes, its audit record and its stored response together.

use std::sync::Arc;
use std::time::Duration;

use boxoffice_http::ApiError;
use boxoffice_http::error::{Code, Error, Result};
use boxoffice_openapi::{Contract, Operation};
use dropshot::Body;
use futures::FutureExt;
use http::{Response, StatusCode, Uri};
use slog::{Logger, info, warn};
use tokio::time::{Instant, sleep};

use crate::kernel::Kernel;
use crate::kernel::audit::{self, AuditRecord, NewAuditEntry, redact};
use crate::kernel::db::{Db, Tx, transaction};
use crate::kernel::idempotency::{IdempotentRequest, LEASE, StoredResponse};
use crate::kernel::types::id::Id;
use crate::kernel::unit_of_work::{AfterFailure, Uncommitted, UnitOfWork};

/// Pause between the attempts to recover from a failure.
const RECOVERY_PAUSE: Duration = Duration::from_secs(1);

/// The response, or the error that is returned instead.
pub type ResponseResult = Result<Response<Body>, ApiError>;

/// The facts of a request or of an operator's command that its audit record has.
pub struct AuditContext<'a> {
    /// The request or the command.
    pub source: AuditSource<'a>,
    /// The request's identifier; empty for a command.
    pub request: String,
}

/// The origin of a change.
pub enum AuditSource<'a> {
    /// A request with an API key.
    Request {
        /// The document that the request was validated against.
        contract: &'a Contract,
        /// The operation.
        operation: &'a Operation,
        /// Identifier of the API key.
        key: Id,
        /// The account of the API key.
        account: Option<Id>,
        /// True for a public key, which all users of an application share.
        is_public: bool,
        /// The request's URI.
        uri: &'a Uri,
    },
    /// A command on the server's machine.
    Command {
        /// The name of the operation. It is that of the contract, if there is one that does the same.
        operation: &'a str,
        /// The path of the resource.
        resource: String,
        /// The user of the operating system.
        operator: &'a str,
    },
}

impl AuditContext<'_> {
    /// Returns whether the method requests a change. Such a request is always recorded, while a GET that changes something is
    /// recorded only if it did.
    fn is_mutating(&self) -> bool {
        match &self.source {
            AuditSource::Request { operation, .. } => operation.method != "GET",
            AuditSource::Command { .. } => true,
        }
    }

    /// Returns whether a rejection is only counted, because any client may have such a key.
    fn is_anonymous(&self) -> bool {
        matches!(self.source, AuditSource::Request { is_public: true, .. })
    }

    fn record(
        &self,
        kernel: &Kernel,
        outcome: &ResponseResult,
        stored: Option<(Arc<IdempotentRequest>, StoredResponse)>,
    ) -> AuditRecord {
        let (key, account, operation, resource, operator) = match &self.source {
            AuditSource::Request { contract, operation, key, account, uri, .. } => {
                let resource = redact::path(operation, contract.without_prefix(uri.path()));
                (*key, *account, operation.id.clone(), resource, None)
            }
            AuditSource::Command { operation, resource, operator } => {
                (Id::NONE, None, (*operation).to_owned(), resource.clone(), Some((*operator).to_owned()))
            }
        };
        let entry = NewAuditEntry {
            at: kernel.clock.now(),
            key,
            account,
            operation,
            resource,
            request: self.request.clone(),
            status: status(outcome).as_u16(),
            code: outcome.as_ref().err().map(ApiError::code),
            count: 1,
            operator,
        };
        if outcome.is_err() && self.is_anonymous() {
            kernel.rejections.add(entry);
            return AuditRecord { entry: None, stored };
        }
        AuditRecord { entry: Some(entry), stored }
    }
}

/// Runs `handler`, which works in `unit`, and commits. `request` is there if the client has sent an `Idempotency-Key`. If it was
/// executed before, returns the stored response.
///
/// # Errors
/// With the rejection or the failure to be returned.
pub async fn execute(
    kernel: &Kernel,
    audit: AuditContext<'_>,
    unit: &UnitOfWork,
    request: Option<Arc<IdempotentRequest>>,
    handler: impl Future<Output = Result<Response<Body>>> + Send,
) -> ResponseResult {
    let executed = match request.clone() {
        None => run_and_commit(kernel, &audit, unit, None, handler).await,
        // Boxed, because few requests get here: it keeps the future of all others small.
        Some(request) => execute_idempotent(kernel, audit, unit, request, handler).boxed().await,
    };
    let outcome = match executed {
        Ok(outcome) => outcome,
        Err(Error::Replayed(response)) => Ok(*response),
        Err(error) => Err(error.into()),
    };
    if is_server_failure(&outcome)
        && let Some(work) = unit.take_after_failure()
    {
        tokio::spawn(recover(kernel.db.clone(), kernel.log.clone(), request, work));
    }
    outcome
}

/// Does the work that a request has registered for its failure, and releases the request, so that the client may send it again.
/// Repeats both until they succeed: the database may be unavailable for a while, as in a failover. After the lease of the request
/// it gives up, and leaves the rest to the jobs.
async fn recover(db: Db, log: Logger, request: Option<Arc<IdempotentRequest>>, work: AfterFailure) {
    let end = Instant::now() + LEASE;
    while let Err(error) = recover_once(&db, request.as_deref(), &work).await {
        if Instant::now() >= end {
            warn!(log, "a failed request could not be released"; "cause" => error.into_log_text());
            return;
        }
        sleep(RECOVERY_PAUSE).await;
    }
    info!(log, "a failed request was released, and may be sent again");
}

async fn recover_once(db: &Db, request: Option<&IdempotentRequest>, work: &AfterFailure) -> Result<()> {
    work().await?;
    match request {
        Some(request) => transaction!(db, |tx| request.release(tx).await),
        None => Ok(()),
    }
}

async fn execute_idempotent(
    kernel: &Kernel,
    audit: AuditContext<'_>,
    unit: &UnitOfWork,
    request: Arc<IdempotentRequest>,
    handler: impl Future<Output = Result<Response<Body>>> + Send,
) -> Result<ResponseResult> {
    // The request in progress will have the audit record.
    let _guard = kernel.in_progress.enter(&request).ok_or(Code::IDEMPOTENCY_UNDER_WAY)?;
    // Not in the `match`, which would hold the connection while a rejection waits for one to write with.
    let found = request.require_new(&mut kernel.db.read().await?.traced(unit.span())).await;
    let executed = match found {
        Ok(()) => run_and_commit(kernel, &audit, unit, Some(request), handler).await,
        Err(error) => Err(error),
    };
    match executed {
        Err(Error::Rejected(code @ Code::IDEMPOTENCY_OTHER_REQUEST, _)) => Ok(audit_rejection(kernel, audit, code.into()).await),
        executed => executed,
    }
}

/// Writes the audit record of a rejected request with a mutating method, and returns the rejection.
///
/// # Errors
/// With the rejection, or when the record can't be written.
pub async fn audit_rejection(kernel: &Kernel, audit: AuditContext<'_>, error: ApiError) -> ResponseResult {
    let rejected = Err(error);
    if audit.is_mutating() && !is_unrecorded(&rejected) {
        kernel.audit.write(&kernel.db, audit.record(kernel, &rejected, None)).await?;
    }
    rejected
}

/// Runs `handler`, and commits its outcome, which it returns.
///
/// # Errors
/// Returns an error if the database fails, or if an earlier request has [claimed](IdempotentRequest::claim) the key.
async fn run_and_commit(
    kernel: &Kernel,
    audit: &AuditContext<'_>,
    unit: &UnitOfWork,
    request: Option<Arc<IdempotentRequest>>,
    handler: impl Future<Output = Result<Response<Body>>> + Send,
) -> Result<ResponseResult> {
    let outcome = match handler.await {
        Err(error @ (Error::Replayed(_) | Error::Rejected(Code::IDEMPOTENCY_UNDER_WAY | Code::IDEMPOTENCY_OTHER_REQUEST, _))) => {
            // A batch waits for the record until what is uncommitted is dropped.
            drop(unit.take_uncommitted());
            return Err(error);
        }
        outcome => check_precondition(unit, outcome.map_err(ApiError::from)).await,
    };
    let (stored, outcome) = match request {
        None => (None, outcome),
        Some(request) => {
            let (stored, outcome) = store_response(outcome).await?;
            (Some((request, stored)), outcome)
        }
    };
    let is_unrecorded = is_unrecorded(&outcome);
    match unit.take_uncommitted() {
        // Dropping it rolls the batch back if this request has changed anything.
        Some(Uncommitted::Batch(_)) if is_unrecorded => return Ok(outcome),
        Some(Uncommitted::Batch(pending)) => pending.commit(Some(audit.record(kernel, &outcome, stored))).await?,
        // Dropping it rolls the transaction back.
        Some(Uncommitted::Transaction(_)) if is_server_failure(&outcome) => return Ok(outcome),
        Some(Uncommitted::Transaction(tx)) => {
            commit(tx, audit.record(kernel, &outcome, stored), is_unrecorded).boxed().await?;
        }
        // A failure after a first commit is recorded, and the request stays in progress until it is released.
        None if audit.is_mutating() && (!is_unrecorded || unit.is_committed()) => {
            let record = audit.record(kernel, &outcome, stored.filter(|_| !is_unrecorded));
            kernel.audit.write(&kernel.db, record).boxed().await?;
        }
        None => {}
    }
    unit.run_after_commit().await;
    Ok(outcome)
}

/// Checks the precondition of a request that committed nothing, such as a change without effect.
///
/// Precedence: 403 and 404 win over 412, and 412 wins over 400 and 409.
async fn check_precondition(unit: &UnitOfWork, outcome: ResponseResult) -> ResponseResult {
    let wins = |error: &ApiError| ![StatusCode::BAD_REQUEST, StatusCode::CONFLICT].contains(&error.status());
    if let Some(precondition) = unit.precondition()
        && !outcome.as_ref().is_err_and(wins)
    {
        precondition.check_once().await?;
    }
    outcome
}

/// Adds the audit record and the stored response to the transaction of the change, and commits it.
async fn commit(mut tx: Tx, record: AuditRecord, is_unrecorded: bool) -> Result<()> {
    if is_unrecorded {
        // The payment gateway has failed: the request may be sent again.
        audit::insert(&mut tx, &record.entry).await?;
        if let Some((request, _)) = &record.stored {
            request.release(&mut tx).await?;
        }
    } else {
        audit::insert_records(&mut tx, [&record]).await?;
    }
    tx.commit().await
}

/// Returns the response in the form in which it is stored, and the outcome unchanged.
async fn store_response(outcome: ResponseResult) -> Result<(StoredResponse, ResponseResult)> {
    match outcome {
        Ok(response) => {
            let (stored, response) = StoredResponse::of(response).await?;
            Ok((stored, Ok(response)))
        }
        Err(error) => Ok((StoredResponse::from_error(&error)?, Err(error))),
    }
}

fn status(outcome: &ResponseResult) -> StatusCode {
    outcome.as_ref().map_or_else(ApiError::status, Response::status)
}

/// Returns whether the outcome is neither audited nor stored: a failure, which is in the log, or a rejection by the rate limit.
fn is_unrecorded(outcome: &ResponseResult) -> bool {
    matches!(status(outcome).as_u16(), 429 | 500..)
}

/// Returns whether the server has failed, so that nothing may have been changed.
fn is_server_failure(outcome: &ResponseResult) -> bool {
    outcome.as_ref().is_err_and(|error| matches!(error.code(), Code::SERVER_ERROR | Code::SERVER_UNAVAILABLE))
}
