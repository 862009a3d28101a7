//! Venues: where events are staged. Each lies in a region, and its name is unique.
//!
//! A venue that the platform's staff make is approved at once. A customer's waits for review; until then it is its creator's,
//! to see and to use, and nobody else's but the staff's. A venue that has or had events can't be removed.

mod endpoints;
mod model;
mod service;
mod store;

pub use endpoints::register;
pub use model::{Venue, Venues};
pub use service::{is_usable, views};
pub use store::approve;
