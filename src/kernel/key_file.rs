//! Files with a key of 32 bytes, in base64.

use std::path::Path;

use anyhow::{Context, Result};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;

use crate::kernel::private_files;

/// A key of 32 bytes.
pub type Key = [u8; 32];

/// Reads the key in a file. If the file doesn't exist, returns a random key, which it stores in the file if `creates`. `purpose` names
/// the key in an error.
///
/// # Errors
/// Returns an error if the file can't be created or read, or contains no key.
pub fn open(file: &Path, purpose: &str, creates: bool) -> Result<Key> {
    let new_key: Key = rand::random();
    if !creates && !file.exists() {
        return Ok(new_key);
    }
    let read = || {
        if !file.exists() {
            if let Some(folder) = file.parent() {
                private_files::create_folder(folder)?;
            }
            private_files::create_once(file, format!("{}\n", BASE64_STANDARD.encode(new_key)).as_bytes())?;
        }
        std::fs::read_to_string(file)
    };
    let text = read().with_context(|| format!("cannot read the key of {purpose} in {}", file.display()))?;
    let key = BASE64_STANDARD.decode(text.trim()).ok().and_then(|key| Key::try_from(key).ok());
    key.with_context(|| format!("{} contains no key: it must have 32 bytes in base64", file.display()))
}
