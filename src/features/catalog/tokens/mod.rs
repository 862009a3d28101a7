//! Admission tokens let the people at an event's entrance redeem tickets without an account.
//!
//! A token covers sections of one event. Host administrators and platform administrators manage the tokens and hand out their
//! codes. A client exchanges a code for a redeemer's key, any number of times. Every event has a global token from its creation
//! on, which covers all its sections.
//!
//! [`authorize`] returns the sections of an event to which a caller may admit, by a token or as an administrator of its host.

mod admission_scope;
mod endpoints;
mod model;
mod service;
mod store;

pub use admission_scope::{AdmissionScope, authorize, covers_sql};
pub use endpoints::register;
pub use model::uri;
pub use service::{create_global, delete_expired_keys_before};
pub use store::{end_keys_of_event, removed, sections_in_scope};
