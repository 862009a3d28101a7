//! Password hashing with argon2id on a bounded number of threads, and rejection of common passwords.

use std::collections::HashSet;
use std::net::IpAddr;
use std::sync::{Arc, LazyLock};

use anyhow::anyhow;
use argon2::password_hash::phc::{Output, ParamsString, PasswordHash, Salt};
use argon2::password_hash::{self, CustomizedPasswordHasher, PasswordVerifier};
use argon2::{Algorithm, Argon2, Block, Params, Version};
use boxoffice_http::client_ip::rate_limit_key;
use boxoffice_http::error::{FieldError, Result};
use parking_lot::Mutex;
use tokio::sync::OnceCell;

use crate::kernel::types::id::Id;
use crate::kernel::types::secret;
use crate::kernel::worker_pool::{UserLimits, UserShare, WorkerPool, WorkerPoolStatus};

/// Largest number of waiting hashes for each running one. At some tens of milliseconds each, the last one waits for a few
/// seconds; further requests are rejected with 503.
const WAITING_PER_RUNNING: usize = 100;
/// Largest number of waiting and running hashes of one account.
const MAX_PER_ACCOUNT: usize = 8;
/// Part of the pool that one client address may use, as its divisor. Many people may share an address.
const PARTS_PER_ADDRESS: usize = 2;

/// The cost of a password's hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PasswordCost {
    /// Memory in KiB.
    pub memory: u32,
    /// Number of iterations.
    pub iterations: u32,
    /// Number of lanes.
    pub lanes: u32,
}

impl PasswordCost {
    /// The lowest cost that argon2 allows. For tests: such a hash protects nothing.
    pub const MINIMUM: Self = Self { memory: 8, iterations: 1, lanes: 1 };

    fn params(self) -> anyhow::Result<Params> {
        let params = Params::new(self.memory, self.iterations, self.lanes, None);
        params.map_err(|error| anyhow!("argon2 refuses its parameters: {error}"))
    }
}

impl Default for PasswordCost {
    /// The cost that OWASP's Password Storage Cheat Sheet recommends: 19 MiB, two iterations, one lane.
    fn default() -> Self {
        Self { memory: 19 * 1024, iterations: 2, lanes: 1 }
    }
}

/// The settings of passwords.
#[derive(Debug, Clone, Copy, Default)]
pub struct PasswordSettings {
    /// The cost of a hash.
    pub cost: PasswordCost,
    /// Accepts the most common passwords.
    pub allow_common: bool,
}

/// The account and the client address on whose behalf a password is hashed. Each may use a part of the pool only, so that neither
/// can keep all others waiting.
#[derive(Debug, Clone, Copy, Default)]
pub struct HashRequester {
    /// The account, if there is one.
    pub account: Option<Id>,
    /// The client's address. Commands have none.
    pub address: Option<IpAddr>,
}

/// An account or a client address with waiting or running hashes. IPv6 addresses are those of networks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum PoolUser {
    Account(Id),
    Address(IpAddr),
}

/// Hashes and verifies passwords. A hash uses 19 MiB and some tens of milliseconds of a core, so only a few run at once, and
/// logins can't starve other requests.
pub struct Passwords {
    settings: PasswordSettings,
    workers: WorkerPool,
    hasher: Arc<Hasher>,
    max_per_address: usize,
    users: UserLimits<PoolUser>,
    unusable_hash: OnceCell<String>,
}

/// Computes hashes in memory that it keeps. The allocator would keep that of each thread on which a hash has run.
#[derive(Default)]
struct Hasher {
    /// The memory of hashes that have ended.
    free: Mutex<Vec<Vec<Block>>>,
}

impl CustomizedPasswordHasher<PasswordHash> for Hasher {
    type Params = Params;

    fn hash_password_customized(
        &self,
        password: &[u8],
        salt: &[u8],
        algorithm: Option<&str>,
        version: Option<u32>,
        params: Params,
    ) -> password_hash::Result<PasswordHash> {
        let algorithm = algorithm.map(Algorithm::try_from).transpose()?.unwrap_or_default();
        let version = version.map(Version::try_from).transpose()?.unwrap_or_default();
        let mut output = vec![0; params.output_len().unwrap_or(Params::DEFAULT_OUTPUT_LEN)];
        let mut memory = self.free.lock().pop().unwrap_or_default();
        memory.resize(params.block_count(), Block::new());
        let argon2 = Argon2::new(algorithm, version, params);
        argon2.hash_password_into_with_memory(password, salt, &mut output, &mut memory)?;
        self.free.lock().push(memory);
        Ok(PasswordHash {
            algorithm: algorithm.ident(),
            version: Some(version.into()),
            params: ParamsString::try_from(argon2.params())?,
            salt: Some(Salt::new(salt)?),
            hash: Some(Output::new(&output)?),
        })
    }
}

