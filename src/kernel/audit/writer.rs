//! Writes audit records of requests that changed nothing. They come in bursts when a section is sold out: all that wait are
//! committed in one transaction.

use std::slice;
use std::sync::Arc;

use boxoffice_http::error::{Code, Result};

use super::{AuditRecord, insert_records};
use crate::kernel::db::{Batcher, Db, Tx, transaction};
use crate::kernel::idempotency::{IdempotentRequest, PreviousOutcome};

/// Records in a batch.
const MAX_RECORDS: usize = 1000;

/// The outcome of an earlier request with the same `Idempotency-Key`, if there was one; then nothing is written.
type WriteResult = Result<Option<PreviousOutcome>>;

/// Writes audit records in batches.
pub struct AuditWriter(Arc<Batcher<(), AuditRecord, WriteResult>>);

impl Default for AuditWriter {
    fn default() -> Self {
        Self(Batcher::of(MAX_RECORDS))
    }
}

impl AuditWriter {
    /// Writes a record and waits until it is committed.
    pub async fn write(&self, db: &Db, record: AuditRecord) -> WriteResult {
        if record.entry.is_none() && record.stored.is_none() {
            return Ok(None);
        }
        let db = db.clone();
        self.0.submit((), record, move |(), records| write_all(db.clone(), records)).await?
    }
}

async fn write_all(db: Db, records: Vec<AuditRecord>) -> Result<Vec<WriteResult>> {
    match transaction!(db, |tx| write(tx, &records).await) {
        Ok(previous) => Ok(previous.into_iter().map(Ok).collect()),
        Err(error) if error.is_definite() && records.len() > 1 => Ok(write_each(&db, &records).await),
        Err(error) => Err(error),
    }
}

/// Writes each record in a transaction of its own, because the database has rejected one of them. Stops at the first failure
/// after which the database is not available.
async fn write_each(db: &Db, records: &[AuditRecord]) -> Vec<WriteResult> {
    let mut outcomes: Vec<WriteResult> = Vec::with_capacity(records.len());
    for record in records {
        if outcomes.last().is_some_and(|last| last.as_ref().is_err_and(|error| !error.is_definite())) {
            outcomes.push(Err(Code::SERVER_UNAVAILABLE.into()));
            continue;
        }
        let written = transaction!(db, |tx| write(tx, slice::from_ref(record)).await);
        outcomes.push(written.map(|previous| previous.into_iter().next().flatten()));
    }
    outcomes
}

async fn write(tx: &mut Tx, records: &[AuditRecord]) -> Result<Vec<Option<PreviousOutcome>>> {
    let requests: Vec<Option<&IdempotentRequest>> =
        records.iter().map(|record| record.stored.as_ref().map(|(request, _)| &**request)).collect();
    let previous = IdempotentRequest::claim_all(tx, &requests).await?;
    let new = records.iter().zip(&previous).filter(|(_, previous)| previous.is_none()).map(|(record, _)| record);
    insert_records(tx, new).await?;
    Ok(previous)
}
