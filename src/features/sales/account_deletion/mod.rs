//! The removal of an account, which reaches into every feature that knows something of it.
//!
//! Its row is locked first. Whoever would give it an order, a preference or a host locks it too (`accounts::lock`), and so either
//! comes before, and is seen here, or finds no account. An order of its own that is just being paid is waited for: then it
//! counts as tickets, or is cancelled and its payment given back. Open transfers end, so that what it has offered counts as its
//! own. That it administers hosts, its preferences, its codes and the mail on the way to it go with it. What is refused leaves
//! everything as it was.

mod endpoints;
mod service;

pub use endpoints::register;
