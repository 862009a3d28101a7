//! Advertisements: what hosts show in zones to promote their events.
//!
//! An advertisement is run by its event's host, begins as a Draft, is submitted for review, and is Listed once approved; a zone
//! shows it within the slots of its schedule. Everyone sees it once both it and its event are public: it shows the event too.
//! Its artwork has exactly the dimensions of every zone that it is booked in. The object store keeps each artwork under an
//! identifier of its own, which the advertisement's row names, so that image, dimensions and zones change together.

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
pub use model::Advertisements;
pub use service::{decide, remove_of_event};
