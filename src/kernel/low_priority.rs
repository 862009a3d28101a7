//! Work in the background that must not slow down requests.

use std::thread;

use boxoffice_http::error::{Error, Result};
use rustix::process::setpriority_process;
use rustix::thread::gettid;
use tokio::sync::oneshot;

/// The nice value of the threads. While other threads keep all cores busy, one of these gets about a tenth of a core.
const NICE: i32 = 10;

/// Runs `work` on a thread of its own, which has a lower priority than those of requests, and returns its result.
///
/// # Errors
/// Returns an error if the thread can't be started, or `work` panics.
pub async fn run<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T> {
    let (sender, receiver) = oneshot::channel();
    let work = move || {
        // Linux has a nice value for each thread. If it can't be set, the work is done all the same.
        let _unchanged = setpriority_process(Some(gettid()), NICE);
        // The receiver may have been dropped.
        let _unneeded = sender.send(work());
    };
    thread::Builder::new().name("low priority".to_owned()).spawn(work).map_err(|error| Error::Internal(error.into()))?;
    receiver.await.map_err(|error| Error::Internal(error.into()))
}
