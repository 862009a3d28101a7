//! Complimentary orders: tickets that a host gives to an account without a charge.

use std::collections::BTreeSet;
use std::net::IpAddr;

use boxoffice_http::error::{Error, FieldError, Result, ensure_no_field_errors};
use boxoffice_http::rate_limit::Attempt;
use schemars::JsonSchema;
use serde::Deserialize;

use super::model::{Items, Order};
use super::placement;
use super::pricing::section_ids;
use crate::features::catalog::events;
use crate::features::catalog::sections::{self, SectionUri};
use crate::features::identity::accounts::{self, AccountNumber};
use crate::kernel::auth::Caller;
use crate::kernel::db::Tx;
use crate::kernel::types::id::Id;
use crate::state::Ctx;

#[derive(Debug, Deserialize, JsonSchema)]
pub struct ComplimentaryOrderCreate {
    pub account: Option<AccountNumber>,
    #[schemars(length(min = 1, max = 254))]
    pub email: Option<String>,
    pub items: Items,
}

/// Issues tickets of an event to an account. They take places like all others, and count for the maximum of the account. Sections
/// that are inactive or not on sale have them, too.
///
/// A rejection reveals if an e-mail address has an account, so it is counted; a success costs places and is not. The request is
/// counted after the account was looked up and not before, so that many successful requests at the same time aren't limited.
pub async fn create(ctx: &Ctx, caller: Caller, address: IpAddr, event: Id, request: ComplimentaryOrderCreate) -> Result<Order> {
    let (recipient, others) = {
        let mut tx = ctx.unit.read().await?;
        events::load_managed(&mut tx, &caller, event).await?;
        let recipient = find_recipient(&mut tx, &request).await?;
        let sections = sections::find_by_ids(&mut tx, section_ids(&request.items).collect::<BTreeSet<Id>>(), ctx.app.clock.now());
        let sections = sections.await?;
        let is_of_event = |key: &str| {
            let uri = SectionUri::parse(key);
            uri.is_some_and(|uri| {
                sections.get(&uri.section).is_some_and(|section| uri.names(section) && section.event_id == event)
            })
        };
        let others: Vec<&str> = request.items.0.iter().map(|(key, _)| key.as_str()).filter(|key| !is_of_event(key)).collect();
        let detail = format!("names no section of this event (at {})", others.join(", "));
        (recipient, (!others.is_empty()).then(|| FieldError::invalid("items", detail)))
    };
    let is_by_email = request.email.is_some();
    let begin = || if is_by_email { ctx.app.attempts.begin_name(&caller, address) } else { Ok(Vec::new()) };
    let attempts = begin()?;
    let recipient = match recipient {
        Ok(recipient) => {
            ensure_no_field_errors(others.into_iter().collect())?;
            recipient
        }
        Err(problem) => return Err(Error::Invalid(others.into_iter().chain([problem]).collect())),
    };
    attempts.into_iter().for_each(Attempt::forgive);
    let placed = placement::place_complimentary(ctx, caller.clone(), recipient, request.items).await;
    if placed.is_err() {
        begin()?;
    }
    placed
}

/// Returns the account that the request names by its number or its e-mail address.
async fn find_recipient(tx: &mut Tx, request: &ComplimentaryOrderCreate) -> Result<Result<Id, FieldError>> {
    Ok(match (&request.account, &request.email) {
        (Some(number), None) => {
            let account = accounts::find_by_number(tx, number).await?;
            match account {
                None => Err(FieldError::invalid("account", "names no account")),
                Some(account) if !account.activated => Err(FieldError::invalid("account", "names no active account")),
                Some(account) => Ok(account.id),
            }
        }
        (None, Some(email)) => {
            let account = accounts::id_of_email(tx, email).await?;
            account.ok_or_else(|| FieldError::invalid("email", "belongs to no active account"))
        }
        (Some(_), Some(_)) => Err(FieldError::invalid("email", "must be absent if account is given")),
        (None, None) => Err(FieldError::missing("account")),
    })
}
