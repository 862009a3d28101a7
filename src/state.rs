//! The application's state.

use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64};
use std::thread::available_parallelism;
use std::time::Instant;

use anyhow::Context as _;
use boxoffice_http::traces::Tracer;
use boxoffice_reference::ReferencePages;
use slog::Logger;

use crate::clock_watch::ClockWatch;
use crate::contract;
use crate::features::catalog::events::{EventCache, EventLists};
use crate::features::catalog::folded_names;
use crate::features::catalog::media::{GeneratedImages, MediaStore, image_uploads};
use crate::features::gate::admissions::ScanRequest;
use crate::features::identity::accounts;
use crate::features::sales::orders::{AccountOrders, OrderReads, OrderRequest};
use crate::features::sales::payments::{Gateway, PaymentStep, Sandbox};
use crate::features::sales::tickets::{AccountTickets, EventTicketLists, TicketKeys, TicketWorkers};
use crate::features::sales::transfers::AccountTransfers;
use crate::kernel::Kernel;
use crate::kernel::auth::Passwords;
use crate::kernel::context::Context;
use crate::kernel::http::AppState;
use crate::kernel::settings::Settings;
use crate::kernel::unit_of_work::GroupCommit;
use crate::kernel::worker_pool::AccountWorkerPool;
use crate::readiness::ReadinessState;
use crate::window_limits::WindowLimits;

/// The context of a request or of a job's run.
pub type Ctx = Context<App>;

/// The state that all operations share.
pub struct App {
    /// Database, clock, settings, authentication, audit log, mail, log.
    pub kernel: Arc<Kernel>,
    /// Hashes and verifies passwords.
    pub passwords: Passwords,
    /// Limits of failed log-ins, mails and more, by account or address.
    pub limits: WindowLimits,
    /// Cache of events and of lists of events.
    pub event_cache: EventCache,
    /// Uploaded images.
    pub media: MediaStore,
    /// Icons and placeholders.
    pub generated_images: GeneratedImages,
    /// Decodes uploaded images.
    pub image_uploads: AccountWorkerPool,
    /// The payment gateway.
    pub gateway: Box<dyn Gateway>,
    /// Signs and verifies the codes of tickets.
    pub ticket_keys: TicketKeys,
    /// Draws tickets.
    pub ticket_workers: TicketWorkers,
    /// The last refund that the job has sent to the gateway; 0 at first.
    pub refund_cursor: AtomicI64,
    /// True if SQLite's log may have data of erased accounts: after an erasure, and at the start because the server may have been
    /// stopped before it emptied the log.
    pub has_erased: AtomicBool,
    /// The start page, the API reference and the OpenAPI document.
    pub reference_pages: Arc<ReferencePages>,
    /// State of the checks of the dependencies.
    pub readiness: ReadinessState,
    /// State of the job that watches the clock.
    pub clock_watch: ClockWatch,
    /// Places orders in batches.
    pub order_commits: GroupCommit<App, OrderRequest>,
    /// Begins and confirms payments in batches.
    pub payment_commits: GroupCommit<App, PaymentStep>,
    /// Reads lists of events in batches.
    pub event_lists: EventLists,
    /// Reads lists of the tickets of events in batches.
    pub event_tickets: EventTicketLists,
    /// Reads the tickets of accounts in batches.
    pub account_tickets: AccountTickets,
    /// Reads the orders of accounts in batches.
    pub account_orders: AccountOrders,
    /// Reads the transfers of accounts in batches.
    pub account_transfers: AccountTransfers,
    /// Reads single orders in batches.
    pub order_reads: OrderReads,
    /// Redeems tickets in batches.
    pub scan_commits: GroupCommit<App, ScanRequest>,
}

impl App {
    /// Opens the database, the image store and the mail transport, and completes rows that an earlier version wrote.
    ///
    /// # Errors
    /// Returns an error if one of them can't be opened, or the settings are invalid.
    pub async fn open(database_url: &str, settings: Settings, log: Logger, tracer: Tracer) -> anyhow::Result<Arc<Self>> {
        // Each pool uses half of the cores at most.
        let half_of_cores = (available_parallelism().map_or(1, usize::from) / 2).max(1);
        let media = MediaStore::open(&settings)?;
        let reference_pages = Arc::new(ReferencePages::new(contract::load()?, &settings.public_url));
        let ticket_keys = TicketKeys::open(&settings.ticket_key_file, settings.creates_files)?;
        let (passwords, limits) = (settings.passwords, WindowLimits::new(&settings.limits));
        let app = Self {
            kernel: Arc::new(Kernel::open(database_url, settings, log, tracer).await?),
            passwords: Passwords::new(half_of_cores, passwords),
            limits,
            event_cache: EventCache::default(),
            media,
            generated_images: GeneratedImages::default(),
            image_uploads: image_uploads(),
            gateway: Box::new(Sandbox),
            ticket_keys,
            ticket_workers: TicketWorkers::new(half_of_cores),
            refund_cursor: AtomicI64::new(0),
            has_erased: AtomicBool::new(true),
            reference_pages,
            readiness: ReadinessState::new(Instant::now()),
            clock_watch: ClockWatch::default(),
            order_commits: GroupCommit::default(),
            payment_commits: GroupCommit::default(),
            event_lists: EventLists::default(),
            event_tickets: EventTicketLists::default(),
            account_tickets: AccountTickets::default(),
            account_orders: AccountOrders::default(),
            account_transfers: AccountTransfers::default(),
            order_reads: OrderReads::default(),
            scan_commits: GroupCommit::default(),
        };
        folded_names::complete(&app).await.map_err(anyhow::Error::from).context("cannot complete the names in the database")?;
        accounts::complete_names(&app).await.map_err(anyhow::Error::from).context("cannot complete the names of accounts")?;
        Ok(Arc::new(app))
    }
}

impl AppState for App {
    fn kernel(&self) -> &Arc<Kernel> {
        &self.kernel
    }
}

/// `app.clock` is `app.kernel.clock`.
impl Deref for App {
    type Target = Kernel;

    fn deref(&self) -> &Kernel {
        &self.kernel
    }
}
