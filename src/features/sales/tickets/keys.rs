//! The keys that sign the codes of tickets and the lists for gates.
//!
//! Each server signs with the key in its own file and stores the public key in the database, so that the servers know each other's
//! keys, and those that they have used before.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use boxoffice_http::error::Result;
use data_encoding::BASE64URL_NOPAD;
use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::Serialize;

use super::store;
use crate::kernel::db::{Reader, Tx};
use crate::kernel::signing::{KeyId, PublicKey, SigningKey};
use crate::kernel::types::clock::Timestamp;
use crate::state::Ctx;

/// The server's own key, and the public keys of all servers.
pub struct TicketKeys {
    /// The key with which this server signs.
    pub own: SigningKey,
    /// Public keys by identifier. A key never changes, so an entry is always valid.
    known: Mutex<HashMap<KeyId, PublicKey>>,
}

impl TicketKeys {
    /// Reads the server's own key from this file. If it doesn't exist, generates a key, and stores it if `creates`.
    ///
    /// # Errors
    /// Returns an error if the file can't be created or read, or contains no key.
    pub fn open(file: &Path, creates: bool) -> anyhow::Result<Self> {
        let own = SigningKey::open(file, creates)?;
        let known = Mutex::new(HashMap::from([(own.id, own.public)]));
        Ok(Self { own, known })
    }

    /// Returns the public keys with these identifiers. Reads those from the database that no request has asked for before.
    pub async fn public_keys(&self, ctx: &Ctx, ids: HashSet<KeyId>) -> Result<HashMap<KeyId, PublicKey>> {
        let known = |id: &KeyId| Some((*id, *self.known.lock().get(id)?));
        let mut keys: HashMap<KeyId, PublicKey> = ids.iter().filter_map(known).collect();
        let unknown: Vec<String> = ids.iter().filter(|id| !keys.contains_key(id)).map(KeyId::to_string).collect();
        if !unknown.is_empty() {
            let stored = store::find_keys(&mut ctx.unit.read().await?, unknown).await?;
            let read = |key: &String| PublicKey::try_from(BASE64URL_NOPAD.decode(key.as_bytes()).ok()?).ok();
            let read: HashMap<KeyId, PublicKey> = stored.iter().filter_map(read).map(|key| (KeyId::of(&key), key)).collect();
            self.known.lock().extend(&read);
            keys.extend(read);
        }
        Ok(keys)
    }
}

/// Stores the server's own public key, unless it is stored.
pub async fn register_key(tx: &mut Tx, key: &SigningKey, now: Timestamp) -> Result<()> {
    store::insert_key(tx, key.id.to_string(), BASE64URL_NOPAD.encode(&key.public), now).await
}

/// Returns whether the server's own public key is stored.
pub async fn is_registered(reader: &mut Reader, key: &SigningKey) -> Result<bool> {
    Ok(!store::find_keys(reader, [key.id.to_string()]).await?.is_empty())
}

/// Public keys as a JSON Web Key Set (RFC 7517, RFC 8037).
#[derive(Debug, Serialize, JsonSchema)]
pub struct TicketKeySet {
    pub keys: Vec<TicketKey>,
}

/// A public key.
#[derive(Debug, Serialize, JsonSchema)]
pub struct TicketKey {
    #[schemars(regex(pattern = r"^[0-9a-f]{8}$"))]
    pub kid: String,
    pub kty: String,
    pub crv: String,
    #[schemars(regex(pattern = r"^[A-Za-z0-9_-]{43}$"))]
    pub x: String,
    pub alg: String,
    #[serde(rename = "use")]
    pub usage: String,
}

/// Returns the public keys of all servers, the newest first.
pub async fn list(ctx: &Ctx) -> Result<TicketKeySet> {
    let keys = store::list_keys(&mut ctx.unit.read().await?).await?;
    let key = |(kid, x): (String, String)| TicketKey {
        kid,
        kty: "OKP".to_owned(),
        crv: "Ed25519".to_owned(),
        x,
        alg: "EdDSA".to_owned(),
        usage: "sig".to_owned(),
    };
    Ok(TicketKeySet { keys: keys.into_iter().map(key).collect() })
}
