//! Authenticated encryption with AES-256-GCM. The nonce is stored in front of the ciphertext.

use aws_lc_rs::aead::{Aad, NONCE_LEN, Nonce, RandomizedNonceKey};
use aws_lc_rs::error::Unspecified;

/// Encrypts bytes, so that they can only be decrypted with the same `context`.
pub fn seal(key: &RandomizedNonceKey, context: &str, mut bytes: Vec<u8>) -> Result<Vec<u8>, Unspecified> {
    let nonce = key.seal_in_place_append_tag(Aad::from(context), &mut bytes)?;
    Ok([nonce.as_ref(), bytes.as_slice()].concat())
}

/// Decrypts the result of [`seal`], if it has not been changed.
pub fn open(key: &RandomizedNonceKey, context: &str, sealed: &[u8]) -> Result<Vec<u8>, Unspecified> {
    let (nonce, ciphertext) = sealed.split_at_checked(NONCE_LEN).ok_or(Unspecified)?;
    let mut bytes = ciphertext.to_vec();
    let length = key.open_in_place(Nonce::try_assume_unique_for_key(nonce)?, Aad::from(context), &mut bytes)?.len();
    bytes.truncate(length);
    Ok(bytes)
}
