//! Placing an order: as a whole or not at all.

use std::collections::{HashMap, HashSet};

use super::model::{AppliedRow, ItemRow, Items, Order, OrderCreate, OrderRow, OrderStatus, Places, SellerRow, TICKETS_MAXIMUM};
use super::{service, settlement, store};
use crate::accounts::{self, AccountNumber};
use crate::app::App;
use crate::auth::Caller;
use crate::base::clock::Timestamp;
use crate::base::id::Id;
use crate::base::money::Money;
use crate::db::{Tx, transaction};
use crate::error::{Code, Error, Problem, Result};
use crate::events::EventStatus;
use crate::sections::{self, SectionRow, SectionUri, UnitPrice};

/// Open orders of an account at the most (decisions).
const OPEN_MAXIMUM: i64 = 10;

/// Tickets of one section that are wanted.
struct Line {
    section: SectionRow,
    quantity: i64,
    unit: UnitPrice,
    unit_fee: Money,
}

/// Places an order.
pub async fn place(app: &App, caller: &Caller, new: &OrderCreate) -> Result<Order> {
    transaction!(app.db, |tx| place_in(app, tx, caller, new).await)
}

async fn place_in(app: &App, tx: &mut Tx, caller: &Caller, new: &OrderCreate) -> Result<Order> {
    let now = app.clock.now();
    let customer = customer(tx, caller, new.customer.as_ref()).await?;
    let (lines, customer) = match (lines(app, tx, &new.items, now).await?, customer) {
        (Ok(lines), Ok(customer)) => (lines, customer),
        (lines, customer) => return Err(Error::Invalid(lines.err().into_iter().chain(customer.err()).collect())),
    };
    let subtotal: Money = lines.iter().map(|line| line.unit.price * line.quantity).sum();
    let fees: Money = lines.iter().map(|line| line.unit_fee * line.quantity).sum();
    // Two orders of one account wait for each other here, so that both cannot be the last one; and its removal waits for the order,
    // or has come before it.
    accounts::lock(tx, customer).await?.ok_or_else(|| Error::invalid("customer", "names no account"))?;
    let free = subtotal + fees == Money::ZERO;
    if free {
        // Its tickets are delivered at once.
        settlement::hold_events(tx, lines.iter().map(|line| line.section.event_id).collect()).await?;
    }
    require_on_sale(tx, &lines, now).await?;
    if !free {
        require_few_open(tx, customer, now).await?;
    }
    take(tx, &lines, free, now).await?;

    let status = if free { OrderStatus::Fulfilled } else { OrderStatus::Placed };
    let expires = now.plus(app.settings.reservation);
    let order = OrderRow::new(app.clock.next_id(), customer, status, expires, (subtotal, fees));
    let items = items(order.id, &lines);
    store::insert(tx, &order, free.then_some(now)).await?;
    store::insert_items(tx, &items).await?;
    store::insert_applied(tx, &applied(order.id, &lines)).await?;
    if free {
        settlement::deliver(app, tx, &order, &items).await?;
    } else {
        store::insert_reservations(tx, &order, &items).await?;
    }
    service::view(tx, caller, order, now).await
}

/// The account that the order is for: the caller's own unless another is named, which only the platform's staff may do.
async fn customer(tx: &mut Tx, caller: &Caller, number: Option<&AccountNumber>) -> Result<Result<Id, Problem>> {
    let Some(number) = number else { return Ok(caller.account.ok_or_else(|| Problem::missing("customer"))) };
    let account = accounts::find_by_number(tx, number).await?.map(|account| account.id);
    if !caller.is_administrator() && (account.is_none() || account != caller.account) {
        return Err(Error::NOT_YOURS);
    }
    Ok(account.ok_or_else(|| Problem::invalid("customer", "names no account")))
}

/// What is wanted, in the order of the request.
async fn lines(app: &App, tx: &mut Tx, items: &Items, now: Timestamp) -> Result<Result<Vec<Line>, Problem>> {
    let wanted: Vec<_> = items.0.iter().map(|(key, quantity)| (key, SectionUri::parse(key), *quantity)).collect();
    let sections = sections::rows(tx, wanted.iter().filter_map(|(_, uri, _)| Some((*uri)?.section)), now).await?;
    let (mut unknown, mut repeated, mut known) = (Vec::new(), Vec::new(), HashSet::new());
    let mut lines = Vec::new();
    for (key, uri, quantity) in wanted {
        let section = uri.and_then(|uri| sections.get(&uri.section).filter(|section| uri.names(section)));
        match section {
            None => unknown.push(key.as_str()),
            Some(section) if !known.insert(section.id) => repeated.push(key.as_str()),
            Some(section) => {
                let unit = sections::unit_price(section, quantity, now);
                let unit_fee = app.settings.fee_steps.fee(unit.price);
                lines.push(Line { section: section.clone(), quantity, unit, unit_fee });
            }
        }
    }
    let mut details = Vec::new();
    if !unknown.is_empty() {
        details.push(format!("names no section (at {})", unknown.join(", ")));
    }
    if !repeated.is_empty() {
        details.push(format!("names a section again (at {})", repeated.join(", ")));
    }
    if items.0.iter().map(|(_, quantity)| quantity).sum::<i64>() > TICKETS_MAXIMUM {
        details.push(format!("must have at most {TICKETS_MAXIMUM} tickets in all"));
    }
    Ok(if details.is_empty() { Ok(lines) } else { Err(Problem::invalid("items", details.join("; "))) })
}

