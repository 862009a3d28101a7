//! SQL of orders, and of the counts of places and tickets that orders change.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use boxoffice_http::error::Result;

use super::hosts_orders::{HostCriteria, OrdersOf};
use super::model::{AppliedModifierRow, Criteria, EventItemRow, EventSaleRow, ItemRow, OrderRow, OrderStatus, ReservationRow};
use crate::kernel::db::{Reader, Statement, Tx, Writes, define_sql};
use crate::kernel::types::clock::Timestamp;
use crate::kernel::types::id::Id;
use crate::kernel::types::paging::{PageRequest, PagedRows};

// The columns of `OrderRow`.
define_sql!(columns, "id, account_id, status, placed, expires, subtotal, fees, complimentary");

/// Number of orders that a search by number reads at a time.
pub const SEARCH_BATCH: usize = 2000;

/// Returns a page of orders, sorted by identifier and therefore by time of placing.
pub async fn list(reader: &mut Reader, criteria: Criteria, paging: PageRequest, now: Timestamp) -> Result<PagedRows<OrderRow>> {
    let orders = reader.list(columns!(), "from orders o where true").and_where("o.account_id = ?", criteria.account);
    let orders = match criteria.account {
        Some(account) => orders.push_list_count("account orders", account),
        None => orders.push_list_count("orders", Id(0)),
    };
    let orders = filter_by_status(orders, criteria.status, now);
    orders.page(&format!("o.id{}", criteria.direction.sql()), paging).await
}

/// Returns the same page of the orders of each of these accounts, sorted like [`list`].
pub async fn list_of_accounts(
    reader: &mut Reader,
    accounts: impl IntoIterator<Item = Id>,
    criteria: Criteria,
    paging: PageRequest,
    now: Timestamp,
) -> Result<HashMap<Id, PagedRows<OrderRow>>> {
    let orders = reader.list(columns!(), "from orders o where true").with_list_counts("account orders");
    let orders = filter_by_status(orders, criteria.status, now);
    orders.pages_by_key("orders", "o.account_id", accounts, criteria.direction, paging).await
}

/// Returns a page of the orders of an event or a host, sorted by identifier and therefore by time of placing.
///
/// The identifiers of all orders of the event or host come from an index, in their order. If few orders match the other filters,
/// each of them is looked up in the index instead.
pub async fn list_of_hosts(
    reader: &mut Reader,
    criteria: &HostCriteria,
    paging: PageRequest,
    now: Timestamp,
) -> Result<PagedRows<OrderRow>> {
    // An order with several items for the event comes with the first of them.
    const OF_EVENT: &str = "order_items i where not exists (select 1 from order_items j
        where j.order_id = i.order_id and j.event_id = i.event_id and j.position < i.position) and i.order_id = o.id";
    const OF_HOST: &str = "host_orders i where i.order_id = o.id";

    let (of, key, id, list) = match criteria.of {
        OrdersOf::Event(event) => (OF_EVENT, "i.event_id", event, "event orders"),
        OrdersOf::Host(host) => (OF_HOST, "i.host_id", host, "host orders"),
    };
    let direction = criteria.criteria.direction.sql();
    let (orders, order) = if criteria.is_selective() {
        let of_order = format!("exists (select 1 from {of} and {key} = ?)");
        (reader.list(columns!(), "from orders o where true").and_where(&of_order, Some(id)), format!("o.id{direction}"))
    } else {
        let orders = reader.list(columns!(), &format!("from orders o, {of}")).and_key(key, id);
        // SQLite uses the order of the index only for the index's own column.
        (orders.push_list_count(list, id), format!("{key}{direction}, i.order_id{direction}"))
    };
    let of_ticket = "o.id in (select t.order_id from tickets t where t.serial = ?)";
    apply_filter(orders, criteria.criteria, now)
        .and_where("o.placed >= ?", criteria.period.start())
        .and_where("o.placed < ?", criteria.period.end())
        .and_where("o.id = ?", criteria.number)
        .and_where(of_ticket, criteria.serial.clone())
        .page(&order, paging)
        .await
}

/// Returns the next identifiers after `after`, at most [`SEARCH_BATCH`].
pub async fn list_ids(reader: &mut Reader, criteria: Criteria, after: Option<Id>, now: Timestamp) -> Result<Vec<Id>> {
    let condition = if criteria.is_ascending() { "o.id > ?" } else { "o.id < ?" };
    let orders = apply_filter(reader.select("o.id from orders o where true"), criteria, now).and_where(condition, after);
    let orders = orders.push(" order by o.id").push(criteria.direction.sql());
    orders.push(&format!(" limit {SEARCH_BATCH}")).scalars().await
}

