//! Memory for the bodies of requests: a maximum for all requests together, and one for each API key.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;

use parking_lot::Mutex;

use super::ApiError;
use crate::client_ip::rate_limit_key;
use crate::error::Code;
use crate::request_body::LARGE_BODY_BYTES;

/// Limits of the memory for request bodies.
#[derive(Debug, Clone, Copy)]
pub struct BodyMemoryLimits {
    /// Maximum number of bytes of all bodies together. Small ones have as much again, so that slow uploads of large ones don't keep the
    /// others from being received.
    pub total: usize,
    /// Maximum number of bytes of the bodies that are sent with one API key, or with one shared key from one address.
    pub per_key: usize,
}

impl Default for BodyMemoryLimits {
    fn default() -> Self {
        Self { total: 64 << 20, per_key: 16 << 20 }
    }
}

/// An API key whose bodies are counted together; those of a key that many clients share by address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct BodyOwner {
    key: i64,
    address: Option<IpAddr>,
}

impl BodyOwner {
    /// A key that one client uses.
    pub fn key(key: i64) -> Self {
        Self { key, address: None }
    }

    /// A key that many clients share, and the address of one of them.
    pub fn shared_key(key: i64, address: IpAddr) -> Self {
        Self { key, address: Some(rate_limit_key(address)) }
    }
}

/// Counts the bytes of request bodies in memory.
#[derive(Debug)]
pub struct BodyMemory {
    limits: BodyMemoryLimits,
    used: Mutex<Used>,
}

#[derive(Debug, Default)]
struct Used {
    total: usize,
    per_key: HashMap<BodyOwner, usize>,
}

/// Memory for one body until dropped.
#[derive(Debug)]
pub struct BodyReservation {
    memory: Arc<BodyMemory>,
    owner: Option<BodyOwner>,
    bytes: usize,
}

impl BodyMemory {
    /// Creates a counter with these limits.
    pub fn new(limits: BodyMemoryLimits) -> Arc<Self> {
        Arc::new(Self { limits, used: Mutex::default() })
    }

    /// The limits.
    pub fn limits(&self) -> BodyMemoryLimits {
        self.limits
    }

    /// Begins the reservation for a body that is sent with this API key.
    pub fn reserve(self: &Arc<Self>, owner: Option<BodyOwner>) -> BodyReservation {
        BodyReservation { memory: Arc::clone(self), owner, bytes: 0 }
    }
}

impl BodyReservation {
    /// Extends the reservation to this many bytes, if it is smaller.
    ///
    /// # Errors
    /// 429 if the key's bodies are too large together, 503 if those of all keys are.
    pub fn extend_to(&mut self, bytes: usize) -> Result<(), ApiError> {
        let Some(more) = bytes.checked_sub(self.bytes).filter(|more| *more > 0) else { return Ok(()) };
        let limits = self.memory.limits;
        let mut used = self.memory.used.lock();
        let of_key = self.owner.map_or(0, |owner| used.per_key.get(&owner).copied().unwrap_or(0));
        if of_key + more > limits.per_key && self.owner.is_some() {
            let text = "Too many requests with this key are in progress. Send the next one when another has ended.";
            return Err(Code::REQUESTS_TOO_MANY.with_message(text).into());
        }
        let total = if bytes <= LARGE_BODY_BYTES { 2 * limits.total } else { limits.total };
        if used.total + more > total {
            let text = "The server is receiving too many requests at the moment. Try again shortly.";
            return Err(Code::SERVER_UNAVAILABLE.with_message(text).into());
        }
        used.total += more;
        if let Some(owner) = self.owner {
            *used.per_key.entry(owner).or_default() += more;
        }
        drop(used);
        self.bytes = bytes;
        Ok(())
    }
}

impl Drop for BodyReservation {
    fn drop(&mut self) {
        if self.bytes == 0 {
            return;
        }
        let mut used = self.memory.used.lock();
        used.total -= self.bytes;
        let Some(owner) = self.owner else { return };
        if let Some(of_key) = used.per_key.get_mut(&owner) {
            *of_key -= self.bytes;
            if *of_key == 0 {
                used.per_key.remove(&owner);
            }
        }
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use super::*;

    #[test]
    fn counts_each_key_and_all_keys_together() {
        const LARGE: usize = LARGE_BODY_BYTES + 1;
        let memory = BodyMemory::new(BodyMemoryLimits { total: 5 * LARGE, per_key: 4 * LARGE });
        let code = |result: Result<(), ApiError>| result.err().map(|error| error.code());
        let (of_one, of_other) = (Some(BodyOwner::key(1)), Some(BodyOwner::key(2)));
        let mut bodies = [of_one, of_one, of_other, None].map(|owner| memory.reserve(owner));

        assert_eq!(code(bodies[0].extend_to(2 * LARGE)), None);
        assert_eq!(code(bodies[1].extend_to(2 * LARGE + 1)), Some(Code::REQUESTS_TOO_MANY));
        assert_eq!(code(bodies[2].extend_to(3 * LARGE + 1)), Some(Code::SERVER_UNAVAILABLE));
        assert_eq!(code(bodies[3].extend_to(3 * LARGE)), None);
        assert_eq!(code(bodies[0].extend_to(LARGE)), None, "it has more");
        assert_eq!(code(bodies[2].extend_to(LARGE)), Some(Code::SERVER_UNAVAILABLE), "nothing is left");
        assert_eq!(code(bodies[2].extend_to(LARGE - 1)), None, "it is small");
        drop(bodies);
        assert!(memory.used.lock().total == 0 && memory.used.lock().per_key.is_empty());
    }

    #[test]
    fn counts_shared_key_by_address() {
        let memory = BodyMemory::new(BodyMemoryLimits { total: 100, per_key: 30 });
        let mut bodies =
            ["192.0.2.1", "192.0.2.2"].map(|text| memory.reserve(Some(BodyOwner::shared_key(1, text.parse().unwrap()))));

        assert!(bodies.iter_mut().all(|body| body.extend_to(30).is_ok()));
        assert!(memory.reserve(bodies[0].owner).extend_to(1).is_err());
    }
}
