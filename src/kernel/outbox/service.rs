//! Storing mail in the outbox, and delivering it.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use anyhow::{Context, anyhow};
use boxoffice_http::error::{Error, Result};
use boxoffice_http::traces::SpanKind;
use futures::FutureExt;
use lettre::Message;
use lettre::message::header::{ContentType, HeaderName, HeaderValue};
use lettre::message::{self, Mailbox, MultiPart, SinglePart};
use slog::{error, info, warn};
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::content::{Attachment, DueMail, DueRecipient, MailContent, MailContents};
use super::model::{Mail, MailRow, NewMail, Recipient, StoredValues};
use super::template::{MailTemplate, RenderedMail};
use super::transport::{DeliveryError, OutgoingMail};
use super::{file_transport, store};
use crate::kernel::Kernel;
use crate::kernel::db::{Batcher, Db, Tx, Writes, transaction};
use crate::kernel::metrics::MailResult;
use crate::kernel::settings::{MailSettings, MailTransportSettings};
use crate::kernel::types::clock::Timestamp;
use crate::kernel::types::id::Id;
use crate::kernel::types::secret;
use crate::kernel::unit_of_work::UnitOfWork;

/// The name of the job that delivers mail.
pub const DELIVER_MAIL: &str = "deliver mail";
/// Number of mails that are delivered at the same time.
const CONCURRENCY: usize = 8;
/// Shortest time between two claims of mails. With `CONCURRENCY`, it makes one server send at most 100 mails per second: during a large
/// sale, mails wait, and requests don't.
const CLAIM_PAUSE: Duration = Duration::from_millis(80);
/// Time until the next claim if no mail was due, while others are in delivery.
const IDLE_PAUSE: Duration = Duration::from_secs(1);
/// The delay after each failed attempt. The last attempt follows the last delay, about 15 hours after the first attempt.
const RETRY_DELAYS: [Duration; 7] = [
    Duration::from_secs(10),
    Duration::from_secs(60),
    Duration::from_secs(5 * 60),
    Duration::from_secs(30 * 60),
    Duration::from_secs(2 * 60 * 60),
    Duration::from_secs(4 * 60 * 60),
    Duration::from_secs(8 * 60 * 60),
];
/// A mail that is useless after a time is not tried again when less time is left.
const SHORTEST_USE: Duration = Duration::from_secs(2 * 60);
/// Age of a mail after which any server claims it, to give it up. Until then only servers with its key claim it, and by then they
/// have made their last attempt.
const ABANDONED_AFTER: Duration = Duration::from_secs(24 * 60 * 60);
/// Time for which any server may have leased a mail: with the longest timeout, and a clock that is ahead.
const LONGEST_LEASE: Duration = Duration::from_secs(13 * 60);
/// A mail is leased to one server for the timeout of the transport plus this margin for the database updates.
const LEASE_MARGIN: Duration = Duration::from_secs(2 * 60);

/// The mails that wait to be delivered.
#[derive(Debug, Clone, Copy)]
pub struct WaitingMails {
    /// Their number.
    pub count: i64,
    /// The age of the oldest; zero if there is none.
    pub oldest_age: Duration,
}

/// Returns the mails that wait to be delivered.
pub async fn waiting(kernel: &Kernel) -> Result<WaitingMails> {
    let (count, oldest) = store::waiting(&mut kernel.db.read().await?).await?;
    Ok(WaitingMails { count, oldest_age: oldest.map_or(Duration::ZERO, |oldest| kernel.clock.now().since(oldest)) })
}

/// Logs a warning if mails wait that only a server with another key can send.
pub async fn warn_of_other_keys(kernel: &Kernel) -> Result<()> {
    let count = store::count_of_other_keys(&mut kernel.db.read().await?, &kernel.mail_cipher.key_ids).await?;
    if count > 0 {
        warn!(kernel.log, "mails wait that were encrypted with another key, and only a server with that key sends them";
            "mails" => count);
    }
    Ok(())
}

/// Stores mails in the outbox. They are sent only if the transaction is committed.
pub async fn push(kernel: &Kernel, tx: &mut Tx, mails: impl IntoIterator<Item = Mail<'_>>) -> Result<()> {
    write(kernel, tx.writes(), mails)?.execute().await
}