fn apply_filter<'a>(orders: Statement<'a>, criteria: Criteria, now: Timestamp) -> Statement<'a> {
    filter_by_status(orders.and_where("o.account_id = ?", criteria.account), criteria.status, now)
}

fn filter_by_status(orders: Statement<'_>, status: Option<OrderStatus>, now: Timestamp) -> Statement<'_> {
    match status {
        Some(OrderStatus::Placed) => orders.and_where("o.status = 'Placed' and o.expires > ?", Some(now)),
        Some(OrderStatus::TimedOut) => {
            orders.and_where("(o.status = 'Timed Out' or o.status = 'Placed' and o.expires <= ?)", Some(now))
        }
        status => orders.and_where("o.status = ?", status),
    }
}

/// Returns these orders in the sort direction of `criteria`.
pub async fn find_all(reader: &mut Reader, ids: Vec<Id>, criteria: Criteria) -> Result<Vec<OrderRow>> {
    let orders = reader.select(concat!(columns!(), " from orders o where true")).and_in("o.id", ids);
    orders.push(" order by o.id").push(criteria.direction.sql()).all().await
}

/// Returns the order with this identifier.
pub async fn find(reader: &mut Reader, id: Id) -> Result<Option<OrderRow>> {
    reader.query(concat!("select ", columns!(), " from orders where id = $1")).bind(id).optional().await
}

/// Locks an order until the transaction ends, and returns its current row.
pub async fn lock(tx: &mut Tx, id: Id) -> Result<Option<OrderRow>> {
    Ok(lock_all(tx, [id]).await?.pop())
}

/// Locks these orders by ascending identifier, which prevents deadlocks, and returns their current rows.
pub async fn lock_all(tx: &mut Tx, ids: impl IntoIterator<Item = Id>) -> Result<Vec<OrderRow>> {
    tx.select(concat!(columns!(), " from orders where true")).and_in("id", ids).for_update().all().await
}

/// Returns these orders with their accounts and their stored statuses.
pub async fn customers(reader: &mut Reader, ids: impl IntoIterator<Item = Id>) -> Result<Vec<(Id, Id, OrderStatus)>> {
    reader.select("id, account_id, status from orders where true").and_in("id", ids).all().await
}

/// Returns the items of these orders, sorted by order and position.
pub async fn items(reader: &mut Reader, orders: impl IntoIterator<Item = Id>) -> Result<Vec<ItemRow>> {
    reader
        .select("order_id, position, event_id, section_id, quantity, unit_price, unit_fee from order_items where true")
        .and_in("order_id", orders)
        .push(" order by order_id, position")
        .all()
        .await
}

/// Returns the price modifiers that applied to the items of these orders, the oldest of each item first.
pub async fn applied_modifiers(reader: &mut Reader, orders: impl IntoIterator<Item = Id>) -> Result<Vec<AppliedModifierRow>> {
    let applied =
        reader.select("order_id, position, modifier_id from order_item_modifiers where true").and_in("order_id", orders);
    applied.push(" order by order_id, position, modifier_id").all().await
}

/// The columns of events `e` of hosts `h` that decide whether tickets are on sale.
const EVENT_SALE_STATUS: &str = "e.id, e.host_id, e.title, e.status, e.ends, h.removed as host_removed from events e join ";

/// Returns the columns of these events that decide whether tickets are on sale.
pub async fn event_sale_status(reader: &mut Reader, events: impl IntoIterator<Item = Id>) -> Result<Vec<EventSaleRow>> {
    reader.select(EVENT_SALE_STATUS).push("hosts h on h.id = e.host_id where true").and_in("e.id", events).all().await
}

/// Returns the same columns for an order that is being placed.
///
/// Locks the hosts in share mode: the removal of a host waits for the sales in progress, and sales don't block each other. It locks
/// each host once, for the reason that [`lock_events_of`] gives.
pub async fn lock_hosts_and_read_sale_status(tx: &mut Tx, events: impl IntoIterator<Item = Id>) -> Result<Vec<EventSaleRow>> {
    let events: Vec<Id> = events.into_iter().collect();
    let hosts =
        tx.select(EVENT_SALE_STATUS).push("(select id, removed from hosts where id in (select host_id from events where true");
    let hosts = hosts.and_in("id", events.clone()).push(")").for_share();
    hosts.push(") h on h.id = e.host_id where true").and_in("e.id", events).all().await
}

/// Locks the events of these orders until the transaction ends, by ascending identifier. Returns all items of the orders with the
/// current status of each event that has not been deleted, sorted by order and position.
///
/// It locks each event once, although it returns it once for each item. If PostgreSQL locks a row again in the same statement, after
/// another transaction has changed the row, it can queue behind a transaction that waits for this one.
pub async fn lock_events_of(tx: &mut Tx, orders: impl IntoIterator<Item = Id>) -> Result<Vec<EventItemRow>> {
    let orders: Vec<Id> = orders.into_iter().collect();
    let events = tx.select(
        "i.order_id, i.position, i.event_id, i.section_id, i.quantity, i.unit_price, i.unit_fee, e.host_id, e.status as event_status
         from order_items i left join
         (select id, host_id, status from events where id in (select event_id from order_items where true",
    );
    let events = events.and_in("order_id", orders.clone()).push(") order by id").push_lock(" for no key update");
    let items = events.push(") as e on e.id = i.event_id where true").and_in("i.order_id", orders);
    items.push(" order by i.order_id, i.position").all().await
}

/// SQL condition that an event of the order `o` is cancelled.
const HAS_CANCELLED_EVENT: &str = "exists (select 1 from order_items i join events e on e.id = i.event_id
    where i.order_id = o.id and e.status = 'Cancelled')";

/// Returns the number of open orders of each of these accounts that has any. Orders with a cancelled event don't count: they can't
/// be paid, and a job cancels them.
pub async fn count_open(reader: &mut Reader, accounts: impl IntoIterator<Item = Id>, now: Timestamp) -> Result<Vec<(Id, i64)>> {
    let open =
        reader.select(&format!("o.account_id, count(*) from orders o where o.status = 'Placed' and not {HAS_CANCELLED_EVENT}"));
    let open = open.and_where("o.expires > ?", Some(now)).and_in("o.account_id", accounts);
    open.push(" group by o.account_id").all().await
}

/// Returns the number of tickets of each of these accounts in each of these sections: those that its open orders reserve, and
/// those of its fulfilled orders that are not void. A ticket counts for the account that has ordered it, even if another one has
/// claimed it.
pub async fn count_held(
    reader: &mut Reader,
    accounts: &BTreeSet<Id>,
    sections: &BTreeSet<Id>,
    now: Timestamp,
) -> Result<Vec<(Id, Id, i64)>> {
    let (accounts, sections) = (|| accounts.iter().copied(), || sections.iter().copied());
    // Without the signs, the database would read all tickets and reservations of the sections by their indexes.
    let held = reader.select(
        "account_id, section_id, cast(sum(quantity) as bigint) from (
         select o.account_id, r.section_id, r.quantity from orders o join reservations r on r.order_id = o.id
         where o.status = 'Placed'",
    );
    let held = held.and_where("o.expires > ?", Some(now)).and_in("o.account_id", accounts()).and_in("+r.section_id", sections());
    let held = held.push(
        " union all select o.account_id, t.section_id, 1 from orders o join tickets t on t.order_id = o.id
         where o.status = 'Fulfilled' and t.status <> 'Void'",
    );
    let held = held.and_in("o.account_id", accounts()).and_in("+t.section_id", sections());
    held.push(") as held group by account_id, section_id").all().await
}

/// Returns a few open orders with a cancelled event.
pub async fn open_with_cancelled_event(reader: &mut Reader, now: Timestamp) -> Result<Vec<Id>> {
    let orders = reader.select(
        "distinct r.order_id from events e join sections s on s.event_id = e.id join reservations r on r.section_id = s.id
         where e.status = 'Cancelled'",
    );
    orders.and_where("r.expires > ?", Some(now)).push(" limit 50").scalars().await
}

/// Inserts orders. The timestamp is the time of fulfillment, for orders that are fulfilled at once.
pub fn insert<'a, 'r>(writes: Writes<'a>, orders: impl Iterator<Item = (&'r OrderRow, Option<Timestamp>)>) -> Writes<'a> {
    let into = "orders (id, account_id, status, placed, expires, fulfilled, subtotal, fees, complimentary)";
    writes.insert_rows(into, orders, |columns| {
        columns
            .add(|(order, _)| order.id)
            .add(|(order, _)| order.account_id)
            .add(|(order, _)| order.stored_status)
            .add(|(order, _)| order.placed)
            .add(|(order, _)| order.expires);
        columns.add(|(_, fulfilled)| *fulfilled).add(|(order, _)| order.subtotal).add(|(order, _)| order.fees);
        columns.add(|(order, _)| order.complimentary);
    })
}

