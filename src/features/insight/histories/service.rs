//! Reading histories. The lists come from the features that own them.

use boxoffice_http::error::Result;

use super::model::{AccountHistory, OrderHistory};
use crate::features::identity::accounts::{self, AccountNumber};
use crate::features::insight::audit_log;
use crate::features::sales::transfers::{self, TransferFilter};
use crate::features::sales::{ledger, orders, payments, tickets};
use crate::kernel::auth::Caller;
use crate::kernel::types::id::Id;
use crate::kernel::types::paging::{PageRequest, SortOrder};
use crate::state::Ctx;

/// Largest number of entries of each list.
const ENTRIES: u32 = 50;

pub async fn order(ctx: &Ctx, caller: &Caller, id: Id) -> Result<OrderHistory> {
    let paging = PageRequest::new(1, ENTRIES);
    let order = orders::get(ctx, caller, id).await?;
    let resources = ["", "/cancellations", "/payments", "/returns", "/voids"];
    let resources = resources.into_iter().map(|action| format!("/orders/{id}{action}")).collect();
    Ok(OrderHistory {
        order,
        payments: payments::list(ctx, caller, id, paging).await?,
        returns: orders::list_returns(ctx, caller, id, paging).await?,
        voids: orders::list_voids(ctx, caller, id, paging).await?,
        transactions: ledger::list_of_order(ctx, id, paging).await?,
        tickets: tickets::list_of_order(ctx, caller, id, paging).await?,
        transfers: transfers::list_of_order(ctx, caller, id, paging).await?,
        audit: audit_log::list_of_resources(ctx, resources, paging).await?,
    })
}

pub async fn account(ctx: &Ctx, caller: &Caller, number: &AccountNumber) -> Result<AccountHistory> {
    let paging = PageRequest::new(1, ENTRIES);
    let of_transfers = TransferFilter { paging, status: None, direction: None };
    Ok(AccountHistory {
        account: accounts::get(ctx, caller, number).await?,
        orders: orders::list_newest_of_account(ctx, caller, number, paging).await?,
        tickets: tickets::list_of_account(ctx, caller, number, paging).await?,
        transfers: transfers::list_of_account(ctx, caller, number, &of_transfers, SortOrder::Desc).await?,
        audit: audit_log::list_of_account(ctx, number, paging).await?,
    })
}
