//! Complimentary orders: tickets that a host gives to an account or an e-mail address without a charge.

use std::collections::BTreeSet;

use boxoffice_http::error::{Error, FieldError, Result};
use boxoffice_http::rate_limit::Attempt;
use schemars::JsonSchema;
use serde::Deserialize;

use super::guests::TicketRecipient;
use super::model::{Items, Order};
use super::placement;
use super::pricing::{price_items, section_ids};
use crate::features::catalog::events;
use crate::features::catalog::sections;
use crate::features::identity::accounts::{self, AccountNumber};
use crate::kernel::auth::Caller;
use crate::kernel::db::Tx;
use crate::kernel::types::id::Id;
use crate::state::{App, Ctx};

#[derive(Debug, Deserialize, JsonSchema)]
pub struct ComplimentaryOrderCreate {
    pub account: Option<AccountNumber>,
    #[schemars(email, length(max = 254))]
    pub email: Option<String>,
    pub items: Items,
}

/// Issues tickets of an event to an account, or to an e-mail address, for which it creates an account if there is none. They take places
/// like all others, and count for the maximum of the account. Sections that are inactive or not on sale have them, too.
pub async fn create(ctx: &Ctx, caller: Caller, event: Id, request: ComplimentaryOrderCreate) -> Result<Order> {
    let (recipient, items) = {
        let mut tx = ctx.unit.read().await?;
        events::load_managed(&mut tx, &caller, event).await?;
        let recipient = find_recipient(&ctx.app, &mut tx, &request).await?;
        let now = ctx.app.clock.now();
        let sections = sections::find_all(&mut tx, section_ids(&request.items).collect::<BTreeSet<Id>>(), now).await?;
        (recipient, price_items(&ctx.app, Some(event), &sections, &request.items, now).err())
    };
    let recipient = match (recipient, items) {
        (Ok(recipient), None) => recipient,
        (recipient, items) => return Err(Error::Invalid(items.into_iter().chain(recipient.err()).collect())),
    };
    let attempt = match (&recipient, caller.account) {
        (TicketRecipient::Guest(_), Some(account)) if !caller.is_administrator() => Some(ctx.app.attempts.guests.begin(account)?),
        _ => None,
    };
    let placed = placement::place_complimentary(ctx, caller, recipient, request.items).await;
    if placed.is_err() {
        attempt.into_iter().for_each(Attempt::forgive);
    }
    placed
}

/// Returns the account that the request names by its number or its e-mail address, or a guest for the address.
async fn find_recipient(
    app: &App,
    tx: &mut Tx,
    request: &ComplimentaryOrderCreate,
) -> Result<Result<TicketRecipient, FieldError>> {
    let (argument, account) = match (&request.account, &request.email) {
        (Some(number), None) => match accounts::find_by_number(tx, number).await? {
            None => return Ok(Err(FieldError::invalid("account", "names no account"))),
            Some(account) => ("account", account),
        },
        (None, Some(email)) => match accounts::find_by_emails(tx, [email.as_str()]).await?.pop() {
            None => {
                let guest = accounts::prepare_guest(app, email.clone()).await?;
                return Ok(Ok(TicketRecipient::Guest(Box::new(guest))));
            }
            Some(account) => ("email", account),
        },
        (Some(_), Some(_)) => return Ok(Err(FieldError::invalid("email", "must be absent if account is given"))),
        (None, None) => return Ok(Err(FieldError::missing("account"))),
    };
    let recipient = account.activated.then_some(TicketRecipient::Account(account.id));
    Ok(recipient.ok_or_else(|| FieldError::invalid(argument, "names no active account")))
}
