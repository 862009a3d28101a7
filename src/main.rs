//! The program `boxoffice`. All it does is in the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    boxoffice::command::run()
}