impl Passwords {
    /// Creates a pool that runs `concurrency` hashes at the same time.
    pub fn new(concurrency: usize, settings: PasswordSettings) -> Self {
        let waiting = concurrency * WAITING_PER_RUNNING;
        Self {
            settings,
            workers: WorkerPool::new(concurrency, waiting, "Too many passwords wait to be checked. Try again shortly."),
            hasher: Arc::default(),
            max_per_address: ((concurrency + waiting) / PARTS_PER_ADDRESS).max(MAX_PER_ACCOUNT),
            users: UserLimits::new("passwords"),
            unusable_hash: OnceCell::new(),
        }
    }

    /// Returns the hash of a new password, with salt and parameters.
    ///
    /// # Errors
    /// [`Error::TooMany`](boxoffice_http::error::Error::TooMany) when too many hashes of this requester are waiting,
    /// [`Code::SERVER_UNAVAILABLE`](boxoffice_http::error::Code::SERVER_UNAVAILABLE) when too many of all
    /// requesters are, and an internal error when hashing fails.
    pub async fn hash(&self, requester: HashRequester, password: String) -> Result<String> {
        let (cost, hasher) = (self.settings.cost, Arc::clone(&self.hasher));
        self.run(requester, move || {
            let hash = hasher.hash_password_with_params(password.as_bytes(), &Salt::generate(), cost.params()?);
            Ok(hash.map_err(|error| anyhow!("cannot hash: {error}"))?.to_string())
        })
        .await
    }

    /// Returns whether the password matches the hash. The parameters are read from the hash.
    ///
    /// # Errors
    /// As [`hash`](Self::hash), and when the stored hash is malformed.
    pub async fn verify(&self, requester: HashRequester, password: String, hash: String) -> Result<bool> {
        let hasher = Arc::clone(&self.hasher);
        self.run(requester, move || {
            let hash = PasswordHash::new(&hash).map_err(|error| anyhow!("a stored hash cannot be read: {error}"))?;
            Ok(hasher.verify_password(password.as_bytes(), &hash).is_ok())
        })
        .await
    }

    /// Returns the hash of a random password that is stored nowhere. Computed once, on first use.
    ///
    /// # Errors
    /// [`Code::SERVER_UNAVAILABLE`](boxoffice_http::error::Code::SERVER_UNAVAILABLE) when too many hashes are waiting.
    pub async fn unusable_hash(&self) -> Result<String> {
        self.unusable_hash.get_or_try_init(|| self.hash(HashRequester::default(), secret::api_key())).await.cloned()
    }

    /// Returns the numbers of running and waiting hashes.
    pub fn status(&self) -> WorkerPoolStatus {
        self.workers.status()
    }

    /// Returns the number of hashes whose memory is kept for further ones. For tests.
    pub fn kept_buffers(&self) -> usize {
        self.hasher.free.lock().len()
    }

    /// Returns whether a hash has other parameters than new hashes.
    pub fn is_outdated(&self, hash: &str) -> bool {
        let PasswordCost { memory, iterations, lanes } = self.settings.cost;
        // In the PHC string format.
        !hash.starts_with(&format!("$argon2id$v=19$m={memory},t={iterations},p={lanes}$"))
    }

    /// Returns a field error of `password` if it is among the most common ones, unless the settings allow those, or if it is one of
    /// the account's own names. Ignores case.
    pub fn weakness(&self, password: &str, own_names: &[&str]) -> Option<FieldError> {
        static COMMON: LazyLock<HashSet<&str>> =
            LazyLock::new(|| include_str!("common-passwords.txt").lines().filter(|line| !line.starts_with("# ")).collect());
        let password = password.to_lowercase();
        if own_names.iter().any(|name| name.to_lowercase() == password) {
            let text = "must not be the account's own username or e-mail address: choose another one";
            return Some(FieldError::invalid("password", text));
        }
        let is_common = !self.settings.allow_common && COMMON.contains(password.as_str());
        is_common.then(|| FieldError::invalid("password", "is among the most common passwords: choose another one"))
    }

    async fn run<T: Send + 'static>(
        &self,
        requester: HashRequester,
        work: impl FnOnce() -> anyhow::Result<T> + Send + 'static,
    ) -> Result<T> {
        let slot = self.workers.enter()?;
        let _shares = self.take_shares(requester)?;
        Ok(slot.run(work).await??)
    }

    /// Takes a share of the pool for the account and one for the address.
    fn take_shares(&self, requester: HashRequester) -> Result<Vec<UserShare<'_, PoolUser>>> {
        let HashRequester { account, address } = requester;
        let account = account.map(|account| (PoolUser::Account(account), MAX_PER_ACCOUNT));
        let address = address.map(|address| (PoolUser::Address(rate_limit_key(address)), self.max_per_address));
        account.into_iter().chain(address).map(|(user, limit)| self.users.take(user, limit)).collect()
    }
}
