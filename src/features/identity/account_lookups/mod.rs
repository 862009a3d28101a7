//! Account lookups: a client checks if a username or an e-mail address has an account, before it shows a sign-up or log-in form.
//! Every API key except a redeemer's may look up accounts.

mod endpoints;
mod model;
mod service;

pub use endpoints::register;
