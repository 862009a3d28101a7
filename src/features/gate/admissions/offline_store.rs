//! SQL of scans that gates made without a connection, and of conflicts.

use boxoffice_http::error::Result;

use super::model::{ConflictFilter, ConflictRow, NewConflict, ScannedTicketRow};
use super::store;
use crate::features::catalog::tokens::{self, AdmissionScope};
use crate::features::sales::tickets;
use crate::kernel::db::{Reader, Tx, define_sql};
use crate::kernel::types::clock::Timestamp;
use crate::kernel::types::id::Id;
use crate::kernel::types::paging::PagedRows;

// The columns of `ConflictRow`.
define_sql!(
    conflict_columns,
    "c.event_id, c.ticket_id, t.section_id, t.serial, c.recorded, c.scanned, c.redeemer, c.device, c.token_id, c.admission_id, \
     a.admitted, a.redeemer as admission_redeemer, a.device as admission_device, a.token_id as admission_token_id, \
     k.name as admission_token_name"
);
const FROM_CONFLICTS: &str = "from admission_conflicts c join tickets t on t.id = c.ticket_id join admissions a on a.id = c.admission_id \
     left join tokens k on k.id = a.token_id where true";

/// Returns the tickets of an event with these serial numbers, with their admissions.
pub async fn find_scanned(
    reader: &mut Reader,
    event: Id,
    serials: Vec<String>,
    scope: AdmissionScope,
) -> Result<Vec<ScannedTicketRow>> {
    store::find_with_admissions(reader, tickets::joined_columns!(), event, serials, scope).await
}

/// Redeems tickets that are [locked](tickets::lock_by_serials) and Issued, at the times of their admissions. Returns their number.
pub async fn redeem(tx: &mut Tx, ids: Vec<Id>) -> Result<u64> {
    tx.update("tickets set status = 'Redeemed', redeemed = (select a.admitted from admissions a where a.ticket_id = tickets.id)")
        .push(" where status = 'Issued'")
        .and_in("id", ids)
        .rows_affected()
        .await
}

/// Returns the tickets whose admissions by a device were undone, with the times of that.
pub async fn undone_admissions(reader: &mut Reader, tickets: Vec<Id>, device: String) -> Result<Vec<(Id, Timestamp)>> {
    let undone = reader.select("ticket_id, undone from undone_admissions where true").and_where("device = ?", Some(device));
    undone.and_in("ticket_id", tickets).all().await
}

/// Keeps the scans of a device up to `undone` from admitting a ticket again after its admission was undone.
pub async fn insert_undone_admission(tx: &mut Tx, ticket: Id, device: String, undone: Timestamp) -> Result<()> {
    let insert = "insert into undone_admissions (ticket_id, device, undone) values ($1, $2, $3)
         on conflict (ticket_id, device) do update set undone = excluded.undone";
    tx.query(insert).bind(ticket).bind(device).bind(undone).execute().await
}

/// Returns whether another gate has admitted the ticket of an admission.
pub async fn has_conflict(reader: &mut Reader, admission: Id) -> Result<bool> {
    reader.query("select exists (select 1 from admission_conflicts where admission_id = $1)").bind(admission).scalar().await
}

/// Returns the conflicts of these tickets.
pub async fn conflicts_of_tickets(reader: &mut Reader, tickets: Vec<Id>) -> Result<Vec<ConflictRow>> {
    reader.select(concat!(conflict_columns!(), " ")).push(FROM_CONFLICTS).and_in("c.ticket_id", tickets).all().await
}

/// Returns a page of the conflicts of an event within the caller's admission scope, the oldest first. A time in the future selects all,
/// because a gate has it from a server whose clock was ahead.
pub async fn list_conflicts(
    reader: &mut Reader,
    event: Id,
    scope: AdmissionScope,
    filter: &ConflictFilter,
    now: Timestamp,
) -> Result<PagedRows<ConflictRow>> {
    reader
        .list(conflict_columns!(), FROM_CONFLICTS)
        .and_key("c.event_id", event)
        .and_where(&tokens::covers_sql("t.section_id"), scope.token())
        .and_where("(c.device = ? or a.device = ?)", filter.device.clone())
        .and_where("c.recorded >= ?", filter.modified_since.map(|since| tickets::or_all_if_future(since.0, now)))
        .page("c.event_id, c.id", filter.paging)
        .await
}

pub async fn insert_conflicts(tx: &mut Tx, rows: &[NewConflict]) -> Result<()> {
    let into = "admission_conflicts
         (id, event_id, ticket_id, admission_id, redeemer, device, token_id, scanned, recorded)";
    tx.insert_rows(into, rows, |columns| {
        columns
            .add(|row| row.id)
            .add(|row| row.event_id)
            .add(|row| row.ticket_id)
            .add(|row| row.admission_id)
            .add(|row| row.redeemer.clone())
            .add(|row| row.device.clone())
            .add(|row| row.token_id)
            .add(|row| row.scanned)
            .add(|row| row.recorded);
    })
    .await
}
