//! Regions locate venues and group events. Reference data, maintained by platform administrators.
//!
//! A region's name is unique. A region that has venues can't be removed.

mod endpoints;
mod model;
mod service;
mod store;

pub use endpoints::register;
pub use model::Region;
pub use service::views;
pub use store::lock_shared;
