//! SQL that reads the audit log.

use boxoffice_http::error::Result;

use super::model::{AuditFilter, AuditOutcome, AuditRow, KeyFilter};
use crate::kernel::db::{Reader, Tx, define_sql};
use crate::kernel::types::clock::Timestamp;
use crate::kernel::types::id::Id;
use crate::kernel::types::paging::{PageRequest, PagedRows};

// The columns of `AuditRow`.
define_sql!(columns, "t.id, t.at, t.key_id, a.number, t.operation, t.resource, t.status, t.code, t.request, t.count, t.operator");

/// Returns a page of the entries of these resources, the newest first.
pub async fn list_of_resources(reader: &mut Reader, resources: Vec<String>, paging: PageRequest) -> Result<PagedRows<AuditRow>> {
    let entries = reader.list(columns!(), "from audit t left join accounts a on a.id = t.account_id where true");
    entries.and_in("t.resource", resources).page("t.id desc", paging).await
}

/// Returns a page of entries, the newest first.
pub async fn list(reader: &mut Reader, filter: &AuditFilter, account: Option<Id>) -> Result<PagedRows<AuditRow>> {
    let entries = reader.list(columns!(), "from audit t left join accounts a on a.id = t.account_id where true");
    let entries = match filter.outcome {
        Some(AuditOutcome::Done) => entries.push(" and t.status < 400"),
        Some(AuditOutcome::Refused) => entries.push(" and t.status >= 400"),
        None => entries,
    };
    entries
        .and_where("t.at >= ?", filter.period.start())
        .and_where("t.at < ?", filter.period.end())
        .and_where("t.account_id = ?", account)
        .and_where("t.key_id = ?", filter.key.map(|KeyFilter(key)| key))
        .and_where("t.operation = ?", filter.operation.clone())
        .and_where("t.resource = ?", filter.resource.clone())
        .page("t.id desc", filter.paging)
        .await
}

/// Returns the oldest entries before this time, at most `limit`.
pub async fn oldest_before(reader: &mut Reader, before: Timestamp, limit: i64) -> Result<Vec<AuditRow>> {
    let oldest = concat!(
        "select ",
        columns!(),
        " from audit t left join accounts a on a.id = t.account_id where t.at < $1 order by t.at, t.id limit $2"
    );
    reader.query(oldest).bind(before).bind(limit).all().await
}

/// Deletes these entries, which are older than `before`. The database rejects the deletion of all others.
pub async fn delete(tx: &mut Tx, ids: Vec<Id>, before: Timestamp) -> Result<u64> {
    tx.query("update audit_retention set deletable_before = $1").bind(before).execute().await?;
    let deleted = tx.delete("audit where true").and_in("id", ids).rows_affected().await?;
    tx.query("update audit_retention set deletable_before = 0").execute().await?;
    Ok(deleted)
}
