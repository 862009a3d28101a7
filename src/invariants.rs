//! Invariants of the stored data that hold at any moment: places, tickets, transfers and the books.

use boxoffice_http::error::Result;

use crate::kernel::db::Reader;
use crate::kernel::types::clock::Timestamp;

/// Returns a description of every invariant that is violated at this time.
///
/// # Errors
/// Returns an error if the database fails.
pub async fn violations(reader: &mut Reader, now: Timestamp) -> Result<Vec<String>> {
    let mut violations = Vec::new();
    for (violation, sql) in INVARIANTS {
        let query = reader.query(sql);
        let query = if sql.contains("$1") { query.bind(now) } else { query };
        let ids: Vec<i64> = query.scalars().await?;
        if !ids.is_empty() {
            violations.push(format!("{violation}: {} times, such as {:?}", ids.len(), &ids[..ids.len().min(10)]));
        }
    }
    Ok(violations)
}

/// The description of each violation, and the statement that returns the ids of the rows that violate it. `$1` is the time.
const INVARIANTS: [(&str, &str); 19] = [
    (
        "a section's counters differ from its tickets and reservations",
        "select s.id from sections s where s.capacity < s.sold + s.reserved
            or s.sold <> (select count(*) from tickets t where t.section_id = s.id and t.status <> 'Void')
            or s.reserved <> s.offered
                + coalesce((select cast(sum(r.quantity) as bigint) from reservations r where r.section_id = s.id), 0)",
    ),
    (
        "a section's counters differ from its waiting list",
        "select s.id from sections s
         where s.waiting <> (select count(*) from waiting_entries w where w.section_id = s.id and w.status = 'Waiting')
            or s.offered <> coalesce((select cast(sum(w.quantity) as bigint) from waiting_entries w
                where w.section_id = s.id and w.status = 'Offered'), 0)",
    ),
    (
        "a section's counter differs from its active price modifiers",
        "select s.id from sections s
         where s.active_modifiers <> (select count(*) from modifiers m where m.section_id = s.id and m.active)",
    ),
    (
        "an event's popularity differs from its number of valid tickets",
        "select e.id from events e
         where e.popularity <> (select count(*) from tickets t where t.event_id = e.id and t.status <> 'Void')",
    ),
    (
        "an order has no items, or its reservations differ from its items",
        // The places of an expired order can be taken before a job times the order out.
        "select id from (select o.id, o.status, o.expires,
                (select cast(sum(i.quantity) as bigint) from order_items i where i.order_id = o.id) as ordered,
                coalesce((select cast(sum(r.quantity) as bigint) from reservations r where r.order_id = o.id), 0) as reserved
            from orders o) sums
         where ordered is null or reserved > case when status = 'Placed' then ordered else 0 end
            or (status = 'Placed' and expires > $1 and reserved < ordered)",
    ),
    (
        "an order's tickets differ from its items",
        "select o.id from orders o where (select count(*) from tickets t where t.order_id = o.id and t.replaced_by is null)
            <> case when o.status in ('Fulfilled', 'Returned', 'Voided')
                then (select cast(sum(i.quantity) as bigint) from order_items i where i.order_id = o.id) else 0 end",
    ),
    (
        "a returned order has a ticket that is not void",
        "select o.id from orders o where o.status = 'Returned'
            and exists (select 1 from tickets t where t.order_id = o.id and t.status <> 'Void')",
    ),
    (
        "an order's transactions differ from its payments and refunds",
        "select o.id from orders o
            left join (select order_id, cast(sum(amount) as bigint) as amount from refunds where status = 'Done' group by order_id) r
                on r.order_id = o.id
         where coalesce((select cast(sum(p.amount) as bigint) from payments p
                where p.order_id = o.id and p.status in ('Confirmed', 'Refunded')), 0) - coalesce(r.amount, 0)
            <> coalesce((select cast(sum(case t.type when 'Sale' then t.amount else -t.amount end) as bigint)
                from transactions t where t.order_id = o.id), 0)",
    ),
    (
        "a transaction differs from the sum of its hosts' shares",
        "select t.id from transactions t
         where t.amount <> (select cast(sum(s.amount) as bigint) from transaction_shares s where s.transaction_id = t.id)
            or t.fees <> (select cast(sum(s.fees) as bigint) from transaction_shares s where s.transaction_id = t.id)",
    ),
    (
        // A void order has no refunds, and its used tickets stay redeemed.
        "a host's shares differ from the price of its valid tickets",
        "select h.id from hosts h
         where coalesce((select cast(sum(case t.type when 'Sale' then s.amount else -s.amount end) as bigint)
                from transaction_shares s join transactions t on t.id = s.transaction_id
                join orders o on o.id = t.order_id and o.status in ('Fulfilled', 'Returned') where s.host_id = h.id), 0)
            - coalesce((select cast(sum(s.amount) as bigint) from refund_shares s
                join refunds r on r.id = s.refund_id and r.status = 'Owed'
                join orders o on o.id = r.order_id and o.status in ('Fulfilled', 'Returned') where s.host_id = h.id), 0)
            <> coalesce((select cast(sum(i.unit_price + i.unit_fee) as bigint) from tickets t
                join order_items i on i.order_id = t.order_id and i.section_id = t.section_id
                join orders o on o.id = t.order_id and o.status in ('Fulfilled', 'Returned')
                join events e on e.id = t.event_id where e.host_id = h.id and t.status <> 'Void'), 0)",
    ),
    (
        "a ticket is redeemed without an admission, or admitted without being redeemed",
        "select t.id from tickets t where (t.status = 'Redeemed')
            <> exists (select 1 from admissions a where a.ticket_id = t.id) and t.status <> 'Void'",
    ),
    (
        "a pending ticket is not in exactly one open transfer",
        "select t.id from tickets t where (select count(*) from transfer_tickets h
                join transfers f on f.id = h.transfer_id and f.status = 'Pending' where h.ticket_id = t.id)
            <> case t.status when 'Pending' then 1 else 0 end",
    ),
    (
        "a ticket of a claimed transfer was not replaced by a ticket of the recipient",
        "select f.id from transfers f join transfer_tickets h on h.transfer_id = f.id join tickets t on t.id = h.ticket_id
            left join tickets n on n.id = t.replaced_by
         where f.status = 'Claimed' and (n.id is null or n.owner_id <> f.recipient_id or n.serial = t.serial
            or (n.order_id, n.event_id, n.section_id) <> (t.order_id, t.event_id, t.section_id))",
    ),
    (
        "a replaced ticket is not void, or was in no claimed transfer",
        "select t.id from tickets t where t.replaced_by is not null and (t.status <> 'Void'
            or 1 <> (select count(*) from transfer_tickets h join transfers f on f.id = h.transfer_id
                where h.ticket_id = t.id and f.status = 'Claimed'))",
    ),
    (
        "the number of rows of a list differs from its rows",
        "select owner from (
            select list, owner, -count as number from list_counts
            union all select 'accounts', 0, 1 from accounts where removed = false
            union all select 'orders', 0, 1 from orders
            union all select 'account orders', account_id, 1 from orders
            union all select 'event orders', event_id, 1 from (select distinct order_id, event_id from order_items) i
            union all select 'host orders', host_id, 1 from host_orders
            union all select 'transactions', 0, 1 from transactions
            union all select 'host transactions', host_id, 1 from transaction_shares
            union all select 'account tickets', owner_id, 1 from tickets where replaced_by is null
            union all select 'section admissions', section_id, 1 from admissions
            union all select 'sent transfers', sender_id, 1 from transfers
            union all select 'received transfers', recipient_id, 1 from transfers
            union all select case when status in ('Listed', 'Cancelled') then 'open events' else 'closed events' end, 0, 1 from events
            union all select case when status in ('Listed', 'Cancelled') then 'open events of host' else 'closed events of host' end,
                host_id, 1 from events
         ) r group by list, owner having sum(number) <> 0",
    ),
    (
        "a host's orders differ from the items for its events",
        "select order_id from (
            select host_id, order_id, -items as number from host_orders
            union all select e.host_id, i.order_id, 1 from order_items i join (
                select id, host_id from events union all select id, host_id from removed_events) e on e.id = i.event_id
         ) r group by host_id, order_id having sum(number) <> 0",
    ),
    (
        "the sums of an event's sales differ from its sold tickets",
        "select event_id from (
            select event_id, day, section_id, -orders as orders, -tickets as tickets, -sales as sales, -fees as fees from event_sales
            union all select t.event_id, o.fulfilled / 86400000000, t.section_id, 0, 1, i.unit_price, i.unit_fee
                from tickets t join orders o on o.id = t.order_id and o.status = 'Fulfilled'
                join order_items i on i.order_id = t.order_id and i.section_id = t.section_id where t.status <> 'Void'
            union all select event_id, day, 0, 1, 0, 0, 0 from (
                select distinct t.order_id, t.event_id, o.fulfilled / 86400000000 as day
                from tickets t join orders o on o.id = t.order_id and o.status = 'Fulfilled' where t.status <> 'Void') d
         ) r group by event_id, day, section_id
         having sum(orders) <> 0 or sum(tickets) <> 0 or sum(sales) <> 0 or sum(fees) <> 0",
    ),
    (
        "the orders of a host's customer differ from those with sold tickets",
        "select account_id from (
            select host_id, account_id, -orders as orders from host_customers
            union all select host_id, account_id, 1 from (
                select distinct t.order_id, e.host_id, o.account_id from tickets t join events e on e.id = t.event_id
                join orders o on o.id = t.order_id and o.status = 'Fulfilled' where t.status <> 'Void') d
         ) r group by host_id, account_id having sum(orders) <> 0",
    ),
    (
        "the sums of a host's sales differ from its sold tickets",
        "select host_id from (
            select host_id, -orders as orders, -tickets as tickets, -sales as sales, -customers as customers from host_sales
            union all select e.host_id, 0, 1, i.unit_price, 0
                from tickets t join orders o on o.id = t.order_id and o.status = 'Fulfilled' join events e on e.id = t.event_id
                join order_items i on i.order_id = t.order_id and i.section_id = t.section_id where t.status <> 'Void'
            union all select host_id, count(*), 0, 0, count(distinct account_id) from (
                select distinct t.order_id, e.host_id, o.account_id from tickets t join events e on e.id = t.event_id
                join orders o on o.id = t.order_id and o.status = 'Fulfilled' where t.status <> 'Void') d group by host_id
         ) r group by host_id having sum(orders) <> 0 or sum(tickets) <> 0 or sum(sales) <> 0 or sum(customers) <> 0",
    ),
];
