//! Hosts: the organizers of events.
//!
//! The account that registers a host becomes its administrator. The host's administrators and platform administrators act for it.
//!
//! A host's name is unique. A removed host is no longer found by any caller, but its row stays: its events and tickets remain,
//! and its administrators still manage them. Operations that a removed host may no longer perform call [`require_active`] first.

mod endpoints;
mod model;
mod service;
mod store;

pub use endpoints::register;
pub use model::{Host, HostPath};
pub use service::{
    is_managed_by, lock_administrator, require_active, require_administrator, require_can_audit, require_can_manage,
};
pub use store::{administrator_ids, administrators_among, delete_administrator_everywhere, exists};
