//! Price modifiers: what raises or lowers the price of a section's tickets by the time of purchase or their number.
//!
//! Here they are made, shown and changed. What a ticket then costs is said by [`crate::features::catalog::sections::unit_price`], which gets them
//! with each section that is read; an order keeps the prices that it was placed with, and which modifiers made them.

mod endpoints;
mod model;
mod service;
mod store;

pub use endpoints::register;
pub use model::uri;
