//! Events, published by hosts, for which tickets are sold.
//!
//! Life cycle: an event begins as a draft, is submitted for review, and is listed once approved. A listed event can be withdrawn,
//! which makes it a draft again, or cancelled. An event that has sold nothing can be removed, and its advertisements with it.
//!
//! The administrators of its host and platform administrators manage an event. Only they see a draft; every caller sees a listed
//! or cancelled event. [`load_managed`] and [`load_visible`] load an event and check the permission in the same call, and
//! [`load`] loads it without a check.
//!
//! New images are in the object store before the event's row refers to them.

mod cache;
mod cache_store;
mod cached_reads;
mod calendar;
mod endpoints;
mod images;
mod list_store;
mod lists;
mod model;
pub mod notices;
mod permissions;
mod published_search;
mod requests;
pub mod search;
mod search_index;
mod service;
mod store;
mod view;
pub mod word_index;

pub use cache::EventCache;
pub use cache_store::{ChangeCursor, PublishedChange};
pub use endpoints::register;
pub use lists::EventLists;
pub use model::{Event, EventPath, EventRow, EventStatus, uri};
pub use permissions::{load, load_managed, load_visible, lock_managed};
pub use search_index::complete as complete_search_index;
pub use service::{apply_decision, check_copy, check_title, insert};
pub use store::{bytes_sql, correct_future, find, find_all, lock, lock_all};
pub use view::{view_one, views};