/// Stores mails that are useless after `expires`, because the code or the offer in them is no longer valid then. They are sent before
/// others, and neither sent nor stored any longer.
pub async fn push_until(
    kernel: &Kernel,
    tx: &mut Tx,
    mails: impl IntoIterator<Item = Mail<'_>>,
    expires: Timestamp,
) -> Result<()> {
    encrypt(kernel, tx.writes(), mails, Some(expires))?.execute().await
}

/// Stores mails like [`push`], together with other changes.
///
/// # Errors
/// Returns an error if a mail can't be encrypted.
pub fn write<'w, 'm>(kernel: &Kernel, writes: Writes<'w>, mails: impl IntoIterator<Item = Mail<'m>>) -> Result<Writes<'w>> {
    encrypt(kernel, writes, mails, None)
}

fn encrypt<'w, 'm>(
    kernel: &Kernel,
    writes: Writes<'w>,
    mails: impl IntoIterator<Item = Mail<'m>>,
    expires: Option<Timestamp>,
) -> Result<Writes<'w>> {
    let encrypt = |Mail { recipient, template, values }| {
        let id = kernel.clock.next_id();
        let (recipient, account_id, address_account_id, language) = match recipient {
            Recipient::Account(account) => ("", Some(account), None, None),
            Recipient::Address { account, email, language } => (email, None, Some(account), language),
        };
        let body = serde_json::to_string(&StoredValues { language, values }).map_err(|error| Error::Internal(error.into()))?;
        let body = kernel.mail_cipher.encrypt(id, recipient, account_id, &body)?;
        Ok(NewMail { id, recipient, account_id, address_account_id, template: template.name(), body, expires })
    };
    let mails = mails.into_iter().map(encrypt).collect::<Result<Vec<_>>>()?;
    Ok(store::insert(writes, &mails, &kernel.mail_cipher.key_ids.current, kernel.clock.now()))
}

/// Job step: tries to deliver mails, whose values and attachments `contents` completes, until none is due. Mails are claimed in the
/// place of those that are delivered, so that one that takes long delays no other. Returns the number of attempts.
///
/// # Errors
/// Returns an error if the database fails. A mail that was delivered but could not be deleted for that reason is delivered
/// again later.
pub async fn deliver_due(kernel: &Arc<Kernel>, contents: &dyn MailContents) -> Result<u64> {
    let (results, mut deliveries, mut outcome) = (Batcher::of(CONCURRENCY), JoinSet::new(), Ok(0));
    loop {
        let mut pause = IDLE_PAUSE;
        if let Ok(count) = outcome
            && (count == 0 || !kernel.is_stopping())
        {
            let started = AssertUnwindSafe(start_due(kernel, contents, &results, &mut deliveries)).catch_unwind().await;
            let started = started.unwrap_or_else(|_| Err(Error::Internal(anyhow!("the preparation of mails has panicked"))));
            if matches!(started, Ok(1..)) {
                pause = CLAIM_PAUSE;
            }
            outcome = started.map(|started| count + started);
        }
        if deliveries.is_empty() {
            return outcome;
        }
        let pause = sleep(pause);
        tokio::pin!(pause);
        loop {
            tokio::select! {
                // After a failure, the other deliveries go on: a mail whose delivery is cancelled may have been sent.
                Some(recorded) = deliveries.join_next() => {
                    let recorded = recorded.unwrap_or_else(|panic| Err(Error::Internal(panic.into())));
                    outcome = outcome.and_then(|count| recorded.map(|()| count));
                }
                () = &mut pause, if deliveries.len() < CONCURRENCY => break,
            }
        }
    }
}

/// Claims as many due mails as can be delivered beside `deliveries`, and starts to deliver them. Returns their number.
async fn start_due(
    kernel: &Arc<Kernel>,
    contents: &dyn MailContents,
    results: &Arc<Batcher<Timestamp, (Id, DeliveryResult), ()>>,
    deliveries: &mut JoinSet<Result<()>>,
) -> Result<u64> {
    let (now, key_ids) = (kernel.clock.now(), &kernel.mail_cipher.key_ids);
    let abandoned = now.minus(ABANDONED_AFTER);
    if !store::is_any_due(&mut kernel.db.read().await?, now, key_ids, abandoned).await? {
        return Ok(0);
    }
    let (free, until) = (CONCURRENCY - deliveries.len(), now.plus(kernel.mail_transport.timeout() + LEASE_MARGIN));
    let claimed = transaction!(kernel.db, |tx| store::claim(tx, now, until, key_ids, abandoned, free as i64).await)?;
    // A step ends when no mail is due, which may take hours.
    kernel.metrics.jobs.record(DELIVER_MAIL, true);
    let prepared = prepare(kernel, contents, &claimed).await?;
    let count = claimed.len() as u64;
    for (mail, prepared) in claimed.into_iter().zip(prepared) {
        let (kernel, results) = (Arc::clone(kernel), Arc::clone(results));
        deliveries.spawn(async move {
            let result = deliver(&kernel, &mail, prepared).await;
            let (db, now) = (kernel.db.clone(), kernel.clock.now());
            let record_all = move |until, results| record_all(db.clone(), results, until, now);
            results.submit(until, (mail.id, result), record_all).await
        });
    }
    Ok(count)
}

