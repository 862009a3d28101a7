//! The checks of an operation, by subject.

mod actions;
mod arguments;
mod authentication;
mod changed_values;
mod conditional;
mod conflicts;
mod declared_values;
mod document;
mod filters;
mod ignored_parameters;
mod life;
pub mod list_reader;
mod lists;
mod messages;
mod methods;
mod paths;
mod persistence;
mod reference;
mod repeats;
mod responses;
mod self_links;
mod sorts;
mod unknown_resources;
pub mod updates;
