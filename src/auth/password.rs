//! Passwords: argon2id, hashed a few at a time on threads of their own.

use anyhow::anyhow;
use argon2::password_hash::{PasswordHasher, PasswordVerifier, phc::PasswordHash};
use argon2::{Algorithm, Argon2, Params, Version};
use tokio::sync::Semaphore;

use crate::error::{Error, Result};

/// Hashes and checks passwords. A hash costs 19 MiB and some milliseconds, so that only a few may run at once
/// and log-ins can't starve the rest.
#[derive(Debug)]
pub struct Passwords {
    permits: Semaphore,
}

impl Passwords {
    /// Allows this many hashes at once.
    pub fn new(at_once: usize) -> Self {
        Self { permits: Semaphore::new(at_once) }
    }

    /// The hash of a new password, with its salt and parameters.
    ///
    /// # Errors
    /// When the machine cannot hash.
    pub async fn hash(&self, password: String) -> Result<String> {
        self.run(move || {
            let hash = argon2()?.hash_password(password.as_bytes()).map_err(|error| anyhow!("cannot hash: {error}"))?;
            Ok(hash.to_string())
        })
        .await
    }

    /// Whether this is the password that was hashed.
    ///
    /// # Errors
    /// When the stored hash cannot be read.
    pub async fn verify(&self, password: String, hash: String) -> Result<bool> {
        self.run(move || {
            let hash = PasswordHash::new(&hash).map_err(|error| anyhow!("a stored hash cannot be read: {error}"))?;
            Ok(argon2()?.verify_password(password.as_bytes(), &hash).is_ok())
        })
        .await
    }

    async fn run<T: Send + 'static>(&self, work: impl FnOnce() -> anyhow::Result<T> + Send + 'static) -> Result<T> {
        let _permit = self.permits.acquire().await.map_err(|error| Error::Internal(error.into()))?;
        let done = tokio::task::spawn_blocking(work).await.map_err(|error| Error::Internal(error.into()))?;
        Ok(done?)
    }
}

/// argon2id with the parameters of OWASP's cheat sheet: 19 MiB, 2 iterations, 1 lane.
fn argon2() -> anyhow::Result<Argon2<'static>> {
    let params = Params::new(19 * 1024, 2, 1, None).map_err(|error| anyhow!("argon2 refuses its parameters: {error}"))?;
    Ok(Argon2::new(Algorithm::Argon2id, Version::V0x13, params))
}
