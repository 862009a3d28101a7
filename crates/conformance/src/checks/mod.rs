//! The checks of an operation, by subject.

mod arguments;
mod authentication;
mod document;
mod lists;
mod paths;
mod persistence;
mod reference;
mod responses;
mod self_links;
