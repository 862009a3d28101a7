//! Rate limits: requests per key, guesses per address and identification, and guesses per address, all per minute; and limits of
//! other things in a window of time, which can be released ([`WindowLimit`]).
//!
//! A guess is a request that can be used to guess a password or a code, or to find out if an account exists. All limits use the
//! generic cell rate algorithm: the whole limit may be used at once, and is then restored at a constant rate.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::hash::{BuildHasher, Hash, RandomState};
use std::net::IpAddr;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use boxoffice_openapi::counted;
use governor::clock::{Clock, DefaultClock};
use governor::middleware::StateInformationMiddleware;
use governor::state::keyed::HashMapStateStore;
use governor::{Quota, RateLimiter};
use http::header::{HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};
use parking_lot::Mutex;

use super::ApiError;
use crate::client_ip::rate_limit_key;
use crate::error::{Error, Result};

/// Number of hash slots in which guesses are counted. Clients can invent any number of identifications and addresses, so memory
/// must be bounded: those in the same slot share one limit. A random hash seed keeps clients from choosing a slot. About 40 MB at
/// most for each of the two limits.
const SLOTS: u64 = 1 << 20;
/// Ratio of the limit of one address to the limit of one address and identification. Many people may share an address, but a
/// single client may also try one password with every name.
pub const PER_ADDRESS_FACTOR: u32 = 10;
/// Number of requests after which expired entries are removed.
const CLEANUP_INTERVAL: u32 = 4096;
const MINUTE: Duration = Duration::from_secs(60);

const RATE_LIMIT: HeaderName = HeaderName::from_static("ratelimit");
const RATE_LIMIT_POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");

/// Headers of a rejected request.
pub const HEADERS: [HeaderName; 3] = [RATE_LIMIT_POLICY, RATE_LIMIT, RETRY_AFTER];

/// Rate limits of a server. A limit of 0 is off.
pub struct Limits {
    keys: Option<Limit>,
    shared_keys: Option<Limit>,
    guesses: Option<Limit>,
    guesses_of_address: Option<Limit>,
    keyless: Option<Limit>,
}

/// One rate limit, counted per key.
struct Limit {
    name: &'static str,
    per_minute: NonZeroU32,
    slots: u64,
    /// Randomly seeded, so that clients can't find keys that share a slot.
    hasher: RandomState,
    count_since_cleanup: AtomicU32,
    limiter: RateLimiter<u64, HashMapStateStore<u64>, DefaultClock, StateInformationMiddleware>,
}

/// State of the rate limit that a request was counted against.
#[derive(Debug, Clone)]
pub struct RateLimitStatus {
    name: &'static str,
    limit: u32,
    window: Duration,
    remaining: u32,
    /// Time until the whole limit is restored.
    reset: Duration,
    /// Time until the next request is allowed; `None` if this one was.
    retry_after: Option<Duration>,
}

impl Limits {
    /// Creates limits per minute: requests per key, and guesses per address and identification.
    pub fn new(requests: u32, guesses: u32) -> Self {
        Self {
            keys: Limit::new("key", requests, u64::MAX),
            shared_keys: Limit::new("key", requests, SLOTS),
            guesses: Limit::new("guesses", guesses, SLOTS),
            guesses_of_address: Limit::new("address", guesses.saturating_mul(PER_ADDRESS_FACTOR), SLOTS),
            keyless: Limit::new("client", requests.saturating_mul(PER_ADDRESS_FACTOR), SLOTS),
        }
    }

    /// Counts a request of this key.
    pub fn count(&self, key: i64) -> Option<RateLimitStatus> {
        self.keys.as_ref().map(|limit| limit.count(key))
    }

    /// Counts a request of a key that many clients share. Each client address has the whole limit, so that one client can't use up
    /// the limit of the others.
    pub fn count_shared(&self, key: i64, address: IpAddr) -> Option<RateLimitStatus> {
        self.shared_keys.as_ref().map(|limit| limit.count((key, rate_limit_key(address))))
    }

    /// Counts a request without a key, such as a browser's request for an image. The limit is higher than that of a key, because many
    /// people may share an address.
    pub fn count_keyless(&self, address: IpAddr) -> Option<RateLimitStatus> {
        self.keyless.as_ref().map(|limit| limit.count(rate_limit_key(address)))
    }

