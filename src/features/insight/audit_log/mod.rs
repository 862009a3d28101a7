//! The audit log, which platform administrators can read.
//!
//! The HTTP dispatcher writes it, for every change in the transaction of that change ([`audit`](crate::kernel::audit)). Entries
//! are never updated, and deleted only by the job that applies the retention.

mod archive;
mod endpoints;
mod model;
mod service;
mod store;

pub use archive::delete_before;
pub use endpoints::register;
pub(crate) use model::AuditEntry;
pub(crate) use service::{list_of_account, list_of_resources};
