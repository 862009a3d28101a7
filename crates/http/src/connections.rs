//! Open connections: their number, their timeouts, and the bytes that wait to be sent on them.
//!
//! A client that sends nothing, sends slowly or reads slowly occupies a file descriptor and memory. So each connection is closed
//! when it makes no progress, and the sum over all connections is bounded.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use rustix::process::{Resource, getrlimit};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use crate::client_ip::{TrustedProxies, rate_limit_key};

/// File descriptors that are left for the database, images, mail and the log.
const RESERVED_DESCRIPTORS: u64 = 96;
/// Upper bound of the default of [`ConnectionLimits::maximum`]. An idle connection takes about 20 KiB of memory.
const MAX_DEFAULT_CONNECTIONS: u64 = 4096;
/// Bytes that a client must read within [`ConnectionLimits::send_timeout`].
const MIN_PROGRESS: u64 = 8 * 1024;
/// Largest size of a small response, in bytes. A connection has at most a hundred of them.
pub(crate) const SMALL_RESPONSE: usize = 64 * 1024;
/// Time without any progress after which a connection may be closed early to make room for other responses.
const STALLED: Duration = Duration::from_secs(1);

/// Limits of a server's connections and their requests.
#[derive(Debug, Clone)]
pub struct ConnectionLimits {
    /// Maximum number of open connections; `None`: as many as the limit of open files allows, at most 4096.
    pub maximum: Option<usize>,
    /// Maximum number of open connections of one address, or of one /64 network of IPv6; 0: no limit.
    pub per_address: usize,
    /// Maximum number of requests in progress on all connections together, from the end of their bodies to their responses.
    pub requests: usize,
    /// Time from the start of a connection until the head of its first request is complete, including the TLS handshake.
    pub head_timeout: Duration,
    /// Time from the end of a response until the head of the next request is complete.
    pub idle_timeout: Duration,
    /// Time in which a client must read 8 KiB of a response, or its end.
    pub send_timeout: Duration,
    /// Maximum number of bytes that wait to be sent on one connection.
    pub unsent_per_connection: usize,
    /// Maximum number of bytes that wait to be sent on all connections together.
    pub unsent: usize,
}

impl Default for ConnectionLimits {
    fn default() -> Self {
        Self {
            maximum: None,
            per_address: 0,
            requests: 1024,
            head_timeout: Duration::from_secs(10),
            idle_timeout: Duration::from_secs(60),
            send_timeout: Duration::from_secs(20),
            unsent_per_connection: 8 << 20,
            unsent: 64 << 20,
        }
    }
}

impl ConnectionLimits {
    fn shortest_timeout(&self) -> Duration {
        self.head_timeout.min(self.idle_timeout).min(self.send_timeout)
    }
}

/// Returns the number of connections for which the process has file descriptors.
fn default_maximum() -> usize {
    let descriptors = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    // A server with very few descriptors still accepts some connections.
    let available = descriptors.saturating_sub(RESERVED_DESCRIPTORS).max(descriptors / 4);
    usize::try_from(available.min(MAX_DEFAULT_CONNECTIONS)).unwrap_or(usize::MAX)
}

/// The limit at which the server closes a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum CloseReason {
    /// The connection is new, and its address has [`ConnectionLimits::per_address`] others, none of which is idle.
    AddressLimit,
    /// The connection is new, and [`ConnectionLimits::maximum`] others are open, none of which is idle.
    ConnectionLimit,
    /// It was idle, and a new one has taken its place.
    Idle,
    /// [`ConnectionLimits::head_timeout`].
    HeadTimeout,
    /// [`ConnectionLimits::send_timeout`].
    SendTimeout,
    /// Its client has read nothing for a second, and [`ConnectionLimits::unsent`] left no room for other responses.
    ResponseMemory,
}

impl CloseReason {
    /// All reasons.
    pub const ALL: [Self; 6] =
        [Self::AddressLimit, Self::ConnectionLimit, Self::Idle, Self::HeadTimeout, Self::SendTimeout, Self::ResponseMemory];