    /// Counts a guess. Identifications are compared like accounts' names: ASCII, ignoring case.
    pub fn count_guess(&self, address: IpAddr, identification: &str) -> Option<RateLimitStatus> {
        let address = rate_limit_key(address);
        let key = (address, identification.trim().to_ascii_lowercase());
        RateLimitStatus::most_restrictive([
            self.guesses.as_ref().map(|limit| limit.count(key)),
            self.guesses_of_address.as_ref().map(|limit| limit.count(address)),
        ])
    }
}

impl Limit {
    fn new(name: &'static str, per_minute: u32, slots: u64) -> Option<Self> {
        let per_minute = NonZeroU32::new(per_minute)?;
        let limiter = RateLimiter::hashmap(Quota::per_minute(per_minute)).with_middleware();
        Some(Self { name, per_minute, slots, hasher: RandomState::new(), count_since_cleanup: AtomicU32::new(0), limiter })
    }

    fn count(&self, key: impl Hash) -> RateLimitStatus {
        if self.count_since_cleanup.fetch_add(1, Ordering::Relaxed) % CLEANUP_INTERVAL == CLEANUP_INTERVAL - 1 {
            self.limiter.retain_recent();
        }
        let (remaining, retry_after) = match self.limiter.check_key(&(self.hasher.hash_one(key) % self.slots)) {
            Ok(state) => (state.remaining_burst_capacity(), None),
            Err(not_until) => (0, Some(not_until.wait_time_from(self.limiter.clock().now()))),
        };
        let limit = self.per_minute.get();
        let reset = MINUTE / limit * (limit - remaining);
        RateLimitStatus { name: self.name, limit, window: MINUTE, remaining, reset, retry_after }
    }
}

impl RateLimitStatus {
    /// Returns the limit with the fewest remaining requests; among exceeded ones, that with the longest wait.
    pub fn most_restrictive(statuses: impl IntoIterator<Item = Option<Self>>) -> Option<Self> {
        statuses.into_iter().flatten().max_by_key(|status| (Reverse(status.remaining), status.retry_after))
    }

    /// Returns the status of a limit that is used up: `limit` in a `window`.
    pub fn exceeded(name: &'static str, limit: u32, window: Duration, retry_after: Duration) -> Self {
        Self { name, limit, window, remaining: 0, reset: window, retry_after: Some(retry_after) }
    }

    /// Rejects a request that exceeds the limit.
    ///
    /// # Errors
    /// 429.
    pub fn check(&self) -> Result<(), ApiError> {
        if self.retry_after.is_some() { Err(Error::TooMany(Box::new(self.clone())).into()) } else { Ok(()) }
    }

    /// Returns the error text.
    pub fn text(&self) -> String {
        let wait = counted(whole_seconds(self.retry_after.unwrap_or_default()), "second", "seconds");
        format!("Too many requests. Try again in {wait}.")
    }

    /// Writes the rate limit headers of a response (RFC 6585, draft-ietf-httpapi-ratelimit-headers). Writes nothing if the response
    /// has those of another limit, which has rejected the request.
    pub fn write_headers(&self, headers: &mut HeaderMap) {
        if headers.contains_key(RATE_LIMIT) {
            return;
        }
        let Self { name, limit, window, remaining, reset, .. } = self;
        let policy = HeaderValue::try_from(format!("\"{name}\";q={limit};w={}", whole_seconds(*window))).ok();
        let status = HeaderValue::try_from(format!("\"{name}\";r={remaining};t={}", whole_seconds(*reset))).ok();
        let retry_after = self.retry_after.map(|duration| HeaderValue::from(whole_seconds(duration)));
        headers.extend(HEADERS.into_iter().zip([policy, status, retry_after]).filter_map(|(name, value)| Some((name, value?))));
    }
}

/// A limit of things such as failed log-ins or mails in a window of time, per key. Each is counted before it is done, so that
/// concurrent ones can't exceed the limit, and may be released afterwards, for example because a log-in has not failed.
#[derive(Debug)]
pub struct WindowLimit {
    name: &'static str,
    /// 0: no limit.
    limit: u32,
    window: Duration,
    /// Randomly seeded, so that clients can't find keys that share a slot.
    hasher: RandomState,
    used: Mutex<UsedLimits>,
}

