//! The entrance of an event: redemption of tickets.

pub mod admissions;
pub mod gate_lists;
