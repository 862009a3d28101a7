//! Authentication: API keys, the caller of a key, and passwords.
//!
//! This module checks only the key and its scope. Permissions for a resource are checked where the resource is loaded.

mod caller;
mod keys;
mod password;

pub use caller::{AdmissionClaims, Caller};
pub use keys::{ADMISSION_LIFE, KeyKind, KeyStore, NewKey, authenticate, correct_future, issue, require_not_revoked, revoke};
pub use password::{HashRequester, PasswordCost, PasswordSettings, Passwords};
