//! Advertising zones: where advertisements are shown, and how large their artwork has to be. Reference data that the
//! platform's staff keep.
//!
//! What a zone shows is asked of advertisements, which know zones. A foreign key over a zone's dimensions holds both to one
//! another: a zone in which something is booked can neither be removed nor take other dimensions.

mod endpoints;
mod model;
mod service;
mod store;

pub use endpoints::register;
pub use model::{Zone, ZonePath, Zones};
pub use service::{exists, views};
