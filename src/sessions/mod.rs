//! Sessions: somebody signs in with a username or an e-mail address and a password, and gets a key that acts as the account.
//!
//! A session is a key like any other (`auth`), which 30 days without use, its ending, another password and the account's
//! deactivation make worthless. It is only ever named as the active one: the session whose key the request carries.

mod endpoints;
mod model;
mod service;
mod store;

pub use endpoints::register;
