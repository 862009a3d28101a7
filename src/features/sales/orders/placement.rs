//! Placing orders: each as a whole or not at all, and those that arrive at the same time together, for it is one section that
//! everyone wants. What they want is read once, decided one after the other in the order of their arrival, and written once.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;

use super::model::{
    AppliedModifierRow, EventSaleRow, ItemRow, Items, Order, OrderCreate, OrderRow, OrderStatus, TICKETS_MAXIMUM,
};
use super::{service, lifecycle, store};
use crate::features::identity::accounts::{self, AccountRow};
use crate::state::App;
use crate::kernel::auth::Caller;
use crate::kernel::types::clock::Timestamp;
use crate::kernel::types::id::Id;
use crate::kernel::types::money::Money;
use crate::kernel::db::Tx;
use boxoffice_http::error::{Code, Error, FieldError, Result};
use crate::features::catalog::events::EventStatus;
use crate::kernel::journal::GroupCommit;
use crate::features::catalog::sections::{self, SectionRow, SectionUri, UnitPrice};

/// Open orders of an account at the most (decisions).
const OPEN_MAXIMUM: i64 = 10;

/// Where orders are placed.
#[derive(Default)]
pub struct OrderBatcher(GroupCommit<OrderRequest, Order>);

/// Who wants what.
struct OrderRequest {
    caller: Caller,
    order: OrderCreate,
}

/// An order that could be placed.
struct Draft<'a> {
    caller: &'a Caller,
    customer: Id,
    lines: Vec<Line<'a>>,
    subtotal: Money,
    fees: Money,
}

/// Tickets of one section that are wanted.
struct Line<'a> {
    section: &'a SectionRow,
    quantity: i64,
    unit: UnitPrice,
    unit_fee: Money,
}

/// An order that is placed.
struct Placed<'a> {
    caller: &'a Caller,
    order: OrderRow,
    items: Vec<ItemRow>,
    applied: Vec<AppliedModifierRow>,
}

/// What decides about drafts, locked until the transaction ends: no other one changes it.
struct Inventory {
    accounts: HashMap<Id, AccountRow>,
    sellers: HashMap<Id, EventSaleRow>,
    /// How many open orders each account has.
    open: HashMap<Id, i64>,
    /// How many places are left in each section.
    left: HashMap<Id, i64>,
    /// What has been taken of them: reserved, and sold.
    taken: BTreeMap<Id, (i64, i64)>,
}

/// Places an order.
pub async fn place(app: &Arc<App>, caller: Caller, order: OrderCreate) -> Result<Order> {
    app.order_batcher.0.submit(app, OrderRequest { caller, order }, place_together).await
}

fn place_together<'a>(app: &'a App, tx: &'a mut Tx, wanted: &'a [&'a OrderRequest]) -> BoxFuture<'a, Result<Vec<Result<Order>>>> {
    place_all(app, tx, wanted).boxed()
}

async fn place_all(app: &App, tx: &mut Tx, wanted: &[&OrderRequest]) -> Result<Vec<Result<Order>>> {
    let now = app.clock.now();
    let customers = customers(tx, wanted).await?;
    let named = wanted.iter().flat_map(|wanted| &wanted.order.items.0);
    let named: BTreeSet<Id> = named.filter_map(|(key, _)| Some(SectionUri::parse(key)?.section)).collect();
    let known = sections::find_by_ids(tx, named, now).await?;
    let drafts = wanted.iter().zip(customers).map(|(wanted, customer)| validate(app, &known, wanted, customer?, now));
    let mut drafts: Vec<Result<Draft<'_>>> = drafts.collect();

    let mut book = Inventory::open(tx, &drafts).await?;
    for draft in &mut drafts {
        reject_unless(draft, |draft| book.check(draft, now));
    }
    book.load_counts(tx, &drafts, now).await?;
    let mut outcomes = Vec::with_capacity(drafts.len());
    for draft in drafts {
        outcomes.push(draft.and_then(|draft| {
            book.reserve(&draft)?;
            Ok(draft.place(app, now))
        }));
    }
    write(app, tx, &book, &outcomes.iter().flatten().collect::<Vec<_>>(), now).await?;
    let view = |placed: Placed<'_>| {
        let customer = book.accounts.get(&placed.order.account_id).ok_or_else(|| anyhow::anyhow!("an order has no customer"))?;
        let customer = accounts::view_for(placed.caller, customer.clone());
        let mut applied = placed.applied;
        Ok(service::to_view(placed.order, placed.items, &mut applied, customer, now))
    };
    Ok(outcomes.into_iter().map(|placed| placed.and_then(view)).collect())
}

/// Refuses a draft that something stands against.
fn reject_unless(draft: &mut Result<Draft<'_>>, check: impl FnOnce(&Draft<'_>) -> Result<()>) {
    if let Err(refusal) = draft.as_ref().map_or(Ok(()), check) {
        *draft = Err(refusal);
    }
}