    /// Returns its name in the metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::AddressLimit => "address_limit",
            Self::ConnectionLimit => "connection_limit",
            Self::Idle => "idle",
            Self::HeadTimeout => "head_timeout",
            Self::SendTimeout => "send_timeout",
            Self::ResponseMemory => "response_memory",
        }
    }
}

/// The open connections of a server.
#[derive(Debug)]
pub struct Connections {
    limits: ConnectionLimits,
    maximum: usize,
    /// Proxies, whose addresses have no limit.
    trusted_proxies: TrustedProxies,
    open: Mutex<OpenConnections>,
    unsent: AtomicUsize,
}

#[derive(Debug, Default)]
struct OpenConnections {
    next: u64,
    by_number: BTreeMap<u64, Arc<Connection>>,
    per_address: HashMap<IpAddr, usize>,
    /// Numbers of connections that were closed at a limit.
    closed: BTreeMap<CloseReason, u64>,
}

/// One open connection.
#[derive(Debug)]
pub struct Connection {
    number: u64,
    /// The client's address; `None` for a trusted proxy.
    address: Option<IpAddr>,
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

/// Registration of a connection until dropped.
#[derive(Debug)]
pub struct ConnectionGuard {
    connections: Arc<Connections>,
    /// The connection.
    pub connection: Arc<Connection>,
}

impl Drop for ConnectionGuard {
    fn drop(&mut self) {
        self.connections.open.lock().remove(&self.connection);
    }
}

impl OpenConnections {
    fn remove(&mut self, connection: &Connection) {
        if self.by_number.remove(&connection.number).is_none() {
            return;
        }
        let Some(address) = connection.address else { return };
        if let Some(count) = self.per_address.get_mut(&address) {
            *count -= 1;
            if *count == 0 {
                self.per_address.remove(&address);
            }
        }
    }

    fn count_closed(&mut self, reason: CloseReason) {
        *self.closed.entry(reason).or_default() += 1;
    }

    /// Closes an idle connection in favor of a new one.
    ///
    /// # Errors
    /// Returns `limit`, at which the new one must be closed, if no connection is idle.
    fn make_room(&mut self, of: Option<IpAddr>, limit: CloseReason) -> Result<(), CloseReason> {
        if self.evict_idle(of) {
            self.count_closed(CloseReason::Idle);
            return Ok(());
        }
        self.count_closed(limit);
        Err(limit)
    }

    /// Closes an idle connection: one of the address that has the most, and of these the one that was idle for the longest time.
    /// Returns false if no connection is idle.
    fn evict_idle(&mut self, of: Option<IpAddr>) -> bool {
        let candidates = self.by_number.values().filter(|connection| of.is_none() || connection.address == of);
        let idle = candidates.filter_map(|connection| Some((connection, connection.activity.lock().idle_since(connection)?)));
        let count = |connection: &Connection| connection.address.and_then(|address| self.per_address.get(&address)).copied();
        let oldest = idle.min_by_key(|(connection, since)| (std::cmp::Reverse(count(connection)), *since));
        let Some(connection) = oldest.map(|(connection, _)| Arc::clone(connection)) else { return false };
        self.remove(&connection);
        connection.evict();
        true
    }
}

impl Connections {
    /// Creates an empty registry with these limits.
    pub fn new(limits: ConnectionLimits, trusted_proxies: TrustedProxies) -> Arc<Self> {
        let maximum = limits.maximum.unwrap_or_else(default_maximum);
        Arc::new(Self { limits, maximum, trusted_proxies, open: Mutex::default(), unsent: AtomicUsize::new(0) })
    }

    /// The limits.
    pub fn limits(&self) -> &ConnectionLimits {
        &self.limits
    }

    /// The number of open connections.
    pub fn count(&self) -> usize {
        self.open.lock().by_number.len()
    }

    /// The largest number of open connections.
    pub fn maximum(&self) -> usize {
        self.maximum
    }

    /// The number of connections that were closed for this reason.
    pub fn closed(&self, reason: CloseReason) -> u64 {
        self.open.lock().closed.get(&reason).copied().unwrap_or_default()
    }

