//! Categories classify events, and each has subcategories. Reference data, maintained by platform administrators.
//!
//! A category's name is unique. A category or a subcategory that an event uses can't be removed.

mod endpoints;
mod model;
mod service;
mod store;

pub use endpoints::register;
pub use model::Category;
pub use service::views;
pub use store::{exists, find_subcategories, lock_subcategory};
