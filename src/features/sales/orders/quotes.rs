//! Quotes: the price of an order, without placing it.

use std::collections::{BTreeSet, HashMap};

use boxoffice_http::error::{Error, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::model::{EventSaleRow, Items, OrderItem};
use super::pricing::{Line, check_on_sale, price_items, section_ids, sold_out};
use super::{service, store, waiting_list};
use crate::features::catalog::sections;
use crate::kernel::auth::Caller;
use crate::kernel::types::id::Id;
use crate::kernel::types::money::Money;
use crate::state::Ctx;

#[derive(Debug, Deserialize, JsonSchema)]
pub struct QuoteCreate {
    pub items: Items,
}

/// A quote in a response.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Quote {
    /// The price of all tickets, without fees.
    pub subtotal: Money,
    /// The convenience fees of all tickets.
    pub fees: Money,
    /// The amount to pay.
    pub total: Money,
    /// The items, in the order of the request.
    pub items: Vec<OrderItem>,
}

/// Returns the prices, price modifiers and fees that an order of these items would get now. Rejects items that it would reject,
/// except for the limits of an account. Places that a waiting list has offered to the caller's account are not sold out for it.
pub async fn create(ctx: &Ctx, caller: &Caller, request: &QuoteCreate) -> Result<Quote> {
    let now = ctx.app.clock.now();
    let mut reader = ctx.unit.read().await?;
    let sections = sections::find_with_modifiers(&mut reader, section_ids(&request.items).collect::<BTreeSet<Id>>(), now).await?;
    let items = price_items(&ctx.app, None, &sections, &request.items, now).map_err(|problem| Error::Invalid(vec![problem]))?;
    let events = store::event_sale_status(&mut reader, items.events().collect::<BTreeSet<Id>>()).await?;
    let events: HashMap<Id, EventSaleRow> = events.into_iter().map(|event| (event.id, event)).collect();
    items.require(|line| events.contains_key(&line.section.event_id))?;
    let with_event = |line| -> Option<(&Line<'_>, &EventSaleRow)> { Some((line, events.get(&line.section.event_id)?)) };
    let lines: Vec<(&Line<'_>, &EventSaleRow)> = items.lines.iter().filter_map(with_event).collect();
    lines.iter().try_for_each(|(line, event)| check_on_sale(line.section, event, now))?;
    let mut short: Vec<_> = lines.iter().filter(|(line, _)| line.section.remaining() < line.quantity).collect();
    if let Some(account) = caller.account.filter(|_| !short.is_empty()) {
        let sections = short.iter().map(|(line, _)| line.section.id).collect();
        let offers = waiting_list::offers_of(&mut reader, [account], sections, now).await?;
        let offered = |section: Id| offers.iter().find(|offer| offer.section_id == section).map_or(0, |offer| offer.quantity);
        short.retain(|(line, _)| line.section.remaining() + offered(line.section.id) < line.quantity);
    }
    if let Some((line, event)) = short.into_iter().min_by_key(|(line, _)| line.section.id) {
        return Err(sold_out(line.section, event, line.section.left() >= line.quantity));
    }
    let item = |line: &Line<'_>| {
        let (section, modifiers) = (line.section, line.unit.modifiers.iter().copied());
        service::item_view(section.event_id, section.id, line.quantity, line.unit.price, modifiers)
    };
    Ok(Quote {
        subtotal: items.subtotal,
        fees: items.fees,
        total: items.subtotal + items.fees,
        items: items.lines.iter().map(item).collect(),
    })
}
