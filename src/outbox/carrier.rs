//! Who takes the mail away, behind one trait.

use std::time::Duration;

use async_trait::async_trait;
use lettre::Message;

use super::folder::Folder;
use super::smtp::Smtp;
use crate::config::{MailRoute, MailSettings};

/// A mail, ready to go.
#[derive(Debug)]
pub struct Letter {
    /// What no other mail is called, the same at every try.
    pub name: String,
    /// Headers, text and envelope.
    pub message: Message,
}

/// Why a mail was not taken, with a reason for the log. The reason never repeats what a server said: that may quote the mail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Undelivered {
    /// It may be taken another time.
    Later(String),
    /// It will never be taken.
    Never(String),
}

/// Whoever takes mail away.
#[async_trait]
pub trait Carrier: Send + Sync {
    /// Takes a mail, and tells where it went.
    ///
    /// # Errors
    /// When it was not taken, or nobody can tell whether it was.
    async fn carry(&self, letter: &Letter) -> Result<String, Undelivered>;

    /// How long one mail may take.
    fn patience(&self) -> Duration;
}

/// The carrier that the settings name.
///
/// # Errors
/// When the settings can't be followed, such as a file of certificates that can't be read.
pub fn carrier(settings: &MailSettings) -> anyhow::Result<Box<dyn Carrier>> {
    Ok(match &settings.route {
        MailRoute::Folder(folder) => Box::new(Folder::new(folder.clone())),
        MailRoute::Smtp(server) => Box::new(Smtp::open(server)?),
    })
}