/// The limits that are not completely restored, by slot.
#[derive(Debug, Default)]
struct UsedLimits {
    /// The time at which the whole limit of a slot is restored.
    restored_at: HashMap<u64, Instant>,
    /// Number of slots at which restored ones are removed.
    cleanup_at: usize,
}

/// A use of a limit. It stays counted unless [`release`](Self::release) is called.
#[derive(Debug)]
#[must_use]
pub struct CountedUse<'a> {
    limit: &'a WindowLimit,
    slot: u64,
}

impl WindowLimit {
    /// Creates a limit of uses in a window; 0: no limit.
    pub fn new(name: &'static str, limit: u32, window: Duration) -> Self {
        Self { name, limit, window, hasher: RandomState::new(), used: Mutex::default() }
    }

    /// Counts a use of the limit of this key.
    ///
    /// # Errors
    /// [`Error::TooMany`] if the limit of the key is used up. The use is not counted then.
    pub fn count(&self, key: impl Hash) -> Result<CountedUse<'_>> {
        let counted = CountedUse { limit: self, slot: self.hasher.hash_one(key) % SLOTS };
        let Some(interval) = self.interval() else { return Ok(counted) };
        let now = Instant::now();
        let mut used = self.used.lock();
        let restored_at = used.restored_at.get(&counted.slot).map_or(now, |at| (*at).max(now)) + interval;
        if let Some(retry_after) = (restored_at - now).checked_sub(self.window).filter(|wait| !wait.is_zero()) {
            let status = RateLimitStatus::exceeded(self.name, self.limit, self.window, retry_after);
            return Err(Error::TooMany(Box::new(status)));
        }
        if used.restored_at.len() >= used.cleanup_at {
            used.restored_at.retain(|_, at| *at > now);
            used.cleanup_at = (2 * used.restored_at.len()).max(CLEANUP_INTERVAL as usize);
        }
        used.restored_at.insert(counted.slot, restored_at);
        Ok(counted)
    }

    /// Returns the time in which one use is restored; `None` if there is no limit.
    fn interval(&self) -> Option<Duration> {
        self.window.checked_div(self.limit)
    }
}

impl CountedUse<'_> {
    /// Takes the use back.
    pub fn release(self) {
        let Some(interval) = self.limit.interval() else { return };
        if let Some(restored_at) = self.limit.used.lock().restored_at.get_mut(&self.slot) {
            *restored_at = restored_at.checked_sub(interval).unwrap_or(*restored_at);
        }
    }
}

