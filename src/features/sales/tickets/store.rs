//! SQL of tickets.

use std::collections::HashMap;

use boxoffice_http::error::Result;

use super::model::{EventTicketFilter, TicketRow, TicketStatus};
use crate::features::catalog::sections;
use crate::features::catalog::tokens::{self, AdmissionScope};
use crate::features::identity::accounts;
use crate::kernel::db::{Reader, Statement, Tx, Writes, define_sql};
use crate::kernel::types::clock::Timestamp;
use crate::kernel::types::id::Id;
use crate::kernel::types::paging::{PageRequest, PagedRows, SortOrder};

// The columns of `TicketRow`.
define_sql!(columns, "id, serial, order_id, event_id, section_id, owner_id, status, issued, redeemed, modified");
// The same for a statement that joins the tickets as `t` with other tables.
define_sql!(
    joined_columns,
    "t.id, t.serial, t.order_id, t.event_id, t.section_id, t.owner_id, t.status, t.issued, t.redeemed, t.modified"
);
pub(in crate::features) use joined_columns;

/// Sets the time of the last change but admissions to `?`, which is the current time. The time of a ticket always increases, even
/// if the clock of the server that made the change before is ahead.
pub const SET_MODIFIED: &str = ", modified = case when modified < ? then ? else modified + 1 end";

/// Size of a ticket in a page without its section and its owner, in bytes.
pub const BYTES: i64 = 500;

/// Returns the SQL expression for the size of a ticket in a page, in bytes, by the columns of its section and its owner.
pub fn bytes_sql(section: &str, owner: &str) -> String {
    let (of_section, of_owner) = (sections::store::BYTES, accounts::bytes_sql(owner));
    format!("({BYTES} + coalesce((select {of_section} from sections s where s.id = {section}), 0) + {of_owner})")
}

/// Returns a page of the tickets of an event within the caller's admission scope, the oldest first: the valid ones, or all those
/// that have changed since a time or have a serial number, whatever their status is now.
pub async fn list_of_event(
    reader: &mut Reader,
    event: Id,
    scope: AdmissionScope,
    filter: &EventTicketFilter,
    now: Timestamp,
) -> Result<PagedRows<TicketRow>> {
    let EventTicketFilter { paging, modified_since, serial, holder, search } = filter;
    if modified_since.is_none() && serial.is_none() && holder.is_none() && search.is_none() {
        return list_valid_of_event(reader, event, scope, *paging).await;
    }
    let of_holder = "owner_id in (select p.id from accounts p where lower(p.email) = ? or lower(p.username) = ?)";
    let any_status = modified_since.is_some() || serial.is_some();
    let changes = Changes::of(event, modified_since.map(|since| or_all_if_future(since.0, now)));
    changes
        .select_from(reader.list(columns!(), "from "))
        .push(if any_status { "" } else { " and status <> 'Void'" })
        .and_where(&tokens::covers_sql("section_id"), scope.token())
        .and_where("serial = ?", serial.as_ref().map(|serial| serial.0.clone()))
        .and_where(of_holder, holder.as_ref().map(|holder| holder.trim().to_lowercase()))
        .and_contains(&accounts::folded_names_sql("owner_id"), search.as_deref())
        .page(changes.order(), *paging)
        .await
}

/// Returns a time that selects everything for one in the future: a device may have it from a server whose clock was ahead, and what was
/// changed since the correction of that clock has earlier times.
pub fn or_all_if_future(since: Timestamp, now: Timestamp) -> Timestamp {
    if since > now { Timestamp(0) } else { since }
}

/// The tickets of an event that have changed since a time, or all of them.
struct Changes {
    event: Id,
    since: Option<Timestamp>,
}

impl Changes {
    /// Devices begin with a time before the event's creation, which selects all tickets.
    fn of(event: Id, since: Option<Timestamp>) -> Self {
        Self { event, since: since.filter(|since| Id::first_at(*since) > event) }
    }

    /// Adds these tickets to a select that ends with `from`. [`redeem`] leaves the time of the last change, so an admission is found
    /// by its identifier, which has its time.
    ///
    /// Without the subqueries, PostgreSQL would plan each execution for its time, which takes longer than the execution. With the
    /// upper bounds, it expects few changes.
    fn select_from<'tx>(&self, select: Statement<'tx>) -> Statement<'tx> {
        let Some(since) = self.since else { return select.push("tickets where true").and_key("event_id", self.event) };
        select
            .push_bind(concat!("(select ", columns!(), " from tickets where event_id = ?"), self.event)
            .push_bind(&format!(" and modified >= (select ?) and modified < {}", i64::MAX), since)
            .push_bind(
                concat!(" union all select ", columns!(), " from (select ticket_id from admissions where event_id = ?"),
                self.event,
            )
            .push_bind(&format!(" and id >= (select ?) and id < {}) admitted", i64::MAX), Id::first_at(since))
            .push_bind(" join tickets on tickets.id = ticket_id where modified < ?) changed where true", since)
    }

    /// With the sign, the database finds the few changes first, and sorts them.
    fn id(&self) -> &'static str {
        if self.since.is_some() { "+id" } else { "id" }
    }

    fn order(&self) -> &'static str {
        if self.since.is_some() { self.id() } else { "event_id, id" }
    }
}

