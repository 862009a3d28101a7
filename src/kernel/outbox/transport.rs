//! Who takes the mail away, behind one trait.

use std::time::Duration;

use async_trait::async_trait;
use lettre::Message;

use super::file_transport::FileTransport;
use super::smtp::Smtp;
use crate::config::{MailSettings, MailTransportSettings};

/// A mail, ready to go.
#[derive(Debug)]
pub struct OutgoingMail {
    /// What no other mail is called, the same at every try.
    pub name: String,
    /// Headers, text and envelope.
    pub message: Message,
}

/// Why a mail was not taken, with a reason for the log. The reason never repeats what a server said: that may quote the mail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeliveryError {
    /// It may be taken another time.
    Temporary(String),
    /// It will never be taken.
    Permanent(String),
}

/// Whoever takes mail away.
#[async_trait]
pub trait MailTransport: Send + Sync {
    /// Takes a mail, and tells where it went.
    ///
    /// # Errors
    /// When it was not taken, or nobody can tell whether it was.
    async fn send(&self, letter: &OutgoingMail) -> Result<String, DeliveryError>;

    /// How long one mail may take.
    fn timeout(&self) -> Duration;
}

/// The carrier that the settings name.
///
/// # Errors
/// When the settings can't be followed, such as a file of certificates that can't be read.
pub fn from_settings(settings: &MailSettings) -> anyhow::Result<Box<dyn MailTransport>> {
    Ok(match &settings.route {
        MailTransportSettings::Folder(folder) => Box::new(FileTransport::new(folder.clone())),
        MailTransportSettings::Smtp(server) => Box::new(Smtp::open(server)?),
    })
}