pub fn insert_items<'a, 'r>(writes: Writes<'a>, items: impl Iterator<Item = &'r ItemRow>) -> Writes<'a> {
    let into = "order_items (order_id, position, event_id, section_id, quantity, unit_price, unit_fee)";
    writes.insert_rows(into, items, |columns| {
        columns.add(|item| item.order_id).add(|item| item.position).add(|item| item.event_id).add(|item| item.section_id);
        columns.add(|item| item.quantity).add(|item| item.unit_price).add(|item| item.unit_fee);
    })
}

pub fn insert_applied<'a, 'r>(writes: Writes<'a>, applied: impl Iterator<Item = &'r AppliedModifierRow>) -> Writes<'a> {
    writes.insert_rows("order_item_modifiers (order_id, position, modifier_id)", applied, |columns| {
        columns.add(|row| row.order_id).add(|row| row.position).add(|row| row.modifier_id);
    })
}

/// Inserts reservations. Their places must be counted in their sections, which must be locked.
pub fn insert_reservations<'a>(writes: Writes<'a>, items: Vec<(&OrderRow, &ItemRow)>) -> Writes<'a> {
    writes.insert_rows("reservations (order_id, section_id, quantity, expires)", items, |columns| {
        columns
            .add(|(order, _)| order.id)
            .add(|(_, item)| item.section_id)
            .add(|(_, item)| item.quantity)
            .add(|(order, _)| order.expires);
    })
}

