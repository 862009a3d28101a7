//! The limits of a server's connections, and the reasons for which it closes one.

use std::time::Duration;

use rustix::process::{Resource, getrlimit};

/// File descriptors that are left for the database, images, mail and the log.
const RESERVED_DESCRIPTORS: u64 = 96;
/// Upper bound of the default of [`ConnectionLimits::maximum`]. An idle connection takes about 20 KiB of memory.
const MAX_DEFAULT_CONNECTIONS: u64 = 4096;

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
    /// Returns the shortest of the timeouts.
    pub(crate) fn shortest_timeout(&self) -> Duration {
        self.head_timeout.min(self.idle_timeout).min(self.send_timeout)
    }
}

/// Returns the number of connections for which the process has file descriptors.
pub(crate) fn default_maximum() -> usize {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn default_maximum_leaves_descriptors_for_other_files() {
        let descriptors = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        let maximum = default_maximum() as u64;
        assert!((1..=MAX_DEFAULT_CONNECTIONS).contains(&maximum) && maximum < descriptors, "{maximum} of {descriptors}");
    }
}
