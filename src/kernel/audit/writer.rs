//! What is kept of requests that changed nothing, which come in stampedes when something is sold out: all that wait are committed
//! in one transaction, and each waits for its commit.

use std::slice;
use std::sync::Arc;

use super::answer::StoredResponse;
use super::idempotency::{IdempotentRequest, PreviousOutcome};
use super::trail::{self, AuditEntry};
use crate::kernel::db::{Batcher, Db, Tx, transaction};
use boxoffice_http::error::{Code, Result};

/// Requests that are written down at a time, at the most.
const BATCH: usize = 1000;

/// What is to be kept of one request.
pub struct AuditRecord {
    /// Its row of the audit trail.
    pub entry: AuditEntry,
    /// Its answer, where it carried an `Idempotency-Key`.
    pub answer: Option<(Arc<IdempotentRequest>, StoredResponse)>,
}

/// What the request is to be answered with instead, where another try of it was first.
type Outcome = Result<Option<PreviousOutcome>>;

/// The requests that wait.
pub struct AuditWriter(Arc<Batcher<(), AuditRecord, Outcome>>);

impl Default for AuditWriter {
    fn default() -> Self {
        Self(Batcher::of(BATCH))
    }
}

impl AuditWriter {
    /// Keeps this of a request for good.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn keep(&self, db: &Db, kept: AuditRecord) -> Outcome {
        let db = db.clone();
        self.0.submit((), kept, move |(), kept| write_together(db.clone(), kept)).await?
    }
}

async fn write_together(db: Db, kept: Vec<AuditRecord>) -> Result<Vec<Outcome>> {
    match transaction!(db, |tx| write(tx, &kept).await) {
        Ok(known) => Ok(known.into_iter().map(Ok).collect()),
        Err(error) if error.is_definite() && kept.len() > 1 => Ok(write_each(&db, &kept).await),
        Err(error) => Err(error),
    }
}

/// Writes each by itself, because there is one among them that the database doesn't take: so that none fails for another. Where
/// the database goes away meanwhile, the others are not tried.
async fn write_each(db: &Db, kept: &[AuditRecord]) -> Vec<Outcome> {
    let mut outcomes: Vec<Outcome> = Vec::with_capacity(kept.len());
    for one in kept {
        if outcomes.last().is_some_and(|last| last.as_ref().is_err_and(|error| !error.is_definite())) {
            outcomes.push(Err(Code::ServerUnavailable.into()));
            continue;
        }
        let written = transaction!(db, |tx| write(tx, slice::from_ref(one)).await);
        outcomes.push(written.map(|known| known.into_iter().next().flatten()));
    }
    outcomes
}

async fn write(tx: &mut Tx, kept: &[AuditRecord]) -> Result<Vec<Option<PreviousOutcome>>> {
    let attempts: Vec<&IdempotentRequest> = kept.iter().filter_map(|kept| Some(&*kept.answer.as_ref()?.0)).collect();
    let mut found = IdempotentRequest::claim_all(tx, &attempts).await?.into_iter();
    let known: Vec<Option<PreviousOutcome>> =
        kept.iter().map(|kept| kept.answer.as_ref().and_then(|_| found.next().flatten())).collect();
    let of_their_own = kept.iter().zip(&known).filter(|(_, known)| known.is_none()).map(|(kept, _)| kept);
    keep(tx, of_their_own).await?;
    Ok(known)
}

/// Writes down what is kept of requests that are their tries' own.
///
/// # Errors
/// When the database fails.
pub(super) async fn keep<'a>(tx: &mut Tx, kept: impl IntoIterator<Item = &'a AuditRecord>) -> Result<()> {
    let kept: Vec<&AuditRecord> = kept.into_iter().collect();
    let answers = kept.iter().filter_map(|kept| kept.answer.as_ref()).map(|(attempt, answer)| (&**attempt, answer));
    IdempotentRequest::keep_all(tx, answers).await?;
    trail::insert(tx, kept.iter().map(|kept| &kept.entry)).await
}
