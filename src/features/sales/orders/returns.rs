//! Returns of an order: requests, responses, and reading them.

use boxoffice_http::error::{Error, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::model::uri;
use super::{revocation_store, service};
use crate::features::sales::tickets::SerialInput;
use crate::kernel::auth::Caller;
use crate::kernel::types::api_types::{DateTime, NullableField, Uri};
use crate::kernel::types::clock::Timestamp;
use crate::kernel::types::id::{Id, IdText};
use crate::kernel::types::money::Money;
use crate::kernel::types::paging::{Page, PageRequest};
use crate::kernel::types::stored_text::stored_as_text;
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

/// The type of a revocation.
#[derive(Debug, Clone, Copy, strum::EnumString, strum::IntoStaticStr)]
pub enum RevocationType {
    /// Tickets were returned and refunded.
    Return,
    /// The order was voided without a refund.
    Void,
}

stored_as_text!(RevocationType);

/// A row of `revocations`: a return or a void of tickets of a fulfilled order.
#[derive(Debug, sqlx_macros::FromRow)]
pub struct Revocation {
    /// The identifier.
    pub id: Id,
    /// The order.
    pub order_id: Id,
    /// The number of tickets.
    pub tickets: i64,
    /// The refunds, made or scheduled, including fees; `None` for a void, and for a return of an earlier version.
    pub amount: Option<Money>,
    /// The reason, or empty.
    pub reason: String,
    /// The account of the caller, if its key acts for one.
    pub account_id: Option<Id>,
    /// The time.
    pub revoked: Timestamp,
}

impl Revocation {
    /// Returns a return as a response.
    pub fn view(self) -> OrderReturn {
        OrderReturn {
            uri: Uri(format!("{}/returns/{}", uri(self.order_id).0, self.id)),
            number: IdText(self.id),
            order: uri(self.order_id),
            tickets: self.tickets,
            amount: NullableField(self.amount),
            reason: self.reason,
            returned: DateTime(self.revoked.format_rfc3339()),
        }
    }
}

pub async fn list(ctx: &Ctx, caller: &Caller, order: Id, paging: PageRequest) -> Result<Page<OrderReturn>> {
    let mut tx = ctx.unit.read().await?;
    service::find_with_payments(&mut tx, caller, order).await?;
    let page = revocation_store::list_returns(&mut tx, order, paging).await?;
    Ok(page.map(Revocation::view))
}

pub async fn get(ctx: &Ctx, caller: &Caller, order: Id, id: Id) -> Result<OrderReturn> {
    let mut tx = ctx.unit.read().await?;
    service::find_with_payments(&mut tx, caller, order).await?;
    Ok(revocation_store::find_return(&mut tx, order, id).await?.ok_or(Error::NOT_FOUND)?.view())
}