/// Returns a page of the valid tickets of an event. Its sections have their number, because they count the places that are sold.
async fn list_valid_of_event(
    reader: &mut Reader,
    event: Id,
    scope: AdmissionScope,
    paging: PageRequest,
) -> Result<PagedRows<TicketRow>> {
    let sold = "coalesce((select cast(sum(s.sold) as bigint) from sections s where s.event_id = ?";
    let tickets = reader.list(columns!(), "from tickets where status <> 'Void'").and_key("event_id", event);
    let tickets = match scope.token() {
        None => tickets.push_total(&format!("{sold}), 0)"), event),
        Some(token) => {
            let of_token = format!(" and {}), 0)", tokens::covers_sql("s.id"));
            let tickets = tickets.and_where(&tokens::covers_sql("section_id"), Some(token));
            tickets.push_total(sold, event).push_total(&of_token, token)
        }
    };
    tickets.page("event_id, id", paging).await
}

/// A ticket in a list for a gate.
#[derive(Debug, sqlx_macros::FromRow)]
pub struct GateTicketRow {
    pub id: Id,
    pub serial: String,
    pub section_id: Id,
    pub status: TicketStatus,
}

/// Returns the tickets of an event within the caller's admission scope that follow `after`, by ascending identifier: the valid ones,
/// or all those that have changed at `modified_since` or later.
pub async fn list_for_gate(
    reader: &mut Reader,
    event: Id,
    scope: AdmissionScope,
    modified_since: Option<Timestamp>,
    after: Id,
    limit: i64,
) -> Result<Vec<GateTicketRow>> {
    let changes = Changes::of(event, modified_since);
    let tickets = changes.select_from(reader.select("id, serial, section_id, status from "));
    let tickets = tickets.push(if modified_since.is_some() { "" } else { " and status <> 'Void'" });
    let tickets = tickets.and_where(&tokens::covers_sql("section_id"), scope.token());
    let tickets = tickets.push_bind(&format!(" and {} > ?", changes.id()), after);
    tickets.push(" order by ").push(changes.order()).push(&format!(" limit {limit}")).all().await
}

/// Returns the same page of the tickets of each of these accounts, the oldest first, without those that were replaced.
pub async fn list_of_accounts(
    reader: &mut Reader,
    accounts: impl IntoIterator<Item = Id>,
    paging: PageRequest,
) -> Result<HashMap<Id, PagedRows<TicketRow>>> {
    let tickets = reader.list(columns!(), "from tickets where replaced_by is null").with_list_counts("account tickets");
    tickets.pages_by_key("tickets", "owner_id", accounts, SortOrder::Asc, paging).await
}

/// Returns a page of the tickets of an order, the oldest first, without those that were replaced.
pub async fn list_of_order(reader: &mut Reader, order: Id, paging: PageRequest) -> Result<PagedRows<TicketRow>> {
    reader
        .list(columns!(), "from tickets where replaced_by is null")
        .and_where("order_id = ?", Some(order))
        .page("id", paging)
        .await
}

/// Returns a ticket, unless it was replaced.
pub async fn find(reader: &mut Reader, id: Id) -> Result<Option<TicketRow>> {
    let ticket = reader.select(concat!(columns!(), " from tickets where replaced_by is null")).and_where("id = ?", Some(id));
    ticket.optional().await
}

/// Returns whether an account has an unused ticket for an event that is not cancelled and has not ended.
pub async fn has_upcoming(reader: &mut Reader, account: Id, now: Timestamp) -> Result<bool> {
    let query = "select exists (select 1 from tickets t join events e on e.id = t.event_id
        where t.owner_id = $1 and t.status in ('Issued', 'Pending') and e.ends > $2
        and e.status <> 'Cancelled')";
    reader.query(query).bind(account).bind(now).scalar().await
}

