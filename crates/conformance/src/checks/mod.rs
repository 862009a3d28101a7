//! What is asked of an operation, by what it is about.

mod answers;
mod arguments;
mod authentication;
mod document;
mod persistence;
mod lists;
mod paths;
mod self_links;
mod reference;
