//! The program `boxoffice`; its code is in the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    boxoffice::cli::run()
}
