//! The export of everything that is stored about an account, for the person behind it.
//!
//! [`PERSONAL_TABLES`] declares each table with a column that names an account. A test compares it with the foreign keys of the
//! database, so that a new table is not forgotten. The export is read page by page, so that an account of any size needs little
//! memory.

mod endpoints;
mod model;
mod service;
mod store;
mod tables;

pub use endpoints::register;
pub use tables::PERSONAL_TABLES;
