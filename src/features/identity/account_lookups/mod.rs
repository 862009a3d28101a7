//! Lookups: whether there is an account, asked before somebody signs up or in.

mod endpoints;
mod model;
mod service;

pub use endpoints::register;
