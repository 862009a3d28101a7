//! Access control: every operation called with every kind of key, with references to other accounts' resources, and with
//! properties that the caller may not set.
//!
//! `rules` lists who may do what, `callers` the kinds of callers. `fixtures` creates their resources. The responses are in
//! `tests/access/matrix.md`.

mod assignment;
pub mod callers;
pub mod fixtures;
mod matrix;
mod objects;
mod privacy;
pub mod rules;
