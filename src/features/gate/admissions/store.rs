//! SQL of admissions.

use boxoffice_http::error::Result;

use super::model::{AdmissionFilter, AdmissionRow, RefusedTicketRow};
use crate::features::catalog::tokens::{self, AdmissionScope};
use crate::kernel::db::{DbRow, Reader, Tx, define_sql, list_count_sql};
use crate::kernel::types::id::Id;
use crate::kernel::types::paging::PagedRows;

// The columns of `AdmissionRow`.
define_sql!(
    columns,
    "a.id, a.event_id, a.section_id, a.ticket_id, t.serial, a.patron_id, a.redeemer, a.device,
     a.token_id, a.admitted"
);

/// Returns a page of the admissions to an event within the caller's admission scope, the oldest first.
pub async fn list(
    reader: &mut Reader,
    event: Id,
    scope: AdmissionScope,
    filter: &AdmissionFilter,
    section: Option<Id>,
) -> Result<PagedRows<AdmissionRow>> {
    let admissions = reader.list(columns!(), "from admissions a join tickets t on t.id = a.ticket_id where true");
    let admissions = admissions.and_key("a.event_id", event);
    let of_section = list_count_sql("section admissions", "s.id");
    let count = format!("coalesce((select cast(sum({of_section}) as bigint) from sections s where s.event_id = ?");
    let admissions = match scope.token() {
        None => admissions.push_total(&format!("{count}), 0)"), event),
        Some(token) => {
            let of_token = format!(" and {}), 0)", tokens::covers_sql("s.id"));
            let admissions = admissions.and_where(&tokens::covers_sql("a.section_id"), Some(token));
            admissions.push_total(&count, event).push_total(&of_token, token)
        }
    };
    admissions
        .and_where("a.redeemer = ?", filter.redeemer.clone())
        .and_where("a.device = ?", filter.device.clone())
        .and_where("t.serial = ?", filter.ticket.as_ref().map(|serial| serial.0.clone()))
        .and_where(
            "a.patron_id = (select p.id from accounts p where p.number = ?)",
            filter.patron.as_ref().map(|patron| patron.number()),
        )
        .and_where("a.section_id = ?", section)
        .page("a.event_id, a.id", filter.paging)
        .await
}

pub async fn find(reader: &mut Reader, event: Id, id: Id) -> Result<Option<AdmissionRow>> {
    reader
        .query(concat!(
            "select ",
            columns!(),
            " from admissions a join tickets t on t.id = a.ticket_id where a.id = $1 and a.event_id = $2"
        ))
        .bind(id)
        .bind(event)
        .optional()
        .await
}

pub async fn insert(tx: &mut Tx, rows: &[&AdmissionRow]) -> Result<()> {
    let into = "admissions (id, event_id, section_id, ticket_id, patron_id, redeemer, device, token_id, admitted)";
    tx.insert_rows(into, rows, |columns| {
        columns
            .add(|row| row.id)
            .add(|row| row.event_id)
            .add(|row| row.section_id)
            .add(|row| row.ticket_id)
            .add(|row| row.patron_id)
            .add(|row| row.redeemer.clone())
            .add(|row| row.device.clone())
            .add(|row| row.token_id)
            .add(|row| row.admitted);
    })
    .await
}

/// Deletes an admission. Returns false if it doesn't exist.
pub async fn delete(tx: &mut Tx, id: Id) -> Result<bool> {
    Ok(tx.query("delete from admissions where id = $1").bind(id).rows_affected().await? == 1)
}

/// Returns the tickets of an event with these serial numbers, with their admissions.
pub async fn find_refused(
    reader: &mut Reader,
    event: Id,
    serials: Vec<String>,
    scope: AdmissionScope,
) -> Result<Vec<RefusedTicketRow>> {
    find_with_admissions(reader, "t.serial, t.status", event, serials, scope).await
}

/// Returns these columns of the tickets of an event with these serial numbers, their admissions, and whether the scope covers them.
pub(super) async fn find_with_admissions<R: DbRow>(
    reader: &mut Reader,
    columns: &str,
    event: Id,
    serials: Vec<String>,
    scope: AdmissionScope,
) -> Result<Vec<R>> {
    let tickets = reader.select(columns);
    let tickets = tickets.push(", a.id as admission_id, a.redeemer, a.device, a.token_id, k.name as token_name, a.admitted, ");
    let tickets = match scope.token() {
        Some(token) => tickets.push_bind(&tokens::covers_sql("t.section_id"), token),
        None => tickets.push("true"),
    };
    tickets
        .push(
            " as is_covered from tickets t left join admissions a on a.ticket_id = t.id
              left join tokens k on k.id = a.token_id where true",
        )
        // Without the sign, the database would read all tickets of the event by its index.
        .and_where("+t.event_id = ?", Some(event))
        .and_in("t.serial", serials)
        .all()
        .await
}
