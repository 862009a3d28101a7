//! What a client needs to know of the platform before anybody signs in: countries to choose from, the server's time, and its
//! settings. None of it touches the database.

mod countries;
mod endpoints;
mod model;
mod service;

pub use endpoints::register;
