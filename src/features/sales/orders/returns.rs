//! Returns of an order: requests, responses, and reading them.

use boxoffice_http::error::{Error, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::model::{RevocationRow, uri};
use super::{revocation_store, service};
use crate::features::sales::tickets::SerialInput;
use crate::kernel::auth::Caller;
use crate::kernel::types::api_types::{DateTime, NullableField, Uri};
use crate::kernel::types::id::{Id, IdText};
use crate::kernel::types::money::Money;
use crate::kernel::types::paging::{Page, PageRequest};
use crate::state::Ctx;

/// A return in a response.
#[derive(Debug, Serialize, JsonSchema)]
pub struct OrderReturn {
    /// The URI.
    #[serde(rename = "self")]
    pub uri: Uri,
    /// The number.
    pub number: IdText,
    /// The order.
    pub order: Uri,
    /// The number of tickets.
    pub tickets: i64,
    /// The refunds, made or scheduled, including fees; `None` for a return of an earlier version.
    pub amount: NullableField<Money>,
    /// The reason, or empty.
    pub reason: String,
    /// The time of the return.
    pub returned: DateTime,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub struct OrderReturnCreate {
    #[schemars(length(min = 1, max = 50))]
    pub tickets: Option<Vec<SerialInput>>,
    #[schemars(length(max = 2000))]
    pub reason: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub struct OrderReturnPath {
    pub order: IdText,
    pub entry: Id,
}

pub async fn list(ctx: &Ctx, caller: &Caller, order: Id, paging: PageRequest) -> Result<Page<OrderReturn>> {
    let mut reader = ctx.unit.read().await?;
    service::load_for_payments(&mut reader, caller, order).await?;
    let page = revocation_store::list_returns(&mut reader, order, paging).await?;
    Ok(page.map(view))
}

pub async fn get(ctx: &Ctx, caller: &Caller, order: Id, id: Id) -> Result<OrderReturn> {
    let mut reader = ctx.unit.read().await?;
    service::load_for_payments(&mut reader, caller, order).await?;
    Ok(view(revocation_store::find_return(&mut reader, order, id).await?.ok_or(Error::NOT_FOUND)?))
}

fn view(row: RevocationRow) -> OrderReturn {
    OrderReturn {
        uri: Uri(format!("{}/returns/{}", uri(row.order_id).0, row.id)),
        number: IdText(row.id),
        order: uri(row.order_id),
        tickets: row.tickets,
        amount: NullableField(row.amount),
        reason: row.reason,
        returned: DateTime::from(row.revoked),
    }
}
