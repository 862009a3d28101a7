//! Access control: every operation called with every kind of key, with references to other accounts' resources, and with
//! properties that the caller may not set.
//!
//! `rules` lists who may do what, `callers` the kinds of callers. `fixtures` creates their resources. The
//! personal data in the responses is in `tests/api/access/privacy.md`.

mod assignment;
pub mod callers;
pub mod fixtures;
mod matrix;
mod objects;
mod privacy;
pub mod rules;