/// Deletes and returns the reservations of these orders. Their sections must be [locked](lock_reserved_sections).
pub async fn delete_reservations(tx: &mut Tx, orders: impl IntoIterator<Item = Id>) -> Result<Vec<ReservationRow>> {
    let deleted = tx.delete("reservations where true").and_in("order_id", orders);
    deleted.push(" returning order_id, section_id, quantity").all().await
}

/// Sets the end of the open orders that were placed after `latest` and expire more than `reservation` after it, and returns them.
pub async fn correct_open(tx: &mut Tx, expires: Timestamp, latest: Timestamp, reservation: Duration) -> Result<Vec<Id>> {
    let update = "update orders set expires = $1 where status = 'Placed' and placed > $2 and expires > $3 returning id";
    tx.query(update).bind(expires).bind(latest).bind(latest.plus(reservation)).scalars().await
}

/// Sets the ends of the reservations of these orders to those of the orders.
pub async fn copy_ends_to_reservations(tx: &mut Tx, orders: Vec<Id>) -> Result<()> {
    let update =
        tx.update("reservations set expires = (select o.expires from orders o where o.id = reservations.order_id) where true");
    update.and_in("order_id", orders).execute().await
}

/// Locks the sections in which these orders have reservations until the transaction ends, by ascending identifier.
pub async fn lock_reserved_sections(tx: &mut Tx, orders: impl IntoIterator<Item = Id>) -> Result<()> {
    let reserved = tx.select("id from sections where id in (select section_id from reservations where true");
    reserved.and_in("order_id", orders).push(")").for_update().lock().await
}

/// Locks the sections in which an account has reservations or an entry of the waiting list, like [`lock_reserved_sections`].
pub async fn lock_sections_of_account(tx: &mut Tx, account: Id) -> Result<()> {
    let sections = tx.select("id from sections where id in (").push_bind(
        "select section_id from waiting_entries where account_id = ?
         union all select r.section_id from orders o join reservations r on r.order_id = o.id where o.account_id = ?)",
        account,
    );
    sections.for_update().lock().await
}

/// Adds to the numbers of tickets that these events have sold. A number is negative for returned tickets. The events must be locked.
pub fn raise_popularity<'a>(writes: Writes<'a>, tickets: &BTreeMap<Id, i64>) -> Writes<'a> {
    if tickets.is_empty() {
        return writes;
    }
    let tickets: Vec<_> = tickets.iter().collect();
    writes.statement(|update| {
        let update = update.push("update events set popularity = events.popularity + v.column2 from (");
        let update = update.values(&tickets, |columns| _ = columns.add(|(event, _)| **event).add(|(_, tickets)| **tickets));
        update.push(") as v where events.id = v.column1")
    })
}

pub fn set_fulfilled<'a>(writes: Writes<'a>, orders: impl IntoIterator<Item = Id>, now: Timestamp) -> Writes<'a> {
    writes.statement(|update| {
        let update = update.push_bind("update orders set status = 'Fulfilled', fulfilled = ? where true", now);
        update.and_in("id", orders)
    })
}

/// Sets the final status of an order.
pub async fn set_ended(tx: &mut Tx, id: Id, status: OrderStatus) -> Result<()> {
    tx.query("update orders set status = $2 where id = $1").bind(id).bind(status).execute().await
}

