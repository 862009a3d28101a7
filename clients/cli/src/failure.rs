//! Errors of the program and its exit codes.

use std::fmt::Display;
use std::io::{self, Write};
use std::process::ExitCode;

use boxoffice_client::types::{self, ErrorCode};
use boxoffice_client::{ApiError, Error};

/// The exit codes, for the help.
pub const EXIT_CODES: &str = "Exit codes:
  0  success
  1  another error, such as a file that can't be read
  2  wrong arguments, found by this program or by the server (400, 413, 415)
  3  no access: not logged in, or not permitted (401, 403)
  4  not found (404)
  5  rejected in the current state, or changed since (402, 409, 412)
  6  no response, too many requests, or a temporary error of the server (429, 5xx): try again later";

/// An error that ends the program.
#[derive(Debug)]
pub struct Failure {
    text: String,
    exit_code: u8,
    code: Option<ErrorCode>,
}

impl Failure {
    /// Creates the error of wrong arguments.
    pub fn usage(error: clap::Error) -> Self {
        Self { text: one_line(&error), exit_code: 2, code: None }
    }

    /// Creates the error of a cause that is no response.
    pub fn other(error: &dyn Display) -> Self {
        Self { text: one_line(error), exit_code: 1, code: None }
    }

    /// Creates an error with this text.
    pub fn message(text: &str) -> Self {
        Self { text: text.to_owned(), exit_code: 1, code: None }
    }

    /// Returns whether a list has fewer pages.
    pub fn is_past_end(&self) -> bool {
        self.code == Some(ErrorCode::PagePastEnd)
    }

    /// Returns whether the server doesn't accept the key: its session has ended.
    pub fn is_rejected_key(&self) -> bool {
        self.exit_code == 3
    }

    /// Prints the error on one line, and returns the exit code.
    pub fn report(self) -> ExitCode {
        // Standard error may be closed.
        let _ = writeln!(io::stderr(), "error: {}", self.text);
        ExitCode::from(self.exit_code)
    }
}

impl From<Error<types::Error>> for Failure {
    fn from(error: Error<types::Error>) -> Self {
        let without_status = match &error {
            // The address of the server, or an argument.
            Error::CommunicationError(cause) if cause.is_builder() => 2,
            Error::InvalidRequest(_) => 2,
            Error::CommunicationError(_) | Error::ResponseBodyError(_) => 6,
            _ => 1,
        };
        let error = ApiError::from(error);
        let exit_code = match error.status().map(|status| status.as_u16()) {
            Some(400 | 413 | 415) => 2,
            Some(401 | 403) => 3,
            Some(404) => 4,
            Some(402 | 409 | 412) => 5,
            None => without_status,
            Some(429 | 500..) => 6,
            Some(_) => 1,
        };
        let mut text = error.to_string();
        for field in error.fields() {
            text.push_str(&format!("; {}: {}", field.name, field.detail));
        }
        let mut source = std::error::Error::source(&error);
        while let Some(cause) = source {
            text.push_str(&format!(": {cause}"));
            source = cause.source();
        }
        Self { text: one_line(&text), exit_code, code: error.code().cloned() }
    }
}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Self {
        match error.downcast::<Error<types::Error>>() {
            Ok(error) => error.into(),
            // A file that can't be read or written.
            Err(error) if error.is::<io::Error>() => Self::message(&one_line(&format!("{error:#}"))),
            // A body that is no JSON.
            Err(error) => Self { text: one_line(&format!("{error:#}")), exit_code: 2, code: None },
        }
    }
}

/// Joins lines, and replaces control characters, which a terminal would interpret.
fn one_line(text: &dyn Display) -> String {
    let text = text.to_string().replace(char::is_control, " ");
    text.split_whitespace().collect::<Vec<_>>().join(" ").trim_start_matches("error: ").to_owned()
}
