//! Mails, as they are given and as they are kept.

use std::fmt;

use crate::kernel::types::clock::Timestamp;
use crate::kernel::types::id::Id;

/// A mail to be sent.
pub struct Mail<'a> {
    /// The address of whoever it is for.
    pub recipient: &'a str,
    /// What it is about; nothing secret.
    pub subject: &'a str,
    /// Its text, with `\n` at the end of a line. May hold a code.
    pub body: String,
}

/// A mail in the outbox.
#[derive(sqlx::FromRow)]
pub struct MailRow {
    pub id: Id,
    pub recipient: String,
    pub subject: String,
    pub body: String,
    pub created: Timestamp,
    pub attempts: i64,
    /// Until when it is taken by whoever reads this.
    pub due: Timestamp,
}

impl fmt::Debug for Mail<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mail").field("subject", &self.subject).finish_non_exhaustive()
    }
}
