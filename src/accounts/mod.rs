//! Accounts: the people who use the platform, customers and staff alike.
//!
//! An account is named by its number in every URI, and by its username or e-mail address when its owner signs in; both are
//! unique without regard to case. Only the account itself and the platform's staff may read or change it. Every feature that
//! shows a person shows an [`Account`], made by [`views`] for all of a page at once.

mod endpoints;
mod model;
mod service;
mod store;

pub use endpoints::register;
pub use model::{Account, AccountCreate, AccountNumber, AccountPath, AccountRole, AccountRow, AccountTitle, Password, Role};
pub use service::{create, load, view, views};
pub use store::{any, exists, find, find_by_number, lock, lock_by_email, set_password, set_verified};
