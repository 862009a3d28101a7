//! Advertising zones: places that show advertisements, each with the dimensions that their artwork must have. Reference data,
//! maintained by platform administrators.
//!
//! The list of a zone's advertisements is part of `advertisements`, which depends on zones. A foreign key over a zone's
//! dimensions ties bookings to the zone: a zone with bookings can neither be removed nor get other dimensions.

mod endpoints;
mod model;
mod service;
mod store;

pub use endpoints::register;
pub use model::{Zone, ZonePath};
pub use service::{exists, lock_shared, views};
