//! Placing orders. An order is placed as a whole or rejected.
//!
//! Orders that arrive at the same time are executed in one batch, because most of them want the same section. A batch loads its
//! data once, decides on the orders in the order of their arrival, and writes all of them at once.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use boxoffice_http::error::{Error, FieldError, Result};
use boxoffice_openapi::counted;
use futures::FutureExt;
use futures::future::BoxFuture;

use super::guests::{Guests, TicketRecipient};
use super::model::{AppliedModifierRow, EventSaleRow, ItemRow, Items, Order, OrderCreate, OrderRow, OrderStatus};
use super::pricing::{Line, PricedItems, check_event_on_sale, check_section_on_sale, price_items, section_ids, sold_out};
use super::waiting_list::{self, OfferRow};
use super::{lifecycle, service, store};
use crate::features::catalog::events;
use crate::features::catalog::hosts;
use crate::features::catalog::sections::{self, Places, SaleTerms, SectionRow};
use crate::features::codes;
use crate::features::identity::accounts::{self, AccountRow, PreparedAccount};
use crate::kernel::auth::Caller;
use crate::kernel::db::{BatchOperation, Reader, StaleRead, Tx};
use crate::kernel::outbox::{self, MailTemplate};
use crate::kernel::types::clock::Timestamp;
use crate::kernel::types::id::Id;
use crate::kernel::types::money::Money;
use crate::state::{App, Ctx};

/// Detail of the field error about a deactivated account.
const INACTIVE: &str = "names no active account";

/// Largest number of open orders of an account.
const MAX_OPEN_ORDERS: i64 = 10;

/// A request for a new order.
pub struct OrderRequest {
    caller: Caller,
    order: OrderCreate,
    /// The recipient of a complimentary order, for which nothing is charged.
    pub(super) recipient: Option<TicketRecipient>,
}

/// A validated order, not yet placed.
struct Draft<'a> {
    caller: &'a Caller,
    customer: Id,
    /// The argument that names the customer.
    argument: &'static str,
    is_complimentary: bool,
    items: PricedItems<'a>,
}

/// An accepted order with its items, to be inserted.
struct Placed<'a> {
    caller: &'a Caller,
    order: OrderRow,
    items: Vec<ItemRow>,
    applied: Vec<AppliedModifierRow>,
}

/// The data that decides about drafts. It is locked: no other transaction changes it before this one ends.
struct Inventory {
    accounts: HashMap<Id, AccountRow>,
    /// The accounts among them that don't exist yet.
    new_guests: HashMap<Id, PreparedAccount>,
    events: HashMap<Id, EventSaleRow>,
    /// The accounts that issue complimentary tickets, each with the hosts that it administers.
    administrators: HashSet<(Id, Id)>,
    /// The number of open orders of each account.
    open: HashMap<Id, i64>,
    /// The places of each section. Sections that were removed meanwhile are missing.
    available: BTreeMap<Id, Places>,
    /// The open offers of waiting lists, by account and section.
    offers: HashMap<(Id, Id), OfferRow>,
    /// The offers that this batch uses.
    accepted: Vec<OfferRow>,
    /// The number of tickets of each account in each section that limits it.
    held: HashMap<(Id, Id), i64>,
    /// The places taken by this batch in each section: reserved, and sold.
    taken: BTreeMap<Id, (i64, i64)>,
}

/// Places an order.
pub async fn place(ctx: &Ctx, caller: Caller, order: OrderCreate) -> Result<Order> {
    ctx.app.order_commits.submit(ctx, OrderRequest { caller, order, recipient: None }).await
}

/// Places a complimentary order. It is rejected if the caller may no longer issue tickets of the event when it is placed.
pub async fn place_complimentary(ctx: &Ctx, caller: Caller, recipient: TicketRecipient, items: Items) -> Result<Order> {
    let order = OrderCreate { customer: None, items };
    ctx.app.order_commits.submit(ctx, OrderRequest { caller, order, recipient: Some(recipient) }).await
}

impl BatchOperation<App> for OrderRequest {
    type Output = Order;

