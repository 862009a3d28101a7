//! Pools for work with images.

use crate::kernel::worker_pool::{AccountWorkerPool, WorkerPool};

/// Largest number of images that are decoded or drawn at the same time. A decoded image may need 320 MB.
const RUNNING: usize = 1;
/// Largest number of images that wait. Further requests are rejected with 503.
const WAITING: usize = 100;
/// Largest number of waiting and running uploads of one account.
const MAX_PER_ACCOUNT: usize = 8;

/// Creates a pool for images.
pub fn image_workers() -> WorkerPool {
    WorkerPool::new(RUNNING, WAITING, "Too many images wait to be processed. Try again shortly.")
}

/// Creates the pool that decodes uploaded images.
pub fn image_uploads() -> AccountWorkerPool {
    AccountWorkerPool::new(image_workers(), "images", MAX_PER_ACCOUNT)
}
