//! Events: what hosts publish and tickets are sold for.
//!
//! An event begins as a Draft that only its host's administrators and the platform's staff see, is submitted for review, and
//! is Listed once approved; then everyone sees it. Its host can withdraw it, which makes it a Draft again, or cancel it;
//! while it has sold nothing it can be removed, and its advertisements with it.
//! [`load`], [`load_managed`] and [`load_visible`] load one and ask for the permission in the same call. Its images are in the
//! object store before its row says so.

mod endpoints;
mod images;
mod model;
mod requests;
mod service;
mod cache;
mod store;
mod view;

pub use endpoints::register;
pub use model::{Event, EventPath, EventRow, EventStatus, Events};
pub use service::{apply_decision, load, load_managed, load_visible};
pub use cache::EventCache;
pub use store::{find, lock, of_ids};
pub use view::views;
