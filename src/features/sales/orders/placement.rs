//! Placing orders. An order is placed as a whole or rejected.
//!
//! Orders that arrive at the same time are executed in one batch, because most of them want the same section. A batch loads its
//! data once, decides on the orders in the order of their arrival, and writes all of them at once.

use std::collections::{BTreeSet, HashMap};

use boxoffice_http::error::{Error, FieldError, Result, reject_if};
use futures::FutureExt;
use futures::future::BoxFuture;

use super::guests::{Guests, TicketRecipient};
use super::inventory::{INACTIVE, Inventory, can_receive};
use super::model::{AppliedModifierRow, ItemRow, Items, Order, OrderCreate, OrderRow, OrderStatus};
use super::pricing::{PricedItems, price_items, section_ids};
use super::{lifecycle, service, store, waiting_list};
use crate::features::catalog::sections::{self, SectionRow};
use crate::features::identity::accounts::{self, PreparedAccount};
use crate::features::sales::mail_values::SalesMail;
use crate::kernel::auth::Caller;
use crate::kernel::db::{Reader, Tx};
use crate::kernel::outbox::{self, MailCounts, MailTemplate};
use crate::kernel::types::clock::Timestamp;
use crate::kernel::types::id::Id;
use crate::kernel::types::money::Money;
use crate::kernel::unit_of_work::BatchOperation;
use crate::state::{App, Ctx};

/// A request for a new order.
pub struct OrderRequest {
    pub(super) caller: Caller,
    order: OrderCreate,
    /// The recipient of a complimentary order, for which nothing is charged.
    pub(super) recipient: Option<TicketRecipient>,
    mails: MailCounts,
}

impl OrderRequest {
    /// The argument that names the customer.
    pub(super) fn argument(&self) -> &'static str {
        self.recipient.as_ref().map_or("customer", TicketRecipient::argument)
    }

    pub(super) fn is_complimentary(&self) -> bool {
        self.recipient.is_some()
    }
}

/// A validated order, not yet placed.
pub struct Draft<'a> {
    pub request: &'a OrderRequest,
    pub customer: Id,
    pub items: PricedItems<'a>,
}

/// An accepted order with its items, to be inserted.
struct Placed<'a> {
    request: &'a OrderRequest,
    order: OrderRow,
    items: Vec<ItemRow>,
    applied: Vec<AppliedModifierRow>,
}

/// Places an order.
pub async fn place(ctx: &Ctx, caller: Caller, order: OrderCreate) -> Result<Order> {
    ctx.app.order_commits.submit(ctx, OrderRequest { caller, order, recipient: None, mails: MailCounts::default() }).await
}

/// Places a complimentary order. It is rejected if the caller may no longer issue tickets of the event when it is placed.
pub async fn place_complimentary(ctx: &Ctx, caller: Caller, recipient: TicketRecipient, items: Items) -> Result<Order> {
    let order = OrderCreate { customer: None, items };
    ctx.app
        .order_commits
        .submit(ctx, OrderRequest { caller, order, recipient: Some(recipient), mails: MailCounts::default() })
        .await
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

    let mut inventory = Inventory::lock(tx, &drafts, guests).await?;
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
        let customer = accounts::view_for(&placed.request.caller, customer.clone());
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
        reject_if(!caller.is_administrator() && account.is_none_or(|account| !caller.is(account.id)), Error::FORBIDDEN)?;
        Ok(match account {
            None => Err(FieldError::invalid("customer", "names no account")),
            Some(account) if !can_receive(caller, account) => Err(FieldError::invalid("customer", INACTIVE)),
            Some(account) => Ok(account.id),
        })
    };
    Ok(requests.iter().map(customer).collect())
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
            let items = if request.is_complimentary() { items.without_charge() } else { items };
            Ok(Draft { request, customer, items })
        }
        (items, customer) => Err(Error::Invalid(items.err().into_iter().chain(customer.err()).collect())),
    }
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
    let mailed = placed.iter().filter(|placed| placed.order.is_fulfilled() && count_mail(app, inventory, placed));
    let mails = mailed.map(|placed| SalesMail::OrderConfirmation { order: placed.order.id }.to(placed.order.account_id));
    outbox::write(app, writes, mails)?.execute().await
}

/// Counts a mail with the tickets of a free order, and returns whether it may be sent. Free orders cost nothing, so the mails that the
/// owner of the address may not have asked for are limited: those of complimentary orders, and those to an address that is not verified.
/// The orders are not limited.
fn count_mail(app: &App, inventory: &Inventory, placed: &Placed<'_>) -> bool {
    let Some(account) = inventory.accounts.get(&placed.order.account_id) else { return false };
    if account.verified && !placed.order.complimentary {
        return true;
    }
    let (limit, address) = (&app.limits.free_order_mails, account.email.to_ascii_lowercase());
    placed.request.mails.count(app, limit, address, MailTemplate::OrderConfirmation, account.id)
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
            complimentary: self.request.is_complimentary(),
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
        Placed { request: self.request, order, items, applied }
    }
}
