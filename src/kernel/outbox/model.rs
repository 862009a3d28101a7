//! A mail to be sent, and its row in the outbox.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::template::MailTemplate;
use crate::kernel::types::clock::Timestamp;
use crate::kernel::types::id::Id;
use crate::kernel::types::language::Language;

/// A mail to be sent.
pub struct Mail<'a> {
    /// The recipient.
    pub recipient: Recipient<'a>,
    /// The mail's template.
    pub template: MailTemplate,
    /// The values that the template needs, or that [`MailContents`](super::MailContents) needs to load them. They may contain a
    /// verification code.
    pub values: Value,
}

/// The recipient of a mail.
#[derive(Debug, Clone, Copy)]
pub enum Recipient<'a> {
    /// An account, at the e-mail address and in the language that it has when the mail is sent.
    Account(Id),
    /// An e-mail address of an account, which may have another one by the time the mail is sent.
    Address {
        /// The account.
        account: Id,
        /// The address.
        email: &'a str,
        /// The language of the mail; `None` for the platform's default.
        language: Option<Language>,
    },
}

/// A mail to be stored in `outbox`.
pub struct NewMail<'a> {
    pub id: Id,
    /// The e-mail address; empty if the recipient is an account.
    pub recipient: &'a str,
    pub account_id: Option<Id>,
    /// The account that has or had the e-mail address.
    pub address_account_id: Option<Id>,
    pub template: &'static str,
    /// The encrypted values.
    pub body: String,
    pub expires: Option<Timestamp>,
}

/// A row of `outbox`.
#[derive(sqlx_macros::FromRow)]
pub struct MailRow {
    /// Its identifier.
    pub id: Id,
    /// The e-mail address; empty if the recipient is an account.
    pub recipient: String,
    /// The account that is the recipient.
    pub account_id: Option<Id>,
    /// The name of the template; none in a mail of an earlier version, which has a subject and a text instead.
    pub template: Option<String>,
    /// The subject of a mail of an earlier version.
    pub subject: String,
    /// The values of the template as JSON, or the text of a mail of an earlier version. Encrypted if there is a `key_id`.
    pub body: String,
    /// The key with which the body is encrypted.
    pub key_id: Option<String>,
    /// The time after which the mail is useless, because the code in it is no longer valid.
    pub expires: Option<Timestamp>,
    /// The time at which it was stored.
    pub created: Timestamp,
    /// The number of delivery attempts.
    pub attempts: i64,
    /// The time of the next delivery attempt. A server that claims the mail sets it to the end of its lease.
    pub due: Timestamp,
}

/// A mail in the outbox as an operator sees it, without its text.
#[derive(Debug, sqlx_macros::FromRow)]
pub struct QueuedMail {
    /// Its identifier.
    pub id: Id,
    /// The recipient's e-mail address.
    pub recipient: String,
    /// The template's name, or the subject of a mail of an earlier version.
    pub template: String,
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
    /// The key with which its values are encrypted.
    pub key_id: Option<String>,
}

impl fmt::Debug for Mail<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mail").field("template", &self.template).finish_non_exhaustive()
    }
}

/// The body of a mail before it is encrypted.
#[derive(Serialize, Deserialize)]
pub struct StoredValues {
    /// The language of a mail to an address.
    pub language: Option<Language>,
    pub values: Value,
}