/// Rounds up to whole seconds, at least 1.
fn whole_seconds(duration: Duration) -> u64 {
    duration.as_secs() + u64::from(duration.subsec_nanos() > 0 || duration.is_zero())
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use super::*;

    #[test]
    fn whole_limit_may_be_used_at_once() {
        let limit = Limit::new("key", 3, u64::MAX).unwrap();

        let statuses: Vec<_> = (0..4).map(|_| limit.count("ama")).collect();

        assert_eq!(statuses.iter().map(|status| status.remaining).collect::<Vec<_>>(), [2, 1, 0, 0]);
        assert_eq!(statuses.iter().map(|status| status.check().is_ok()).collect::<Vec<_>>(), [true, true, true, false]);
        assert!(limit.count("kofi").check().is_ok());
        let mut headers = HeaderMap::new();
        statuses[3].write_headers(&mut headers);
        assert_eq!(headers["ratelimit-policy"], "\"key\";q=3;w=60");
        assert_eq!(headers["ratelimit"], "\"key\";r=0;t=60");
        assert!((1..=20).contains(&headers["retry-after"].to_str().unwrap().parse().unwrap()));
    }

    #[test]
    fn limit_of_zero_is_off() {
        let limits = Limits::new(0, 0);

        assert!(limits.count(1).is_none());
        assert!(limits.count_guess([127, 0, 0, 1].into(), "ama").is_none());
    }

    #[test]
    fn guesses_on_many_accounts_exceed_the_address_limit() {
        let limits = Limits::new(0, 2);
        let address = |last| [127, 0, 0, last].into();
        let guess = |name: u32| limits.count_guess(address(1), &name.to_string()).unwrap();

        let statuses: Vec<_> = (0..21).map(guess).collect();

        assert!(statuses[..20].iter().all(|status| status.check().is_ok()));
        assert_eq!((statuses[0].name, statuses[18].name, statuses[18].remaining), ("guesses", "address", 1));
        assert_eq!((statuses[20].name, statuses[20].limit, statuses[20].check().is_err()), ("address", 20, true));
        assert!(limits.count_guess(address(2), "20").unwrap().check().is_ok());
    }

    #[test]
    fn most_restrictive_has_the_longest_wait() {
        let (slow, quick) = (Limit::new("slow", 1, u64::MAX).unwrap(), Limit::new("quick", 60, u64::MAX).unwrap());
        for _ in 0..60 {
            quick.count("ama");
        }
        slow.count("ama");

        let both = [slow.count("ama"), quick.count("ama")].map(Some);

        assert_eq!(RateLimitStatus::most_restrictive(both).map(|status| status.name), Some("slow"));
        assert!(RateLimitStatus::most_restrictive([None, None]).is_none());
    }

    #[test]
    fn each_address_has_the_whole_limit_of_a_shared_key() {
        let limits = Limits::new(1, 0);
        let is_first = |key, last| limits.count_shared(key, [127, 0, 0, last].into()).unwrap().check().is_ok();

        assert_eq!([is_first(1, 1), is_first(1, 1), is_first(1, 2), is_first(2, 1)], [true, false, true, true]);
    }

    #[test]
    fn failed_attempts_count_until_they_are_restored() {
        let limit = WindowLimit::new("account", 3, Duration::from_secs(3600));
        let count = |key| limit.count(key);

        let three: Vec<_> = (0..3).map(|_| count("ama").unwrap()).collect();
        let Err(Error::TooMany(status)) = count("ama") else { panic!("the limit is exceeded") };
        assert!(count("kofi").is_ok());
        assert_eq!((status.limit, status.remaining), (3, 0));
        let wait = status.retry_after.unwrap();
        assert!(wait > Duration::from_secs(1190) && wait <= Duration::from_secs(1200), "{wait:?}");
        let mut headers = HeaderMap::new();
        status.write_headers(&mut headers);
        assert_eq!(headers["ratelimit-policy"], "\"account\";q=3;w=3600");

        three.into_iter().for_each(CountedUse::release);
        assert!((0..3).all(|_| count("ama").is_ok()) && count("ama").is_err());
    }

    #[test]
    fn failed_attempts_are_unlimited_without_a_limit() {
        let limit = WindowLimit::new("account", 0, Duration::from_secs(3600));

        assert!((0..1000).all(|_| limit.count("ama").is_ok()));
        limit.count("ama").unwrap().release();
        assert!(limit.used.lock().restored_at.is_empty());
    }

    #[test]
    fn restored_uses_are_removed() {
        let limit = WindowLimit::new("account", 1, Duration::from_nanos(1));

        assert!((0..3 * CLEANUP_INTERVAL).all(|number| limit.count(number).is_ok()));

        assert!(limit.used.lock().restored_at.len() <= CLEANUP_INTERVAL as usize + 1);
    }

    #[test]
    fn identifications_ignore_ascii_case_only() {
        let limits = Limits::new(0, 1);
        let is_first = |name| limits.count_guess([127, 0, 0, 1].into(), name).unwrap().check().is_ok();

        // U+212A, the kelvin sign, is not K, although its lowercase form in Unicode is k.
        assert_eq!(["kofi", " KOFI ", "\u{212a}ofi"].map(is_first), [true, false, true]);
    }

    #[test]
    fn memory_is_bounded_by_slots() {
        let limit = Limit::new("guesses", 1, 8).unwrap();

        let rejected = (0..1000).filter(|number| limit.count(number).check().is_err()).count();

        assert_eq!((limit.limiter.len(), rejected), (8, 992));
    }

    #[test]
    fn expired_keys_are_removed() {
        let restored_within_microseconds = 60_000_000;
        let limit = Limit::new("key", restored_within_microseconds, u64::MAX).unwrap();

        for number in 0..CLEANUP_INTERVAL {
            limit.count(number);
        }

        assert!(limit.limiter.len() < CLEANUP_INTERVAL as usize / 2, "{}", limit.limiter.len());
    }

    #[test]
    fn wait_is_rounded_up_to_seconds() {
        for (milliseconds, expected) in [(0, 1), (1, 1), (1000, 1), (1001, 2), (59_999, 60)] {
            assert_eq!(whole_seconds(Duration::from_millis(milliseconds)), expected, "{milliseconds}");
        }
    }
}
