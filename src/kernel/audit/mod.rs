//! The audit trail: who did what to which resource when, and what came of it.
//!
//! It names identifiers alone. The caller's address is left out: it is personal data, and would stay after the account is erased;
//! whoever has to find it has the request's identifier for the log of the proxy.

use crate::kernel::types::clock::Timestamp;
use crate::kernel::types::id::Id;
use crate::kernel::db::Tx;
use boxoffice_http::error::{Code, Result};

/// A row of the trail.
#[derive(Debug, Clone)]
pub struct AuditEntry {
    /// When it was answered.
    pub at: Timestamp,
    /// The key that was used.
    pub key: Id,
    /// The account that the key acts for.
    pub account: Option<Id>,
    /// The operation's name in the contract.
    pub operation: String,
    /// The path that was asked for, with what is secret in it, or no identifier, replaced by its name in braces.
    pub resource: String,
    /// The request's identifier.
    pub request: String,
    /// The status that was answered.
    pub status: u16,
    /// The error, where it was refused.
    pub code: Option<Code>,
}

/// Adds rows to the trail.
///
/// # Errors
/// When the database fails.
pub(super) async fn insert<'a>(tx: &mut Tx, entries: impl IntoIterator<Item = &'a AuditEntry>) -> Result<()> {
    let into = "audit (at, key_id, account_id, operation, resource, status, code, request)";
    tx.insert_rows(into, entries, |entry, values| {
        values.bind(entry.at).bind(entry.key).bind(entry.account).bind(entry.operation.clone()).bind(entry.resource.clone());
        values.bind(i64::from(entry.status)).bind(entry.code.map(Code::as_str)).bind(entry.request.clone());
    })
    .await
}