/// The result of an attempt to deliver a mail.
enum DeliveryResult {
    /// The mail was delivered, or there is nothing to send any more.
    Ended,
    /// The next attempt is due at this time.
    Postponed(Timestamp),
    /// There are no more attempts.
    Failed,
}

/// Records results in a transaction. Returns a value for each of them.
async fn record_all(db: Db, results: Vec<(Id, DeliveryResult)>, claimed: Timestamp, now: Timestamp) -> Result<Vec<()>> {
    transaction!(db, |tx| record(tx, &results, claimed, now).await)?;
    Ok(vec![(); results.len()])
}

/// Records the results of attempts that have ended at the same time, for mails that were claimed until `claimed`.
async fn record(tx: &mut Tx, results: &[(Id, DeliveryResult)], claimed: Timestamp, now: Timestamp) -> Result<()> {
    let (mut ended, mut postponed, mut failed) = (Vec::new(), Vec::new(), Vec::new());
    for (mail, result) in results {
        match result {
            DeliveryResult::Ended => ended.push(*mail),
            DeliveryResult::Postponed(due) => postponed.push((*mail, *due)),
            DeliveryResult::Failed => failed.push(*mail),
        }
    }
    if !ended.is_empty() {
        store::delete(tx, ended, claimed).await?;
    }
    if !postponed.is_empty() {
        store::postpone(tx, &postponed, claimed).await?;
    }
    if !failed.is_empty() {
        store::give_up(tx, failed, claimed, now).await?;
    }
    Ok(())
}

/// Job step: deletes some mails that were given up before this time, and files with mails from before. Returns the number of rows.
///
/// # Errors
/// Returns an error if the database fails, or a file can't be deleted.
pub async fn delete_old(kernel: &Kernel, before: Timestamp) -> Result<u64> {
    if let MailTransportSettings::Folder(folder) = &kernel.settings.mail.transport {
        let (folder, before) = (folder.clone(), SystemTime::UNIX_EPOCH + Duration::from_micros(before.0.unsigned_abs()));
        let deleted = tokio::task::spawn_blocking(move || file_transport::delete_before(&folder, before)).await;
        deleted.map_err(|error| Error::Internal(error.into()))?.map_err(Error::Internal)?;
    }
    transaction!(kernel.db, |tx| store::delete_failed_before(tx, before).await)
}

/// Makes a waiting mail due, so that a server sends it at once. If a server is sending it at this moment, it may be sent twice.
///
/// # Errors
/// [`Error::NOT_FOUND`] if no such mail waits.
pub async fn make_due(unit: &UnitOfWork, id: Id, now: Timestamp) -> Result<()> {
    let is_due = transaction!(unit, |tx| store::make_due(tx, id, now).await)?;
    if is_due { Ok(()) } else { Err(Error::NOT_FOUND) }
}

/// Makes all mails due whose next attempt is due in more than `LONGEST_LEASE`. The others are due soon, or a server may be sending
/// them. Returns their number.
///
/// # Errors
/// Returns an error if the database fails; some of the mails may then be due.
pub async fn make_all_due(kernel: &Kernel, unit: &UnitOfWork) -> Result<u64> {
    let mut count = 0;
    loop {
        // Each transaction commits the one before, and servers claim its mails until later than that.
        let now = kernel.clock.now();
        match transaction!(unit, |tx| store::make_some_due(tx, now, now.plus(LONGEST_LEASE)).await)? {
            0 => return Ok(count),
            some => count += some,
        }
    }
}

