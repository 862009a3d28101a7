//! SQL that reads the audit log.

use boxoffice_http::error::Result;

use super::model::{AuditFilter, AuditRow, Outcome};
use crate::kernel::db::Tx;
use crate::kernel::types::id::Id;
use crate::kernel::types::paging::PagedRows;

/// Returns a page of entries, the newest first.
pub async fn list(tx: &mut Tx, filter: &AuditFilter, account: Option<Id>) -> Result<PagedRows<AuditRow>> {
    let entries = tx.list(
        "t.at, t.key_id, a.number, t.operation, t.resource, t.status, t.code, t.request",
        "from audit t left join accounts a on a.id = t.account_id where true",
    );
    let entries = match filter.outcome {
        Some(Outcome::Done) => entries.push(" and t.status < 400"),
        Some(Outcome::Refused) => entries.push(" and t.status >= 400"),
        None => entries,
    };
    entries
        .and_where("t.at >= ?", filter.period.start())
        .and_where("t.at < ?", filter.period.end())
        .and_where("t.account_id = ?", account)
        .and_where("t.key_id = ?", filter.key)
        .and_where("t.operation = ?", filter.operation.clone())
        .and_where("t.resource = ?", filter.resource.clone())
        .page("t.id desc", filter.paging)
        .await
}
