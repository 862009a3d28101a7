//! Voids of an order: requests, responses, and reading them.

use boxoffice_http::error::Result;
use boxoffice_http::string_newtype;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::model::{RevocationRow, uri};
use super::{revocation_store, service};
use crate::kernel::auth::Caller;
use crate::kernel::types::api_types::{DateTime, Uri};
use crate::kernel::types::id::Id;
use crate::kernel::types::paging::{Page, PageRequest};
use crate::state::Ctx;

string_newtype!(
    /// The reason for voiding an order.
    VoidReason, None, None, Some(1), Some(2000)
);

/// A void in a response.
#[derive(Debug, Serialize, JsonSchema)]
pub struct OrderVoid {
    /// The order.
    pub order: Uri,
    /// The number of tickets.
    pub tickets: i64,
    /// The reason.
    pub reason: String,
    /// The time of the void.
    pub voided: DateTime,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub struct OrderVoidCreate {
    pub reason: VoidReason,
}

pub async fn list(ctx: &Ctx, caller: &Caller, order: Id, paging: PageRequest) -> Result<Page<OrderVoid>> {
    let mut reader = ctx.unit.read().await?;
    service::load_for_payments(&mut reader, caller, order).await?;
    let page = revocation_store::list_voids(&mut reader, order, paging).await?;
    Ok(page.map(view))
}

fn view(row: RevocationRow) -> OrderVoid {
    OrderVoid { order: uri(row.order_id), tickets: row.tickets, reason: row.reason, voided: DateTime::from(row.revoked) }
}
