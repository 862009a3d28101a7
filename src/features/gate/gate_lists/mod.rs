//! Lists of an event's tickets for gates: devices at the entrance that must work without a connection.
//!
//! A list has digests of serial numbers, not the serial numbers themselves. A gate computes the digest of the serial number that it
//! scans, but no ticket can be made from a list that was stolen. Lists are signed, so that a gate can get them in any way, such as
//! from another gate.

mod endpoints;
mod model;
mod service;

pub use endpoints::register;
