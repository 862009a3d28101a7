//! Password hashing with argon2id on a bounded number of threads, and rejection of common passwords.

use std::collections::HashSet;
use std::sync::{Arc, LazyLock};

use anyhow::anyhow;
use argon2::password_hash::{PasswordHasher, PasswordVerifier, phc::PasswordHash};
use argon2::{Algorithm, Argon2, Params, Version};
use boxoffice_http::error::{Code, Error, Result};
use tokio::sync::Semaphore;

/// Memory of argon2id in KiB. All three parameters are those of OWASP's Password Storage Cheat Sheet: 19 MiB, two iterations, one
/// lane.
const MEMORY: u32 = 19 * 1024;
const ITERATIONS: u32 = 2;
const LANES: u32 = 1;

/// Largest number of waiting hashes for each running one. At some tens of milliseconds each, the last one waits for a few
/// seconds; further requests are rejected with 503.
const WAITING_PER_RUNNING: usize = 100;

/// Hashes and verifies passwords. A hash uses 19 MiB and some tens of milliseconds of a core, so only a few run at once, and
/// logins can't starve other requests.
#[derive(Debug)]
pub struct Passwords {
    running: Arc<Semaphore>,
    /// One permit for each running and each waiting hash.
    capacity: Semaphore,
}

impl Passwords {
    /// Creates a pool that runs `at_once` hashes at the same time.
    pub fn new(concurrency: usize) -> Self {
        Self { running: Arc::new(Semaphore::new(concurrency)), capacity: Semaphore::new(concurrency * (1 + WAITING_PER_RUNNING)) }
    }

    /// Returns the hash of a new password, with salt and parameters.
    ///
    /// # Errors
    /// [`Code::ServerUnavailable`] when too many hashes are waiting, and when hashing fails.
    pub async fn hash(&self, password: String) -> Result<String> {
        self.run(move || {
            let hash = argon2()?.hash_password(password.as_bytes()).map_err(|error| anyhow!("cannot hash: {error}"))?;
            Ok(hash.to_string())
        })
        .await
    }

    /// Returns whether the password matches the hash. The parameters are read from the hash.
    ///
    /// # Errors
    /// [`Code::ServerUnavailable`] when too many hashes are waiting, and when the stored hash is malformed.
    pub async fn verify(&self, password: String, hash: String) -> Result<bool> {
        self.run(move || {
            let hash = PasswordHash::new(&hash).map_err(|error| anyhow!("a stored hash cannot be read: {error}"))?;
            Ok(argon2()?.verify_password(password.as_bytes(), &hash).is_ok())
        })
        .await
    }

    async fn run<T: Send + 'static>(&self, work: impl FnOnce() -> anyhow::Result<T> + Send + 'static) -> Result<T> {
        let Ok(_slot) = self.capacity.try_acquire() else {
            return Err(Code::ServerUnavailable.with_message("Too many passwords wait to be checked. Try again shortly."));
        };
        let permit = Arc::clone(&self.running).acquire_owned().await.map_err(|error| Error::Internal(error.into()))?;
        let work = move || {
            // Released by the thread, which continues after the request was cancelled.
            let _permit = permit;
            work()
        };
        Ok(tokio::task::spawn_blocking(work).await.map_err(|error| Error::Internal(error.into()))??)
    }
}

/// Returns whether a hash has other parameters than new hashes.
pub fn is_outdated(hash: &str) -> bool {
    // In the PHC string format.
    !hash.starts_with(&format!("$argon2id$v=19$m={MEMORY},t={ITERATIONS},p={LANES}$"))
}

/// Rejects common passwords and the account's own username and e-mail address. There are no rules for the characters of a
/// password, as NIST SP 800-63B, section 5.1.1.2, recommends.
///
/// # Errors
/// [`Error::Invalid`] with a field error of `password`.
pub fn require_uncommon(password: &str, own_names: [&str; 2]) -> Result<()> {
    static COMMON: LazyLock<HashSet<&str>> =
        LazyLock::new(|| include_str!("common-passwords.txt").lines().filter(|line| !line.starts_with("# ")).collect());
    let password = password.to_lowercase();
    if own_names.iter().any(|name| name.to_lowercase() == password) {
        return Err(Error::invalid("password", "must not be the account's own username or e-mail address: choose another one"));
    }
    if COMMON.contains(password.as_str()) {
        return Err(Error::invalid("password", "is among the most common passwords: choose another one"));
    }
    Ok(())
}

fn argon2() -> anyhow::Result<Argon2<'static>> {
    let params = Params::new(MEMORY, ITERATIONS, LANES, None);
    let params = params.map_err(|error| anyhow!("argon2 refuses its parameters: {error}"))?;
    Ok(Argon2::new(Algorithm::Argon2id, Version::V0x13, params))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use futures::FutureExt;
    use futures::future::join_all;

    use super::*;

    #[tokio::test]
    async fn rejects_hashes_above_the_capacity() {
        let passwords = Passwords::new(1);
        let hashes: Vec<_> = (0..=WAITING_PER_RUNNING).map(|_| passwords.hash("correct horse".to_owned()).boxed()).collect();
        let mut hashes = join_all(hashes);
        // Each future takes its permit when it is first polled.
        assert!((&mut hashes).now_or_never().is_none());

        let late = passwords.hash("correct horse".to_owned()).await;

        assert!(matches!(late, Err(Error::Rejected(Code::ServerUnavailable, _))), "{late:?}");
        drop(hashes);
        assert!(passwords.hash("correct horse".to_owned()).await.is_ok(), "cancelled hashes release their permits");
    }

    #[tokio::test]
    async fn a_hash_is_outdated_when_its_parameters_differ() {
        let now = Passwords::new(1).hash("correct horse".to_owned()).await.unwrap();
        assert!(now.starts_with("$argon2id$v=19$m=19456,t=2,p=1$") && !is_outdated(&now), "{now}");
        for (part, other) in [("m=19456", "m=65536"), ("t=2", "t=1"), ("p=1", "p=2"), ("argon2id", "argon2i"), ("v=19", "v=16")] {
            assert!(is_outdated(&now.replace(part, other)), "{other}");
        }
    }

    #[test]
    fn common_passwords_are_lower_case_and_of_valid_length() {
        let list = include_str!("common-passwords.txt");
        let lines: Vec<_> = list.lines().filter(|line| !line.starts_with("# ")).collect();
        assert!(lines.len() > 8_000 && lines.contains(&"password1"));
        for line in lines {
            assert!((8..=128).contains(&line.chars().count()) && line.to_lowercase() == line, "{line}");
        }
    }
}
