//! Admissions: who was let in where, when and by whom, each by redeeming one ticket.
//!
//! A gate sends the serials that it scanned and is answered with the admissions made; a serial that can't be admitted
//! is just not among them. The ticket and its admission change in one transaction.

mod endpoints;
mod redeem;
mod model;
mod service;
mod store;

pub use endpoints::register;
pub use redeem::AdmissionBatcher;
