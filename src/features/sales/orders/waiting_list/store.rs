//! SQL of waiting lists. The section of an entry that is written must be locked.

use std::collections::BTreeSet;

use boxoffice_http::error::Result;

use super::model::{CandidateRow, EntriesOf, EntryRow, NewEntry, OfferRow, WaitingStatus};
use crate::features::catalog::sections;
use crate::kernel::db::{Reader, Tx, define_sql};
use crate::kernel::types::clock::Timestamp;
use crate::kernel::types::id::Id;
use crate::kernel::types::paging::{PageRequest, PagedRows};

// The columns of `EntryRow` of an entry `w` and its section `s`.
define_sql!(
    columns,
    "w.id, w.section_id, s.event_id, w.account_id, w.quantity, w.status, w.joined, w.expires, \
     case w.status when 'Waiting' then (select count(*) from waiting_entries p where p.section_id = w.section_id \
     and p.status = 'Waiting' and p.id <= w.id) else 0 end as position"
);

/// Returns the entry with this identifier.
pub async fn find(reader: &mut Reader, id: Id) -> Result<Option<EntryRow>> {
    let find = concat!("select ", columns!(), " from waiting_entries w join sections s on s.id = w.section_id where w.id = $1");
    reader.query(find).bind(id).optional().await
}

/// Returns the entry of an account in the list of a section.
pub async fn find_of_account(reader: &mut Reader, section: Id, account: Id) -> Result<Option<EntryRow>> {
    let find = concat!(
        "select ",
        columns!(),
        " from waiting_entries w join sections s on s.id = w.section_id where w.section_id = $1 and w.account_id = $2"
    );
    reader.query(find).bind(section).bind(account).optional().await
}

/// Returns a page of entries in the order of joining.
pub async fn list(reader: &mut Reader, of: EntriesOf, paging: PageRequest) -> Result<PagedRows<EntryRow>> {
    let entries = reader.list(columns!(), "from waiting_entries w join sections s on s.id = w.section_id where true");
    let entries = match of {
        EntriesOf::Section(id) => entries.and_where("w.section_id = ?", Some(id)).push(" and w.status in ('Waiting', 'Offered')"),
        EntriesOf::Account(id) => entries.and_where("w.account_id = ?", Some(id)),
    };
    entries.page("w.id", paging).await
}

/// Returns the number of entries of an account that wait or have an open offer.
pub async fn count_open(reader: &mut Reader, account: Id, now: Timestamp) -> Result<i64> {
    let count = "select count(*) from waiting_entries
         where account_id = $1 and status in ('Waiting', 'Offered') and (status = 'Waiting' or expires > $2)";
    reader.query(count).bind(account).bind(now).scalar().await
}

pub async fn insert(tx: &mut Tx, row: NewEntry) -> Result<()> {
    tx.query("insert into waiting_entries (id, section_id, account_id, quantity, status, joined) values ($1, $2, $3, $4, $5, $6)")
        .bind(row.id)
        .bind(row.section_id)
        .bind(row.account_id)
        .bind(row.quantity)
        .bind(WaitingStatus::Waiting)
        .bind(row.joined)
        .execute()
        .await
}

pub async fn delete(tx: &mut Tx, id: Id) -> Result<()> {
    tx.query("delete from waiting_entries where id = $1").bind(id).execute().await
}

/// Deletes the entries of an account. Returns the section, the status and the number of places of each.
pub async fn delete_of_account(tx: &mut Tx, account: Id) -> Result<Vec<(Id, WaitingStatus, i64)>> {
    tx.query("delete from waiting_entries where account_id = $1 returning section_id, status, quantity").bind(account).all().await
}

/// Returns the open offers of these accounts in these sections.
pub async fn offers_of(
    reader: &mut Reader,
    accounts: impl IntoIterator<Item = Id>,
    sections: BTreeSet<Id>,
    now: Timestamp,
) -> Result<Vec<OfferRow>> {
    let offers = reader.select("id, section_id, account_id, quantity from waiting_entries where status = 'Offered'");
    let offers = offers.and_in("section_id", sections).and_in("account_id", accounts);
    offers.and_where("expires > ?", Some(now)).all().await
}

/// Ends offers that an order uses. Their sections are locked; their places stay counted as reserved.
pub async fn accept(tx: &mut Tx, offers: &[OfferRow]) -> Result<()> {
    if offers.is_empty() {
        return Ok(());
    }
    let ordered = tx.update("waiting_entries set status = 'Ordered' where true");
    ordered.and_in("id", offers.iter().map(|offer| offer.id)).execute().await?;
    sections::end_offers(tx, offers.iter().map(|offer| (offer.section_id, offer.quantity))).await
}

/// SQL condition that the list of a section `s` of an event `e` of a host `h` ends. `?` is the current time.
const IS_CLOSED: &str = "(s.sales_end <= ? or e.ends <= ? or e.status = 'Cancelled' or h.removed)";
/// SQL condition that the tickets of such a section are on sale.
const IS_ON_SALE: &str = "(s.active and s.sales_start <= ? and e.status = 'Listed')";
// SQL condition that the account of an entry `w` was deactivated.
define_sql!(is_deactivated, "exists (select 1 from accounts a where a.id = w.account_id and not a.activated)");