    /// Registers a new connection. If there are too many, an idle one is closed in its favor.
    ///
    /// # Errors
    /// Returns the limit at which the new one must be closed, if none is idle.
    pub fn open(self: &Arc<Self>, peer: IpAddr) -> Result<ConnectionGuard, CloseReason> {
        let per_address = self.limits.per_address;
        let address = (!self.trusted_proxies.trusts(peer.to_canonical())).then(|| rate_limit_key(peer));
        let mut open = self.open.lock();
        let is_over = |address| per_address > 0 && open.per_address.get(&address).copied().unwrap_or(0) >= per_address;
        if address.is_some_and(is_over) {
            open.make_room(address, CloseReason::AddressLimit)?;
        }
        if open.by_number.len() >= self.maximum {
            open.make_room(None, CloseReason::ConnectionLimit)?;
        }
        open.next += 1;
        let connection = Arc::new(Connection::new(open.next, address));
        open.by_number.insert(connection.number, Arc::clone(&connection));
        if let Some(address) = address {
            *open.per_address.entry(address).or_default() += 1;
        }
        Ok(ConnectionGuard { connections: Arc::clone(self), connection })
    }

    /// Closes the connection that was idle for the longest time.
    pub fn evict_idle(&self) {
        let mut open = self.open.lock();
        if open.evict_idle(None) {
            open.count_closed(CloseReason::Idle);
        }
    }

    /// Closes all idle connections.
    pub fn evict_all_idle(&self) {
        let mut open = self.open.lock();
        while open.evict_idle(None) {}
    }

    /// Returns whether a response of this many bytes can be sent. If too many bytes wait on all connections, those whose client
    /// has read nothing for a second are closed, the largest first. Small responses have twice the room, so that slow readers of large
    /// ones don't keep the others from being served.
    pub fn has_room(&self, connection: &Connection, bytes: usize) -> bool {
        let is_small = bytes <= SMALL_RESPONSE;
        if !is_small && connection.activity.lock().unsent + bytes > self.limits.unsent_per_connection {
            return false;
        }
        let excess = (self.unsent.load(Ordering::Relaxed) + bytes).saturating_sub(self.limits.unsent);
        excess == 0 || self.evict_stalled(excess) || (is_small && excess <= self.limits.unsent)
    }

    /// Closes stalled connections with at least this many unsent bytes together. Returns false if there are too few.
    fn evict_stalled(&self, excess: usize) -> bool {
        let mut open = self.open.lock();
        let now = Instant::now();
        let stalled = |connection: &Arc<Connection>| {
            let mut activity = connection.activity.lock();
            activity.is_stalled(connection, now).then(|| (activity.unsent, Arc::clone(connection)))
        };
        let mut stalled: Vec<_> = open.by_number.values().filter_map(stalled).collect();
        stalled.sort_by_key(|(unsent, _)| std::cmp::Reverse(*unsent));
        let mut freed = 0;
        for (unsent, connection) in stalled {
            if freed >= excess {
                break;
            }
            freed += unsent;
            open.remove(&connection);
            open.count_closed(CloseReason::ResponseMemory);
            connection.evict();
        }
        freed >= excess
    }

