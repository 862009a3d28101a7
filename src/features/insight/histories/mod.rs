//! The history of an order and of an account in one response, for platform administrators who answer questions of customers.
//!
//! Each list is the first page of a list that other operations return.

mod endpoints;
mod model;
mod service;

pub use endpoints::register;
