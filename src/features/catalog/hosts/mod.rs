//! Hosts: who stages events. Whoever registers a host becomes its administrator; its administrators and the platform's staff
//! act for it.
//!
//! A host's name is unique. A removed host is gone for everyone, but its row stays: its events and tickets remain, and those who
//! administered it still look after them. [`require_active`] stands before everything that it may no longer do.

mod endpoints;
mod model;
mod service;
mod store;

pub use endpoints::register;
pub use model::{HostPath, Hosts};
pub use service::{require_active, require_administrator, require_can_manage, require_exists};
pub use store::{delete_administrator_everywhere, exists};
