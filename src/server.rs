//! A running server: the HTTP server and its jobs.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use boxoffice_http::error::Result;
use boxoffice_http::{GracefulShutdown, Listener, ServerHandle};
use futures::FutureExt;
use tokio::time::{sleep, timeout};

use crate::admin_listener;
use crate::clock_watch;
use crate::contract;
use crate::features::catalog::events;
use crate::features::identity::sessions;
use crate::features::sales::orders::{self, waiting_list};
use crate::features::sales::{account_deletion, event_returns, mail, payments};
use crate::kernel::audit;
use crate::kernel::context::Context;
use crate::kernel::http;
use crate::kernel::idempotency;
use crate::kernel::jobs::{Job, Jobs};
use crate::kernel::outbox;
use crate::retention;
use crate::routes::routes;
use crate::state::{App, Ctx};

/// The name of the job that deletes what is no longer needed.
pub(crate) const APPLY_RETENTION: &str = "apply the retention";

/// Every job.
pub(crate) const JOBS: [Job<App>; 15] = [
    Job::every(30, "watch the clock", |app: Arc<App>| async move { clock_watch::watch(&app).await }.boxed()).in_memory(),
    Job::every(5, "watch the standby", |app: Arc<App>| async move { app.db.watch_standby().await.map(|()| 0) }.boxed())
        .in_memory(),
    // Readers and buyers do not depend on it: to them an expired reservation is over at once.
    Job::every(5, "expire reservations", |app| async move { orders::expire_due(&Context::immediate(app)).await }.boxed())
        .with_long_steps(),
    Job::every(5, "process refunds", |app| async move { payments::process_due(&Context::immediate(app)).await }.boxed())
        .with_long_steps(),
    // Places become free in many ways, so the job looks for them instead of being called by each.
    Job::every(1, "offer places to waiting accounts", |app| {
        async move { waiting_list::offer_places(&Context::immediate(app)).await }.boxed()
    }),
    Job::every(5, "return orders of cancelled events", |app| {
        async move { event_returns::return_next(&Context::immediate(app)).await }.boxed()
    })
    .with_long_steps()
    .on_one_server(),
    Job::every(1, outbox::DELIVER_MAIL, |app| async move { mail::deliver_due(&app).await }.boxed()),
    Job::every(5, "report changed events", |app| async move { mail::report_events(&Context::immediate(app)).await }.boxed()),
    // Only for events that other programs or servers of the version before have written.
    Job::every(60, "complete the search index", |app| {
        async move { events::complete_search_index(&Context::immediate(app)).await }.boxed()
    })
    .on_one_server(),
    Job::every(5, "empty the log of erased data", |app| {
        async move { account_deletion::truncate_wal(&Context::immediate(app)).await }.boxed()
    }),
    Job::every(1, "copy the write-ahead log", |app| async move { checkpoint(&app).await }.boxed()),
    Job::every(60, "delete stored responses", |app: Arc<App>| async move { delete_stored_responses(&app).await }.boxed())
        .on_one_server(),
    Job::every(60 * 60, "delete log-in addresses", |app: Arc<App>| {
        async move { delete_login_addresses(&Context::immediate(app)).await }.boxed()
    })
    .on_one_server(),
    Job::every(10 * 60, "record rejected requests", |app: Arc<App>| {
        async move { audit::write_rejections(&app.kernel).await }.boxed()
    })
    .in_memory(),
    Job::every(60 * 60, APPLY_RETENTION, |app| async move { retention::delete_expired(&Context::immediate(app)).await }.boxed())
        .on_one_server(),
];

/// Job step: deletes some stored responses of idempotent requests.
async fn delete_stored_responses(app: &App) -> Result<u64> {
    match clock_watch::deletion_time(app).await? {
        Some(now) => idempotency::delete_expired(&app.kernel, now).await,
        None => Ok(0),
    }
}

/// Job step: deletes some addresses of log-ins.
async fn delete_login_addresses(ctx: &Ctx) -> Result<u64> {
    match clock_watch::deletion_time(&ctx.app).await? {
        Some(now) => sessions::delete_expired_addresses(ctx, now).await,
        None => Ok(0),
    }
}

/// Pause between two checkpoints, so that a page that many requests change is copied less often.
const CHECKPOINT_PAUSE: Duration = Duration::from_millis(100);

/// Job step: copies the pages that were added to SQLite's write-ahead log.
async fn checkpoint(app: &App) -> Result<u64> {
    let count = app.db.checkpoint().await?;
    if count > 0 {
        sleep(CHECKPOINT_PAUSE).await;
    }
    Ok(count)
}

/// A running server.
pub struct RunningApp {
    app: Arc<App>,
    server: ServerHandle,
    admin: Option<ServerHandle>,
    jobs: Jobs,
}

impl RunningApp {
    /// Starts the HTTP server and the jobs.
    ///
    /// # Errors
    /// Returns an error if the server can't listen on the address.
    pub fn start(app: Arc<App>, listener: impl Into<Listener>) -> anyhow::Result<Self> {
        Self::start_with_admin(app, listener, None)
    }

    /// The same with an admin listener.
    ///
    /// # Errors
    /// Returns an error if the server can't listen on an address.
    pub fn start_with_admin(app: Arc<App>, listener: impl Into<Listener>, admin: Option<Listener>) -> anyhow::Result<Self> {
        let server = http::start(Arc::clone(&app), routes(), contract::load_for(app.settings.currency)?, listener)?;
        let start_admin = |listener| admin_listener::start(Arc::clone(&app), &server, listener, &app.log);
        let admin = admin.map(start_admin).transpose()?;
        let jobs = Jobs::start(&app, JOBS);
        Ok(Self { app, server, admin, jobs })
    }

    /// The address on which it listens, with the port that the system has chosen.
    pub fn address(&self) -> SocketAddr {
        self.server.address()
    }

    /// The address of the admin listener.
    pub fn admin_address(&self) -> Option<SocketAddr> {
        self.admin.as_ref().map(ServerHandle::address)
    }

    /// Returns the number of requests in flight, also while it stops.
    pub fn shutdown(&self) -> Arc<GracefulShutdown> {
        Arc::clone(self.server.shutdown_state())
    }

    /// Stops the jobs. The server still serves requests. For tests.
    pub async fn stop_jobs(&mut self) {
        self.jobs.stop().await;
    }

    /// Stops accepting requests, finishes those in flight, and closes the database.
    ///
    /// # Errors
    /// Returns an error if the server had failed.
    pub async fn stop(mut self) -> anyhow::Result<()> {
        self.server.stop().await?;
        self.jobs.stop().await;
        // They are only counts: without a database they are lost.
        let _written = timeout(Duration::from_secs(5), audit::write_rejections(&self.app.kernel)).await;
        if let Some(admin) = self.admin {
            admin.stop().await?;
        }
        self.app.db.close().await;
        Ok(())
    }
}
