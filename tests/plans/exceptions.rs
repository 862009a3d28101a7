//! Statements that may read many rows, each with its reason.

use std::fmt::{self, Display, Formatter};

/// Allows the statements that contain a text to read many rows.
pub struct Exception {
    /// A part of the statement's text.
    statement: &'static str,
    reason: &'static str,
}

/// The total of a filtered list, and of a list that stays short, is counted, and a filter reads the rows that it excludes.
const LIST: &str = "a list with a total";
/// Reads nothing but the rows that it returns, adds up, changes or removes.
const ALL_OF_THEM: &str = "all of these rows are needed";
const ONE_ROW: &str = "the table has one row";
/// The row that is removed has few or no references, because others prevent the removal or were removed before.
const REMOVAL: &str = "a removal looks for references to the row";
/// A bound of what an account can store limits the number.
const STORAGE_LIMIT: &str = "the number is limited";

#[rustfmt::skip]
pub const EXCEPTIONS: &[Exception] = &[
    exception(" as list_total", LIST),
    // The sizes of the entries up to a page.
    exception("select cast((", LIST),
    exception("from events where venue_id = $1 order by id desc limit 1000", "at most 1,000 events of a venue that waits for review"),
    exception("select o.id from orders o where", "the orders that a regular expression selects, at most 2,000 at a time"),
    exception("select last_seen, before_step, accepted_at from clock_state", ONE_ROW),
    exception("update clock_state set last_seen =", ONE_ROW),
    exception("select id from events where status = 'Cancelled'", "a correction after the clock was wrong"),
    exception("update event_returns set due =", "a correction after the clock was wrong"),
    exception("update payments set placed =", "a correction after the clock was wrong"),
    exception("update waiting_entries set offered =", "a correction after the clock was wrong"),
    exception("last_used = case when last_used > $2 then $1", "a correction after the clock was wrong"),
    exception("delete from advertisement_slots where advertisement_id =", STORAGE_LIMIT),
    exception("delete from advertisement_zones where advertisement_id =", STORAGE_LIMIT),
    exception("from advertisement_slots where true and advertisement_id in", STORAGE_LIMIT),
    exception("from advertisement_zones where true and advertisement_id in", STORAGE_LIMIT),
    exception("delete from advertisements where", REMOVAL),
    exception("delete from events where id =", REMOVAL),
    exception("delete from payments where id =", REMOVAL),
    exception("delete from regions where id =", REMOVAL),
    exception("delete from sections where id =", REMOVAL),
    exception("delete from subcategories where category_id =", REMOVAL),
    exception("insert into subcategories (category_id, name, position)", REMOVAL),
    exception("delete from venues where id =", REMOVAL),
    exception("delete from zones where id =", REMOVAL),
    exception("update zones set name", REMOVAL),
    exception("update payments set status = 'Abandoned'", "a gateway decides on a payment within a minute"),
    exception("from regions where true and folded_name is null)", "partial indexes of sections and modifiers have no other rows"),
    exception("from accounts where role = 'administrator'", "administrators are few"),
    exception("from event_returns where status = 'Running'", "an event has one run at a time"),
    exception("delete from codes where account_id =", ALL_OF_THEM),
    exception("from codes where account_id =", "the codes of the last hour, whose number is limited"),
    exception("update codes set status = 'Closed' where account_id =", "the codes of the last hour, whose number is limited"),
    exception("delete from host_administrators where account_id =", STORAGE_LIMIT),
    exception("select count(*) from host_administrators m", STORAGE_LIMIT),
    exception("from host_administrators m join accounts a on a.id = m.account_id where m.host_id =", STORAGE_LIMIT),
    exception("select exists (select 1 from tickets where owner_id = $1 and event_id = $2", "ends at the first ticket that is not void"),
    exception("select count(*) from advertisements where event_id =", STORAGE_LIMIT),
    exception("select count(*) from tokens where event_id =", STORAGE_LIMIT),
    exception("delete from login_addresses where account_id =", "at most ten of an account"),
    exception("as has_expired from sections", "ends at the first row"),
    exception("delete from reservations where", "the expired reservations of a section"),
    exception("as reserved, s.maximum_per_account", "the expired reservations of a section"),
    exception("from events e join sections s on s.event_id = e.id join reservations r", "the open orders of cancelled events, at most 50 at a time"),
    // Also the expired reservations of its sections.
    exception("select count from event_changes", ONE_ROW),
    exception("from event_changes c left join", ONE_ROW),
    exception("update event_changes set count", ONE_ROW),
    exception("select exists (select 1 from venue_changes)", "ends at the first row"),
    exception("from events e where e.venue_id =", "the events of a changed venue, 200 at a time"),
    exception("select id from api_keys where token_id =", "the keys of a token, whose number is limited"),
    exception("select min(ends) from events", "ends at the first row"),
    exception("delete from submissions where true and type =", ALL_OF_THEM),
    exception("select o.account_id, r.section_id, r.quantity from orders o", "the open orders of an account"),
    exception("t.section_id, 1 as tickets", "a report on a period that begins or ends within a day"),
    exception("select count(distinct i.order_id)", "the progress of a run counts the orders that are left"),
    exception("x.tickets, x.price, x.fees from (", "an export of all orders, 1,000 at a time"),
    exception("update audit_retention set deletable_before", ONE_ROW),
    exception("update job_runs set leased_until = 0 where server", "there are few jobs, and a server releases them when it stops"),
    exception("cast(sum(s.capacity) as bigint), 0) from events e", "the metric of places adds up the listed events"),
    exception("select count(*), min(since) from (", "the metric of refunds counts those that the gateway has not made"),
    exception("select t.id, t.owner_id from tickets t where t.event_id", "a job writes to all holders of an event, a part at a time"),
    exception("select distinct country from regions", "regions are few"),
    exception("select distinct name from subcategories", "categories are few"),
    exception("select kid, public_key from ticket_keys", "each server has one"),
    exception("select id, serial, section_id, status from (select id", "the changed tickets of an event, for a gate"),
    exception("select exists (select 1 from accounts)", "ends at the first row"),
    exception("select exists (select 1 from tickets t join events e", "an account's tickets, when it is deleted"),
    exception("where (s.waiting > 0 or s.offered > 0)", "the sections with a waiting list, until the first that needs the job"),
    exception("update waiting_entries set status = 'Closed'", ALL_OF_THEM),
    exception("delete from waiting_entries where account_id =", "an account's entries, when it is deleted"),
    exception("select id from tickets where owner_id = $1", "an account's tickets, when it is deleted"),
    exception("update tickets set owner_id = owner_id", "an account's tickets, when it is deleted"),
    exception("from transfers where status = 'Pending' and (sender_id =", "an account's transfers, when it is deleted"),
    exception("from transfers where status = 'Pending' and id in", "the transfers of the tickets that are returned"),
    exception("delete from outbox where account_id = $1 or address_account_id = $1", "an account's mail, when it is deleted"),
    exception("cast(json_object(", "the export of an account, which is rare"),
    exception("update api_keys set ended = $2 where account_id =", ALL_OF_THEM),
    exception("update api_keys set ended = $4 where account_id =", ALL_OF_THEM),
    exception("update api_keys set ended = $2 where token_id =", ALL_OF_THEM),
    exception("and token_id in (select t.id from tokens t where t.event_id =", ALL_OF_THEM),
];

const fn exception(statement: &'static str, reason: &'static str) -> Exception {
    Exception { statement, reason }
}

impl Exception {
    pub fn covers(&self, text: &str) -> bool {
        text.contains(self.statement)
    }
}

impl Display for Exception {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` ({})", self.statement, self.reason)
    }
}