    fn execute<'a>(app: &'a App, tx: &'a mut Tx, batch: &'a [&'a Self]) -> BoxFuture<'a, Result<Vec<Result<Order>>>> {
        place_all(app, tx, batch).boxed()
    }
}

async fn place_all(app: &App, tx: &mut Tx, requests: &[&OrderRequest]) -> Result<Vec<Result<Order>>> {
    let now = app.clock.now();
    let guests = Guests::of(app, tx, requests).await?;
    let customers = customers(tx, requests, &guests).await?;
    let section_ids: BTreeSet<Id> = requests.iter().flat_map(|request| section_ids(&request.order.items)).collect();
    let sections_by_id = sections::find_with_modifiers(tx, section_ids, now).await?;
    let drafts =
        requests.iter().zip(customers).map(|(request, customer)| validate(app, &sections_by_id, request, customer?, now));
    let mut drafts: Vec<Result<Draft<'_>>> = drafts.collect();

    let mut inventory = Inventory::open(tx, &drafts, guests).await?;
    for draft in &mut drafts {
        reject_unless(draft, |draft| inventory.check(draft, now));
    }
    inventory.load_counts(app, tx, &drafts, now).await?;
    let mut outcomes = Vec::with_capacity(drafts.len());
    for draft in drafts {
        outcomes.push(draft.and_then(|draft| {
            inventory.reserve(&draft)?;
            Ok(draft.place(app, now))
        }));
    }
    write(app, tx, &inventory, &outcomes.iter().flatten().collect::<Vec<_>>(), now).await?;
    let view = |placed: Placed<'_>| {
        let customer = inventory.accounts.get(&placed.order.account_id);
        let customer = customer.ok_or_else(|| anyhow::anyhow!("an order has no customer"))?;
        let customer = accounts::view_for(placed.caller, customer.clone());
        Ok(service::to_view(placed.order, &placed.items, &placed.applied, customer, Money::ZERO, now))
    };
    Ok(outcomes.into_iter().map(|placed| placed.and_then(view)).collect())
}

/// Replaces a draft by the error of `check`, if there is one.
fn reject_unless(draft: &mut Result<Draft<'_>>, check: impl FnOnce(&Draft<'_>) -> Result<()>) {
    if let Err(error) = draft.as_ref().map_or(Ok(()), check) {
        *draft = Err(error);
    }
}

/// Returns the customer of each order: the caller's own account, unless the request names one. Only platform administrators may
/// name another account.
async fn customers(
    reader: &mut Reader,
    requests: &[&OrderRequest],
    guests: &Guests,
) -> Result<Vec<Result<Result<Id, FieldError>>>> {
    let numbers: Vec<String> = requests.iter().filter_map(|request| Some(request.order.customer.as_ref()?.0.clone())).collect();
    let accounts = if numbers.is_empty() { Vec::new() } else { accounts::find_by_numbers(reader, numbers).await? };
    let customer = |request: &&OrderRequest| {
        let caller = &request.caller;
        if let Some(recipient) = &request.recipient {
            return Ok(Ok(guests.id_of(recipient)?));
        }
        let Some(number) = &request.order.customer else {
            return Ok(caller.account.ok_or_else(|| FieldError::missing("customer")));
        };
        let account = accounts.iter().find(|account| account.number == number.0);
        if !caller.is_administrator() && account.is_none_or(|account| !caller.is(account.id)) {
            return Err(Error::FORBIDDEN);
        }
        Ok(match account {
            None => Err(FieldError::invalid("customer", "names no account")),
            Some(account) if !can_receive(caller, account) => Err(FieldError::invalid("customer", INACTIVE)),
            Some(account) => Ok(account.id),
        })
    };
    Ok(requests.iter().map(customer).collect())
}

/// Returns whether the account can get tickets that the caller orders. The tickets of a deactivated account would take places that can't
/// be used.
fn can_receive(caller: &Caller, account: &AccountRow) -> bool {
    account.activated || caller.is(account.id)
}

/// Returns the draft of an order.
///
/// # Errors
/// With all field errors of the request together.
fn validate<'a>(
    app: &App,
    sections: &'a HashMap<Id, SectionRow>,
    request: &'a OrderRequest,
    customer: Result<Id, FieldError>,
    now: Timestamp,
) -> Result<Draft<'a>> {
    match (price_items(app, None, sections, &request.order.items, now), customer) {
        (Ok(items), Ok(customer)) => {
            let argument = request.recipient.as_ref().map_or("customer", TicketRecipient::argument);
            let is_complimentary = request.recipient.is_some();
            let items = if is_complimentary { items.without_charge() } else { items };
            Ok(Draft { caller: &request.caller, customer, argument, is_complimentary, items })
        }
        (items, customer) => Err(Error::Invalid(items.err().into_iter().chain(customer.err()).collect())),
    }
}

