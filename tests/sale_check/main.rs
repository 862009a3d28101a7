//! Temporary.
#![allow(warnings)]
#[path = "../it/support/mod.rs"]
mod support;
#[path = "../it/orders.rs"]
mod orders;
#[path = "../it/payments.rs"]
mod payments;
#[path = "../it/races.rs"]
mod races;