/// The account that each order is for: the caller's own unless another is named, which only the platform's staff may do.
async fn customers(tx: &mut Tx, wanted: &[&OrderRequest]) -> Result<Vec<Result<Result<Id, FieldError>>>> {
    let named: Vec<String> = wanted.iter().filter_map(|wanted| Some(wanted.order.customer.as_ref()?.0.clone())).collect();
    let named = if named.is_empty() { Vec::new() } else { accounts::find_by_numbers(tx, named).await? };
    let customer = |wanted: &&OrderRequest| {
        let caller = &wanted.caller;
        let Some(number) = &wanted.order.customer else {
            return Ok(caller.account.ok_or_else(|| FieldError::missing("customer")));
        };
        let account = named.iter().find(|account| account.number == number.0).map(|account| account.id);
        if !caller.is_administrator() && (account.is_none() || account != caller.account) {
            return Err(Error::FORBIDDEN);
        }
        Ok(account.ok_or_else(|| FieldError::invalid("customer", "names no account")))
    };
    Ok(wanted.iter().map(customer).collect())
}

/// The order that is wanted, unless something is wrong with what was said.
fn validate<'a>(
    app: &App,
    sections: &'a HashMap<Id, SectionRow>,
    wanted: &'a OrderRequest,
    customer: Result<Id, FieldError>,
    now: Timestamp,
) -> Result<Draft<'a>> {
    match (lines(app, sections, &wanted.order.items, now), customer) {
        (Ok(lines), Ok(customer)) => {
            let subtotal = lines.iter().map(|line| line.unit.price * line.quantity).sum();
            let fees = lines.iter().map(|line| line.unit_fee * line.quantity).sum();
            Ok(Draft { caller: &wanted.caller, customer, lines, subtotal, fees })
        }
        (lines, customer) => Err(Error::Invalid(lines.err().into_iter().chain(customer.err()).collect())),
    }
}

