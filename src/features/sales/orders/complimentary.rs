//! Complimentary orders: tickets that a host gives to an account or an e-mail address without a charge.

use std::collections::BTreeSet;

use boxoffice_http::error::{Error, FieldError, Result};
use boxoffice_http::rate_limit::CountedUse;
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
use crate::kernel::db::Reader;
use crate::kernel::types::id::Id;
use crate::state::Ctx;

#[derive(Debug, Deserialize, JsonSchema)]
pub struct ComplimentaryOrderCreate {
    pub account: Option<AccountNumber>,
    #[schemars(email, length(max = 254))]
    pub email: Option<String>,
    pub items: Items,
}

/// Issues tickets of an event to an account, or to an e-mail address, for which it creates an account if there is none. They take places
/// like all others, and count for the maximum of the account. Sections that are inactive or not on sale have them, too.
///
/// Requests with an e-mail address are limited. Those that create an account are counted, and those whose rejection reveals that the
/// address has a deactivated one.
pub async fn create(ctx: &Ctx, caller: Caller, event: Id, request: ComplimentaryOrderCreate) -> Result<Order> {
    let (account, items) = {
        let mut reader = ctx.unit.read().await?;
        events::load_managed(&mut reader, &caller, event).await?;
        let account = find_account(&mut reader, &request).await?;
        let now = ctx.app.clock.now();
        let sections = sections::find_all(&mut reader, section_ids(&request.items).collect::<BTreeSet<Id>>(), now).await?;
        (account, price_items(&ctx.app, Some(event), &sections, &request.items, now).err())
    };
    let counted = match caller.account {
        Some(account) if request.email.is_some() && !caller.is_administrator() => Some(ctx.app.limits.guests.count(account)?),
        _ => None,
    };
    let (is_new, is_revealed) = (account == Ok(None), account.is_err() && request.account.is_none());
    let placed = match (account, items) {
        (Ok(account), None) => {
            let recipient = recipient(ctx, account, request.email).await?;
            placement::place_complimentary(ctx, caller, recipient, request.items).await
        }
        (account, items) => Err(Error::Invalid(items.into_iter().chain(account.err()).collect())),
    };
    if !is_revealed && (!is_new || placed.is_err()) {
        counted.into_iter().for_each(CountedUse::release);
    }
    placed
}

/// Returns the account that the request names by its number or its e-mail address; `None` for an address without an account.
async fn find_account(reader: &mut Reader, request: &ComplimentaryOrderCreate) -> Result<Result<Option<Id>, FieldError>> {
    let (argument, account) = match (&request.account, &request.email) {
        (Some(number), None) => match accounts::find_by_number(reader, number).await? {
            None => return Ok(Err(FieldError::invalid("account", "names no account"))),
            Some(account) => ("account", account),
        },
        (None, Some(email)) => match accounts::find_by_emails(reader, [email.as_str()]).await?.pop() {
            None => return Ok(Ok(None)),
            Some(account) => ("email", account),
        },
        (Some(_), Some(_)) => return Ok(Err(FieldError::invalid("email", "must be absent if account is given"))),
        (None, None) => return Ok(Err(FieldError::missing("account"))),
    };
    let active = account.activated.then_some(Some(account.id));
    Ok(active.ok_or_else(|| FieldError::invalid(argument, "names no active account")))
}

/// Returns the recipient: the account, or the e-mail address, whose account may be another one when the order is placed.
async fn recipient(ctx: &Ctx, account: Option<Id>, email: Option<String>) -> Result<TicketRecipient> {
    Ok(match (account, email) {
        (_, Some(email)) => TicketRecipient::Email(Box::new(accounts::prepare_guest(&ctx.app, email).await?)),
        (account, None) => TicketRecipient::Account(account.ok_or(Error::NOT_FOUND)?),
    })
}
