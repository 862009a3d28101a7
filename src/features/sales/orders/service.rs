//! Reading and cancelling orders. See [`super::placement`] for placing an order, [`super::lifecycle`] for its end, and
//! [`super::revocation`] for returning or voiding it.

use std::collections::HashMap;

use boxoffice_http::error::{Error, Result};

use super::model::{
    AccountOrderFilter, AppliedModifierRow, Criteria, ItemRow, Order, OrderFilter, OrderItem, OrderRow, OrderSort,
};
use super::model::{OrderStatus, uri};
use super::{hosts_orders, lifecycle, search, store};
use crate::features::catalog::events::Event;
use crate::features::catalog::price_modifiers;
use crate::features::catalog::sections;
use crate::features::codes;
use crate::features::identity::accounts::{self, Account, AccountLists, AccountNumber, AccountPage, AccountRow};
use crate::features::sales::mail_values::{CancellationCause, SalesMail};
use crate::features::sales::payments;
use crate::kernel::auth::Caller;
use crate::kernel::db::{Reader, Tx, transaction};
use crate::kernel::outbox::{self, MailCounts, MailTemplate};
use crate::kernel::types::api_types::{DateTime, HasCollection, NullableField, Uri};
use crate::kernel::types::clock::Timestamp;
use crate::kernel::types::id::{Id, IdText};
use crate::kernel::types::money::Money;
use crate::kernel::types::paging::{Page, PageRequest, SortOrder};
use crate::state::{App, Ctx};

pub async fn list(ctx: &Ctx, caller: &Caller, filter: &OrderFilter) -> Result<Page<Order>> {
    let number = filter.number.as_deref().map(search::parse).transpose()?;
    let now = ctx.app.clock.now();
    let mut reader = ctx.unit.read().await?;
    let account = accounts::id_for_filter(&mut reader, filter.customer.as_ref()).await?;
    let criteria = Criteria::new(account, filter.status, filter.sort, filter.order);
    let page = match number {
        Some(number) => search::page(&mut reader, &number, criteria, filter.paging, now).await?,
        None => store::list(&mut reader, criteria, filter.paging, now).await?,
    };
    Ok(filter.paging.page(page.total, views(&mut reader, caller, page.rows, now).await?))
}

/// Batches of reads of the orders of accounts.
pub type AccountOrders = AccountLists<OrderPage>;

/// A page of the orders of an account.
#[derive(Clone)]
pub struct OrderPage {
    total: i64,
    orders: Vec<Order>,
}

pub async fn list_of_account(
    ctx: &Ctx,
    caller: &Caller,
    number: &AccountNumber,
    filter: &AccountOrderFilter,
) -> Result<Page<Order>> {
    let key = (Criteria::new(None, filter.status, filter.sort, filter.order), filter.paging);
    let page = ctx.app.account_orders.get(ctx, caller, number, key).await?.page;
    page.map_or_else(|| filter.paging.empty_page(), |OrderPage { total, orders }| Ok(filter.paging.page(total, orders)))
}

impl AccountPage for OrderPage {
    type Key = (Criteria, PageRequest);

    async fn read(
        app: &App,
        reader: &mut Reader,
        (criteria, paging): Self::Key,
        accounts: &[AccountRow],
    ) -> Result<HashMap<Id, Self>> {
        let now = app.clock.now();
        let pages = store::list_of_accounts(reader, accounts.iter().map(|account| account.id), criteria, paging, now).await?;
        let customers = accounts.iter().map(|account| (account.id, accounts::view(account.clone()))).collect();
        let totals: HashMap<Id, i64> = pages.iter().map(|(account, page)| (*account, page.total)).collect();
        let rows: Vec<OrderRow> = pages.into_values().flat_map(|page| page.rows).collect();
        let of_accounts: Vec<Id> = rows.iter().map(|row| row.account_id).collect();
        let mut orders: HashMap<Id, Vec<Order>> = HashMap::new();
        for (account, order) in of_accounts.into_iter().zip(views_of_customers(reader, rows, &customers, now).await?) {
            orders.entry(account).or_default().push(order);
        }
        let page = |(account, orders)| (account, Self { total: totals[&account], orders });
        Ok(orders.into_iter().map(page).collect())
    }
}

