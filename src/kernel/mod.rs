//! Everything that the features are built on. No module of the kernel names a feature.

pub mod aead;
pub mod audit;
pub mod auth;
pub mod clock_state;
pub mod context;
pub mod db;
pub mod disk_space;
pub mod font;
pub mod http;
pub mod idempotency;
pub mod jobs;
pub mod key_file;
pub mod low_priority;
pub mod metrics;
pub mod open_files;
pub mod outbox;
pub mod private_files;
pub mod settings;
pub mod signing;
pub mod types;
pub mod unit_of_work;
pub mod worker_pool;

use anyhow::{Context as _, anyhow, ensure};
use audit::{AuditWriter, RejectionCounts};
use auth::KeyStore;
use boxoffice_http::traces::Tracer;
use db::Db;
use idempotency::InProgressSet;
use metrics::Metrics;
use outbox::{MailCipher, MailTemplates, MailTransport};
use settings::Settings;
use slog::Logger;
use tokio::sync::watch;
use types::clock::{Clock, Timestamp};

/// 2025-01-01T00:00:00Z, before this version was made. An earlier clock was not set, for example because its battery is empty.
const EARLIEST: Timestamp = Timestamp(1_735_689_600_000_000);

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
    /// Rejected requests with public keys, until the audit log has an entry for them.
    pub rejections: RejectionCounts,
    /// Encrypts mail until it is sent.
    pub mail_cipher: MailCipher,
    /// The templates of mail.
    pub mail_templates: MailTemplates,
    /// Sends mail.
    pub mail_transport: Box<dyn MailTransport>,
    /// True once the server stops: jobs then begin nothing new.
    pub stopping: watch::Sender<bool>,
    /// Metrics.
    pub metrics: Metrics,
    /// Creates the spans of traces.
    pub tracer: Tracer,
    /// The name of this server, different from those of all others, also on the same machine.
    pub server_name: String,
    /// The log.
    pub log: Logger,
}

impl Kernel {
    /// Opens the database and the mail transport.
    ///
    /// # Errors
    /// Returns an error if the database can't be opened or migrated, or the mail settings or a template are invalid.
    pub async fn open(database_url: &str, settings: Settings, log: Logger, tracer: Tracer) -> anyhow::Result<Self> {
        let clock = Clock::default();
        ensure!(
            clock.now() >= EARLIEST,
            "this machine's clock shows {}, which can't be right: set it first",
            clock.now().format_rfc3339()
        );
        let mut db = Db::open(database_url).await?;
        if let Some(standby) = &settings.read_database {
            db = db.with_standby(&standby.0, log.clone())?;
        }
        db.set_log(log.clone(), settings.slow_statement);
        let highest = db.highest_id().await.map_err(|error| anyhow!(error.into_log_text()));
        clock.ensure_ids_after(highest.context("cannot read the database")?);
        Ok(Self {
            metrics: Metrics::new(db.metrics()),
            tracer,
            db,
            clock,
            keys: KeyStore::default(),
            in_progress: InProgressSet::default(),
            audit: AuditWriter::default(),
            rejections: RejectionCounts::default(),
            mail_cipher: MailCipher::open(&settings.mail.key_file, settings.creates_files)?,
            mail_templates: MailTemplates::open(&settings)?,
            mail_transport: outbox::from_settings(&settings.mail)?,
            stopping: watch::Sender::new(false),
            settings,
            server_name: server_name(),
            log,
        })
    }

    /// Returns whether the server stops.
    pub fn is_stopping(&self) -> bool {
        *self.stopping.borrow()
    }
}

/// Returns the machine's name, the process and a random number.
fn server_name() -> String {
    let machine = rustix::system::uname().nodename().to_string_lossy().into_owned();
    format!("{machine}/{}/{:04x}", std::process::id(), rand::random::<u16>())
}
