//! Admission tokens: what lets an event's staff redeem its tickets without an account.
//!
//! A token covers sections of one event. Its code, which the event's host hands out, is exchanged for a redeemer's key
//! as often as it is asked for. Every event has a global token from its beginning, which covers all its sections.
//!
//! Here is also [`reach`]: which sections of an event a caller may admit to, be it by a token or as its host.

mod endpoints;
mod model;
mod admission_scope;
mod service;
mod store;

pub use endpoints::register;
pub use model::uri;
pub use admission_scope::{AdmissionScope, authorize, covers_sql};
pub use service::create_global;
pub use store::end_keys_of_event;