/// Lists the orders of an account, the newest first.
pub async fn list_newest_of_account(
    ctx: &Ctx,
    caller: &Caller,
    number: &AccountNumber,
    paging: PageRequest,
) -> Result<Page<Order>> {
    let filter = AccountOrderFilter { paging, status: None, sort: Some(OrderSort::Date), order: SortOrder::Desc };
    list_of_account(ctx, caller, number, &filter).await
}

pub async fn get(ctx: &Ctx, caller: &Caller, id: Id) -> Result<Order> {
    let (row, order) = ctx.app.order_reads.get(ctx, id).await?.ok_or(Error::NOT_FOUND)?;
    if caller.require_account(row.account_id).is_ok() {
        return Ok(order);
    }
    hosts_orders::view_own_part(&mut ctx.unit.read().await?, caller, row, ctx.app.clock.now()).await
}

/// Cancels an open order. Partial payments are refunded after the commit, because no transaction waits for the gateway; a job
/// retries refunds that fail.
pub async fn cancel(ctx: &Ctx, caller: &Caller, id: Id) -> Result<Order> {
    let mails = MailCounts::default();
    let order = transaction!(ctx.unit, |tx| cancel_in_tx(&ctx.app, tx, caller, id, &mails).await)?;
    payments::process_after_commit(ctx, id).await;
    Ok(order)
}

async fn cancel_in_tx(app: &App, tx: &mut Tx, caller: &Caller, id: Id, mails: &MailCounts) -> Result<Order> {
    let now = app.clock.now();
    let row = lock_authorized(tx, caller, id).await?;
    if !row.is_open(now) {
        return Err(codes::ORDER_NOT_OPEN.with_message("This order is no longer open, so it can't be cancelled."));
    }
    lifecycle::close(app, tx, row.id, OrderStatus::Cancelled).await?;
    let (limit, account) = (&app.limits.cancellation_mails, row.account_id);
    if mails.count(app, limit, account, MailTemplate::OrderCancelled, account) {
        let mail = SalesMail::OrderCancelled { order: row.id, cause: CancellationCause::Customer };
        outbox::push(app, tx, [mail.to(account)]).await?;
    }
    view(tx, caller, row.with_status(OrderStatus::Cancelled), now).await
}

/// Mails the tickets of a fulfilled order to its customer again.
///
/// # Errors
/// [`Error::NOT_FOUND`], and [`codes::ORDER_NOT_FULFILLED`].
pub async fn resend_confirmation(ctx: &Ctx, id: Id) -> Result<()> {
    transaction!(ctx.unit, |tx| {
        let row = store::lock(tx, id).await?.ok_or(Error::NOT_FOUND)?;
        if row.stored_status != OrderStatus::Fulfilled {
            return Err(codes::ORDER_NOT_FULFILLED.with_message("This order is not fulfilled, so it has no tickets to mail."));
        }
        outbox::push(&ctx.app, tx, [SalesMail::OrderConfirmation { order: row.id }.to(row.account_id)]).await
    })
}

/// Loads an order for a caller who may read its payments, returns and voids: its customer, an account that administers the hosts of all
/// its events, or a platform administrator.
///
/// # Errors
/// [`Error::NOT_FOUND`], and [`Error::FORBIDDEN`] for all other callers.
pub async fn load_for_payments(reader: &mut Reader, caller: &Caller, id: Id) -> Result<OrderRow> {
    let row = store::find(reader, id).await?.ok_or(Error::NOT_FOUND)?;
    if !caller.is(row.account_id) {
        require_hosts(reader, caller, id).await?;
    }
    Ok(row)
}

/// Rejects callers other than platform administrators and administrators of the hosts of all events in the order.
///
/// # Errors
/// [`Error::FORBIDDEN`] for all other callers.
pub async fn require_hosts(reader: &mut Reader, caller: &Caller, order: Id) -> Result<()> {
    if caller.is_administrator() {
        return Ok(());
    }
    let account = caller.account.ok_or(Error::FORBIDDEN)?;
    if store::is_of_hosts_of(reader, order, account).await? { Ok(()) } else { Err(Error::FORBIDDEN) }
}

/// Loads an order for its customer or a platform administrator, and locks it until the transaction ends.
///
/// # Errors
/// [`Error::NOT_FOUND`], and [`Error::FORBIDDEN`] for all other callers.
pub async fn lock_authorized(tx: &mut Tx, caller: &Caller, id: Id) -> Result<OrderRow> {
    let row = store::lock(tx, id).await?.ok_or(Error::NOT_FOUND)?;
    caller.require_account(row.account_id)?;
    Ok(row)
}

