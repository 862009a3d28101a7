//! Ed25519 signatures that devices can check without a connection to the server.

use std::fmt;
use std::path::Path;

use anyhow::{Context, Result};
use aws_lc_rs::signature::{ED25519, Ed25519KeyPair, KeyPair, UnparsedPublicKey};
use sha2::{Digest, Sha256};

use super::key_file;
use super::types::secret;

/// Length of a signature in bytes.
const SIGNATURE_LENGTH: usize = 64;
/// An Ed25519 public key.
pub type PublicKey = [u8; 32];

/// Identifies a key: the first bytes of the SHA-256 hash of its public key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct KeyId(pub [u8; 4]);

impl KeyId {
    /// Returns the identifier of a key.
    pub fn of(public: &PublicKey) -> Self {
        let [a, b, c, d, ..]: [u8; 32] = Sha256::digest(public).into();
        Self([a, b, c, d])
    }
}

impl fmt::Display for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&secret::hex(&self.0))
    }
}

/// A private key and its public key.
pub struct SigningKey {
    pair: Ed25519KeyPair,
    /// The identifier.
    pub id: KeyId,
    /// The public key.
    pub public: PublicKey,
}

impl SigningKey {
    /// Reads the key from this file. If it doesn't exist, generates a key, and stores it if `creates`.
    ///
    /// # Errors
    /// Returns an error if the file can't be created or read, or contains no key.
    pub fn open(file: &Path, creates: bool) -> Result<Self> {
        let seed = key_file::open(file, "the tickets", creates)?;
        let pair = Ed25519KeyPair::from_seed_unchecked(&seed).ok().context("the key of the tickets can't be used")?;
        let public: PublicKey = pair.public_key().as_ref().try_into().context("a public key has 32 bytes")?;
        Ok(Self { pair, id: KeyId::of(&public), public })
    }

    /// Returns the signature of a message. The same message always has the same signature.
    pub fn sign(&self, message: &[u8]) -> [u8; SIGNATURE_LENGTH] {
        let mut signature = [0; SIGNATURE_LENGTH];
        signature.copy_from_slice(self.pair.sign(message).as_ref());
        signature
    }
}

/// Returns whether the owner of a public key has signed a message.
pub fn is_signed_by(key: &PublicKey, message: &[u8], signature: &[u8]) -> bool {
    UnparsedPublicKey::new(&ED25519, key).verify(message, signature).is_ok()
}
