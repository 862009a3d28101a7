//! Mail is written down, and handed over later.

use std::time::{Duration, SystemTime};

use anyhow::Context;
use futures::future::join_all;
use lettre::Message;
use lettre::message::Mailbox;
use lettre::message::header::{ContentType, HeaderName, HeaderValue};
use slog::{error, info, warn};

use super::transport::{DeliveryError, OutgoingMail};
use super::model::{Mail, MailRow};
use super::store;
use crate::state::App;
use crate::kernel::types::secret;
use crate::config::MailSettings;
use crate::kernel::db::{Tx, transaction};
use boxoffice_http::error::Result;

/// Mails that are handed over at the same time.
const CONCURRENCY: i64 = 8;
/// The pause after each try that failed. After the last of them comes one more try, about 15 hours after the first.
const RETRY_DELAYS: [Duration; 7] = [
    Duration::from_secs(10),
    Duration::from_secs(60),
    Duration::from_secs(5 * 60),
    Duration::from_secs(30 * 60),
    Duration::from_secs(2 * 60 * 60),
    Duration::from_secs(4 * 60 * 60),
    Duration::from_secs(8 * 60 * 60),
];
/// A mail is nobody else's for as long as the carrier may take, and this for the rest of the work.
const LEASE_MARGIN: Duration = Duration::from_secs(2 * 60);

/// Writes mails down: they leave when the transaction is committed, and only then.
///
/// # Errors
/// When the database fails.
pub async fn push(app: &App, tx: &mut Tx, mails: impl IntoIterator<Item = Mail<'_>>) -> Result<()> {
    let mails: Vec<_> = mails.into_iter().map(|mail| (app.clock.next_id(), mail)).collect();
    store::insert(tx, &mails, app.clock.now()).await
}

/// The step of a job: tries to hand over a few mails that are due. Tells how many it tried; to be called until there are none.
///
/// # Errors
/// When the database fails. A mail that was handed over, but could not be forgotten for that, goes out again later.
pub async fn deliver_due(app: &App) -> Result<u64> {
    let now = app.clock.now();
    if !store::is_any_due(&mut app.db.read().await?, now).await? {
        return Ok(0);
    }
    let until = now.plus(app.mailer.timeout() + LEASE_MARGIN);
    let claimed = transaction!(app.db, |tx| store::claim(tx, now, until, CONCURRENCY).await)?;
    let count = claimed.len() as u64;
    for outcome in join_all(claimed.iter().map(|mail| deliver(app, mail))).await {
        outcome?;
    }
    Ok(count)
}

/// Tries to hand a mail over, with no transaction open, and writes down what came of it.
async fn deliver(app: &App, mail: &MailRow) -> Result<()> {
    let name = name(mail);
    let outcome = match compose(mail, &name, &app.settings.mail) {
        Ok(message) => app.mailer.send(&OutgoingMail { name, message }).await,
        Err(error) => Err(DeliveryError::Permanent(format!("{error:#}"))),
    };
    let pause = usize::try_from(mail.attempts - 1).ok().and_then(|failed| RETRY_DELAYS.get(failed).copied());
    match (outcome, pause) {
        (Ok(place), _) => {
            info!(app.log, "mail handed over"; "mail" => %mail.id, "to" => place);
            transaction!(app.db, |tx| store::delete(tx, mail).await)
        }
        (Err(DeliveryError::Temporary(reason)), Some(pause)) => {
            warn!(app.log, "mail not handed over, to be tried again"; "mail" => %mail.id, "reason" => reason,
                "tries" => mail.attempts, "pause_seconds" => pause.as_secs());
            transaction!(app.db, |tx| store::postpone(tx, mail, app.clock.now().plus(pause)).await)
        }
        (Err(DeliveryError::Temporary(reason) | DeliveryError::Permanent(reason)), _) => {
            error!(app.log, "mail given up"; "mail" => %mail.id, "reason" => reason, "tries" => mail.attempts);
            transaction!(app.db, |tx| store::give_up(tx, mail, app.clock.now()).await)
        }
    }
}

/// The mail as it is sent: the same at every try.
fn compose(mail: &MailRow, name: &str, settings: &MailSettings) -> anyhow::Result<Message> {
    let created = Duration::from_micros(u64::try_from(mail.created.0).unwrap_or_default());
    let recipient = mail.recipient.parse().context("the recipient's address can't be used in a mail")?;
    let recipient = Mailbox::new(None, recipient);
    // Programs that answer mails by themselves, such as a note that somebody is away, keep quiet (RFC 3834).
    let automatic = HeaderValue::new(HeaderName::new_from_ascii_str("Auto-Submitted"), "auto-generated".to_owned());
    Message::builder()
        .from(settings.from.clone())
        .to(recipient)
        .subject(mail.subject.clone())
        .date(SystemTime::UNIX_EPOCH + created)
        .message_id(Some(format!("<{name}.outbox@{}>", settings.from.email.domain())))
        .raw_header(automatic)
        .header(ContentType::TEXT_PLAIN)
        .body(mail.body.clone())
        .context("the mail can't be composed")
}

/// The same for every try of a mail, so that whoever gets it twice can tell. Not its identifier alone, which another server may
/// draw again for another mail once this one is forgotten; and nothing of its text, which may be a code.
fn name(mail: &MailRow) -> String {
    let mark = secret::hash(&format!("{} {}", mail.created.0, mail.recipient));
    format!("{}.{}", mail.id, &mark[..16])
}
