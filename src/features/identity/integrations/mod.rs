//! Integrations: keys for programs, made by the platform's staff, where nobody can sign in.
//!
//! An integration acts as an account, with a role of its own. Its key is in the answer to its making and never again. One that
//! has been ended is gone.
//!
//! A key of the same kind that belongs to nobody is an application's own; only the command line makes those, and no
//! operation shows them.

mod endpoints;
mod model;
mod service;
mod store;

pub use endpoints::register;
