//! Copies of events: a new draft with the texts, images, sections and price modifiers of an event, at another time.
//!
//! All times of sale are moved by the same duration as the start. A copy has an admission token of its own, and no sales.

mod endpoints;
mod service;

pub use endpoints::register;
