//! Crashes and crowds, each told by a figure at its end. They run in a short form with all other tests; CONTRIBUTING has the
//! long ones.

mod crowd;
mod two_servers;

use std::env;
use std::fmt::Display;
use std::io::Write;

/// What a variable of the environment says, which makes a test longer than it is among all the others.
fn setting<T: std::str::FromStr>(name: &str, otherwise: T) -> T {
    env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

/// Tells a figure on stderr, past the capturing of tests' output.
fn tell(figure: impl Display) {
    // Where nobody can read it, the test has run all the same.
    let _ = writeln!(std::io::stderr(), "{figure}");
}