impl Inventory {
    /// Locks the customers of these drafts, then the events of free drafts, then the hosts (see the lock order in
    /// CONTRIBUTING.md).
    ///
    /// The account lock serializes the orders of one account, so that two of them cannot both be the last one allowed. It also
    /// serializes orders with the deletion of the account.
    ///
    /// # Errors
    /// [`StaleRead`] if the account of an e-mail address was removed after it had been looked up. The next attempt creates a guest.
    async fn open(tx: &mut Tx, drafts: &[Result<Draft<'_>>], guests: Guests) -> Result<Self> {
        let customers: BTreeSet<Id> = drafts.iter().flatten().map(|draft| draft.customer).collect();
        let locked = accounts::lock_all(tx, customers.iter().copied()).await?;
        let accounts = locked.into_iter().chain(guests.new.values().map(|guest| guest.row.clone()));
        let accounts: HashMap<Id, AccountRow> = accounts.map(|account| (account.id, account)).collect();
        let has_removed = guests.existing().any(|id| customers.contains(&id) && !accounts.contains_key(&id));
        if has_removed {
            return Err(StaleRead.into());
        }
        let of_accounts = || drafts.iter().flatten().filter(|draft| accounts.contains_key(&draft.customer));
        let to_lock: BTreeSet<Id> =
            of_accounts().filter(|draft| draft.items.is_free()).flat_map(|draft| draft.items.events()).collect();
        if !to_lock.is_empty() {
            events::lock_all(tx, to_lock).await?;
        }
        let event_ids: BTreeSet<Id> = of_accounts().flat_map(|draft| draft.items.events()).collect();
        let events: HashMap<Id, EventSaleRow> =
            store::lock_hosts_and_read_sale_status(tx, event_ids).await?.into_iter().map(|event| (event.id, event)).collect();
        // Again after the locks: a caller may have been removed from the administrators while the order waited.
        let issuers: BTreeSet<Id> =
            of_accounts().filter(|draft| draft.is_complimentary).filter_map(|draft| draft.caller.account).collect();
        let administrators = if issuers.is_empty() {
            HashSet::new()
        } else {
            hosts::administrators_among(tx, issuers, events.values().map(|event| event.host_id).collect()).await?
        };
        Ok(Self {
            accounts,
            new_guests: guests.new,
            events,
            administrators,
            open: HashMap::new(),
            available: BTreeMap::new(),
            offers: HashMap::new(),
            accepted: Vec::new(),
            held: HashMap::new(),
            taken: BTreeMap::new(),
        })
    }

    /// Rejects a draft whose tickets are not on sale now. Doesn't check the number of places left.
    fn check(&self, draft: &Draft<'_>, now: Timestamp) -> Result<()> {
        match self.accounts.get(&draft.customer) {
            None => return Err(Error::invalid(draft.argument, "names no account")),
            Some(account) if !can_receive(draft.caller, account) => return Err(Error::invalid(draft.argument, INACTIVE)),
            Some(_) => {}
        }
        draft.items.require(|line| self.events.contains_key(&line.section.event_id))?;
        draft.items.lines.iter().try_for_each(|line| {
            let event = self.event(line)?;
            if draft.is_complimentary {
                self.require_administrator(draft.caller, event.host_id)?;
            }
            check_event_on_sale(line.section, event, now)?;
            if draft.is_complimentary { Ok(()) } else { check_section_on_sale(line.section, event, now) }
        })
    }

    /// Rejects a caller who may not issue complimentary tickets for a host.
    fn require_administrator(&self, caller: &Caller, host: Id) -> Result<()> {
        let administers = |account| self.administrators.contains(&(account, host));
        if caller.is_administrator() || caller.account.is_some_and(administers) { Ok(()) } else { Err(Error::FORBIDDEN) }
    }

    /// Loads the number of open orders, of places left and of tickets held in sections that limit it, and the offers of waiting
    /// lists. Locks the sections.
    ///
    /// # Errors
    /// [`StaleRead`] if a section has been changed since its tickets were priced.
    async fn load_counts(&mut self, app: &App, tx: &mut Tx, drafts: &[Result<Draft<'_>>], now: Timestamp) -> Result<()> {
        let to_pay: BTreeSet<Id> =
            drafts.iter().flatten().filter(|draft| !draft.items.is_free()).map(|draft| draft.customer).collect();
        self.open = store::count_open(tx, to_pay, now).await?.into_iter().collect();
        self.held = held(tx, drafts, now).await?;
        let sections: BTreeSet<Id> =
            drafts.iter().flatten().flat_map(|draft| &draft.items.lines).map(|line| line.section.id).collect();
        self.available = sections::lock_available(app, tx, sections, now).await?;
        let is_outdated = |line: &Line<'_>| {
            let places = self.available.get(&line.section.id);
            places.is_some_and(|places| places.terms != SaleTerms::from(line.section))
        };
        if drafts.iter().flatten().flat_map(|draft| &draft.items.lines).any(is_outdated) {
            return Err(StaleRead.into());
        }
        let offering = self.available.iter().filter(|(_, places)| places.offered > 0).map(|(section, _)| *section);
        let offering: BTreeSet<Id> = offering.collect();
        if !offering.is_empty() {
            let customers: BTreeSet<Id> = drafts.iter().flatten().map(|draft| draft.customer).collect();
            let offers = waiting_list::offers_of(tx, customers, offering, now).await?;
            self.offers = offers.into_iter().map(|offer| ((offer.account_id, offer.section_id), offer)).collect();
        }
        Ok(())
    }

    /// Takes the places of a draft: first those that the waiting list of a section has offered to the customer.
    ///
    /// # Errors
    /// Returns an error if a section was removed meanwhile or has too few places left, or the customer already has the maximum of
    /// open orders or of tickets of a section.
    fn reserve(&mut self, draft: &Draft<'_>) -> Result<()> {
        draft.items.require(|line| self.available.contains_key(&line.section.id))?;
        let open = self.open.get(&draft.customer).copied().unwrap_or_default();
        if !draft.items.is_free() && open >= MAX_OPEN_ORDERS {
            let text = format!("This account has {MAX_OPEN_ORDERS} open orders, which is the most allowed.");
            return Err(codes::ORDER_TOO_MANY.with_message(text));
        }
        for line in &draft.items.lines {
            self.check_maximum(draft.customer, line)?;
        }
        // A gift leaves the offer to the account that waits for it.
        let offer = |section: Id| self.offers.get(&(draft.customer, section)).filter(|_| !draft.is_complimentary);
        let is_short = |line: &&Line<'_>| {
            let places = self.available.get(&line.section.id);
            places.is_none_or(|places| {
                places.orderable() + offer(line.section.id).map_or(0, |offer| offer.quantity) < line.quantity
            })
        };
        if let Some(line) = draft.items.lines.iter().filter(is_short).min_by_key(|line| line.section.id) {
            let are_awaited = self.available.get(&line.section.id).is_some_and(|places| places.left >= line.quantity);
            return Err(sold_out(line.section, self.event(line)?, are_awaited));
        }
        for line in &draft.items.lines {
            let offer = if draft.is_complimentary { None } else { self.offers.remove(&(draft.customer, line.section.id)) };
            let offered = offer.map_or(0, |offer| offer.quantity);
            self.accepted.extend(offer);
            if let Some(places) = self.available.get_mut(&line.section.id) {
                places.left += offered - line.quantity;
            }
            *self.held.entry((draft.customer, line.section.id)).or_default() += line.quantity;
            let (reserved, sold) = self.taken.entry(line.section.id).or_default();
            *reserved -= offered;
            *(if draft.items.is_free() { sold } else { reserved }) += line.quantity;
        }
        if !draft.items.is_free() {
            *self.open.entry(draft.customer).or_default() += 1;
        }
        Ok(())
    }