pub fn insert<'a>(writes: Writes<'a>, tickets: &[TicketRow]) -> Writes<'a> {
    let into = "tickets (id, serial, order_id, event_id, section_id, owner_id, status, issued, redeemed, modified)";
    writes.insert_rows(into, tickets, |columns| {
        columns
            .add(|ticket| ticket.id)
            .add(|ticket| ticket.serial.clone())
            .add(|ticket| ticket.order_id)
            .add(|ticket| ticket.event_id)
            .add(|ticket| ticket.section_id)
            .add(|ticket| ticket.owner_id)
            .add(|ticket| ticket.status)
            .add(|ticket| ticket.issued)
            .add(|ticket| ticket.redeemed)
            .add(|ticket| ticket.modified);
    })
}

/// Locks the tickets with these serial numbers until the transaction ends.
pub async fn lock_by_serials(tx: &mut Tx, serials: impl IntoIterator<Item = String>) -> Result<()> {
    tx.select("id from tickets where true").and_in("serial", serials).for_update().lock().await
}

/// Redeems the tickets with these serial numbers that are Issued and within the admission scope, and returns them unsorted. The
/// tickets must be [locked](lock_by_serials).
///
/// The update checks the status that it replaces, so that of two devices with the same ticket exactly one redeems it: the other
/// waits for the first one's commit and then finds the ticket Redeemed.
///
/// The update changes no column of an index, so that PostgreSQL writes the new row into the page of the old one, and into no index
/// (a HOT update).
pub async fn redeem(
    tx: &mut Tx,
    event: Id,
    serials: Vec<String>,
    scope: AdmissionScope,
    now: Timestamp,
) -> Result<Vec<TicketRow>> {
    tx.update("tickets")
        .push_bind(" set status = ?", TicketStatus::Redeemed)
        .push_bind(", redeemed = ?", now)
        .push_bind(" where status = ?", TicketStatus::Issued)
        // Without the sign, the database would read all tickets of the event by its index.
        .and_where("+event_id = ?", Some(event))
        .and_in("serial", serials)
        .and_where(&tokens::covers_sql("section_id"), scope.token())
        .push(" returning ")
        .push(columns!())
        .all()
        .await
}

/// Sets a Redeemed ticket to Issued again. Returns false, and changes nothing, if its order was voided. The [order](lock_orders) and
/// the [ticket](lock_by_ids) must be locked.
pub async fn undo_redemption(tx: &mut Tx, ticket: Id, now: Timestamp) -> Result<bool> {
    let update = tx.update("tickets").push_bind(" set status = ?", TicketStatus::Issued).push(", redeemed = null");
    let update = update.push_bind(SET_MODIFIED, now).push_bind(" where status = ?", TicketStatus::Redeemed);
    let of_valid_order = "(select o.status from orders o where o.id = tickets.order_id) = 'Fulfilled'";
    Ok(update.and_where("id = ?", Some(ticket)).push(" and ").push(of_valid_order).rows_affected().await? == 1)
}

/// Locks the tickets of an account with these serial numbers by ascending identifier, and returns them with any status, without
/// those that were replaced. Locks their orders in share mode first: a return of the tickets waits, and finds the transfer that
/// offers them.
pub async fn lock_own(tx: &mut Tx, owner: Id, serials: Vec<String>) -> Result<Vec<TicketRow>> {
    let orders = tx.select("id from orders where id in (select order_id from tickets where true");
    let orders = orders.and_where("+owner_id = ?", Some(owner)).and_in("serial", serials.clone());
    orders.push(")").for_share().lock().await?;
    let tickets = tx.select(concat!(columns!(), " from tickets where replaced_by is null"));
    // Without the sign, the database would read all tickets of the owner by its index.
    let tickets = tickets.and_where("+owner_id = ?", Some(owner)).and_in("serial", serials);
    tickets.for_update().all().await
}

/// Sets the tickets that are Issued and belong to `owner` to Pending, and returns the changed tickets.
pub async fn mark_pending(tx: &mut Tx, tickets: &[Id], owner: Id, now: Timestamp) -> Result<Vec<Id>> {
    tx.update("tickets")
        .push_bind(" set status = ?", TicketStatus::Pending)
        .push_bind(SET_MODIFIED, now)
        .push_bind(" where status = ?", TicketStatus::Issued)
        .and_where("owner_id = ?", Some(owner))
        .and_in("id", tickets.to_vec())
        .push(" returning id")
        .scalars()
        .await
}

/// Locks the Pending tickets of an account among these by ascending identifier, and returns them.
pub async fn lock_pending(tx: &mut Tx, tickets: &[Id], owner: Id) -> Result<Vec<TicketRow>> {
    tx.select(concat!(columns!(), " from tickets where true"))
        .and_where("owner_id = ?", Some(owner))
        .and_where("status = ?", Some(TicketStatus::Pending))
        .and_in("id", tickets.to_vec())
        .for_update()
        .all()
        .await
}

