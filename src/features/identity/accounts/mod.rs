//! Accounts: the people who use the platform, customers and staff alike.
//!
//! An account is named by its number in every URI, and by its username or e-mail address when its owner signs in; both are
//! unique without regard to case. Only the account itself and the platform's staff may read or change it. Every feature that
//! shows a person shows an [`Account`], made by [`views_for`] for all of a page at once.
//!
//! An account is active, deactivated (nobody can sign in to it, and its keys are refused), or removed: then the row that is left
//! for the books tells its number and nothing of the person ([`erase`]), and no operation finds it by that number any more. What
//! is done for an account while it might be removed [`lock`]s it.

mod lifecycle;
mod endpoints;
mod model;
mod service;
mod store;

pub use lifecycle::{erase, lock_unless_last_admin};
pub use endpoints::register;
pub use model::{Account, AccountCreate, AccountNumber, AccountPath, AccountRole, AccountRow, AccountTitle, Password, Role};
pub use service::{create, load, view, view_for, view_for_others, views_for};
pub use store::{
    exists, exists_any, find, find_all, find_by_number, find_by_numbers, id_of, is_allowed_region, lock, lock_active, lock_all,
    lock_by_email, set_password, set_verified,
};
