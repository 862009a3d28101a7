//! The settings of the platform. `src/config.rs` reads them from the command line.

mod fees;
mod mail;
mod media;

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use boxoffice_http::client_ip::TrustedProxies;
use boxoffice_http::client_version::ClientVersion;
pub use fees::FeeSchedule;
pub use mail::{MailSettings, MailTransportSettings, SmtpSettings, SmtpTls};
pub use media::{MediaLocation, RESTORING};

use crate::kernel::auth::PasswordSettings;
use crate::kernel::types::currency::Currency;

/// The platform's settings.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The start of all absolute URIs, without a trailing slash.
    pub public_url: String,
    /// The address of the operator's website, without a trailing slash.
    pub site_url: Option<String>,
    /// The URL of a standby for reads.
    pub read_database: Option<Secret>,
    /// The image store: a folder or an S3 URL.
    pub media: MediaLocation,
    /// The secret access key of the bucket, unless the variables of AWS have it.
    pub media_secret_key: Option<Secret>,
    /// Accesses to the image store that may be in progress.
    pub image_accesses: usize,
    /// The file with the key that signs the codes of tickets and the lists for gates.
    pub ticket_key_file: PathBuf,
    /// True if the files of the keys and the folder of the images are created when they don't exist. A command that changes nothing
    /// creates none: if root runs it, the server's user couldn't use them.
    pub creates_files: bool,
    /// The currency.
    pub currency: Currency,
    /// The time for which an open order reserves its places.
    pub reservation: Duration,
    /// The convenience fees.
    pub fee_steps: FeeSchedule,
    /// The lowest client version that is accepted.
    pub minimum_client_version: ClientVersion,
    /// The settings of passwords.
    pub passwords: PasswordSettings,
    /// Rate limits and trusted proxies.
    pub limits: LimitSettings,
    /// The settings of mail.
    pub mail: MailSettings,
    /// The settings of the retention.
    pub retention: RetentionSettings,
    /// The time from which a database statement is logged as slow; `None`: never.
    pub slow_statement: Option<Duration>,
}

/// Rate limits and trusted proxies. By default: unlimited, no proxies trusted.
#[derive(Debug, Clone, Default)]
pub struct LimitSettings {
    /// Guesses per minute from one address on one account; ten times as many across all accounts; 0: no limit.
    pub guesses: u32,
    /// Requests per minute with one key, or with one public key from one address; 0: no limit.
    pub keys: u32,
    /// Failed log-ins per hour to one account; 0: no limit.
    pub failed_logins: u32,
    /// Changes of one account's password or e-mail address per hour; 0: no limit.
    pub credential_changes: u32,
    /// Codes of one kind per hour that are mailed to one e-mail address; 0: no limit.
    pub codes: u32,
    /// Servers that share the limits which are not settings; 0 stands for 1. The others are the shares of this server already.
    pub servers: u32,
    /// Proxies whose headers determine the client's address.
    pub trusted_proxies: TrustedProxies,
}

/// The settings of the retention.
#[derive(Debug, Clone)]
pub struct RetentionSettings {
    /// The age at which entries of the audit log are deleted; `None`: never.
    pub audit: Option<Duration>,
    /// The folder to which these entries are written before.
    pub audit_archive: Option<PathBuf>,
    /// The time between the end of a session, or of a key of an admission token, and its deletion.
    pub sessions: Duration,
    /// The time between the end of a code and its deletion.
    pub codes: Duration,
    /// The age at which mails that were given up, or were written to files, are deleted.
    pub mail: Duration,
    /// The age at which orders that ended without any payment are deleted; `None`: never.
    pub unpaid_orders: Option<Duration>,
}

/// A secret in plain text. Its debug output hides the text, so that it is never logged.
#[derive(Clone)]
pub struct Secret(pub String);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

impl From<&str> for Secret {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}
