//! How many requests may come in a minute: for each key, for each address that tries or asks about one identification, and for
//! each that does so about any (decisions). Counted by the generic cell rate algorithm: as many as are allowed in a minute may
//! come at once, and then one each time that as much of the minute has passed.

use std::cmp::Reverse;
use std::hash::{BuildHasher, Hash, RandomState};
use std::net::IpAddr;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use governor::clock::{Clock, DefaultClock};
use governor::middleware::StateInformationMiddleware;
use governor::state::keyed::HashMapStateStore;
use governor::{Quota, RateLimiter};
use http::header::{HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};

use super::ApiError;
use crate::client_ip::rate_limit_key;
use crate::error::Code;

/// In how many slots guesses are counted. Anybody can make up identifications, so their number must have an end: those that fall
/// into one slot, which nobody can choose, share it. So do addresses. What is in use is some 40 MB at the most for either.
const SLOTS: u64 = 1 << 20;
/// How many times as many guesses one address may make about everybody as about one. Behind one address may be many people, and
/// who tries one password with every name is one.
const PER_ADDRESS_FACTOR: u32 = 10;
/// After so many requests those are forgotten that count no longer.
const PURGE_INTERVAL: u32 = 4096;

const RATE_LIMIT: HeaderName = HeaderName::from_static("ratelimit");
const RATE_LIMIT_POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");

/// What a refused request is told of its limit by.
pub const HEADERS: [HeaderName; 3] = [RATE_LIMIT_POLICY, RATE_LIMIT, RETRY_AFTER];

/// The limits of a server.
pub struct Limits {
    keys: Option<Limit>,
    guesses: Option<Limit>,
    addresses: Option<Limit>,
}

/// One limit, for as many as it is counted for.
struct Limit {
    name: &'static str,
    per_minute: NonZeroU32,
    slots: u64,
    /// Of a seed of its own, so that nobody can look for what shares a slot with somebody else.
    hasher: RandomState,
    counted: AtomicU32,
    limiter: RateLimiter<u64, HashMapStateStore<u64>, DefaultClock, StateInformationMiddleware>,
}

/// How a caller stands to the limit that a request was counted for.
#[derive(Debug)]
pub struct RateLimitStatus {
    name: &'static str,
    per_minute: NonZeroU32,
    left: u32,
    /// Until the whole limit is there again.
    reset: Duration,
    /// What a refused request has to wait for.
    wait: Option<Duration>,
}

impl Limits {
    /// So many requests a minute for each key, and so many guesses about one identification; 0 for any number.
    pub fn new(keys: u32, guesses: u32) -> Self {
        Self {
            keys: Limit::new("key", keys, u64::MAX),
            guesses: Limit::new("guesses", guesses, SLOTS),
            addresses: Limit::new("address", guesses.saturating_mul(PER_ADDRESS_FACTOR), SLOTS),
        }
    }

    /// Counts a request of this key.
    pub fn count(&self, key: i64) -> Option<RateLimitStatus> {
        self.keys.as_ref().map(|limit| limit.count(key))
    }

    /// Counts a guess from an address. Identifications are told apart as the accounts' names are, which are ASCII.
    pub fn count_guess(&self, from: IpAddr, identification: &str) -> Option<RateLimitStatus> {
        let from = rate_limit_key(from);
        let about_one = self.guesses.as_ref().map(|limit| limit.count((from, identification.trim().to_ascii_lowercase())));
        RateLimitStatus::most_restrictive([about_one, self.addresses.as_ref().map(|limit| limit.count(from))])
    }
}

impl Limit {
    fn new(name: &'static str, per_minute: u32, slots: u64) -> Option<Self> {
        let per_minute = NonZeroU32::new(per_minute)?;
        let limiter = RateLimiter::hashmap(Quota::per_minute(per_minute)).with_middleware();
        Some(Self { name, per_minute, slots, hasher: RandomState::new(), counted: AtomicU32::new(0), limiter })
    }

    fn count(&self, whose: impl Hash) -> RateLimitStatus {
        if self.counted.fetch_add(1, Ordering::Relaxed) % PURGE_INTERVAL == PURGE_INTERVAL - 1 {
            self.limiter.retain_recent();
        }
        let (left, wait) = match self.limiter.check_key(&(self.hasher.hash_one(whose) % self.slots)) {
            Ok(state) => (state.remaining_burst_capacity(), None),
            Err(not_until) => (0, Some(not_until.wait_time_from(self.limiter.clock().now()))),
        };
        let reset = Duration::from_secs(60) / self.per_minute.get() * (self.per_minute.get() - left);
        RateLimitStatus { name: self.name, per_minute: self.per_minute, left, reset, wait }
    }
}

impl RateLimitStatus {
    /// Of the limits that a request was counted for, the one that is nearest to its end; of those that refuse it, the one that it
    /// has to wait for longest.
    pub fn most_restrictive(standings: impl IntoIterator<Item = Option<Self>>) -> Option<Self> {
        standings.into_iter().flatten().max_by_key(|standing| (Reverse(standing.left), standing.wait))
    }