    /// Rejects tickets that the customer may not buy because it has too many of the section.
    fn check_maximum(&self, customer: Id, line: &Line<'_>) -> Result<()> {
        let held = self.held.get(&(customer, line.section.id)).copied().unwrap_or_default();
        account_maximum(line.section, self.event(line)?, held, line.quantity)
    }

    fn event(&self, line: &Line<'_>) -> Result<&EventSaleRow> {
        Ok(self.events.get(&line.section.event_id).ok_or_else(|| anyhow::anyhow!("a section has no event"))?)
    }
}

/// Rejects a number of tickets that an account may not buy because it has `held` of the section.
///
/// # Errors
/// [`codes::SECTION_ACCOUNT_MAXIMUM`].
pub fn account_maximum(section: &SectionRow, event: &EventSaleRow, held: i64, quantity: i64) -> Result<()> {
    let exceeded = section.maximum_per_account.filter(|maximum| held + quantity > *maximum);
    let Some(maximum) = exceeded else { return Ok(()) };
    let tickets = counted(maximum.unsigned_abs(), "ticket", "tickets");
    let (name, title) = (&section.name, &event.title);
    let text = format!("An account may buy at most {tickets} of the section {name} of {title}, and this one has {held}.");
    Err(codes::SECTION_ACCOUNT_MAXIMUM.with_message(text))
}

