//! Mails about orders, tickets and transfers.
//!
//! The request that causes a mail stores the identifier of an order, a transfer or an offer (see `mail_values`). Everything that the
//! mail shows is loaded when it is sent ([`deliver_due`]), for all mails of a batch at once, and the tickets are attached as a PDF.
//! Changes of events are mailed by a job ([`report_events`]), in bounded batches.

mod contents;
mod event_notices;
mod store;

pub use contents::deliver_due;
pub use event_notices::report_events;
