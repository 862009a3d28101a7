//! Hosts: who stages events. Whoever registers a host becomes its administrator; its administrators and the platform's staff
//! act for it.
//!
//! A host's name is unique. A removed host is gone for everyone, but its row stays: its events and tickets remain.

mod endpoints;
mod model;
mod service;
mod store;

pub use endpoints::register;
pub use model::Hosts;
pub use service::{require_active, require_administrator, require_present};
pub use store::exists;
