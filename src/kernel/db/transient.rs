//! Classification of database errors: after a transient error a later attempt may succeed.

use std::future::Future;
use std::io::{self, ErrorKind};
use std::time::Duration;

use anyhow::Context;
use boxoffice_http::error::{Error, Result};
use sqlx::error::DatabaseError;
use sqlx::postgres::PgDatabaseError;

/// Time limit for a statement. A database that is frozen or silently disconnected never responds. The limit is below the usual
/// client timeout of 30 seconds, so that clients receive an error response in time. It is below the `statement_timeout` of the
/// connections, and above their `idle_in_transaction_session_timeout`.
const STATEMENT_TIMEOUT: Duration = Duration::from_secs(10);

/// Codes of PostgreSQL: lock_not_available, query_canceled.
const CANCELLED: [&str; 2] = ["55P03", "57014"];

/// Codes of PostgreSQL for a prepared statement that another connection has closed or opened: invalid_sql_statement_name,
/// duplicate_prepared_statement.
const PREPARED_ELSEWHERE: [&str; 2] = ["26000", "42P05"];
/// The cause of these errors, and what to do about it.
pub(super) const POOLER: &str = "a connection pooler passes each transaction to any connection of its own: add statement-cache-capacity=0 \
    to the parameters of the URL, or set the pooler to session mode";

/// Maps an error of sqlx to [`Error::Unavailable`] if a later attempt may succeed, otherwise to [`Error::Database`].
pub(super) fn database_error(error: sqlx::Error) -> Error {
    if is_unavailable(&error) {
        return Error::Unavailable(error.into());
    }
    let is_of_pooler = matches!(&error, sqlx::Error::Database(cause) if is_prepared_elsewhere(cause.as_ref()));
    Error::Database(if is_of_pooler { anyhow::Error::from(error).context(POOLER).into() } else { error.into() })
}

/// Returns whether a pooler has passed the statements of one connection to others.
pub(super) fn is_prepared_elsewhere(error: &dyn DatabaseError) -> bool {
    PREPARED_ELSEWHERE.contains(&error.code().unwrap_or_default().as_ref())
}

/// Returns the error of sqlx behind `error`, if there is one.
pub(super) fn cause(error: &Error) -> Option<&sqlx::Error> {
    match error {
        Error::Database(cause) => cause.downcast_ref(),
        Error::Unavailable(cause) => cause.downcast_ref(),
        _ => None,
    }
}

/// Returns whether all connections to PostgreSQL must be opened again: it has rejected a prepared statement because the types of its
/// result have changed, for example by the migration of a newer version; or it has rejected a change because it is no longer the
/// primary, and a new connection leads to its successor.
pub(super) fn is_outdated_connection(error: &Error) -> bool {
    let Some(sqlx::Error::Database(error)) = cause(error) else { return false };
    has_outdated_plan(error.as_ref()) || is_read_only(error.as_ref())
}

/// Returns whether a server has closed the connection, because it stops, has crashed, or its administrator has ended all connections.
/// Others that were opened before are then closed too.
pub(super) fn is_closed_connection(error: &Error) -> bool {
    match cause(error) {
        Some(sqlx::Error::Io(_)) => true,
        Some(sqlx::Error::Database(error)) => {
            let code = error.code().unwrap_or_default();
            // PostgreSQL: admin_shutdown, crash_shutdown, idle_session_timeout.
            ["57P01", "57P02", "57P05"].contains(&code.as_ref())
        }
        _ => false,
    }
}

/// Returns whether PostgreSQL has ended only this statement: an operator or a time limit has cancelled it, or its wait for a lock.
pub(super) fn is_cancelled_statement(error: &Error) -> bool {
    let Some(sqlx::Error::Database(error)) = cause(error) else { return false };
    CANCELLED.contains(&error.code().unwrap_or_default().as_ref())
}

fn is_read_only(error: &dyn DatabaseError) -> bool {
    error.try_downcast_ref::<PgDatabaseError>().is_some() && error.code().as_deref() == Some("25006")
}

fn has_outdated_plan(error: &dyn DatabaseError) -> bool {
    // The code is that of all features that are not supported.
    error.code().as_deref() == Some("0A000") && error.message().contains("cached plan")
}

