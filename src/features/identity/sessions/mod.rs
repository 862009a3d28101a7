//! Sessions: a person logs in with a username or an e-mail address and a password, and gets a key that acts for the account.
//!
//! A session is an API key like any other (`auth`). It ends after 30 days without use, on request, with a new password, and with
//! the account's deactivation. A client that uses the key reads and ends its session as the active one. The account and platform
//! administrators see all sessions of the account, without their keys, and may end any of them.

mod endpoints;
mod model;
mod service;
mod store;

pub use endpoints::register;
pub use service::{delete_expired_addresses, delete_expired_before, end_all, is_known_address};
