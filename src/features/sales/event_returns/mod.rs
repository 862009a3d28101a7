//! Returns of all orders of a cancelled event, as a job.
//!
//! A host administrator starts a run. The job returns the unused tickets of the event, one order in each transaction, and records
//! the progress in the same transaction. So a run can be interrupted at any time, any server continues it, and no order is
//! refunded twice. An order that can't be returned is skipped, and the run begins again later until there is none. Tickets that become
//! valid again afterwards, such as by an undone admission, are returned by another run.

mod endpoints;
mod job;
mod model;
mod service;
mod store;

pub use endpoints::register;
pub use job::{correct_future, return_next};
