//! A mail to be sent, and its row in the outbox.

use std::fmt;

use crate::kernel::types::clock::Timestamp;
use crate::kernel::types::id::Id;

/// A mail to be sent.
pub struct Mail<'a> {
    /// The recipient's e-mail address.
    pub recipient: &'a str,
    /// The subject. It must not contain secrets.
    pub subject: &'a str,
    /// The text, with `\n` as line break. It may contain a verification code.
    pub body: String,
}

/// A mail to be stored in `outbox`.
pub struct NewMail<'a> {
    pub id: Id,
    pub recipient: &'a str,
    pub subject: &'a str,
    /// The encrypted text.
    pub body: String,
    pub expires: Option<Timestamp>,
}

/// A row of `outbox`.
#[derive(sqlx::FromRow)]
pub struct MailRow {
    pub id: Id,
    pub recipient: String,
    pub subject: String,
    /// The text, encrypted if there is a `key_id`.
    pub body: String,
    /// The key with which the text is encrypted.
    pub key_id: Option<String>,
    /// The time after which the mail is useless, because the code in it is no longer valid.
    pub expires: Option<Timestamp>,
    pub created: Timestamp,
    pub attempts: i64,
    /// The time of the next delivery attempt. A server that claims the mail sets it to the end of its lease.
    pub due: Timestamp,
}

/// A mail in the outbox as an operator sees it, without its text.
#[derive(Debug, sqlx::FromRow)]
pub struct QueuedMail {
    /// Its identifier.
    pub id: Id,
    /// The recipient's e-mail address.
    pub recipient: String,
    /// The subject.
    pub subject: String,
    /// The time at which it was stored.
    pub created: Timestamp,
    /// Attempts to deliver it.
    pub attempts: i64,
    /// The time of the next attempt; `None` if it was given up.
    pub due: Option<Timestamp>,
    /// The time at which it was given up.
    pub failed: Option<Timestamp>,
    /// The time after which it is useless.
    pub expires: Option<Timestamp>,
}

impl fmt::Debug for Mail<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mail").field("subject", &self.subject).finish_non_exhaustive()
    }
}