/// SQL condition that an entry `w` can't be served, however many places of its section `s` become free. It leaves out the places that the
/// account has already, because reading them takes the longer, the more orders the account has.
const IS_UNSERVABLE: &str = concat!("(w.quantity > s.capacity or w.quantity > s.maximum_per_account or ", is_deactivated!(), ")");
/// SQL condition that an offer `w` has ended: it was not used in time, or its account was deactivated and can't use it. `?` is the
/// current time.
const IS_OVER: &str = concat!("w.status = 'Offered' and (w.expires <= ? or ", is_deactivated!(), ")");

fn due_sql() -> String {
    let has_lapsed =
        format!("(s.offered > 0 and exists (select 1 from waiting_entries w where w.section_id = s.id and {IS_OVER}))");
    // Places are free, counting those of expired reservations, and an entry waits for no more of them, or can't be served and keeps
    // others from ordering them. Usually none is free, so the entries are not read.
    let has_next = format!(
        "s.waiting > 0 and exists (select 1 from (
            select s.capacity - s.sold - s.reserved + coalesce((select cast(sum(r.quantity) as bigint) from reservations r
                where r.section_id = s.id and r.expires <= ?), 0) as places
         ) free cross join waiting_entries w where free.places > 0 and w.section_id = s.id and w.status = 'Waiting'
            and (w.quantity <= free.places or {IS_UNSERVABLE}))"
    );
    format!(
        "s.id from sections s join events e on e.id = s.event_id join hosts h on h.id = e.host_id
         where (s.waiting > 0 or s.offered > 0)
         and ({IS_CLOSED} or {has_lapsed} or {IS_ON_SALE} and {has_next})"
    )
}

/// Returns whether the list of a section needs the job. A cheap check, because usually none does.
pub async fn is_any_due(reader: &mut Reader, now: Timestamp) -> Result<bool> {
    reader.select("").push_bind(&due_sql(), now).push(" limit 1").exists().await
}

/// Locks and returns a section whose list needs the job, and which no other transaction has locked.
pub async fn claim(tx: &mut Tx, now: Timestamp) -> Result<Option<Id>> {
    tx.select("")
        .push_bind(&due_sql(), now)
        .push(" limit 1")
        .push_lock(" for no key update of s skip locked")
        .optional_scalar()
        .await
}

/// Ends all entries of a section that wait or have an offer. Returns their number.
pub async fn close(tx: &mut Tx, section: Id) -> Result<u64> {
    let close = "update waiting_entries set status = 'Closed' where section_id = $1 and status in ('Waiting', 'Offered')";
    tx.query(close).bind(section).rows_affected().await
}

/// Ends the offers of a section that were not used in time, or whose accounts were deactivated. Returns the numbers of their places.
pub async fn lapse(tx: &mut Tx, section: Id, now: Timestamp) -> Result<Vec<i64>> {
    let lapse = tx.update("waiting_entries as w set status = case when").push_bind(" w.expires <= ?", now);
    let lapse = lapse.push(" then 'Lapsed' else 'Closed' end where true").push_bind(" and w.section_id = ?", section);
    lapse.push(" and ").push_bind(IS_OVER, now).push(" returning quantity").scalars().await
}

/// Returns the first entries of a section that wait for at most this number of places, or can't be served; at most `most`.
pub async fn first_waiting(reader: &mut Reader, section: Id, places: i64, most: i64) -> Result<Vec<CandidateRow>> {
    let waiting = reader.select(
        "w.id, w.section_id, w.account_id, w.quantity, a.activated from waiting_entries w
         join accounts a on a.id = w.account_id join sections s on s.id = w.section_id where w.status = 'Waiting'",
    );
    let waiting = waiting.and_where("w.section_id = ?", Some(section));
    let waiting = waiting.push_bind(&format!(" and (w.quantity <= ? or {IS_UNSERVABLE})"), places);
    waiting.push_bind(" order by w.id limit ?", most).all().await
}

/// Ends these entries, which wait.
pub async fn close_entries(tx: &mut Tx, entries: &[OfferRow]) -> Result<()> {
    if entries.is_empty() {
        return Ok(());
    }
    let closed = tx.update("waiting_entries set status = 'Closed' where true");
    closed.and_in("id", entries.iter().map(|entry| entry.id)).execute().await
}

/// Offers places to these entries until `expires`.
pub async fn offer(tx: &mut Tx, entries: &[OfferRow], now: Timestamp, expires: Timestamp) -> Result<()> {
    let offer = tx.update("waiting_entries set status = 'Offered'").push_bind(", offered = ?", now);
    let offer = offer.push_bind(", expires = ? where true", expires);
    offer.and_in("id", entries.iter().map(|entry| entry.id)).execute().await
}

/// Moves the open offers that were made after `latest`, so that they begin now. Returns their number.
pub async fn correct_future(tx: &mut Tx, now: Timestamp, latest: Timestamp) -> Result<u64> {
    let update = "update waiting_entries set offered = $1, expires = $1 + (expires - offered)
         where status = 'Offered' and offered > $2";
    tx.query(update).bind(now).bind(latest).rows_affected().await
}
