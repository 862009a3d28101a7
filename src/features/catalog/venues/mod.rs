//! Venues: the places of events. Each is in a region, and its name is unique.
//!
//! A venue that a platform administrator creates is approved at once. A customer's venue is submitted for review; until it is
//! approved, only its creator and platform administrators can use it. They can see it, and so can administrators of the hosts of events
//! there; once such an event is listed, every caller can. A venue that has or had events can't be removed.

mod endpoints;
mod model;
mod service;
mod store;

pub use endpoints::register;
pub use model::{EventVenue, Venue, VenueChangeRow};
pub use service::{event_venues, lock_usable};
pub use store::{advance_change, approve, claim_change, has_changes, lock, remove_change, revised, set_staged};