/// Deletes a mail that waits or was given up.
///
/// # Errors
/// [`Error::NOT_FOUND`] if there is no such mail.
pub async fn discard(unit: &UnitOfWork, id: Id) -> Result<()> {
    let is_deleted = transaction!(unit, |tx| store::discard(tx, id).await)?;
    if is_deleted { Ok(()) } else { Err(Error::NOT_FOUND) }
}

/// The message of a mail; `None` if there is nothing to send any more.
type Prepared = Result<Option<Message>, DeliveryError>;

/// Decrypts, completes and renders mails.
async fn prepare(kernel: &Kernel, contents: &dyn MailContents, claimed: &[MailRow]) -> Result<Vec<Prepared>> {
    let settings = &kernel.settings.mail;
    let (mut prepared, mut due, mut positions) = (Vec::with_capacity(claimed.len()), Vec::new(), Vec::new());
    for (position, row) in claimed.iter().enumerate() {
        prepared.push(match open(kernel, row) {
            Ok(Opened::Due(mail)) => {
                due.push(mail);
                positions.push(position);
                Ok(None)
            }
            Ok(Opened::Rendered(mail)) => compose(row, &row.recipient, mail, Vec::new(), settings).map(Some).map_err(permanent),
            Err(error) => Err(permanent(error)),
        });
    }
    let loaded = contents.load(&due).await?;
    for ((position, mail), content) in positions.into_iter().zip(due).zip(loaded) {
        prepared[position] = match content {
            Ok(Some(content)) => render(kernel, &claimed[position], mail.template, content).map(Some),
            Ok(None) => Ok(None),
            Err(error) => Err(DeliveryError::Temporary(format!("its content can't be made: {}", error.into_log_text()))),
        };
    }
    Ok(prepared)
}

/// Renders a mail. A failure is temporary, because the operator can correct a template.
fn render(kernel: &Kernel, row: &MailRow, template: MailTemplate, content: MailContent) -> Result<Message, DeliveryError> {
    let settings = &kernel.settings.mail;
    let MailContent { email, language, values, attachments } = content;
    let rendered = kernel.mail_templates.render(template, language.unwrap_or(settings.language), &values);
    let rendered = rendered.map_err(|error| DeliveryError::Temporary(format!("{error:#}")))?;
    compose(row, &email, rendered, attachments, settings).map_err(permanent)
}

fn permanent(error: anyhow::Error) -> DeliveryError {
    DeliveryError::Permanent(format!("{error:#}"))
}

/// A decrypted mail.
enum Opened {
    /// A mail with a template.
    Due(DueMail),
    /// A mail of an earlier version.
    Rendered(RenderedMail),
}

fn open(kernel: &Kernel, row: &MailRow) -> anyhow::Result<Opened> {
    let body = kernel.mail_cipher.decrypt(row)?;
    let Some(template) = &row.template else {
        return Ok(Opened::Rendered(RenderedMail { subject: row.subject.clone(), text: body, html: None }));
    };
    let template = MailTemplate::parse(template).with_context(|| format!("this version has no template {template}"))?;
    let StoredValues { language, values } = serde_json::from_str(&body).context("its values can't be read")?;
    let recipient = match row.account_id {
        Some(account) => DueRecipient::Account(account),
        None => DueRecipient::Address { email: row.recipient.clone(), language },
    };
    Ok(Opened::Due(DueMail { template, recipient, values }))
}

/// Makes the mails due that were stored or postponed while the clock was ahead: at a time after `latest`. Returns their number.
pub async fn correct_future(tx: &mut Tx, now: Timestamp, latest: Timestamp) -> Result<u64> {
    let longest_delay = RETRY_DELAYS.into_iter().max().unwrap_or_default();
    store::correct_future(tx, now, latest, latest.plus(longest_delay)).await
}

