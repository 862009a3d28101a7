//! Accounts of the people who use the platform: customers and platform administrators.
//!
//! An account is identified by its number in every URI, and by its username or e-mail address at log-in. Both are unique,
//! ignoring case. Only the account itself and platform administrators may read or change it. Features that include a person in a
//! response embed an [`Account`], which [`views_for`] builds for a whole page in one query.
//!
//! Tickets can be given to an e-mail address without an account. It gets one that is a guest until its password is reset.
//!
//! Life cycle: an account is active, deactivated (log-ins and the keys that act for it are rejected), or removed. The row of a
//! removed account stays, because the ledger refers to it. It keeps the account's number and role and no personal data ([`erase`]),
//! and the account's operations no longer find it. Code that adds something to an account [`lock`]s it first, because it might be
//! removed at the same time.

mod endpoints;
mod folded_names;
mod lifecycle;
mod lists;
mod model;
mod notice;
mod service;
mod store;

pub use endpoints::register;
pub use folded_names::complete_names;
pub use lifecycle::{erase, lock_unless_last_admin, set_active};
pub use lists::{AccountList, AccountLists, AccountPage};
pub use model::{
    Account, AccountCreate, AccountNumber, AccountPath, AccountRole, AccountRow, AccountTitle, Password, Role, is_usual_name,
};
pub(crate) use service::get;
pub use service::{
    PreparedAccount, create, insert, insert_guests, load, prepare, prepare_guest, reset_password, view, view_for,
    view_for_others, views_for,
};
pub(in crate::features) use store::columns;
pub use store::{
    administrators, bytes_sql, can_be_identification, exists, exists_any, find, find_all, find_by_emails, find_by_number,
    find_by_numbers, folded_names_sql, id_for_filter, id_of, id_of_email, lock, lock_all, lock_by_email, set_verified, sizes,
};
