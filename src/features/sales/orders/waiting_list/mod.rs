//! Waiting lists of sold-out sections.
//!
//! An account joins the list of a section with a number of places. While accounts wait, no other account can order places that
//! become free: a job offers them in the order of joining ([`offer_places`]), for as long as an order reserves them. It passes over
//! an entry that needs more places than are free; that entry keeps its position. An order of the account uses its offer
//! (`placement`). An offer that is not used lapses, and its places are offered to the next account.
//!
//! `sections.waiting` counts the entries that wait, and `sections.offered` the places in open offers, which are part of
//! `sections.reserved`. The lock of the section guards its entries.

mod endpoints;
mod model;
mod offers;
mod service;
mod store;

pub use endpoints::register;
pub use model::OfferRow;
pub use offers::offer_places;
pub use service::delete_of_account;
pub use store::{accept, correct_future, offers_of};
