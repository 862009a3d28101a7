//! Generation and hashing of random secrets.

use data_encoding::HEXLOWER;
use rand::RngExt;
use sha2::{Digest, Sha256};

use super::id::Id;

const LOWER: &[u8] = b"abcdefghijklmnopqrstuvwxyz0123456789";
const UPPER: &[u8] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";

/// Returns a new API key: 32 characters of `[a-z0-9]`, 165 bits.
pub fn api_key() -> String {
    random(LOWER, 32)
}

/// Returns a new code of an admission token: 8 characters of `[0-9A-Z]`.
pub fn token_code() -> String {
    random(UPPER, 8)
}

/// Returns a new serial number of a ticket: `[0-9A-Z]{6}-[0-9A-Z]{12}`.
pub fn ticket_serial() -> String {
    format!("{}-{}", random(UPPER, 6), random(UPPER, 12))
}

/// Returns a new account number: `[A-Z]{2}-[A-Z0-9]{8}`.
pub fn account_number() -> String {
    format!("{}-{}", random(&UPPER[10..], 2), random(UPPER, 8))
}

/// Returns a new verification code, which a user copies from a mail: 6 digits.
pub fn verification_code() -> String {
    random(&LOWER[26..], 6)
}

/// Returns a new identifier of an image: a random number of 19 digits, nearly 63 bits.
///
/// It is secret, because it is part of the URI of an image that is not public. It doesn't come from the clock, because no
/// database constraint would reject a duplicate of another server, and the later image would replace the earlier one.
pub fn image_id() -> Id {
    Id(rand::rng().random_range(1_000_000_000_000_000_000..=i64::MAX))
}

/// Returns the SHA-256 hash of a random secret in hexadecimal, the form in which secrets are stored and looked up.
pub fn hash(secret: &str) -> String {
    hex(&digest(secret))
}

/// Returns the SHA-256 hash of a random secret.
pub fn digest(secret: &str) -> [u8; 32] {
    Sha256::digest(secret.as_bytes()).into()
}

/// Returns bytes as lower-case hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    HEXLOWER.encode(bytes)
}

fn random(alphabet: &[u8], length: usize) -> String {
    let mut rng = rand::rng();
    (0..length).map(|_| char::from(alphabet[rng.random_range(0..alphabet.len())])).collect()
}
