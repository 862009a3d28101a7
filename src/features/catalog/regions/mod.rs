//! Regions: where venues lie, and by which events are grouped. Reference data that the platform's staff keep.
//!
//! A region's name is unique, and a region that has venues can't be removed.

mod endpoints;
mod model;
mod service;
mod store;

pub use endpoints::register;
pub use model::Regions;
pub use store::exists;
