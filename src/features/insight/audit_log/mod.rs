//! The audit trail, for the platform's staff to read. It is written by the front door, with every change and in its transaction
//! ([`journal`](crate::kernel::journal)); nothing changes it.

mod endpoints;
mod model;
mod service;
mod store;

pub use endpoints::register;