/// Tries to deliver a mail, without an open transaction.
async fn deliver(kernel: &Kernel, mail: &MailRow, prepared: Prepared) -> DeliveryResult {
    let name = name(mail);
    let is_expired = |at: Timestamp| mail.expires.is_some_and(|expires| expires <= at);
    let span = kernel.tracer.root("send mail", SpanKind::Client);
    span.set("boxoffice.mail", || mail.id.0.into());
    let outcome = match prepared {
        Ok(_) if is_expired(kernel.clock.now()) => Err(DeliveryError::Permanent("its code or offer has expired".to_owned())),
        Ok(Some(message)) => kernel.mail_transport.send(&OutgoingMail { name, message }).await,
        Ok(None) => {
            info!(kernel.log, "mail not sent, it is no longer needed"; "mail" => %mail.id);
            return DeliveryResult::Ended;
        }
        Err(error) => Err(error),
    };
    if outcome.is_err() {
        span.fail();
    }
    drop(span);
    let delay = usize::try_from(mail.attempts - 1).ok().and_then(|failed| RETRY_DELAYS.get(failed).copied());
    let delay = delay.and_then(|delay| limit_delay(delay, mail.expires, kernel.clock.now()));
    let record = |result| kernel.metrics.record_mail_attempt(result);
    match (outcome, delay) {
        (Ok(destination), _) => {
            record(MailResult::Sent);
            info!(kernel.log, "mail sent"; "mail" => %mail.id, "to" => destination);
            DeliveryResult::Ended
        }
        (Err(DeliveryError::Temporary(reason)), Some(delay)) => {
            record(MailResult::Delayed);
            warn!(kernel.log, "mail not sent, will be retried"; "mail" => %mail.id, "reason" => reason,
                "attempts" => mail.attempts, "pause_seconds" => delay.as_secs());
            DeliveryResult::Postponed(kernel.clock.now().plus(delay))
        }
        (Err(DeliveryError::Temporary(reason) | DeliveryError::Permanent(reason)), _) => {
            record(MailResult::GivenUp);
            error!(kernel.log, "mail not sent, no more attempts"; "mail" => %mail.id, "reason" => reason,
                "attempts" => mail.attempts);
            DeliveryResult::Failed
        }
    }
}

/// Returns the delay of an attempt: half of the time until the end of a mail at most, so that it is sent while its code can be used.
/// Returns `None` if the end is too near.
fn limit_delay(delay: Duration, expires: Option<Timestamp>, now: Timestamp) -> Option<Duration> {
    let Some(expires) = expires else { return Some(delay) };
    let left = expires.since(now);
    (left >= SHORTEST_USE).then_some(delay.min(left / 2))
}

/// Builds the message of a mail. Its boundaries are the same for each attempt.
fn compose(
    mail: &MailRow,
    email: &str,
    rendered: RenderedMail,
    attachments: Vec<Attachment>,
    settings: &MailSettings,
) -> anyhow::Result<Message> {
    let name = name(mail);
    let created = Duration::from_micros(u64::try_from(mail.created.0).unwrap_or_default());
    let recipient = email.parse().context("the recipient's address can't be used in a mail")?;
    let recipient = Mailbox::new(None, recipient);
    // Prevents automatic replies such as out-of-office messages (RFC 3834).
    let auto_submitted = HeaderValue::new(HeaderName::new_from_ascii_str("Auto-Submitted"), "auto-generated".to_owned());
    let message = Message::builder()
        .from(settings.from.clone())
        .to(recipient)
        .subject(rendered.subject)
        .date(SystemTime::UNIX_EPOCH + created)
        .message_id(Some(format!("<{name}.outbox@{}>", settings.from.email.domain())))
        .raw_header(auto_submitted);
    let Some(html) = rendered.html else {
        let message = message.header(ContentType::TEXT_PLAIN).body(rendered.text);
        return message.context("the mail can't be composed");
    };
    let body = MultiPart::alternative().boundary(format!("text.{name}"));
    let body = body.singlepart(SinglePart::plain(rendered.text)).singlepart(SinglePart::html(html));
    if attachments.is_empty() {
        return message.multipart(body).context("the mail can't be composed");
    }
    let mut mixed = MultiPart::mixed().boundary(format!("files.{name}")).multipart(body);
    for Attachment { file_name, media_type, bytes } in attachments {
        let media_type = ContentType::parse(media_type).context("the type of an attachment is invalid")?;
        mixed = mixed.singlepart(message::Attachment::new(file_name).body(bytes, media_type));
    }
    message.multipart(mixed).context("the mail can't be composed")
}

/// Returns the name of a mail, which is the same for each attempt, so that a recipient can detect duplicates.
///
/// The identifier alone is not enough, because another server may reuse it after the mail was deleted. The name doesn't depend on
/// the text, which may contain a verification code.
fn name(mail: &MailRow) -> String {
    let digest = secret::hash(&format!("{} {}", mail.created.0, mail.recipient));
    format!("{}.{}", mail.id, &digest[..16])
}
