//! Everything that the features are built on. No module of the kernel names a feature.

pub mod audit;
pub mod auth;
pub mod context;
pub mod db;
pub mod http;
pub mod idempotency;
pub mod jobs;
pub mod outbox;
pub mod private_files;
pub mod types;

use anyhow::anyhow;
use audit::AuditWriter;
use auth::KeyStore;
use db::Db;
use idempotency::InProgressSet;
use outbox::{MailCipher, MailTransport};
use slog::Logger;
use types::clock::Clock;

use crate::config::Settings;

/// The state that the kernel's modules share.
pub struct Kernel {
    /// The database, outside any request. Services read and write through [`Context::unit`](context::Context::unit) instead.
    pub db: Db,
    /// Current time and new identifiers.
    pub clock: Clock,
    /// The server's settings.
    pub settings: Settings,
    /// Authenticates API keys.
    pub keys: KeyStore,
    /// Idempotent requests in progress.
    pub in_progress: InProgressSet,
    /// Writes audit records.
    pub audit: AuditWriter,
    /// Encrypts mail until it is sent.
    pub mail_cipher: MailCipher,
    /// Sends mail.
    pub mailer: Box<dyn MailTransport>,
    /// The log.
    pub log: Logger,
}

impl Kernel {
    /// Opens the database and the mail transport.
    ///
    /// # Errors
    /// Returns an error if the database can't be opened or migrated, or the mail settings are invalid.
    pub async fn open(database_url: &str, settings: Settings, log: Logger) -> anyhow::Result<Self> {
        let (db, clock) = (Db::open(database_url).await?, Clock::default());
        clock.ensure_ids_after(db.highest_id().await.map_err(|error| anyhow!("cannot read the database: {error:?}"))?);
        Ok(Self {
            db,
            clock,
            keys: KeyStore::default(),
            in_progress: InProgressSet::default(),
            audit: AuditWriter::default(),
            mail_cipher: MailCipher::open(&settings.mail.key_file)?,
            mailer: outbox::from_settings(&settings.mail)?,
            settings,
            log,
        })
    }
}
