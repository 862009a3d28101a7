//! Sessions: somebody signs in with a username or an e-mail address and a password, and gets a key that acts as the account.
//!
//! A session is a key like any other (`auth`), which 30 days without use, its ending, another password and the account's
//! deactivation make worthless. Who holds the key reads and ends its session as the active one; an account and the platform's
//! staff see all of the account's sessions, without their keys, and end any of them.

mod endpoints;
mod model;
mod service;
mod store;

pub use endpoints::register;
