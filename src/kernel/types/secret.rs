//! Random secrets, and the form in which they are kept.

use rand::RngExt;
use sha2::{Digest, Sha256};

use super::id::Id;

const LOWER: &[u8] = b"abcdefghijklmnopqrstuvwxyz0123456789";
const UPPER: &[u8] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";

/// A new API key: 32 characters of `[a-z0-9]` (wire facts), 165 bits.
pub fn api_key() -> String {
    random(LOWER, 32)
}

/// A new admission token's code: 8 of `[0-9A-Z]`.
pub fn token_code() -> String {
    random(UPPER, 8)
}

/// A new ticket's serial: `[0-9A-Z]{6}-[0-9A-Z]{12}`.
pub fn ticket_serial() -> String {
    format!("{}-{}", random(UPPER, 6), random(UPPER, 12))
}

/// A new account's number: `[A-Z]{2}-[A-Z0-9]{8}`.
pub fn account_number() -> String {
    format!("{}-{}", random(&UPPER[10..], 2), random(UPPER, 8))
}

/// A new code that a person copies from a mail: 6 digits.
pub fn verification_code() -> String {
    random(&LOWER[26..], 6)
}

/// A new identifier of an image, which its address ends in as long as not everyone may see it: 19 digits, nearly 63 bits, by chance
/// alone. Nothing in the database would refuse one that two servers draw in the same moment, and the later image would take the place
/// of the earlier.
pub fn image_id() -> Id {
    Id(rand::rng().random_range(1_000_000_000_000_000_000..=i64::MAX))
}

/// The SHA-256 of a random secret, in hexadecimal: what is stored and searched for.
pub fn hash(secret: &str) -> String {
    hex(&digest(secret))
}

/// The same as bytes.
pub fn digest(secret: &str) -> [u8; 32] {
    Sha256::digest(secret.as_bytes()).into()
}

/// Bytes as lower-case hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    let digit = |half: u8| char::from(b"0123456789abcdef"[usize::from(half)]);
    let mut text = String::with_capacity(2 * bytes.len());
    text.extend(bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]));
    text
}

fn random(alphabet: &[u8], length: usize) -> String {
    let mut rng = rand::rng();
    (0..length).map(|_| char::from(alphabet[rng.random_range(0..alphabet.len())])).collect()
}