/// Locks the orders of these tickets, so that none of their tickets is returned or voided until the transaction ends. The lock is
/// shared: several tickets of an order can be replaced at the same time. SQLite needs no lock, because it runs one writing
/// transaction at a time.
pub async fn lock_orders(tx: &mut Tx, tickets: &[Id]) -> Result<()> {
    let locked = tx.select("id from orders where id in (select order_id from tickets where true").and_in("id", tickets.to_vec());
    locked.push(")").for_share().lock().await
}

/// Voids tickets that are replaced: pairs of a ticket, which must be [locked](lock_pending), and the ticket in its place.
pub async fn set_replaced(tx: &mut Tx, replacements: impl Iterator<Item = (Id, Id)>, now: Timestamp) -> Result<()> {
    let update = tx.update("tickets").push_bind(" set status = ?", TicketStatus::Void).push_bind(SET_MODIFIED, now);
    let update = update.push(", replaced_by = v.column2 from (");
    let replacements: Vec<(Id, Id)> = replacements.collect();
    let update = update.values(&replacements, |columns| _ = columns.add(|(ticket, _)| *ticket).add(|(_, new)| *new));
    update.push(") as v where tickets.id = v.column1").execute().await
}

/// Locks these tickets by ascending identifier until the transaction ends.
pub async fn lock_by_ids(tx: &mut Tx, ids: impl IntoIterator<Item = Id>) -> Result<()> {
    tx.select("id from tickets where true").and_in("id", ids).for_update().lock().await
}

/// Sets these Pending tickets to Issued again, and leaves them to their owners. Returns whether all of them were Pending. The
/// tickets must be [locked](lock_by_ids).
pub async fn release(tx: &mut Tx, tickets: &[Id], now: Timestamp) -> Result<bool> {
    let update = tx.update("tickets").push_bind(" set status = ?", TicketStatus::Issued).push_bind(SET_MODIFIED, now);
    let update = update.push_bind(" where status = ?", TicketStatus::Pending).and_in("id", tickets.to_vec());
    Ok(update.rows_affected().await? == tickets.len() as u64)
}

/// Returns the tickets of an order, the oldest first, without those that were replaced.
pub async fn find_by_order(reader: &mut Reader, order: Id) -> Result<Vec<TicketRow>> {
    let tickets = reader.select(concat!(columns!(), " from tickets where replaced_by is null"));
    tickets.and_where("order_id = ?", Some(order)).push(" order by id").all().await
}

/// Locks the tickets of an order until the transaction ends, and returns them, the oldest first, without those that were replaced.
pub async fn lock_of_order(tx: &mut Tx, order: Id) -> Result<Vec<TicketRow>> {
    tx.select(concat!(columns!(), " from tickets where replaced_by is null"))
        .and_where("order_id = ?", Some(order))
        .for_update()
        .all()
        .await
}

/// Voids tickets. They must be locked.
pub async fn void(tx: &mut Tx, tickets: impl IntoIterator<Item = Id>, now: Timestamp) -> Result<()> {
    let update = tx.update("tickets set status = 'Void'").push_bind(SET_MODIFIED, now).push(" where true");
    update.and_in("id", tickets).execute().await
}

/// Returns the identifiers of all tickets of an account.
pub async fn ids_of_account(reader: &mut Reader, account: Id) -> Result<Vec<Id>> {
    reader.query("select id from tickets where owner_id = $1").bind(account).scalars().await
}

/// Marks every ticket of an account as changed, because the account's data, which tickets show, was erased.
pub async fn touch_of_account(tx: &mut Tx, account: Id, now: Timestamp) -> Result<()> {
    tx.select("id from tickets where true").and_where("owner_id = ?", Some(account)).for_update().lock().await?;
    let update = tx.update("tickets set owner_id = owner_id").push_bind(SET_MODIFIED, now).push(" where true");
    update.and_where("owner_id = ?", Some(account)).execute().await
}

/// Returns the public keys with these identifiers.
pub async fn find_keys(reader: &mut Reader, kids: impl IntoIterator<Item = String>) -> Result<Vec<String>> {
    reader.select("public_key from ticket_keys where true").and_in("kid", kids).scalars().await
}

/// Returns all public keys with their identifiers, the newest first.
pub async fn list_keys(reader: &mut Reader) -> Result<Vec<(String, String)>> {
    reader.query("select kid, public_key from ticket_keys order by created desc, kid").all().await
}

/// Inserts a public key. Does nothing if another server has inserted it.
pub async fn insert_key(tx: &mut Tx, kid: String, public_key: String, now: Timestamp) -> Result<()> {
    let insert = "insert into ticket_keys (kid, public_key, created) values ($1, $2, $3) on conflict (kid) do nothing";
    tx.query(insert).bind(kid).bind(public_key).bind(now).execute().await
}
