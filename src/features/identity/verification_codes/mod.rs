//! Mailed codes that verify an account's e-mail address or reset its password.
//!
//! Both kinds work alike and share one table. A request with an e-mail address creates a code and mails its six digits. A client
//! with both the code's URI and the digits may use the code once. The identifier in the URI is a secret like an API key, so only
//! the client that requested the code can try digits. The table stores only hashes of the identifier and the digits.

mod endpoints;
mod model;
mod service;
mod store;

pub use endpoints::register;
pub use service::{correct_future, delete_expired_before};
pub use store::delete_of_account;
