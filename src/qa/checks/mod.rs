//! What is asked of an operation, by what it is about.

mod answers;
mod arguments;
mod callers;
mod document;
mod kept;
mod lists;
mod paths;
mod selves;
mod shapes;