    /// Refuses a request that was one too many.
    ///
    /// # Errors
    /// 429.
    pub fn check(&self) -> Result<(), ApiError> {
        let refusal =
            |wait| Code::RequestsTooMany.with_message(format!("Too many requests. Try again in {} seconds.", seconds(wait)));
        self.wait.map_or(Ok(()), |wait| Err(refusal(wait).into()))
    }

    /// Tells it in an answer's headers (RFC 6585, draft-ietf-httpapi-ratelimit-headers).
    pub fn write_headers(&self, headers: &mut HeaderMap) {
        let Self { name, per_minute, left, reset, .. } = self;
        let policy = HeaderValue::try_from(format!("\"{name}\";q={per_minute};w=60")).ok();
        let standing = HeaderValue::try_from(format!("\"{name}\";r={left};t={}", seconds(*reset))).ok();
        let wait = self.wait.map(|wait| HeaderValue::from(seconds(wait)));
        headers.extend(HEADERS.into_iter().zip([policy, standing, wait]).filter_map(|(name, value)| Some((name, value?))));
    }
}

/// Whole seconds, none of which is too few, and never none.
fn seconds(duration: Duration) -> u64 {
    duration.as_secs() + u64::from(duration.subsec_nanos() > 0 || duration.is_zero())
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use super::*;

    #[test]
    fn as_many_as_are_allowed_may_come_at_once() {
        let limit = Limit::new("key", 3, u64::MAX).unwrap();

        let standings: Vec<_> = (0..4).map(|_| limit.count("ama")).collect();

        assert_eq!(standings.iter().map(|standing| standing.left).collect::<Vec<_>>(), [2, 1, 0, 0]);
        assert_eq!(standings.iter().map(|standing| standing.check().is_ok()).collect::<Vec<_>>(), [true, true, true, false]);
        assert!(limit.count("kofi").check().is_ok());
        let mut headers = HeaderMap::new();
        standings[3].write_headers(&mut headers);
        assert_eq!(headers["ratelimit-policy"], "\"key\";q=3;w=60");
        assert_eq!(headers["ratelimit"], "\"key\";r=0;t=60");
        assert!((1..=20).contains(&headers["retry-after"].to_str().unwrap().parse().unwrap()));
    }

    #[test]
    fn none_is_any_number() {
        let limits = Limits::new(0, 0);

        assert!(limits.count(1).is_none());
        assert!(limits.count_guess([127, 0, 0, 1].into(), "ama").is_none());
    }

    #[test]
    fn who_guesses_about_many_is_refused_in_the_end() {
        let limits = Limits::new(0, 2);
        let from = |last| [127, 0, 0, last].into();
        let guess = |name: u32| limits.count_guess(from(1), &name.to_string()).unwrap();

        let standings: Vec<_> = (0..21).map(guess).collect();

        assert!(standings[..20].iter().all(|standing| standing.check().is_ok()));
        assert_eq!((standings[0].name, standings[18].name, standings[18].left), ("guesses", "address", 1));
        assert_eq!((standings[20].name, standings[20].per_minute.get(), standings[20].check().is_err()), ("address", 20, true));
        assert!(limits.count_guess(from(2), "20").unwrap().check().is_ok());
    }

    #[test]
    fn the_longest_wait_is_told() {
        let (slow, quick) = (Limit::new("slow", 1, u64::MAX).unwrap(), Limit::new("quick", 60, u64::MAX).unwrap());
        for _ in 0..60 {
            quick.count("ama");
        }
        slow.count("ama");

        let both = [slow.count("ama"), quick.count("ama")].map(Some);

        assert_eq!(RateLimitStatus::most_restrictive(both).map(|standing| standing.name), Some("slow"));
        assert!(RateLimitStatus::most_restrictive([None, None]).is_none());
    }

    #[test]
    fn names_are_told_apart_as_those_of_accounts() {
        let limits = Limits::new(0, 1);
        let is_first = |name| limits.count_guess([127, 0, 0, 1].into(), name).unwrap().check().is_ok();

        // Accounts' names are ASCII. The sign of kelvins is no K, though its small letter is k in Unicode.
        assert_eq!(["kofi", " KOFI ", "\u{212a}ofi"].map(is_first), [true, false, true]);
    }

    #[test]
    fn strangers_fill_no_more_than_the_slots() {
        let limit = Limit::new("guesses", 1, 8).unwrap();

        let refused = (0..1000).filter(|number| limit.count(number).check().is_err()).count();

        assert_eq!((limit.limiter.len(), refused), (8, 992));
    }

    #[test]
    fn who_counts_no_longer_is_forgotten() {
        let as_good_as_at_once = 60_000_000;
        let limit = Limit::new("key", as_good_as_at_once, u64::MAX).unwrap();

        for number in 0..PURGE_INTERVAL {
            limit.count(number);
        }

        assert!(limit.limiter.len() < PURGE_INTERVAL as usize / 2, "{}", limit.limiter.len());
    }

    #[test]
    fn a_wait_is_told_in_whole_seconds() {
        for (milliseconds, told) in [(0, 1), (1, 1), (1000, 1), (1001, 2), (59_999, 60)] {
            assert_eq!(seconds(Duration::from_millis(milliseconds)), told, "{milliseconds}");
        }
    }
}
