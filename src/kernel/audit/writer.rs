//! Writes audit records of requests that changed nothing. They come in bursts when a section is sold out: all that wait are
//! committed in one transaction.

use std::slice;
use std::sync::Arc;

use boxoffice_http::error::{Code, Result};

use super::{AuditRecord, insert_records};
use crate::kernel::db::{Batcher, Db, Tx, transaction};
use crate::kernel::idempotency::IdempotentRequest;

/// Records in a batch.
const MAX_RECORDS: usize = 1000;

/// Writes audit records in batches.
pub struct AuditWriter(Arc<Batcher<(), AuditRecord, Result<()>>>);

impl Default for AuditWriter {
    fn default() -> Self {
        Self(Batcher::of(MAX_RECORDS))
    }
}

impl AuditWriter {
    /// Writes a record and waits until it is committed.
    ///
    /// # Errors
    /// Returns an error if the database fails, or if an earlier attempt has [claimed](IdempotentRequest::claim) the request.
    pub async fn write(&self, db: &Db, record: AuditRecord) -> Result<()> {
        if record.entry.is_none() && record.stored.is_none() {
            return Ok(());
        }
        let db = db.clone();
        self.0.submit((), record, move |(), records| write_all(db.clone(), records)).await?
    }
}

async fn write_all(db: Db, records: Vec<AuditRecord>) -> Result<Vec<Result<()>>> {
    match transaction!(db, |tx| write(tx, &records).await) {
        Err(error) if error.is_definite() && records.len() > 1 => Ok(write_each(&db, &records).await),
        written => written,
    }
}

/// Writes each record in a transaction of its own, because the database has rejected one of them. Stops at the first failure
/// after which the database is not available.
async fn write_each(db: &Db, records: &[AuditRecord]) -> Vec<Result<()>> {
    let mut outcomes: Vec<Result<()>> = Vec::with_capacity(records.len());
    for record in records {
        if outcomes.last().is_some_and(|last| last.as_ref().is_err_and(|error| !error.is_definite())) {
            outcomes.push(Err(Code::SERVER_UNAVAILABLE.into()));
            continue;
        }
        let written = transaction!(db, |tx| write(tx, slice::from_ref(record)).await);
        outcomes.push(written.and_then(|written| written.into_iter().collect()));
    }
    outcomes
}

async fn write(tx: &mut Tx, records: &[AuditRecord]) -> Result<Vec<Result<()>>> {
    let requests: Vec<Option<&IdempotentRequest>> =
        records.iter().map(|record| record.stored.as_ref().map(|(request, _)| &**request)).collect();
    let claims = IdempotentRequest::claim_all(tx, &requests).await?;
    let new = records.iter().zip(&claims).filter(|(_, claim)| claim.is_ok()).map(|(record, _)| record);
    insert_records(tx, new).await?;
    Ok(claims)
}
