//! Integrations: API keys for programs that can't log in, issued by platform administrators.
//!
//! An integration has a role of its own and acts for an account, with which it ends. A public one acts for no account: it stays when
//! the account for which it was created is deactivated or deleted. The key is returned only once, in the response that creates it. An
//! integration that has ended is no longer found.
//!
//! A key of the same kind without an account belongs to a client application. Only the command line creates, lists and ends
//! those; no operation returns them.

mod endpoints;
mod model;
mod service;
mod store;

pub use endpoints::register;
pub use service::{end_key, list_keys};
