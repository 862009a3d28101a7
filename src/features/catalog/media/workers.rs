//! Pools for work with images.

use boxoffice_http::error::Result;

use crate::kernel::types::id::Id;
use crate::kernel::worker_pool::{UserLimits, WorkerPool};

/// Largest number of images that are decoded or drawn at the same time. A decoded image may need 320 MB.
const RUNNING: usize = 1;
/// Largest number of images that wait. Further requests are rejected with 503.
const WAITING: usize = 100;
/// Largest number of waiting and running uploads of one account.
const MAX_PER_ACCOUNT: usize = 8;

/// Decodes uploaded images.
pub struct ImageUploads {
    workers: WorkerPool,
    accounts: UserLimits<Id>,
}

impl Default for ImageUploads {
    fn default() -> Self {
        Self { workers: image_workers(), accounts: UserLimits::new("images") }
    }
}

impl ImageUploads {
    /// Runs `decode` for an upload of an account. Programs of the operator have none.
    ///
    /// # Errors
    /// [`Error::TooMany`](boxoffice_http::error::Error::TooMany) if too many images of this account are waiting,
    /// [`Code::SERVER_UNAVAILABLE`](boxoffice_http::error::Code::SERVER_UNAVAILABLE) if too many of all accounts are.
    pub async fn run<T: Send + 'static>(&self, account: Option<Id>, decode: impl FnOnce() -> T + Send + 'static) -> Result<T> {
        let _share = account.map(|account| self.accounts.take(account, MAX_PER_ACCOUNT)).transpose()?;
        self.workers.enter()?.run(decode).await
    }
}

/// Creates a pool for images.
pub fn image_workers() -> WorkerPool {
    WorkerPool::new(RUNNING, WAITING, "Too many images wait to be processed. Try again shortly.")
}