/// Refuses what is not sold now, whatever the number of places left.
async fn require_on_sale(tx: &mut Tx, lines: &[Line], now: Timestamp) -> Result<()> {
    let events: HashSet<Id> = lines.iter().map(|line| line.section.event_id).collect();
    let sellers = store::sellers(tx, events).await?;
    let sellers: HashMap<Id, SellerRow> = sellers.into_iter().map(|seller| (seller.id, seller)).collect();
    for line in lines {
        let seller = sellers.get(&line.section.event_id).ok_or_else(|| anyhow::anyhow!("a section has no event"))?;
        check_on_sale(&line.section, seller, now)?;
    }
    Ok(())
}

fn check_on_sale(section: &SectionRow, seller: &SellerRow, now: Timestamp) -> Result<()> {
    let (name, title) = (&section.name, &seller.title);
    if seller.status != EventStatus::Listed {
        // What a draft is called is told to nobody who may not read it.
        let section =
            if seller.status.is_public() { format!("{name}, {title},") } else { sections::uri(section.event_id, section.id).0 };
        return Err(Code::EventNotListed.because(format!("The event of the section {section} is not listed.")));
    }
    if seller.ends <= now {
        return Err(Code::EventOver.because(format!("The event of the section {name}, {title}, is over.")));
    }
    if seller.host_removed {
        return Err(Code::HostRemoved.because(format!("The host of the section {name} of {title} can no longer sell tickets.")));
    }
    if !section.active {
        return Err(Code::SectionInactive.because(format!("The section {name} of {title} is not active.")));
    }
    if now < section.sales_start || section.sales_end <= now {
        return Err(Code::SectionNotOnSale.because(format!("The section {name} of {title} is not on sale now.")));
    }
    Ok(())
}

/// Refuses an open order too many of a customer whose account is locked.
async fn require_few_open(tx: &mut Tx, customer: Id, now: Timestamp) -> Result<()> {
    if store::count_open(tx, customer, now).await? < OPEN_MAXIMUM {
        return Ok(());
    }
    Err(Code::OrderTooMany.because(format!("This account has {OPEN_MAXIMUM} open orders, which is the most allowed.")))
}

/// Takes the places: of a free order they are sold at once, of any other reserved. In the order that [`settlement`] asks for.
async fn take(tx: &mut Tx, lines: &[Line], free: bool, now: Timestamp) -> Result<()> {
    let mut lines: Vec<&Line> = lines.iter().collect();
    lines.sort_by_key(|line| line.section.id);
    for line in lines {
        let places = Places { section_id: line.section.id, quantity: line.quantity };
        sections::release_expired(tx, [places.section_id], now).await?;
        let taken = if free { store::sell(tx, places).await? } else { store::reserve(tx, places).await? };
        if !taken {
            return Err(sold_out(tx, &line.section).await?);
        }
    }
    Ok(())
}

async fn sold_out(tx: &mut Tx, section: &SectionRow) -> Result<Error> {
    let event = store::sellers(tx, [section.event_id]).await?.pop().map(|event| event.title).unwrap_or_default();
    Ok(Code::SectionSoldOut.because(format!("Too few places are left in the section {} of {event}.", section.name)))
}

fn items(order: Id, lines: &[Line]) -> Vec<ItemRow> {
    let items = lines.iter().zip(1..).map(|(line, position)| ItemRow {
        order_id: order,
        position,
        event_id: line.section.event_id,
        section_id: line.section.id,
        quantity: line.quantity,
        unit_price: line.unit.price,
        unit_fee: line.unit_fee,
    });
    items.collect()
}

fn applied(order: Id, lines: &[Line]) -> Vec<AppliedRow> {
    let applied = lines.iter().zip(1..).flat_map(|(line, position)| {
        line.unit.modifiers.iter().map(move |modifier| AppliedRow { order_id: order, position, modifier_id: *modifier })
    });
    applied.collect()
}
