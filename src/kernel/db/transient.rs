//! What a database can't do at the moment, told apart from what it will never do: the first may be asked for again.

use std::future::Future;
use std::io::ErrorKind;
use std::time::Duration;

use anyhow::Context;
use boxoffice_http::error::{Error, Result};
use sqlx::error::DatabaseError;
use sqlx::postgres::PgDatabaseError;

/// How long a statement may take. A server that is frozen, or cut off without a word, answers nothing at all; whoever waits for
/// it has to be told before giving up by itself, for which clients commonly take 30 seconds.
const STATEMENT_TIMEOUT: Duration = Duration::from_secs(10);

/// Maps an error of sqlx to [`Error::Unavailable`] if a later attempt may succeed, otherwise to [`Error::Database`].
pub(super) fn database_error(error: sqlx::Error) -> Error {
    if is_unavailable(&error) { Error::Unavailable(error.into()) } else { Error::Database(error.into()) }
}

/// Returns the error of sqlx behind `error`, if there is one.
pub(super) fn cause(error: &Error) -> Option<&sqlx::Error> {
    match error {
        Error::Database(cause) => cause.downcast_ref(),
        Error::Unavailable(cause) => cause.downcast_ref(),
        _ => None,
    }
}

/// Waits for a remote database's answer, and not for ever.
pub(super) async fn with_timeout<T>(answer: impl Future<Output = sqlx::Result<T>>) -> Result<T> {
    let answer = tokio::time::timeout(STATEMENT_TIMEOUT, answer).await;
    let answer = answer.with_context(|| format!("the database has not answered within {} s", STATEMENT_TIMEOUT.as_secs()));
    answer.map_err(Error::Unavailable)?.map_err(database_error)
}

/// A commit whose answer is lost was done or was not: nobody can tell from here, so the client is told to ask again.
pub(super) fn commit_error(error: Error) -> Error {
    match error {
        Error::Unavailable(cause) => Error::Unavailable(cause.context("nobody can tell whether it was committed")),
        error => error,
    }
}

/// Whether a server that takes no connection may be about to: it is starting, which over a socket of the file system looks as if it
/// weren't there, or has no room. Whatever else is wrong, such as its name, is told at once.
pub(super) fn is_starting(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Io(error) => matches!(error.kind(), ErrorKind::ConnectionRefused | ErrorKind::NotFound),
        sqlx::Error::Database(error) => is_transient(error.as_ref()),
        _ => false,
    }
}

fn is_unavailable(error: &sqlx::Error) -> bool {
    match error {
        // Refused, reset, closed, or no such socket: the server isn't there. The pool ran out, or is closed by a server that stops.
        sqlx::Error::Io(_) | sqlx::Error::PoolTimedOut | sqlx::Error::PoolClosed | sqlx::Error::WorkerCrashed => true,
        sqlx::Error::Database(error) => is_transient(error.as_ref()),
        _ => false,
    }
}

/// Whether what a database says of itself may pass.
fn is_transient(error: &dyn DatabaseError) -> bool {
    let code = error.code().unwrap_or_default();
    if error.try_downcast_ref::<PgDatabaseError>().is_some() {
        // https://www.postgresql.org/docs/current/errcodes-appendix.html: connections; resources, as a full disk; shutdown, crash
        // and start; errors of the system below; a standby that took over for reading alone; and what only more attempts than
        // ours could have brought about.
        let classes = ["08", "53", "57P", "58"];
        return classes.iter().any(|class| code.starts_with(class)) || ["25006", "40001", "40P01"].contains(&code.as_ref());
    }
    // https://www.sqlite.org/rescode.html: the last byte is the primary code. BUSY, LOCKED, READONLY, IOERR, FULL, CANTOPEN and
    // PROTOCOL, which is a race for the write-ahead log.
    code.parse::<u32>().is_ok_and(|code| [5, 6, 8, 10, 13, 14, 15].contains(&(code & 0xff)))
}