/// Returns an order as a response to this caller.
pub async fn view(reader: &mut Reader, caller: &Caller, row: OrderRow, now: Timestamp) -> Result<Order> {
    let id = row.id;
    let order = views(reader, caller, vec![row], now).await?.pop();
    order.ok_or_else(|| Error::Internal(anyhow::anyhow!("the order {id} cannot be shown")))
}

/// Returns orders as responses to this caller, with four queries for all of them.
async fn views(reader: &mut Reader, caller: &Caller, rows: Vec<OrderRow>, now: Timestamp) -> Result<Vec<Order>> {
    let customers = accounts::views_for(reader, caller, rows.iter().map(|row| row.account_id)).await?;
    views_of_customers(reader, rows, &customers, now).await
}

/// Returns orders of these customers as responses, with three queries for all of them.
pub async fn views_of_customers(
    reader: &mut Reader,
    rows: Vec<OrderRow>,
    customers: &HashMap<Id, Account>,
    now: Timestamp,
) -> Result<Vec<Order>> {
    let items = store::items(reader, rows.iter().map(|row| row.id)).await?;
    let refunded = payments::refunded_by_order(reader, rows.iter().map(|row| row.id)).await?;
    views_with(reader, rows, items, &refunded, customers, now).await
}

/// Returns orders with these refunds and customers as responses. The items are sorted by order and position.
pub async fn views_with(
    reader: &mut Reader,
    rows: Vec<OrderRow>,
    items: Vec<ItemRow>,
    refunded: &HashMap<Id, Money>,
    customers: &HashMap<Id, Account>,
    now: Timestamp,
) -> Result<Vec<Order>> {
    let applied = store::applied_modifiers(reader, rows.iter().map(|row| row.id)).await?;
    let orders = rows.into_iter().map(|row| {
        let customer = customers.get(&row.account_id).cloned();
        let customer = customer.ok_or_else(|| anyhow::anyhow!("the order {} has no customer", row.id))?;
        let items = with_key(&items, row.id, |item| item.order_id);
        let refunded = refunded.get(&row.id).copied().unwrap_or_default();
        Ok(to_view(row, items, &applied, customer, refunded, now))
    });
    orders.collect()
}

/// Returns the rows with a key. The rows are sorted by it.
pub fn with_key<T, K: Ord>(rows: &[T], key: K, key_of: impl Fn(&T) -> K) -> &[T] {
    let rows = &rows[rows.partition_point(|row| key_of(row) < key)..];
    &rows[..rows.partition_point(|row| key_of(row) == key)]
}

/// Returns an order as a response. The price modifiers, which may be of other orders too, are sorted by order and position.
pub fn to_view(
    row: OrderRow,
    items: &[ItemRow],
    applied: &[AppliedModifierRow],
    customer: Account,
    refunded: Money,
    now: Timestamp,
) -> Order {
    let status = row.status(now);
    let is_open = status == OrderStatus::Placed;
    Order {
        uri: uri(row.id),
        number: IdText(row.id),
        status,
        complimentary: row.complimentary,
        placed: DateTime::from(row.placed),
        expires: NullableField(is_open.then(|| DateTime::from(row.expires))),
        subtotal: row.subtotal,
        fees: row.fees,
        total: row.total(),
        refunded,
        items: items.iter().map(|item| placed_item_view(item, applied)).collect(),
        customer,
        payments: Uri(format!("/orders/{}/payments", row.id)),
    }
}

/// Returns an item of an order as a response.
fn placed_item_view(item: &ItemRow, applied: &[AppliedModifierRow]) -> OrderItem {
    let own = with_key(applied, (item.order_id, item.position), |row| (row.order_id, row.position));
    item_view(item.event_id, item.section_id, item.quantity, item.unit_price, own.iter().map(|row| row.modifier_id))
}

/// Returns an item as a response.
pub fn item_view(
    event: Id,
    section: Id,
    quantity: i64,
    unit_price: Money,
    applied_modifiers: impl Iterator<Item = Id>,
) -> OrderItem {
    let modifiers: Vec<Uri> = applied_modifiers.map(|modifier| price_modifiers::uri(event, section, modifier)).collect();
    OrderItem {
        event: Uri(format!("{}{event}", Event::PATH)),
        section: sections::uri(event, section),
        quantity,
        unit_price,
        modifier: NullableField(modifiers.first().cloned()),
        modifiers,
    }
}