/// Waits for the response of a remote database, with a timeout.
pub(super) async fn with_timeout<T>(operation: impl Future<Output = sqlx::Result<T>>) -> Result<T> {
    let response = tokio::time::timeout(STATEMENT_TIMEOUT, operation).await;
    let response = response.with_context(|| format!("the database has not answered within {} s", STATEMENT_TIMEOUT.as_secs()));
    response.map_err(Error::Unavailable)?.map_err(database_error)
}

/// Adds to the error of a commit that the outcome is unknown, if the response was lost. The client receives 503 and may retry.
pub(super) fn commit_error(error: Error) -> Error {
    match error {
        Error::Unavailable(cause) => Error::Unavailable(cause.context("the outcome of the commit is unknown")),
        error => error,
    }
}

/// Returns whether a server that rejects a connection may accept one soon: it is starting, or it has no free connection. Before
/// the start of a server its Unix socket doesn't exist. A proxy closes a connection while it has no server, as in a failover. While
/// this machine starts, its name service may not know the server yet. Other errors, such as a wrong password, are permanent.
pub(super) fn is_starting(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Io(error) if is_unknown_host(error) => true,
        sqlx::Error::Io(error) => matches!(
            error.kind(),
            ErrorKind::ConnectionRefused | ErrorKind::NotFound | ErrorKind::ConnectionReset | ErrorKind::UnexpectedEof
        ),
        error if is_closed_by_proxy(error) => true,
        sqlx::Error::Database(error) => reports_unavailability(error.as_ref()),
        _ => false,
    }
}

/// Returns whether PostgreSQL has refused a connection because its server, its database or its user has too many.
pub(super) fn is_too_many_connections(error: &sqlx::Error) -> bool {
    matches!(error, sqlx::Error::Database(error) if error.code().as_deref() == Some("53300"))
}

/// Returns whether the address of a host could not be found. The standard library has no kind of error for this.
pub(super) fn is_unknown_host(error: &io::Error) -> bool {
    error.to_string().contains("failed to lookup address")
}

/// Returns whether the connection was closed instead of a response to the request for TLS, which is sqlx's first message.
fn is_closed_by_proxy(error: &sqlx::Error) -> bool {
    matches!(error, sqlx::Error::Protocol(message) if message.contains("response from SSLRequest: 0x00"))
}

fn is_unavailable(error: &sqlx::Error) -> bool {
    match error {
        error if is_closed_by_proxy(error) => true,
        // The server is unreachable: connection refused, reset or closed, or no such socket. Or the pool has no free connection,
        // or is closed because this process is stopping.
        sqlx::Error::Io(_) | sqlx::Error::PoolTimedOut | sqlx::Error::PoolClosed | sqlx::Error::WorkerCrashed => true,
        sqlx::Error::Database(error) => reports_unavailability(error.as_ref()),
        _ => false,
    }
}

/// Returns whether the database reports that it is unavailable for a while.
fn reports_unavailability(error: &dyn DatabaseError) -> bool {
    let code = error.code().unwrap_or_default();
    if error.try_downcast_ref::<PgDatabaseError>().is_some() {
        // https://www.postgresql.org/docs/current/errcodes-appendix.html
        // Classes: connections; resources, such as a full disk; shutdown, crash and start; errors of the operating system.
        // Codes: a read-only standby; a transaction that was idle for too long; serialization failures and deadlocks that remained
        // after all retries; a lock that was not free in time; a statement that an operator or a time limit has cancelled.
        let classes = ["08", "53", "57P", "58"];
        return has_outdated_plan(error)
            || classes.iter().any(|class| code.starts_with(class))
            || ["25006", "25P03", "40001", "40P01"].contains(&code.as_ref())
            || CANCELLED.contains(&code.as_ref());
    }
    // https://www.sqlite.org/rescode.html The last byte is the primary code: BUSY, LOCKED, READONLY, IOERR, FULL, CANTOPEN, or
    // PROTOCOL (a race for the write-ahead log).
    code.parse::<u32>().is_ok_and(|code| [5, 6, 8, 10, 13, 14, 15].contains(&(code & 0xff)))
}
