//! Codes that are mailed, to verify an account's e-mail address or to give the account another password.
//!
//! Both work alike, and are kept in one table: a request for an address makes a code and mails its six digits, and
//! whoever knows both the code's URI and the digits may use it, once. The URI's identifier is a secret like a key, so that
//! nobody but whoever asked can try digits, and what is kept of both tells neither.

mod endpoints;
mod model;
mod service;
mod store;

pub use endpoints::register;
pub use store::forget;
