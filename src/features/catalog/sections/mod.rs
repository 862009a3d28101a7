//! Sections: the parts of an event, each with its own price, number of places and time of sale.
//!
//! Host administrators and platform administrators manage them; every caller who may see the event may see its sections.
//!
//! `sections.sold` and `sections.reserved` count places, and a CHECK constraint on them prevents overselling. An expired
//! reservation no longer counts: every read excludes it, and every write releases it first. Only [`unit_price`] computes the
//! price of a ticket, from a row and the price modifiers that every read loads with it.
//!
//! Events include the representation of their sections. The endpoints check permissions through `events`.

mod endpoints;
mod model;
mod places;
mod price;
mod service;
pub mod store;

pub use endpoints::register;
pub use model::{Section, SectionPath, SectionRow, SectionUri, uri, view_short};
pub use places::{Places, SaleTerms, adjust_counts, adjust_waiting, close_waiting, end_offers, lock_available};
pub use price::{
    ActiveModifier, GroupPrice, MAX_ORDER_TICKETS, Price, UnitPrice, group_prices, next_change, next_price_change, price,
    unit_price,
};
pub use service::{find_embedded, load};
pub use store::{FOLDED_NAME, count_places, find_all, find_in_event, find_with_modifiers, lock_all, lock_of_event, sizes};
