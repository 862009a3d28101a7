//! The audit log: one record for each request with a mutating method, and for each command of an operator that changes something.
//!
//! Rejected requests with public keys are counted, and have one record for many ([`RejectionCounts`]).
//!
//! It names identifiers only. The client's address is left out because it is personal data and would outlive the account; with
//! the request's identifier it can be found in the access log. The feature `audit_log` reads the records.

pub mod redact;
mod rejections;
mod writer;

use std::sync::Arc;

use boxoffice_http::error::{Code, Result};
pub use rejections::{RejectionCounts, write_rejections};
pub use writer::AuditWriter;

use super::idempotency::{IdempotentRequest, StoredResponse};
use crate::kernel::db::Tx;
use crate::kernel::types::clock::Timestamp;
use crate::kernel::types::id::Id;

/// A row of the audit log.
#[derive(Debug, Clone)]
pub struct NewAuditEntry {
    /// Time of the response.
    pub at: Timestamp,
    /// Identifier of the API key.
    pub key: Id,
    /// The account of the API key.
    pub account: Option<Id>,
    /// The operationId.
    pub operation: String,
    /// The request's path, in which secrets and invalid identifiers are replaced by the parameter's name in braces.
    pub resource: String,
    /// The request's identifier.
    pub request: String,
    /// The response's status.
    pub status: u16,
    /// The error code of a rejected request.
    pub code: Option<Code>,
    /// The number of requests, which is 1 except for counted rejections.
    pub count: i64,
    /// The user of the operating system who ran a command; `None` for a request.
    pub operator: Option<String>,
}

/// Everything that is stored of one request.
pub struct AuditRecord {
    /// Its row of the audit log; `None` if it is only counted.
    pub entry: Option<NewAuditEntry>,
    /// Its response, if it carries an `Idempotency-Key`.
    pub stored: Option<(Arc<IdempotentRequest>, StoredResponse)>,
}

/// Inserts records and their stored responses.
///
/// # Errors
/// Returns an error if the database or the encryption of a response fails.
pub async fn insert_records<'a>(tx: &mut Tx, records: impl IntoIterator<Item = &'a AuditRecord>) -> Result<()> {
    let records: Vec<&AuditRecord> = records.into_iter().collect();
    let responses = records.iter().filter_map(|record| record.stored.as_ref()).map(|(request, stored)| (&**request, stored));
    IdempotentRequest::store_all(tx, responses).await?;
    insert(tx, records.iter().filter_map(|record| record.entry.as_ref())).await
}

/// Inserts rows of the audit log.
pub async fn insert<'a>(tx: &mut Tx, entries: impl IntoIterator<Item = &'a NewAuditEntry>) -> Result<()> {
    let into = "audit (at, key_id, account_id, operation, resource, status, code, request, count, operator)";
    tx.insert_rows(into, entries, |columns| {
        columns
            .add(|entry| entry.at)
            .add(|entry| entry.key)
            .add(|entry| entry.account)
            .add(|entry| entry.operation.clone())
            .add(|entry| entry.resource.clone());
        columns.add(|entry| i64::from(entry.status)).add(|entry| entry.code.map(Code::as_str)).add(|entry| entry.request.clone());
        columns.add(|entry| entry.count).add(|entry| entry.operator.clone());
    })
    .await
}
