//! Advertisements: images that hosts show in zones to promote their events.
//!
//! Life cycle: an advertisement begins as a draft, is submitted for review, and is listed once approved; a listed advertisement
//! can be cancelled. Its zones show it while it is listed, during the slots of its schedule.
//!
//! The administrators of the event's host and platform administrators manage an advertisement. Every caller may read it once both
//! it and its event are public, because it includes the event.
//!
//! The artwork has exactly the dimensions of every zone that it is booked in. The object store keeps each artwork under its own
//! identifier, to which the advertisement's row refers, so that image, dimensions and zones change in one transaction.

mod booking;
mod endpoints;
mod markdown;
mod model;
mod requests;
mod service;
mod store;
mod view;

pub use endpoints::register;
pub use markdown::parse as parse_markdown;
pub use model::Advertisement;
pub use service::{decide, lock, remove_of_event};
