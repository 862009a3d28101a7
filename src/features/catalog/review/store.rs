//! SQL of submissions.

use boxoffice_http::error::Result;

use super::model::{Content, SubmissionFilter, SubmissionRow, SubmissionStatus, SubmissionType};
use crate::kernel::db::{Reader, Tx, define_sql};
use crate::kernel::types::clock::Timestamp;
use crate::kernel::types::id::Id;
use crate::kernel::types::paging::PagedRows;

// The columns of `SubmissionRow`.
define_sql!(columns, "s.id, s.type, s.content_id, s.status, s.submitted, s.reason, a.number as submitter");

/// Returns a page of pending submissions, the oldest first.
pub async fn list(reader: &mut Reader, filter: &SubmissionFilter) -> Result<PagedRows<SubmissionRow>> {
    reader
        .list(columns!(), "from submissions s left join accounts a on a.id = s.submitter_id where s.status = 'Pending'")
        .and_where("s.type = ?", filter.kind)
        .page("s.id", filter.paging)
        .await
}

/// Returns the latest submission of this content.
pub async fn find(reader: &mut Reader, content: Content) -> Result<Option<SubmissionRow>> {
    reader
        .query(concat!(
            "select ",
            columns!(),
            " from submissions s left join accounts a on a.id = s.submitter_id
         where s.type = $1 and s.content_id = $2 order by s.id desc limit 1"
        ))
        .bind(content.kind)
        .bind(content.id)
        .optional()
        .await
}

/// Returns the title or name of this content, if it exists.
pub async fn title(reader: &mut Reader, content: Content) -> Result<Option<String>> {
    let select = match content.kind {
        SubmissionType::Event => "select title from events where id = $1",
        SubmissionType::Advertisement => "select name from advertisements where id = $1",
        SubmissionType::Venue => "select name from venues where id = $1",
    };
    reader.query(select).bind(content.id).optional_scalar().await
}

/// Returns the host of an event or an advertisement; `None` for a venue.
pub async fn host(reader: &mut Reader, content: Content) -> Result<Option<Id>> {
    let select = match content.kind {
        SubmissionType::Event => "select host_id from events where id = $1",
        SubmissionType::Advertisement => {
            "select e.host_id from advertisements a join events e on e.id = a.event_id where a.id = $1"
        }
        SubmissionType::Venue => return Ok(None),
    };
    reader.query(select).bind(content.id).optional_scalar().await
}

pub async fn insert(tx: &mut Tx, id: Id, content: Content, submitted: Timestamp, submitter: Option<Id>) -> Result<()> {
    tx.query(
        "insert into submissions (id, type, content_id, status, submitted, submitter_id, reason)
         values ($1, $2, $3, 'Pending', $4, $5, '')",
    )
    .bind(id)
    .bind(content.kind)
    .bind(content.id)
    .bind(submitted)
    .bind(submitter)
    .execute()
    .await
}

/// Writes a decision. Returns false if the status isn't `from`.
pub async fn decide(tx: &mut Tx, id: Id, from: SubmissionStatus, to: SubmissionStatus, reason: String) -> Result<bool> {
    let update = "update submissions set status = $2, reason = $3 where id = $1 and status = $4";
    Ok(tx.query(update).bind(id).bind(to).bind(reason).bind(from).rows_affected().await? == 1)
}

/// Cancels the pending submission of this content, if there is one.
pub async fn cancel(tx: &mut Tx, kind: SubmissionType, id: Id) -> Result<()> {
    let update = "update submissions set status = 'Cancelled' where type = $1 and content_id = $2 and status = 'Pending'";
    tx.query(update).bind(kind).bind(id).execute().await
}

/// Deletes every submission of this content, which is about to be removed.
pub async fn delete_of_content(tx: &mut Tx, kind: SubmissionType, ids: impl IntoIterator<Item = Id>) -> Result<()> {
    tx.delete("submissions where true").and_where("type = ?", Some(kind)).and_in("content_id", ids).execute().await
}
