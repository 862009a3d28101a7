//! The interface through which features complete mails at the time of their delivery.

use async_trait::async_trait;
use boxoffice_http::error::Result;
use serde_json::Value;

use super::template::MailTemplate;
use crate::kernel::types::id::Id;
use crate::kernel::types::language::Language;

/// A mail that is due.
#[derive(Debug)]
pub struct DueMail {
    /// Its template.
    pub template: MailTemplate,
    /// Its recipient.
    pub recipient: DueRecipient,
    /// The values that it was stored with.
    pub values: Value,
}

/// The recipient of a [`DueMail`].
#[derive(Debug)]
pub enum DueRecipient {
    /// An account.
    Account(Id),
    /// An e-mail address.
    Address {
        /// The address.
        email: String,
        /// The language of the mail; `None` for the platform's default.
        language: Option<Language>,
    },
}

/// The content of a mail.
#[derive(Debug)]
pub struct MailContent {
    /// The recipient's e-mail address.
    pub email: String,
    /// The language; `None` for the platform's default.
    pub language: Option<Language>,
    /// All values that the template needs.
    pub values: Value,
    /// The attached files.
    pub attachments: Vec<Attachment>,
}

/// A file that is attached to a mail.
#[derive(Debug)]
pub struct Attachment {
    /// Its name, in ASCII.
    pub file_name: String,
    /// Its media type.
    pub media_type: &'static str,
    /// Its content.
    pub bytes: Vec<u8>,
}

/// Loads the contents of mails from the database when they are delivered. So the request that causes a mail stores an identifier
/// only, and the mail shows what is true when it is sent.
#[async_trait]
pub trait MailContents: Send + Sync {
    /// Returns the content of each mail, or `None` if there is nothing to send any more.
    ///
    /// # Errors
    /// Returns an error if the database fails. A mail whose content can't be made has an error of its own.
    async fn load(&self, mails: &[DueMail]) -> Result<Vec<Result<Option<MailContent>>>>;
}