/// Sets these orders to Cancelled.
pub async fn set_cancelled(tx: &mut Tx, orders: &[Id]) -> Result<()> {
    tx.update("orders set status = 'Cancelled' where true").and_in("id", orders.to_vec()).execute().await
}

/// Ends the open orders of an account and returns them: cancelled, or timed out if the reservation has expired. Waits for an
/// order that is being fulfilled at the moment, and then skips it.
pub async fn cancel_open(tx: &mut Tx, account: Id, now: Timestamp) -> Result<Vec<Id>> {
    tx.select("id from orders where status = 'Placed'").and_where("account_id = ?", Some(account)).for_update().lock().await?;
    let update = "update orders set status = case when expires > $2 then 'Cancelled' else 'Timed Out' end
         where account_id = $1 and status = 'Placed' returning id";
    tx.query(update).bind(account).bind(now).scalars().await
}

/// SQL expression for the host of the item `i`. Its event may have been deleted, because it has sold no tickets.
const HOST_OF_ITEM: &str = "coalesce((select e.host_id from events e where e.id = i.event_id),
    (select r.host_id from removed_events r where r.id = i.event_id))";

/// Returns whether an account administers the hosts of all events in an order.
pub async fn is_of_hosts_of(reader: &mut Reader, order: Id, account: Id) -> Result<bool> {
    let administered = format!("select 1 from host_administrators m where m.host_id = {HOST_OF_ITEM} and m.account_id = ?");
    let others = reader.select("i.order_id from order_items i where true").and_where("i.order_id = ?", Some(order));
    Ok(!others.push_bind(&format!(" and not exists ({administered})"), account).exists().await?)
}

/// Returns the hosts of an order's events that an account administers.
pub async fn administered_hosts(reader: &mut Reader, order: Id, account: Id) -> Result<Vec<Id>> {
    let items =
        format!("distinct m.host_id from order_items i join host_administrators m on m.host_id = {HOST_OF_ITEM} where true");
    let items = reader.select(&items).and_where("i.order_id = ?", Some(order)).and_where("m.account_id = ?", Some(account));
    items.scalars().await
}

/// Returns those of these events that belong to one of these hosts, deleted or not.
pub async fn events_of_hosts(reader: &mut Reader, events: impl IntoIterator<Item = Id>, hosts: &[Id]) -> Result<BTreeSet<Id>> {
    let events: BTreeSet<Id> = events.into_iter().collect();
    let own = reader.select("id from events where true").and_in("id", events.clone()).and_in("host_id", hosts.to_vec());
    let own = own.push(" union all select id from removed_events where true").and_in("id", events);
    Ok(own.and_in("host_id", hosts.to_vec()).scalars().await?.into_iter().collect())
}

/// Times out the next few orders whose reservations have expired, and returns them.
///
/// On PostgreSQL it skips orders that another transaction has locked, such as the job of another server or a payment; SQLite has
/// one writer at a time.
pub async fn expire_due(tx: &mut Tx, now: Timestamp) -> Result<Vec<Id>> {
    let due = if tx.is_postgres() {
        "id = any(array(select id from orders where status = 'Placed' and expires <= ? order by expires limit 50
             for no key update skip locked))"
    } else {
        "id in (select id from orders where status = 'Placed' and expires <= ? order by expires limit 50)"
    };
    let update = tx.update("orders set status = 'Timed Out' where status = 'Placed'").and_where(due, Some(now));
    update.push(" returning id").scalars().await
}

/// Locks some of the orders that were placed before this time and ended without any payment or ticket, and returns them. On
/// PostgreSQL it skips locked orders.
pub async fn lock_unpaid_before(tx: &mut Tx, before: Timestamp) -> Result<Vec<Id>> {
    // The statuses are part of the SQL text, so that the database can use the partial index of these orders.
    let unpaid = tx.select("o.id from orders o where o.status in ('Timed Out', 'Cancelled')");
    let unpaid = unpaid.and_where("o.placed < ?", Some(before)).push(
        " and not exists (select 1 from payments p where p.order_id = o.id)
          and not exists (select 1 from tickets t where t.order_id = o.id)
          and not exists (select 1 from revocations r where r.order_id = o.id)
          order by o.placed limit 500",
    );
    unpaid.push_lock(" for update of o skip locked").scalars().await
}

/// Deletes these orders with their items.
pub async fn delete(tx: &mut Tx, orders: Vec<Id>) -> Result<u64> {
    tx.delete("orders where true").and_in("id", orders).rows_affected().await
}
