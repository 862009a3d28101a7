//! Sections: the parts of an event, each with its own price, places and time of sale.
//!
//! `sections.sold` and `sections.reserved` are the count of places, and the database's CHECK on them is the last word on
//! overselling. A reservation that is over no longer counts: every read leaves it out, every write releases it first.
//! What a ticket costs is told by [`unit_price`] alone, from a row and the price modifiers that every read loads with it.
//! The rows and the view are below events, which show their sections; the endpoints ask events for permission.

mod endpoints;
mod model;
mod price;
mod service;
pub mod store;

pub use endpoints::register;
pub use model::{Section, SectionPath, SectionRow, SectionUri, uri, view_long, view_short};
pub use price::{ActiveModifier, Price, UnitPrice, next_price_change, price, unit_price};
pub use service::load;
pub use store::{find_by_ids, lock, release_expired, release_seats};
