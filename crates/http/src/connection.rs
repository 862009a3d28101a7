//! One open connection: its requests in progress, the bytes that wait to be sent on it, and its timeouts.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use crate::connection_limits::{CloseReason, ConnectionLimits};

/// Bytes that a client must read within [`ConnectionLimits::send_timeout`].
const MIN_PROGRESS: u64 = 8 * 1024;
/// Time without any progress after which a connection may be closed early to make room for other responses.
const STALLED: Duration = Duration::from_secs(1);

/// One open connection.
#[derive(Debug)]
pub struct Connection {
    /// Its number, by which [`Connections`](crate::Connections) finds it.
    pub number: u64,
    /// The client's address; `None` for a trusted proxy.
    pub address: Option<IpAddr>,
    /// Bytes that the operating system has accepted from this connection.
    written: AtomicU64,
    /// True if it did not accept the bytes that were last written: they wait above the socket, such as in the buffer of TLS.
    is_blocked: AtomicBool,
    activity: Mutex<Activity>,
    is_evicted: AtomicBool,
    evicted: Notify,
}

#[derive(Debug)]
struct Activity {
    /// Number of requests whose head is complete and whose response is not completely handed to hyper.
    requests: usize,
    /// True after the head of the first request.
    had_request: bool,
    /// Start of the connection, or the end of its last response.
    idle_since: Instant,
    /// Bytes of responses that were not sent.
    unsent: usize,
    /// Time at which unsent bytes appeared, or of the last [`MIN_PROGRESS`].
    progress_at: Instant,
    /// Value of `written` at that time.
    progress: u64,
    /// Time at which room was needed for other responses and `written` had changed since the time before.
    changed_at: Instant,
    /// Value of `written` at that time.
    changed: u64,
}

/// A request in progress until dropped.
#[derive(Debug)]
pub struct RequestGuard(Arc<Connection>);

impl Drop for RequestGuard {
    fn drop(&mut self) {
        let mut activity = self.0.activity.lock();
        activity.requests -= 1;
        activity.idle_since = Instant::now();
    }
}

impl Connection {
    /// Creates a connection on which nothing was received or sent yet.
    pub fn new(number: u64, address: Option<IpAddr>) -> Self {
        let now = Instant::now();
        let activity = Activity {
            requests: 0,
            had_request: false,
            idle_since: now,
            unsent: 0,
            progress_at: now,
            progress: 0,
            changed_at: now,
            changed: 0,
        };
        Self {
            number,
            address,
            written: AtomicU64::new(0),
            is_blocked: AtomicBool::new(false),
            activity: Mutex::new(activity),
            is_evicted: AtomicBool::new(false),
            evicted: Notify::new(),
        }
    }

    /// Records a write to the socket: the bytes that the operating system has accepted, or `None` if it accepts none at the moment.
    pub fn record_write(&self, accepted: Option<usize>) {
        self.is_blocked.store(accepted.is_none(), Ordering::Relaxed);
        self.written.fetch_add(accepted.unwrap_or(0) as u64, Ordering::Relaxed);
    }

    fn is_blocked(&self) -> bool {
        self.is_blocked.load(Ordering::Relaxed)
    }

    /// Counts a request whose head is complete.
    pub fn begin_request(self: &Arc<Self>) -> RequestGuard {
        let mut activity = self.activity.lock();
        activity.requests += 1;
        activity.had_request = true;
        drop(activity);
        RequestGuard(Arc::clone(self))
    }

    /// Counts bytes of a response as unsent.
    pub fn add_unsent(&self, bytes: usize) {
        let mut activity = self.activity.lock();
        if activity.unsent == 0 {
            activity.progress_at = Instant::now();
            activity.progress = self.written.load(Ordering::Relaxed);
        }
        activity.unsent += bytes;
    }

    /// Counts bytes of a response as sent.
    pub fn remove_unsent(&self, bytes: usize) {
        let mut activity = self.activity.lock();
        activity.unsent -= bytes;
        activity.idle_since = Instant::now();
    }

    /// Returns the number of unsent bytes.
    pub fn unsent(&self) -> usize {
        self.activity.lock().unsent
    }

    /// Returns the number of unsent bytes, if its client has read nothing for a second.
    pub fn stalled_bytes(&self, now: Instant) -> Option<usize> {
        let mut activity = self.activity.lock();
        activity.is_stalled(self, now).then_some(activity.unsent)
    }

