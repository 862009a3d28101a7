//! Access: every operation asked by every kind of caller, by somebody else for what isn't theirs, and for what nobody may set.
//!
//! `rules` says who may do what, and `callers` who there is; `cast` brings them together on a server. What was answered stands in
//! `tests/access/matrix.md`.

mod assignment;
mod callers;
mod fixtures;
mod matrix;
mod objects;
mod privacy;
mod rules;
