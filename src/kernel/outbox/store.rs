//! SQL of the outbox.

use boxoffice_http::error::Result;

use super::cipher::KeyIds;
use super::model::{MailRow, NewMail, QueuedMail};
use crate::kernel::db::{Reader, Tx, Writes, define_sql};
use crate::kernel::types::clock::Timestamp;
use crate::kernel::types::id::Id;
use crate::kernel::types::paging::{PageRequest, PagedRows};

// The columns of `QueuedMail`.
define_sql!(
    queued_columns,
    "id, coalesce((select a.number from accounts a where a.id = outbox.account_id), recipient) as recipient,
     coalesce(template, subject) as template, created, attempts, due, failed, expires, key_id"
);

pub fn insert<'a>(writes: Writes<'a>, mails: &[NewMail<'_>], key_id: &str, now: Timestamp) -> Writes<'a> {
    let into = "outbox (id, recipient, account_id, address_account_id, template, subject, body, key_id, expires, created,
        attempts, due)";
    writes.insert_rows(into, mails, |columns| {
        columns.add(|mail| mail.id).add(|mail| mail.recipient.to_owned()).add(|mail| mail.account_id);
        columns.add(|mail| mail.address_account_id);
        columns.add(|mail| mail.template.to_owned()).add(|_| String::new());
        columns.add(|mail| mail.body.clone()).add(|_| key_id.to_owned()).add(|mail| mail.expires);
        columns.add(|_| now).add(|_| 0_i64).add(|_| now);
    })
}

/// Returns whether a mail is due that [`claim`] with the same arguments would return. A cheap check, because usually there is none
/// and a read takes no locks.
pub async fn is_any_due(reader: &mut Reader, now: Timestamp, key_ids: &KeyIds, abandoned: Timestamp) -> Result<bool> {
    reader
        .query("select exists (select 1 from outbox where due <= $1 and (key_id is null or key_id in ($2, $3) or created <= $4))")
        .bind(now)
        .bind(key_ids.current.clone())
        .bind(key_ids.earlier.clone())
        .bind(abandoned)
        .scalar()
        .await
}

/// Returns the number of mails that wait to be delivered, and the time at which the oldest of them was created.
pub async fn waiting(reader: &mut Reader) -> Result<(i64, Option<Timestamp>)> {
    reader.query("select count(*), min(created) from outbox where due is not null").one().await
}

/// Returns the number of waiting mails that are encrypted with other keys.
pub async fn count_of_other_keys(reader: &mut Reader, key_ids: &KeyIds) -> Result<i64> {
    reader
        .query("select count(*) from outbox where due is not null and key_id is not null and key_id not in ($1, $2)")
        .bind(key_ids.current.clone())
        .bind(key_ids.earlier.clone())
        .scalar()
        .await
}

/// Claims a few due mails that are encrypted with this key, or were created before `abandoned`: no other server claims them before
/// `until`. Mails that are useless after a time are claimed first. On PostgreSQL it skips rows that another server is claiming at the
/// moment; SQLite has one writer at a time.
pub async fn claim(
    tx: &mut Tx,
    now: Timestamp,
    until: Timestamp,
    key_ids: &KeyIds,
    abandoned: Timestamp,
    most: i64,
) -> Result<Vec<MailRow>> {
    let mut claimed = claim_by(tx, true, now, until, key_ids, abandoned, most).await?;
    let rest = most - claimed.len() as i64;
    if rest > 0 {
        claimed.extend(claim_by(tx, false, now, until, key_ids, abandoned, rest).await?);
    }
    Ok(claimed)
}

/// Claims only mails with an end, or any.
async fn claim_by(
    tx: &mut Tx,
    has_end: bool,
    now: Timestamp,
    until: Timestamp,
    key_ids: &KeyIds,
    abandoned: Timestamp,
    most: i64,
) -> Result<Vec<MailRow>> {
    macro_rules! claim {
        ($open:literal, $condition:literal, $close:literal) => {
            concat!(
                "update outbox set attempts = attempts + 1, due = $2 where id ",
                $open,
                "select id from outbox where due <= $1",
                $condition,
                " and (key_id is null or key_id in ($4, $5) or created <= $6) order by due, id limit $3",
                $close,
                " returning id, recipient, account_id, template, subject, body, key_id, expires, created, attempts, due"
            )
        };
    }
    let update = match (tx.is_postgres(), has_end) {
        (true, true) => claim!("= any(array(", " and expires is not null", " for update skip locked))"),
        (true, false) => claim!("= any(array(", "", " for update skip locked))"),
        (false, true) => claim!("in (", " and expires is not null", ")"),
        (false, false) => claim!("in (", "", ")"),
    };
    tx.query(update)
        .bind(now)
        .bind(until)
        .bind(most)
        .bind(key_ids.current.clone())
        .bind(key_ids.earlier.clone())
        .bind(abandoned)
        .all()
        .await
}

