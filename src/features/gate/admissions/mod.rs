//! Admissions: the record of each redeemed ticket, with its owner, section, time and redeemer.
//!
//! A device at the entrance sends the serial numbers that it scanned. The response has the new admissions; a serial number that
//! can't be admitted is left out, or is listed with its reason in the response to a scan. The ticket is redeemed and the admission
//! inserted in one transaction. A device without a connection uploads its scans later, see `offline_scans`. Redeemers admit to the
//! sections of their admission token, host administrators to the whole event.

mod conflicts;
mod endpoints;
mod model;
mod offline_scans;
mod offline_store;
mod redeem;
mod refused_ticket;
mod service;
mod store;
mod undo;

pub use endpoints::register;
pub use redeem::ScanRequest;
