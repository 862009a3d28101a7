//! Pools for drawing tickets.

use crate::kernel::worker_pool::{AccountWorkerPool, WorkerPool};

/// Number of requests that wait for each thread. Further ones are rejected with 503.
const WAITING_PER_RUNNING: usize = 100;
/// Largest number of waiting and running requests of one account for PDFs.
const MAX_DOCUMENTS_PER_ACCOUNT: usize = 8;
/// The same for QR codes: an app may show all tickets of an order at once, which has at most 50.
const MAX_CODES_PER_ACCOUNT: usize = 50;

/// Draws tickets on a few threads, so that this can't starve other requests: 50 of them take longer than hundreds of other requests.
pub struct TicketWorkers {
    /// Draws PDFs.
    pub documents: AccountWorkerPool,
    /// Draws QR codes, on the same threads.
    pub codes: AccountWorkerPool,
}

impl TicketWorkers {
    /// Creates pools with this many threads together.
    pub fn new(running: usize) -> Self {
        let waiting = running * WAITING_PER_RUNNING;
        let workers = WorkerPool::new(running, waiting, "Too many tickets wait to be drawn. Try again shortly.");
        Self {
            documents: AccountWorkerPool::new(workers.clone(), "documents", MAX_DOCUMENTS_PER_ACCOUNT),
            codes: AccountWorkerPool::new(workers, "qr-codes", MAX_CODES_PER_ACCOUNT),
        }
    }
}
