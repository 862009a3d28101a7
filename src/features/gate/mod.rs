//! The entrance of an event: redemption of tickets.

pub mod admissions;
