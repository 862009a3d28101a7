//! Settings of mail.

use std::path::PathBuf;
use std::time::Duration;

use chrono_tz::Tz;
use lettre::message::Mailbox;

use super::Secret;
use crate::kernel::types::language::Language;

/// The settings of mail.
#[derive(Debug, Clone)]
pub struct MailSettings {
    /// The sender of all mail.
    pub from: Mailbox,
    /// The file with the key that encrypts mail until it is sent.
    pub key_file: PathBuf,
    /// The folder with the operator's templates.
    pub templates: Option<PathBuf>,
    /// The language of mail to accounts that have chosen none.
    pub language: Language,
    /// The time zone of the times in mail and on tickets.
    pub time_zone: Tz,
    /// The transport.
    pub transport: MailTransportSettings,
}

/// The transport of mail.
#[derive(Debug, Clone)]
pub enum MailTransportSettings {
    /// Files in this folder.
    Folder(PathBuf),
    /// A mail server.
    Smtp(SmtpSettings),
}

/// The settings of a mail server.
#[derive(Debug, Clone)]
pub struct SmtpSettings {
    /// The host name or address.
    pub host: String,
    /// The port.
    pub port: u16,
    /// The encryption of the connection.
    pub tls: SmtpTls,
    /// The username and password.
    pub credentials: Option<(String, Secret)>,
    /// A PEM file of additional certificate authorities.
    pub certificates: Option<PathBuf>,
    /// The time limit for one mail.
    pub timeout: Duration,
}

/// The encryption of the connection to a mail server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SmtpTls {
    /// No encryption.
    None,
    /// STARTTLS, required: nothing is sent if the server doesn't support it.
    Starttls,
    /// TLS from the first byte.
    Tls,
}
