//! SQL of the outbox.

use super::model::{Mail, MailRow};
use crate::kernel::types::clock::Timestamp;
use crate::kernel::types::id::Id;
use crate::kernel::db::Tx;
use boxoffice_http::error::Result;

pub async fn insert(tx: &mut Tx, mails: &[(Id, Mail<'_>)], now: Timestamp) -> Result<()> {
    let into = "outbox (id, recipient, subject, body, created, attempts, due)";
    tx.insert_rows(into, mails, |(id, mail), values| {
        values.bind(*id).bind(mail.recipient.to_owned()).bind(mail.subject.to_owned()).bind(mail.body.clone());
        values.bind(now).bind(0_i64).bind(now);
    })
    .await
}

/// Whether any mail is due. Asked first, because nearly always there is none, and reading disturbs nobody.
pub async fn is_any_due(tx: &mut Tx, now: Timestamp) -> Result<bool> {
    tx.query("select exists (select 1 from outbox where due <= $1)").bind(now).scalar().await
}

/// Takes a few mails that are due: until `until` nobody else does. On PostgreSQL, past those that another server is taking just
/// now; SQLite has one writer at a time.
pub async fn claim(tx: &mut Tx, now: Timestamp, until: Timestamp, most: i64) -> Result<Vec<MailRow>> {
    let update = if tx.is_postgres() {
        "update outbox set attempts = attempts + 1, due = $2 where id = any(array(
             select id from outbox where due <= $1 order by due, id limit $3 for update skip locked)) returning *"
    } else {
        "update outbox set attempts = attempts + 1, due = $2 where id in (
             select id from outbox where due <= $1 order by due, id limit $3) returning *"
    };
    tx.query(update).bind(now).bind(until).bind(most).all().await
}

/// Forgets a mail that has been handed over.
pub async fn delete(tx: &mut Tx, mail: &MailRow) -> Result<()> {
    tx.query("delete from outbox where id = $1 and due = $2").bind(mail.id).bind(mail.due).execute().await?;
    Ok(())
}

/// Has a mail tried again later.
pub async fn postpone(tx: &mut Tx, mail: &MailRow, due: Timestamp) -> Result<()> {
    let update = "update outbox set due = $3 where id = $1 and due = $2";
    tx.query(update).bind(mail.id).bind(mail.due).bind(due).execute().await?;
    Ok(())
}

/// Gives a mail up, and forgets what it said.
pub async fn give_up(tx: &mut Tx, mail: &MailRow, now: Timestamp) -> Result<()> {
    let update = "update outbox set due = null, failed = $3, body = '' where id = $1 and due = $2";
    tx.query(update).bind(mail.id).bind(mail.due).bind(now).execute().await?;
    Ok(())
}

/// Deletes whatever is still to be sent, or was given up, to an address that is to be known no more.
///
/// # Errors
/// When the database fails.
pub async fn forget(tx: &mut Tx, recipient: &str) -> Result<()> {
    tx.query("delete from outbox where lower(recipient) = lower($1)").bind(recipient.to_owned()).execute().await?;
    Ok(())
}