    /// Returns the time since which it is idle; `None` if it isn't.
    pub fn idle_since(&self) -> Option<Instant> {
        self.activity.lock().idle_since(self)
    }

    /// Closes it in favor of others.
    pub fn evict(&self) {
        self.is_evicted.store(true, Ordering::Relaxed);
        self.evicted.notify_one();
    }

    /// Returns whether it was closed in favor of others.
    pub fn is_evicted(&self) -> bool {
        self.is_evicted.load(Ordering::Relaxed)
    }

    /// Waits until it must be closed: it exceeds a timeout, or another one takes its place. Returns the timeout, if it is one that
    /// the metrics count.
    pub async fn wait_for_end(&self, limits: &ConnectionLimits) -> Option<CloseReason> {
        loop {
            let now = Instant::now();
            let (deadline, reason) = self.activity.lock().deadline(self, limits, now);
            if self.is_evicted() {
                return None;
            }
            if deadline <= now {
                return reason;
            }
            tokio::select! {
                // Checked several times, because progress and another timeout are noticed only then.
                () = sleep_until(deadline.min(now + limits.shortest_timeout() / 4)) => {}
                () = self.evicted.notified() => return None,
            }
        }
    }

    /// Lets [`STALLED`] pass without progress.
    #[cfg(test)]
    pub fn stall(&self) {
        self.activity.lock().changed_at -= STALLED;
    }
}

impl Activity {
    /// Returns the time since which the connection is idle; `None` if it isn't.
    fn idle_since(&self, connection: &Connection) -> Option<Instant> {
        (self.requests == 0 && self.unsent == 0 && !connection.is_blocked()).then_some(self.idle_since)
    }

    /// Returns whether bytes wait to be sent and none was sent for a while.
    fn is_stalled(&mut self, connection: &Connection, now: Instant) -> bool {
        let written = connection.written.load(Ordering::Relaxed);
        if written != self.changed {
            (self.changed, self.changed_at) = (written, now);
        }
        self.unsent > 0 && self.changed_at + STALLED <= now
    }

    /// Returns the time at which the connection must be closed, if nothing happens until then, and the reason. There is none between
    /// two requests, where each connection ends.
    fn deadline(&mut self, connection: &Connection, limits: &ConnectionLimits, now: Instant) -> (Instant, Option<CloseReason>) {
        let written = connection.written.load(Ordering::Relaxed);
        let is_sending = self.unsent > 0 || connection.is_blocked();
        if !is_sending || written - self.progress >= MIN_PROGRESS {
            (self.progress, self.progress_at) = (written, now);
        }
        if is_sending {
            self.idle_since = now;
            return (self.progress_at + limits.send_timeout, Some(CloseReason::SendTimeout));
        }
        let (idle_timeout, reason) =
            if self.had_request { (limits.idle_timeout, None) } else { (limits.head_timeout, Some(CloseReason::HeadTimeout)) };
        // While a request is in progress, its body, the database and the other dependencies have timeouts of their own.
        (self.idle_since(connection).unwrap_or(now) + idle_timeout, reason)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_reading_enough_postpones_the_end() {
        let (connection, limits) = (Connection::new(1, None), ConnectionLimits::default());
        connection.add_unsent(100_000);
        let start = Instant::now();
        let deadline = |after: Duration| {
            let (deadline, reason) = connection.activity.lock().deadline(&connection, &limits, start + after);
            (deadline - start, reason)
        };
        let send_timeout = |start: Duration| (start + limits.send_timeout, Some(CloseReason::SendTimeout));

        let first = deadline(Duration::ZERO);
        connection.record_write(Some(MIN_PROGRESS as usize - 1));
        assert_eq!(deadline(Duration::from_secs(5)), first);
        connection.record_write(Some(1));
        assert_eq!(deadline(Duration::from_secs(5)), send_timeout(Duration::from_secs(5)));
        connection.record_write(None);
        connection.remove_unsent(100_000);
        assert_eq!(deadline(Duration::from_secs(6)), send_timeout(Duration::from_secs(5)), "TLS has the rest");
        connection.record_write(Some(1));
        let head_timeout = (Duration::from_secs(6) + limits.head_timeout, Some(CloseReason::HeadTimeout));
        assert_eq!(deadline(Duration::from_secs(7)), head_timeout, "idle");
    }
}
