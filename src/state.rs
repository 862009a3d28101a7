//! Wires settings, database, jobs and server together. A test starts it on port 0.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicI64;
use std::thread::available_parallelism;

use anyhow::anyhow;
use slog::Logger;

use crate::features::gate::admissions::AdmissionBatcher;
use crate::kernel::auth::{KeyStore, Passwords};
use crate::kernel::types::clock::Clock;
use crate::config::Settings;
use boxoffice_openapi::Contract;
use crate::kernel::db::Db;
use crate::features::catalog::events::EventCache;
use crate::kernel::http::{self, GracefulShutdown, Listener, Routes, ServerHandle};
use crate::kernel::jobs::Jobs;
use crate::kernel::journal::RequestLog;
use crate::kernel::media::MediaStore;
use crate::features::sales::orders::OrderBatcher;
use crate::kernel::outbox::{self, MailTransport};
use crate::features::sales::payments::{Gateway, PaymentBatcher, Sandbox};

/// What every operation works with.
pub struct App {
    /// The database.
    pub db: Db,
    /// The time, and new identifiers.
    pub clock: Clock,
    /// The platform's settings.
    pub settings: Settings,
    /// Hashes and checks passwords.
    pub passwords: Passwords,
    /// The keys that are being looked up.
    pub keys: KeyStore,
    /// The events and lists that are being read.
    pub event_cache: EventCache,
    /// Where images are kept.
    pub media: MediaStore,
    /// Who takes the money.
    pub gateway: Box<dyn Gateway>,
    /// The last of what the gateway has to give back that it was asked for by the job; 0 at the beginning.
    pub refund_cursor: AtomicI64,
    /// Who takes the mail.
    pub mailer: Box<dyn MailTransport>,
    /// Where orders are placed.
    pub order_batcher: OrderBatcher,
    /// Where orders are paid.
    pub payments: PaymentBatcher,
    /// Where tickets are redeemed.
    pub redeemer: AdmissionBatcher,
    /// What is kept of requests that change something.
    pub journal: RequestLog,
    /// The log.
    pub log: Logger,
}

impl App {
    /// Opens the database at `database_url` and everything else that the operations need.
    ///
    /// # Errors
    /// When the database or the place for images can't be opened, or the settings of mail can't be followed.
    pub async fn open(database_url: &str, settings: Settings, log: Logger) -> anyhow::Result<Arc<Self>> {
        let cores = available_parallelism().map_or(1, usize::from);
        let (db, clock) = (Db::open(database_url).await?, Clock::default());
        clock.ensure_ids_after(db.highest_id().await.map_err(|error| anyhow!("cannot read the database: {error:?}"))?);
        Ok(Arc::new(Self {
            db,
            clock,
            // The other cores are for everybody else.
            passwords: Passwords::new((cores / 2).max(1)),
            keys: KeyStore::default(),
            event_cache: EventCache::default(),
            media: MediaStore::open(&settings.media)?,
            gateway: Box::new(Sandbox),
            refund_cursor: AtomicI64::new(0),
            mailer: outbox::from_settings(&settings.mail)?,
            order_batcher: OrderBatcher::default(),
            payments: PaymentBatcher::default(),
            redeemer: AdmissionBatcher::default(),
            journal: RequestLog::default(),
            settings,
            log,
        }))
    }
}

/// The server and its jobs, under way.
pub struct RunningApp {
    app: Arc<App>,
    server: ServerHandle<Arc<App>>,
    jobs: Jobs,
}

impl RunningApp {
    /// Starts answering, and the jobs.
    ///
    /// # Errors
    /// When the address can't be had.
    pub fn start(app: Arc<App>, listener: impl Into<Listener>) -> anyhow::Result<Self> {
        let server = http::start(Arc::clone(&app), api(), contract::load()?, listener)?;
        let jobs = Jobs::start(&app);
        Ok(Self { app, server, jobs })
    }

    /// The address that it listens on, with the port that it was given.
    pub fn address(&self) -> SocketAddr {
        self.server.address()
    }

    /// How many requests are being answered can be told by these, also while it stops.
    pub fn doors(&self) -> Arc<GracefulShutdown> {
        Arc::clone(self.server.doors())
    }

    /// Takes no more requests, finishes what is under way, and closes the database.
    ///
    /// # Errors
    /// When the server had failed.
    pub async fn stop(self) -> anyhow::Result<()> {
        self.server.stop().await?;
        self.jobs.stop().await;
        self.app.db.close().await;
        Ok(())
    }
}

/// Every endpoint.
pub fn api() -> Routes {
    let mut api = Routes::new();
    crate::features::identity::sessions::register(&mut api);
    crate::features::identity::accounts::register(&mut api);
    crate::features::identity::account_lookups::register(&mut api);
    crate::features::identity::verification_codes::register(&mut api);
    crate::features::identity::integrations::register(&mut api);
    crate::features::insight::server_info::register(&mut api);
    crate::features::catalog::hosts::register(&mut api);
    crate::features::catalog::regions::register(&mut api);
    crate::features::catalog::preferences::register(&mut api);
    crate::features::catalog::venues::register(&mut api);
    crate::features::catalog::categories::register(&mut api);
    crate::features::catalog::events::register(&mut api);
    crate::features::catalog::sections::register(&mut api);
    crate::features::catalog::price_modifiers::register(&mut api);
    crate::features::catalog::zones::register(&mut api);
    crate::features::catalog::advertisements::register(&mut api);
    crate::features::catalog::review::register(&mut api);
    crate::features::sales::orders::register(&mut api);
    crate::features::sales::payments::register(&mut api);
    crate::features::sales::ledger::register(&mut api);
    crate::features::sales::tickets::register(&mut api);
    crate::features::sales::transfers::register(&mut api);
    crate::features::catalog::tokens::register(&mut api);
    crate::features::gate::admissions::register(&mut api);
    crate::features::sales::account_deletion::register(&mut api);
    crate::features::insight::reports::register(&mut api);
    crate::features::insight::audit_log::register(&mut api);
    crate::kernel::media::register(&mut api);
    api
}
