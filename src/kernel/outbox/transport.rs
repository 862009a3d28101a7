//! The interface of mail transports.

use std::time::Duration;

use async_trait::async_trait;
use lettre::Message;

use super::file_transport::FileTransport;
use super::smtp::Smtp;
use crate::kernel::settings::{MailSettings, MailTransportSettings};

/// A mail that is ready to be sent.
#[derive(Debug)]
pub struct OutgoingMail {
    /// A unique name, which is the same for each attempt.
    pub name: String,
    /// The message with headers, text and envelope.
    pub message: Message,
}

/// The error of a failed delivery, with a reason for the log. The reason never contains the mail server's text, because that may
/// quote the mail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeliveryError {
    /// A later attempt may succeed.
    Temporary(String),
    /// No attempt will succeed.
    Permanent(String),
}

/// A transport that sends mail.
#[async_trait]
pub trait MailTransport: Send + Sync {
    /// Sends a mail, and returns its destination for the log.
    ///
    /// # Errors
    /// Returns an error if it was not sent, or the result is unknown.
    async fn send(&self, mail: &OutgoingMail) -> Result<String, DeliveryError>;

    /// Returns the time limit for one mail.
    fn timeout(&self) -> Duration;
}

/// Creates the transport that the settings select.
///
/// # Errors
/// Returns an error if the settings are unusable, for example because a file of certificates can't be read.
pub fn from_settings(settings: &MailSettings) -> anyhow::Result<Box<dyn MailTransport>> {
    Ok(match &settings.transport {
        MailTransportSettings::Folder(folder) => Box::new(FileTransport::new(folder.clone())),
        MailTransportSettings::Smtp(server) => Box::new(Smtp::open(server)?),
    })
}
