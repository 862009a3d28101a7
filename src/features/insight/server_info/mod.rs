//! Information that a client needs before a user logs in: the list of countries, the server's time and its settings. It doesn't
//! use the database.

pub mod countries;
mod endpoints;
mod model;
mod service;

pub use endpoints::register;
