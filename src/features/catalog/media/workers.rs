//! Threads for work with images, which would block other requests.

use std::sync::Arc;

use boxoffice_http::error::{Code, Error, Result};
use tokio::sync::Semaphore;

/// Largest number of images that are decoded or drawn at the same time. A decoded image may need 320 MB.
const RUNNING: usize = 1;
/// Largest number of images that wait. Further requests are rejected with 503.
const WAITING: usize = 100;

/// Runs work with images on a bounded number of threads.
#[derive(Debug, Clone)]
pub struct ImageWorkers {
    running: Arc<Semaphore>,
    /// One permit for each running and each waiting image.
    capacity: Arc<Semaphore>,
}

impl Default for ImageWorkers {
    fn default() -> Self {
        Self { running: Arc::new(Semaphore::new(RUNNING)), capacity: Arc::new(Semaphore::new(RUNNING + WAITING)) }
    }
}

impl ImageWorkers {
    /// Runs `work` on a thread of its own and returns its result.
    ///
    /// # Errors
    /// [`Code::ServerUnavailable`] if too many images are waiting.
    pub async fn run<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Result<T> {
        let Ok(_slot) = self.capacity.try_acquire() else {
            return Err(Code::ServerUnavailable.with_message("Too many images wait to be processed. Try again shortly."));
        };
        let permit = Arc::clone(&self.running).acquire_owned().await.map_err(|error| Error::Internal(error.into()))?;
        let work = move || {
            // Released by the thread, which continues after the request was cancelled.
            let _permit = permit;
            work()
        };
        tokio::task::spawn_blocking(work).await.map_err(|error| Error::Internal(error.into()))
    }
}
