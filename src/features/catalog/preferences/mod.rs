//! Preferences of an account: the region whose events it wants to see first.
//!
//! The account itself and platform administrators read and change them. Preferences exist as soon as the account does, but a row
//! is written only when a region is chosen. Removing a region removes it from all preferences; a preference never prevents that.

mod endpoints;
mod model;
mod service;
mod store;

pub use endpoints::register;
pub use store::delete_of_account;