/// What is wanted, in the order of the request.
fn lines<'a>(
    app: &App,
    sections: &'a HashMap<Id, SectionRow>,
    items: &Items,
    now: Timestamp,
) -> Result<Vec<Line<'a>>, FieldError> {
    let (mut unknown, mut repeated, mut known) = (Vec::new(), Vec::new(), HashSet::new());
    let mut lines = Vec::new();
    for (key, quantity) in &items.0 {
        let uri = SectionUri::parse(key);
        let section = uri.and_then(|uri| sections.get(&uri.section).filter(|section| uri.names(section)));
        match section {
            None => unknown.push(key.as_str()),
            Some(section) if !known.insert(section.id) => repeated.push(key.as_str()),
            Some(section) => {
                let unit = sections::unit_price(section, *quantity, now);
                let unit_fee = app.settings.fee_steps.fee(unit.price);
                lines.push(Line { section, quantity: *quantity, unit, unit_fee });
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
    if details.is_empty() { Ok(lines) } else { Err(FieldError::invalid("items", details.join("; "))) }
}

impl Draft<'_> {
    /// Whether nothing is to be paid: then its tickets are delivered at once.
    fn is_free(&self) -> bool {
        self.subtotal + self.fees == Money::ZERO
    }

    fn events(&self) -> impl Iterator<Item = Id> {
        self.lines.iter().map(|line| line.section.event_id)
    }
}

impl Inventory {
    /// Locks the customers and hosts of these drafts, and of free ones the events: in this order, which everyone keeps to. Two
    /// orders of one account wait for each other here, so that both cannot be the last one; and its removal waits for the order, or
    /// has come before it.
    async fn open(tx: &mut Tx, drafts: &[Result<Draft<'_>>]) -> Result<Self> {
        let customers: BTreeSet<Id> = drafts.iter().flatten().map(|draft| draft.customer).collect();
        let accounts: HashMap<Id, AccountRow> =
            accounts::lock_all(tx, customers).await?.into_iter().map(|account| (account.id, account)).collect();
        let of_accounts = || drafts.iter().flatten().filter(|draft| accounts.contains_key(&draft.customer));
        store::lock_events(tx, of_accounts().filter(|draft| draft.is_free()).flat_map(Draft::events)).await?;
        let events: BTreeSet<Id> = of_accounts().flat_map(Draft::events).collect();
        let sellers = store::event_sale_status(tx, events).await?.into_iter().map(|seller| (seller.id, seller)).collect();
        Ok(Self { accounts, sellers, open: HashMap::new(), left: HashMap::new(), taken: BTreeMap::new() })
    }

    /// Refuses what is not sold now, whatever the number of places left.
    fn check(&self, draft: &Draft<'_>, now: Timestamp) -> Result<()> {
        if !self.accounts.contains_key(&draft.customer) {
            return Err(Error::invalid("customer", "names no account"));
        }
        draft.lines.iter().try_for_each(|line| check_on_sale(line.section, self.seller(line)?, now))
    }

    /// Counts open orders and places, which are locked, in the order that [`settlement`] asks for.
    async fn load_counts(&mut self, tx: &mut Tx, drafts: &[Result<Draft<'_>>], now: Timestamp) -> Result<()> {
        let to_pay: BTreeSet<Id> = drafts.iter().flatten().filter(|draft| !draft.is_free()).map(|draft| draft.customer).collect();
        self.open = store::count_open(tx, to_pay, now).await?.into_iter().collect();
        let sections: BTreeSet<Id> = drafts.iter().flatten().flat_map(|draft| &draft.lines).map(|line| line.section.id).collect();
        sections::release_expired(tx, sections.iter().copied(), now).await?;
        self.left = store::lock_sections(tx, sections).await?.into_iter().collect();
        Ok(())
    }

    /// Takes a draft's places, where there are as many and its customer may have one more open order.
    fn reserve(&mut self, draft: &Draft<'_>) -> Result<()> {
        let open = self.open.get(&draft.customer).copied().unwrap_or_default();
        if !draft.is_free() && open >= OPEN_MAXIMUM {
            let text = format!("This account has {OPEN_MAXIMUM} open orders, which is the most allowed.");
            return Err(Code::OrderTooMany.with_message(text));
        }
        let is_short = |line: &&Line<'_>| self.left.get(&line.section.id).is_none_or(|left| *left < line.quantity);
        if let Some(line) = draft.lines.iter().filter(is_short).min_by_key(|line| line.section.id) {
            let title = &self.seller(line)?.title;
            let text = format!("Too few places are left in the section {} of {title}.", line.section.name);
            return Err(Code::SectionSoldOut.with_message(text));
        }
        for line in &draft.lines {
            *self.left.entry(line.section.id).or_default() -= line.quantity;
            let (reserved, sold) = self.taken.entry(line.section.id).or_default();
            *(if draft.is_free() { sold } else { reserved }) += line.quantity;
        }
        if !draft.is_free() {
            *self.open.entry(draft.customer).or_default() += 1;
        }
        Ok(())
    }

    fn seller(&self, line: &Line<'_>) -> Result<&EventSaleRow> {
        Ok(self.sellers.get(&line.section.event_id).ok_or_else(|| anyhow::anyhow!("a section has no event"))?)
    }
}

/// Writes down what was taken, and the orders.
async fn write(app: &App, tx: &mut Tx, book: &Inventory, placed: &[&Placed<'_>], now: Timestamp) -> Result<()> {
    let orders = placed.iter().map(|placed| (&placed.order, placed.order.is_fulfilled().then_some(now)));
    let items = placed.iter().flat_map(|placed| placed.items.iter().map(|item| (&placed.order, item)));
    let items: Vec<(&OrderRow, &ItemRow)> = items.collect();
    store::adjust_counts(tx, &book.taken).await?;
    store::insert(tx, orders).await?;
    store::insert_items(tx, items.iter().map(|(_, item)| *item)).await?;
    store::insert_applied(tx, placed.iter().flat_map(|placed| &placed.applied)).await?;
    let (free, to_pay): (Vec<_>, Vec<_>) = items.into_iter().partition(|(order, _)| order.is_fulfilled());
    store::insert_reservations(tx, to_pay).await?;
    lifecycle::issue_tickets(app, tx, &free).await
}

fn check_on_sale(section: &SectionRow, seller: &EventSaleRow, now: Timestamp) -> Result<()> {
    let (name, title) = (&section.name, &seller.title);
    if seller.status != EventStatus::Listed {
        // What a draft is called is told to nobody who may not read it.
        let section =
            if seller.status.is_public() { format!("{name}, {title},") } else { sections::uri(section.event_id, section.id).0 };
        return Err(Code::EventNotListed.with_message(format!("The event of the section {section} is not listed.")));
    }
    if seller.ends <= now {
        return Err(Code::EventOver.with_message(format!("The event of the section {name}, {title}, is over.")));
    }
    if seller.host_removed {
        return Err(
            Code::HostRemoved.with_message(format!("The host of the section {name} of {title} can no longer sell tickets."))
        );
    }
    if !section.active {
        return Err(Code::SectionInactive.with_message(format!("The section {name} of {title} is not active.")));
    }
    if now < section.sales_start || section.sales_end <= now {
        return Err(Code::SectionNotOnSale.with_message(format!("The section {name} of {title} is not on sale now.")));
    }
    Ok(())
}

impl<'a> Draft<'a> {
    /// The order, whose places have been taken.
    fn place(self, app: &App, now: Timestamp) -> Placed<'a> {
        let status = if self.is_free() { OrderStatus::Fulfilled } else { OrderStatus::Placed };
        let expires = now.plus(app.settings.reservation);
        let order = OrderRow::new(app.clock.next_id(), self.customer, status, expires, (self.subtotal, self.fees));
        let (mut items, mut applied) = (Vec::with_capacity(self.lines.len()), Vec::new());
        for (line, position) in self.lines.into_iter().zip(1..) {
            items.push(ItemRow {
                order_id: order.id,
                position,
                event_id: line.section.event_id,
                section_id: line.section.id,
                quantity: line.quantity,
                unit_price: line.unit.price,
                unit_fee: line.unit_fee,
            });
            let of_item = |modifier_id| AppliedModifierRow { order_id: order.id, position, modifier_id };
            applied.extend(line.unit.modifiers.into_iter().map(of_item));
        }
        Placed { caller: self.caller, order, items, applied }
    }
}
