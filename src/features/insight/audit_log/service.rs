//! Reading the audit log.

use boxoffice_http::error::Result;

use super::model::{AuditEntry, AuditFilter, AuditRow};
use super::store;
use crate::features::identity::accounts::{self, AccountNumber};
use crate::kernel::db::read_from_standby;
use crate::kernel::types::paging::{Page, PageRequest};
use crate::state::Ctx;

pub async fn list(ctx: &Ctx, filter: &AuditFilter) -> Result<Page<AuditEntry>> {
    filter.period.check()?;
    let page = read_from_standby!(ctx.unit, |reader| {
        let account = accounts::id_for_filter(reader, filter.account.as_ref()).await?;
        store::list(reader, filter, account).await
    })?;
    Ok(page.map(AuditRow::view))
}

/// Lists the entries of requests by an account, the newest first.
pub async fn list_of_account(ctx: &Ctx, number: &AccountNumber, paging: PageRequest) -> Result<Page<AuditEntry>> {
    let filter = AuditFilter { paging, account: Some(number.clone()), ..AuditFilter::default() };
    list(ctx, &filter).await
}

/// Lists the entries of requests to these resources, the newest first.
pub async fn list_of_resources(ctx: &Ctx, resources: Vec<String>, paging: PageRequest) -> Result<Page<AuditEntry>> {
    Ok(store::list_of_resources(&mut ctx.unit.read().await?, resources, paging).await?.map(AuditRow::view))
}