/// Returns the number of tickets of these drafts' customers in those of their sections that limit it. Needs no query if no section
/// has a limit. The customers must be locked.
async fn held(reader: &mut Reader, drafts: &[Result<Draft<'_>>], now: Timestamp) -> Result<HashMap<(Id, Id), i64>> {
    let has_limit = |line: &&Line<'_>| line.section.maximum_per_account.is_some();
    let limited = |draft: &Draft<'_>| draft.items.lines.iter().filter(has_limit).map(|line| line.section.id).collect::<Vec<Id>>();
    let (mut accounts, mut sections) = (BTreeSet::new(), BTreeSet::new());
    for draft in drafts.iter().flatten() {
        let limited = limited(draft);
        accounts.extend((!limited.is_empty()).then_some(draft.customer));
        sections.extend(limited);
    }
    if sections.is_empty() {
        return Ok(HashMap::new());
    }
    let held = store::count_held(reader, &accounts, &sections, now).await?;
    Ok(held.into_iter().map(|(account, section, tickets)| ((account, section), tickets)).collect())
}

/// Writes the orders and the new counts of their sections.
async fn write(app: &App, tx: &mut Tx, inventory: &Inventory, placed: &[&Placed<'_>], now: Timestamp) -> Result<()> {
    let orders = placed.iter().map(|placed| (&placed.order, placed.order.is_fulfilled().then_some(now)));
    let items = placed.iter().flat_map(|placed| placed.items.iter().map(|item| (&placed.order, item)));
    let items: Vec<(&OrderRow, &ItemRow)> = items.collect();
    let mut guests: Vec<&PreparedAccount> =
        placed.iter().filter_map(|placed| inventory.new_guests.get(&placed.order.account_id)).collect();
    // In one order for all transactions, because each waits for others that insert the same address.
    guests.sort_unstable_by_key(|guest| guest.row.email.to_ascii_lowercase());
    guests.dedup_by_key(|guest| guest.row.id);
    accounts::insert_guests(tx, guests).await?;
    waiting_list::accept(tx, &inventory.accepted).await?;
    let writes = store::insert(tx.writes(), orders);
    let writes = store::insert_items(writes, items.iter().map(|(_, item)| *item));
    let writes = store::insert_applied(writes, placed.iter().flat_map(|placed| &placed.applied));
    let (free, to_pay): (Vec<_>, Vec<_>) = items.into_iter().partition(|(order, _)| order.is_fulfilled());
    let writes = store::insert_reservations(writes, to_pay);
    let writes = sections::adjust_counts(writes, &inventory.taken);
    let writes = lifecycle::issue_tickets(app, writes, &free);
    let orders = placed.iter().map(|placed| &placed.order).filter(|order| order.is_fulfilled());
    let mailed = orders.filter(|order| {
        inventory.accounts.get(&order.account_id).is_some_and(|account| count_mail(app, account, order.complimentary))
    });
    let mailed = mailed.map(|order| (order.id, order.account_id)).collect();
    lifecycle::mail_tickets(app, writes, mailed)?.execute().await
}

/// Counts a mail with the tickets of a free order, and returns whether it may be sent. Free orders cost nothing, so the mails that the
/// owner of the address may not have asked for are limited: those of complimentary orders, and those to an address that is not verified.
/// The orders are not limited.
fn count_mail(app: &App, account: &AccountRow, is_complimentary: bool) -> bool {
    let is_allowed = (account.verified && !is_complimentary)
        || app.attempts.free_order_mails.begin(account.email.to_ascii_lowercase()).is_ok();
    if !is_allowed {
        outbox::log_left_out(app, MailTemplate::OrderConfirmation, account.id);
    }
    is_allowed
}

impl<'a> Draft<'a> {
    /// Returns the order of a draft whose places have been taken.
    fn place(self, app: &App, now: Timestamp) -> Placed<'a> {
        let order = OrderRow {
            id: app.clock.next_id(),
            account_id: self.customer,
            stored_status: if self.items.is_free() { OrderStatus::Fulfilled } else { OrderStatus::Placed },
            placed: now,
            expires: now.plus(app.settings.reservation),
            subtotal: self.items.subtotal,
            fees: self.items.fees,
            complimentary: self.is_complimentary,
        };
        let (mut items, mut applied) = (Vec::with_capacity(self.items.lines.len()), Vec::new());
        for (line, position) in self.items.lines.into_iter().zip(1..) {
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
