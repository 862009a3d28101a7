//! Who calls: keys, the caller that a key stands for, and passwords.
//!
//! Here is only what a key says. What relation its caller has to a resource is asked where the resource is loaded.

mod caller;
mod keys;
mod password;

pub use caller::{AdmissionClaims, Caller, Scope};
pub use keys::{ADMISSION_LIFE, KeyKind, KeyStore, NewKey, authenticate, end, issue};
pub use password::{Passwords, is_outdated, require_uncommon};
