//! The open connections of a server: their number, and the bytes that wait to be sent on all of them.
//!
//! A client that sends nothing, sends slowly or reads slowly occupies a file descriptor and memory. So each connection is closed
//! when it makes no progress, and the sum over all connections is bounded.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::client_ip::{TrustedProxies, rate_limit_key};
use crate::connection::Connection;
use crate::connection_limits::{CloseReason, ConnectionLimits, default_maximum};

/// Largest size of a small response, in bytes. A connection has at most a hundred of them.
pub(crate) const SMALL_RESPONSE: usize = 64 * 1024;

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

/// Registration of a connection until dropped.
#[derive(Debug)]
pub struct ConnectionGuard {
    connections: Arc<Connections>,
    /// The connection.
    pub connection: Arc<Connection>,
}

impl ConnectionGuard {
    /// Waits until the connection must be closed: it exceeds a timeout, or another one takes its place.
    pub async fn wait_for_end(&self) {
        if let Some(reason) = self.connection.wait_for_end(&self.connections.limits).await {
            self.connections.open.lock().count_closed(reason);
        }
    }
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
        let idle = candidates.filter_map(|connection| Some((connection, connection.idle_since()?)));
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
        if !is_small && connection.unsent() + bytes > self.limits.unsent_per_connection {
            return false;
        }
        let excess = (self.unsent.load(Ordering::Relaxed) + bytes).saturating_sub(self.limits.unsent);
        excess == 0 || self.evict_stalled(excess) || (is_small && excess <= self.limits.unsent)
    }

    /// Closes stalled connections with at least this many unsent bytes together. Returns false if there are too few.
    fn evict_stalled(&self, excess: usize) -> bool {
        let mut open = self.open.lock();
        let now = Instant::now();
        let stalled = |connection: &Arc<Connection>| Some((connection.stalled_bytes(now)?, Arc::clone(connection)));
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
        connection.add_unsent(data.len());
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
        self.connection.remove_unsent(self.data.len());
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use std::time::Duration;

    use super::*;

    fn connections(maximum: usize, per_address: usize) -> Arc<Connections> {
        let trusted_proxies = "10.0.0.0/8".parse().unwrap();
        Connections::new(ConnectionLimits { maximum: Some(maximum), per_address, ..ConnectionLimits::default() }, trusted_proxies)
    }

    fn address(last: u8) -> IpAddr {
        [192, 0, 2, last].into()
    }

    #[test]
    fn evicts_oldest_idle_connection_of_the_address_with_the_most() {
        let connections = connections(3, 0);
        let alone = connections.open(address(1)).unwrap();
        let (first, second) = (connections.open(address(2)).unwrap(), connections.open(address(2)).unwrap());

        let third = connections.open(address(3));

        assert!(third.is_ok());
        let evicted = |guard: &ConnectionGuard| guard.connection.is_evicted();
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
            guard.wait_for_end().await;
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
        slow.connection.stall();
        assert!(connections.has_room(&other.connection, SIZE + 1));
        assert!(slow.connection.is_evicted());
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
        slow.connection.stall();
        assert!(connections.has_room(&other.connection, 51));
        assert!(slow.connection.is_evicted(), "small ones make room, too");
        drop(data);
    }
}