    /// Counts the data of a response as unsent until the last part of it is dropped, which is when it was sent.
    pub fn count_unsent(self: &Arc<Self>, connection: &Arc<Connection>, data: Bytes) -> Bytes {
        self.unsent.fetch_add(data.len(), Ordering::Relaxed);
        let mut activity = connection.activity.lock();
        if activity.unsent == 0 {
            activity.progress_at = Instant::now();
            activity.progress = connection.written.load(Ordering::Relaxed);
        }
        activity.unsent += data.len();
        drop(activity);
        Bytes::from_owner(UnsentData { data, connection: Arc::clone(connection), connections: Arc::clone(self) })
    }
}

/// Data that count as unsent until dropped.
struct UnsentData {
    data: Bytes,
    connection: Arc<Connection>,
    connections: Arc<Connections>,
}

impl AsRef<[u8]> for UnsentData {
    fn as_ref(&self) -> &[u8] {
        &self.data
    }
}

impl Drop for UnsentData {
    fn drop(&mut self) {
        self.connections.unsent.fetch_sub(self.data.len(), Ordering::Relaxed);
        let mut activity = self.connection.activity.lock();
        activity.unsent -= self.data.len();
        activity.idle_since = Instant::now();
    }
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
    fn new(number: u64, address: Option<IpAddr>) -> Self {
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

    fn evict(&self) {
        self.is_evicted.store(true, Ordering::Relaxed);
        self.evicted.notify_one();
    }

    /// Waits until the connection must be closed: it exceeds a timeout, or another one takes its place.
    pub async fn wait_for_end(&self, connections: &Connections) {
        let limits = connections.limits();
        loop {
            let now = Instant::now();
            let (deadline, reason) = self.activity.lock().deadline(self, limits, now);
            if self.is_evicted.load(Ordering::Relaxed) {
                return;
            }
            if deadline <= now {
                if let Some(reason) = reason {
                    connections.open.lock().count_closed(reason);
                }
                return;
            }
            tokio::select! {
                // Checked several times, because progress and another timeout are noticed only then.
                () = sleep_until(deadline.min(now + limits.shortest_timeout() / 4)) => {}
                () = self.evicted.notified() => return,
            }
        }
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
#[expect(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use super::*;

    fn connections(maximum: usize, per_address: usize) -> Arc<Connections> {
        let trusted_proxies = "10.0.0.0/8".parse().unwrap();
        Connections::new(ConnectionLimits { maximum: Some(maximum), per_address, ..ConnectionLimits::default() }, trusted_proxies)
    }

    fn address(last: u8) -> IpAddr {
        [192, 0, 2, last].into()
    }

    #[test]
    fn default_maximum_leaves_descriptors_for_other_files() {
        let descriptors = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        let maximum = default_maximum() as u64;
        assert!((1..=MAX_DEFAULT_CONNECTIONS).contains(&maximum) && maximum < descriptors, "{maximum} of {descriptors}");
    }

    #[test]
    fn evicts_oldest_idle_connection_of_the_address_with_the_most() {
        let connections = connections(3, 0);
        let alone = connections.open(address(1)).unwrap();
        let (first, second) = (connections.open(address(2)).unwrap(), connections.open(address(2)).unwrap());

        let third = connections.open(address(3));

        assert!(third.is_ok());
        let evicted = |guard: &ConnectionGuard| guard.connection.is_evicted.load(Ordering::Relaxed);
        assert_eq!([&alone, &first, &second].map(evicted), [false, true, false]);
        assert_eq!(connections.closed(CloseReason::Idle), 1);
    }

    #[test]
    fn rejects_connection_if_all_others_are_busy() {
        let connections = connections(1, 0);
        let busy = connections.open(address(1)).unwrap();
        let request = busy.connection.begin_request();

        assert_eq!(connections.open(address(2)).unwrap_err(), CloseReason::ConnectionLimit);
        drop(request);
        assert!(connections.open(address(2)).is_ok());
        assert_eq!([CloseReason::ConnectionLimit, CloseReason::Idle].map(|reason| connections.closed(reason)), [1, 1]);
    }

    #[test]
    fn limits_each_address_but_no_trusted_proxy() {
        let connections = connections(100, 1);
        let open_busy = |peer| connections.open(peer).ok().map(|guard| (guard.connection.begin_request(), guard));
        let proxy = IpAddr::from([10, 0, 0, 1]);

        let guards = [address(1), address(1), address(2), proxy, proxy].map(open_busy);

        assert_eq!(guards.each_ref().map(Option::is_some), [true, false, true, true, true]);
        assert_eq!(connections.closed(CloseReason::AddressLimit), 1);
        drop(guards);
        assert!(connections.open.lock().per_address.is_empty() && connections.open.lock().by_number.is_empty());
    }

    #[test]
    fn only_reading_enough_postpones_the_end() {
        let connections = connections(1, 0);
        let guard = connections.open(address(1)).unwrap();
        let (connection, limits) = (&guard.connection, connections.limits());
        let data = connections.count_unsent(connection, Bytes::from(vec![0; 100_000]));
        let start = Instant::now();
        let deadline = |after: Duration| {
            let (deadline, reason) = connection.activity.lock().deadline(connection, limits, start + after);
            (deadline - start, reason)
        };
        let send_timeout = |start: Duration| (start + limits.send_timeout, Some(CloseReason::SendTimeout));

        let first = deadline(Duration::ZERO);
        connection.record_write(Some(MIN_PROGRESS as usize - 1));
        assert_eq!(deadline(Duration::from_secs(5)), first);
        connection.record_write(Some(1));
        assert_eq!(deadline(Duration::from_secs(5)), send_timeout(Duration::from_secs(5)));
        connection.record_write(None);
        drop(data);
        assert_eq!(deadline(Duration::from_secs(6)), send_timeout(Duration::from_secs(5)), "TLS has the rest");
        connection.record_write(Some(1));
        let head_timeout = (Duration::from_secs(6) + limits.head_timeout, Some(CloseReason::HeadTimeout));
        assert_eq!(deadline(Duration::from_secs(7)), head_timeout, "idle");
    }

    #[tokio::test]
    async fn counts_timeouts_but_no_end_between_two_requests() {
        let short = Duration::from_millis(1);
        let limits =
            ConnectionLimits { head_timeout: short, idle_timeout: short, send_timeout: short, ..ConnectionLimits::default() };
        let connections = Connections::new(limits, TrustedProxies::default());
        let open = || connections.open(address(1)).unwrap();
        let (silent, served, slow) = (open(), open(), open());
        drop(served.connection.begin_request());
        let _unread = connections.count_unsent(&slow.connection, Bytes::from_static(b"unread"));

        for guard in [&silent, &served, &slow] {
            guard.connection.wait_for_end(&connections).await;
        }

        let closed = CloseReason::ALL.map(|reason| (reason.name(), connections.closed(reason)));
        let counted: Vec<_> = closed.into_iter().filter(|(_, count)| *count > 0).collect();
        assert_eq!(counted, [("head_timeout", 1), ("send_timeout", 1)]);
    }

    #[test]
    fn connection_that_still_sends_is_not_evicted() {
        let connections = connections(1, 0);
        let sending = connections.open(address(1)).unwrap();
        sending.connection.record_write(None);

        assert!(connections.open(address(2)).is_err());
        sending.connection.record_write(Some(1));
        assert!(connections.open(address(2)).is_ok());
    }

    #[test]
    fn makes_room_by_closing_stalled_connections() {
        const SIZE: usize = SMALL_RESPONSE + 1;
        let limits = ConnectionLimits { unsent: 5 * SIZE, unsent_per_connection: 4 * SIZE, ..ConnectionLimits::default() };
        let connections = Connections::new(limits, TrustedProxies::default());
        let (slow, other) = (connections.open(address(1)).unwrap(), connections.open(address(2)).unwrap());
        let data = connections.count_unsent(&slow.connection, Bytes::from(vec![0; 4 * SIZE]));

        assert!(!connections.has_room(&slow.connection, SIZE), "the limit of a connection");
        assert!(connections.has_room(&other.connection, SIZE));
        assert!(!connections.has_room(&other.connection, SIZE + 1), "no connection has stalled");
        slow.connection.activity.lock().changed_at -= STALLED;
        assert!(connections.has_room(&other.connection, SIZE + 1));
        assert!(slow.connection.is_evicted.load(Ordering::Relaxed));
        assert_eq!(connections.closed(CloseReason::ResponseMemory), 1);
        drop(data);
        assert_eq!(connections.unsent.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn small_responses_have_twice_the_room() {
        let limits = ConnectionLimits { unsent: 100, unsent_per_connection: 80, ..ConnectionLimits::default() };
        let connections = Connections::new(limits, TrustedProxies::default());
        let (slow, other) = (connections.open(address(1)).unwrap(), connections.open(address(2)).unwrap());
        let data = connections.count_unsent(&slow.connection, Bytes::from(vec![0; 150]));

        assert!(connections.has_room(&other.connection, 50) && connections.has_room(&slow.connection, 50));
        assert!(!connections.has_room(&other.connection, 51), "no connection has stalled");
        slow.connection.activity.lock().changed_at -= STALLED;
        assert!(connections.has_room(&other.connection, 51));
        assert!(slow.connection.is_evicted.load(Ordering::Relaxed), "small ones make room, too");
        drop(data);
    }
}
