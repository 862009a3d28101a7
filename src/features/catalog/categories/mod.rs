//! Categories: how events are classified, each with its subcategories. Reference data that the platform's staff keep.
//!
//! A category's name is unique. Neither a category nor a subcategory that an event uses can be removed.

mod endpoints;
mod model;
mod service;
mod store;

pub use endpoints::register;
pub use model::{Categories, Category};
pub use service::views;