/// Deletes delivered mails that were [claimed](claim) until `claimed`.
pub async fn delete(tx: &mut Tx, mails: Vec<Id>, claimed: Timestamp) -> Result<()> {
    tx.delete("outbox where true").and_where("due = ?", Some(claimed)).and_in("id", mails).execute().await
}

/// Schedules the next attempt for mails, pairs with its time.
pub async fn postpone(tx: &mut Tx, mails: &[(Id, Timestamp)], claimed: Timestamp) -> Result<()> {
    let update = tx.update("outbox set due = v.column2 from (");
    let update = update.values(mails, |columns| _ = columns.add(|(mail, _)| *mail).add(|(_, due)| *due));
    update.push_bind(") as v where outbox.id = v.column1 and outbox.due = ?", claimed).execute().await
}

/// Makes mails due now that were stored after `latest`, or that are due after `latest_due`. Returns their number.
pub async fn correct_future(tx: &mut Tx, now: Timestamp, latest: Timestamp, latest_due: Timestamp) -> Result<u64> {
    tx.query(
        "update outbox set due = $1, created = case when created > $2 then $1 else created end
         where due is not null and (created > $2 or due > $3)",
    )
    .bind(now)
    .bind(latest)
    .bind(latest_due)
    .rows_affected()
    .await
}

/// Marks mails as failed and deletes their texts.
pub async fn give_up(tx: &mut Tx, mails: Vec<Id>, claimed: Timestamp, now: Timestamp) -> Result<()> {
    let update = tx.update("outbox set due = null, body = ''").push_bind(", failed = ? where true", now);
    update.and_where("due = ?", Some(claimed)).and_in("id", mails).execute().await
}

/// Deletes some of the mails that were given up before this time, and returns their number.
pub async fn delete_failed_before(tx: &mut Tx, before: Timestamp) -> Result<u64> {
    let delete = "delete from outbox where id in
        (select id from outbox where failed is not null and failed < $1 order by failed limit 1000)";
    tx.query(delete).bind(before).rows_affected().await
}

/// Deletes all unsent and failed mail to an account with this address, and to the addresses that it had before. Mails of servers of an
/// earlier version, which name no account, are only found by the present address.
pub async fn delete_of_account(tx: &mut Tx, account: Id, email: &str) -> Result<()> {
    let delete = tx.query(
        "delete from outbox where account_id = $1 or address_account_id = $1
         or (account_id is null and address_account_id is null and lower(recipient) = lower($2))",
    );
    delete.bind(account).bind(email.to_owned()).execute().await
}

/// Returns a page of the mails that wait or were given up, the newest first.
pub async fn list(reader: &mut Reader, only_failed: bool, paging: PageRequest) -> Result<PagedRows<QueuedMail>> {
    let mails = reader.list(queued_columns!(), "from outbox where true");
    let mails = if only_failed { mails.push(" and failed is not null") } else { mails };
    mails.page("id desc", paging).await
}

/// Returns a mail that waits or was given up.
pub async fn find(reader: &mut Reader, id: Id) -> Result<Option<QueuedMail>> {
    reader.query(concat!("select ", queued_columns!(), " from outbox where id = $1")).bind(id).optional().await
}

/// Makes a waiting mail due. Returns whether there was one.
pub async fn make_due(tx: &mut Tx, id: Id, now: Timestamp) -> Result<bool> {
    Ok(tx.query("update outbox set due = $2 where id = $1 and due is not null").bind(id).bind(now).rows_affected().await? == 1)
}

/// Makes some of the mails due whose next attempt is due after `leased`, and returns their number.
pub async fn make_some_due(tx: &mut Tx, now: Timestamp, leased: Timestamp) -> Result<u64> {
    let later = tx.select("id from outbox where true").and_where("due > ?", Some(leased)).push(" order by due limit 1000");
    let later: Vec<Id> = later.push_lock(" for no key update skip locked").scalars().await?;
    if later.is_empty() {
        return Ok(0);
    }
    tx.update("outbox set ").push_bind("due = ?", now).push(" where true").and_in("id", later).rows_affected().await
}

/// Deletes a mail. Returns whether there was one.
pub async fn discard(tx: &mut Tx, id: Id) -> Result<bool> {
    Ok(tx.query("delete from outbox where id = $1").bind(id).rows_affected().await? == 1)
}
