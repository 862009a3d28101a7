//! Counts of rejected requests with public keys. Such a key is not secret, so an entry for each rejection would let a client
//! without an account fill the audit log. The access log has a line for each of them.

use std::collections::HashMap;

use boxoffice_http::error::{Code, Result};
use parking_lot::Mutex;

use super::{NewAuditEntry, insert};
use crate::kernel::Kernel;
use crate::kernel::db::transaction;
use crate::kernel::types::id::Id;

/// The rejections that share an entry.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Kind {
    key: Id,
    operation: String,
    code: Option<&'static str>,
}

/// The rejections since the last entries. Their number of kinds is bounded by those of keys, operations and codes.
#[derive(Debug, Default)]
pub struct RejectionCounts(Mutex<HashMap<Kind, NewAuditEntry>>);

impl RejectionCounts {
    /// Counts a rejected request. Its entry names the resource and the identifier of the last request of its kind.
    pub fn add(&self, entry: NewAuditEntry) {
        let kind = Kind { key: entry.key, operation: entry.operation.clone(), code: entry.code.map(Code::as_str) };
        let mut counts = self.0.lock();
        let count = counts.get(&kind).map_or(0, |counted| counted.count);
        counts.insert(kind, NewAuditEntry { count: count + entry.count, ..entry });
    }
}

/// Job step: writes an entry for each kind of rejection since the last time. Returns 0.
///
/// # Errors
/// Returns an error if the database fails. The rejections stay counted.
pub async fn write_rejections(kernel: &Kernel) -> Result<u64> {
    let counted: Vec<NewAuditEntry> = std::mem::take(&mut *kernel.rejections.0.lock()).into_values().collect();
    if counted.is_empty() {
        return Ok(0);
    }
    let written = transaction!(kernel.db, |tx| insert(tx, &counted).await);
    if written.is_err() {
        counted.into_iter().for_each(|entry| kernel.rejections.add(entry));
    }
    written.map(|()| 0)
}
