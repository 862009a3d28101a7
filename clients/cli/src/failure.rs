//! Errors of the program and its exit codes.

use std::fmt::Display;
use std::io::{self, Write};
use std::process::ExitCode;

use boxoffice_client::types::{self, EarlierAdmission, ErrorCode, FieldProblem, RefusedTicket};
use boxoffice_client::{ApiError, Error};

use crate::output;

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
    /// The lines of refused tickets.
    refusals: Vec<String>,
    exit_code: u8,
    code: Option<ErrorCode>,
    /// The JSON of the error response, for `--json`.
    body: Option<String>,
}

impl Failure {
    /// Creates the error of wrong arguments.
    pub fn usage(error: clap::Error) -> Self {
        Self::without_response(one_line(&error), 2)
    }

    /// Creates the error of a cause that is no response.
    pub fn other(error: &dyn Display) -> Self {
        Self::without_response(one_line(error), 1)
    }

    /// Creates an error with this text.
    pub fn message(text: &str) -> Self {
        Self::without_response(text.to_owned(), 1)
    }

    fn without_response(text: String, exit_code: u8) -> Self {
        Self { text, refusals: Vec::new(), exit_code, code: None, body: None }
    }

    /// Returns whether a list has fewer pages.
    pub fn is_past_end(&self) -> bool {
        self.code == Some(ErrorCode::PagePastEnd)
    }

    /// Returns whether the server doesn't accept the key: its session has ended.
    pub fn is_rejected_key(&self) -> bool {
        self.exit_code == 3
    }

    /// Prints the error on one line, and a line for each refused ticket, and returns the exit code. `is_json` also prints the body of
    /// the error response to standard output.
    pub fn report(self, is_json: bool) -> ExitCode {
        // Standard output and standard error may be closed.
        if let Some(body) = self.body.filter(|_| is_json) {
            let _ = output::write_text(format!("{body}\n").as_bytes());
        }
        let _ = writeln!(io::stderr(), "{}", [&[format!("error: {}", self.text)], &*self.refusals].concat().join("\n"));
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
        let body = match &error {
            // The body was read from JSON, so it can be written as JSON.
            Error::ErrorResponse(response) => serde_json::to_string_pretty(&**response).ok(),
            _ => None,
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
        for field in error.fields().iter().filter(|field| !is_described(field, &error.to_string())) {
            text.push_str(&format!("; {}: {}", field.name, field.detail));
        }
        let mut source = std::error::Error::source(&error);
        while let Some(cause) = source {
            text.push_str(&format!(": {cause}"));
            source = cause.source();
        }
        let refusals = error.refused().iter().map(refusal).collect();
        Self { text: one_line(&text), refusals, exit_code, code: error.code().cloned(), body }
    }
}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Self {
        match error.downcast::<Error<types::Error>>() {
            Ok(error) => error.into(),
            // A file that can't be read or written.
            Err(error) if error.is::<io::Error>() => Self::message(&one_line(&format!("{error:#}"))),
            // A body that is no JSON.
            Err(error) => Self::without_response(one_line(&format!("{error:#}")), 2),
        }
    }
}

/// Returns whether the text of an error describes the problem with an argument already.
fn is_described(field: &FieldProblem, text: &str) -> bool {
    let is_missing = field.problem.to_string() == "missing";
    text.contains(&field.name) && (is_missing || text.contains(&field.detail))
}

/// Returns the line of a refused ticket: its serial number and the reason, with the device, the admission token and the time of an
/// earlier admission.
fn refusal(ticket: &RefusedTicket) -> String {
    let RefusedTicket { serial, reason, admission, .. } = ticket;
    let earlier = match admission {
        Some(EarlierAdmission { device, token_name, admitted, .. }) => {
            let facts: Vec<_> =
                [device, token_name, admitted].into_iter().map(String::as_str).filter(|fact| !fact.is_empty()).collect();
            format!(" ({})", facts.join(", "))
        }
        None => String::new(),
    };
    one_line(&format!("{serial}: {reason}{earlier}"))
}

/// Joins lines, and replaces control characters, which a terminal would interpret.
fn one_line(text: &dyn Display) -> String {
    let text = text.to_string().replace(char::is_control, " ");
    text.split_whitespace().collect::<Vec<_>>().join(" ").trim_start_matches("error: ").to_owned()
}
