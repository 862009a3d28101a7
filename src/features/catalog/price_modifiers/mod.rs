//! Price modifiers raise or lower the price of a section's tickets, depending on the time of purchase or the number of tickets.
//!
//! Host administrators and platform administrators manage them; every caller who may see the event may read one by its URI.
//! [`crate::features::catalog::sections::unit_price`] computes the price of a ticket from the modifiers, which every read of a
//! section loads with it. An order keeps the prices at which it was placed, and the modifiers that were applied.

mod endpoints;
mod model;
mod service;
mod store;

pub use endpoints::register;
pub use model::{ModifierRow, uri};
pub(crate) use store::{insert, of_event};
