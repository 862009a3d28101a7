//! Encryption of mail in the outbox.

use std::path::Path;

use anyhow::{Result, anyhow};
use aws_lc_rs::aead::{AES_256_GCM, RandomizedNonceKey};
use aws_lc_rs::error::Unspecified;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;

use super::model::MailRow;
use crate::kernel::types::id::Id;
use crate::kernel::types::secret;
use crate::kernel::{aead, key_file};

/// Encrypts the text of mails with AES-256-GCM, because it may contain a code that sets a password. A database file keeps deleted
/// content for a while, in free pages and in its log, and so does a backup.
///
/// The key is in a file, not in the database. Servers with different keys can share a database: each sends its own mails.
pub struct MailCipher {
    key: RandomizedNonceKey,
    /// Identify the key without revealing it.
    pub key_ids: KeyIds,
}

/// The names of one key. Mails with templates have a name of their own, so that a server of an earlier version, which would send
/// their values as text, leaves them to the other servers.
pub struct KeyIds {
    /// The name in mails with templates.
    pub current: String,
    /// The name in mails that earlier versions have stored.
    pub earlier: String,
}

impl KeyIds {
    /// Returns whether this is the name of another key.
    pub fn is_other(&self, key_id: &str) -> bool {
        key_id != self.current && key_id != self.earlier
    }
}

impl MailCipher {
    /// Reads the key from this file. If it doesn't exist, generates a key, and stores it if `creates`.
    ///
    /// # Errors
    /// Returns an error if the file can't be created or read, or contains no key.
    pub fn open(file: &Path, creates: bool) -> Result<Self> {
        let key = key_file::open(file, "the mails", creates)?;
        let text = BASE64_STANDARD.encode(key);
        let name = |purpose: &str| secret::hash(&format!("boxoffice: {purpose} {text}"))[..16].to_owned();
        let key_ids = KeyIds { current: name("mail template key"), earlier: name("mail key") };
        Ok(Self { key: RandomizedNonceKey::new(&AES_256_GCM, &key).map_err(crypto_error)?, key_ids })
    }

    /// Encrypts the body of a mail. It can only be decrypted as the body of the same mail to the same recipient: an address, or an
    /// account.
    ///
    /// # Errors
    /// Returns an error if the system has no random numbers.
    pub fn encrypt(&self, id: Id, recipient: &str, account: Option<Id>, text: &str) -> Result<String> {
        let sealed = aead::seal(&self.key, &context(id, recipient, account), text.into()).map_err(crypto_error)?;
        Ok(BASE64_STANDARD.encode(sealed))
    }

    /// Returns the body of a mail. Mails of earlier versions are not encrypted.
    ///
    /// # Errors
    /// Returns an error if it was encrypted with another key, or changed.
    pub fn decrypt(&self, mail: &MailRow) -> Result<String> {
        match mail.key_id.as_deref() {
            None => return Ok(mail.body.clone()),
            Some(key_id) if self.key_ids.is_other(key_id) => {
                return Err(anyhow!("it was encrypted with the key of another server"));
            }
            Some(_) => {}
        }
        let (context, sealed) = (context(mail.id, &mail.recipient, mail.account_id), BASE64_STANDARD.decode(&mail.body)?);
        Ok(String::from_utf8(aead::open(&self.key, &context, &sealed).map_err(crypto_error)?)?)
    }
}

fn context(id: Id, recipient: &str, account: Option<Id>) -> String {
    match account {
        Some(account) => format!("{id} account {account}"),
        None => format!("{id} {recipient}"),
    }
}

fn crypto_error(_: Unspecified) -> anyhow::Error {
    anyhow!("a mail can't be encrypted or decrypted")
}
