//! The reasons why a database can't be opened, and what to do about them.

use std::io::ErrorKind;

use anyhow::anyhow;
use boxoffice_http::error::one_line;
use sqlx::migrate::MigrateError;
use sqlx::postgres::{PgConnectOptions, PgDatabaseError};

use super::transient::{POOLER, is_prepared_elsewhere, is_unknown_host};

/// The code of PostgreSQL's errors about missing rights.
const INSUFFICIENT_PRIVILEGE: &str = "42501";
/// The remedy for a user who may not create tables.
pub(super) const MAKE_OWNER: &str = "make this user the owner of the database (`alter database NAME owner to USER`)";

/// Returns the database, the user and the server, such as `database boxoffice as user boxoffice at db.example.com:5432`.
pub(super) fn server_name(options: &PgConnectOptions) -> String {
    let user = options.get_username();
    let database = options.get_database().unwrap_or(user);
    let server = match options.get_socket() {
        Some(socket) => format!("socket {}", socket.display()),
        None => format!("{}:{}", options.get_host(), options.get_port()),
    };
    format!("database {database} at {server} as user {user}")
}

/// Returns the server and the reason why it can't be reached.
pub(super) fn connection_problem(error: &sqlx::Error, options: &PgConnectOptions) -> String {
    format!("cannot open the PostgreSQL {}: {}", server_name(options), reason(error, options))
}

/// Returns the reason why a connection failed, and what to do about it.
pub(super) fn reason(error: &sqlx::Error, options: &PgConnectOptions) -> String {
    match error {
        sqlx::Error::Io(error) => match error.kind() {
            ErrorKind::ConnectionRefused => format!("no server accepts connections there ({error})"),
            ErrorKind::NotFound => format!("there is no such socket; the server may not be running ({error})"),
            ErrorKind::TimedOut | ErrorKind::HostUnreachable | ErrorKind::NetworkUnreachable => {
                format!("the server can't be reached ({error})")
            }
            ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset => "the server closed the connection".to_owned(),
            ErrorKind::InvalidData => {
                format!("the server's certificate is not accepted; sslrootcert names a file of trusted authorities ({error})")
            }
            _ if is_unknown_host(error) => format!("the host {} is unknown ({error})", options.get_host()),
            _ => error.to_string(),
        },
        sqlx::Error::Tls(cause) if cause.to_string().contains("does not support TLS") => {
            "the server has no TLS; sslmode=disable connects without".to_owned()
        }
        sqlx::Error::Tls(cause) => format!("TLS failed: {cause}"),
        sqlx::Error::Database(error) => {
            let (code, message) = (error.code().unwrap_or_default(), error.message());
            match code.as_ref() {
                "28P01" => format!("the password is wrong or missing ({message})"),
                "28000" => format!("the server rejects this user or this machine ({message})"),
                "3D000" => format!("the database does not exist; create it first ({message})"),
                "53300" => format!("the server has no free connection ({message})"),
                "08P01" if message.contains("startup parameter") => format!(
                    "a connection pooler rejects the connection; let it ignore the parameter, for PgBouncer with \
                     ignore_startup_parameters ({message})"
                ),
                _ => format!("{message} (SQLSTATE {code})"),
            }
        }
        error => one_line(&anyhow!("{error}")),
    }
}

/// Returns the reason why the migrations failed.
pub(super) fn migration_error(error: MigrateError) -> anyhow::Error {
    match &error {
        MigrateError::VersionMissing(version) | MigrateError::VersionTooOld(version, _) => {
            anyhow!(
                "a newer version of boxoffice has changed its tables (migration {version}): start that version, or restore a backup"
            )
        }
        MigrateError::VersionMismatch(version) => {
            anyhow!("its tables were made by another build of boxoffice (migration {version} differs)")
        }
        MigrateError::Execute(sqlx::Error::Database(cause)) | MigrateError::ExecuteMigration(sqlx::Error::Database(cause), _)
            if is_prepared_elsewhere(cause.as_ref()) =>
        {
            anyhow!("{POOLER} ({})", cause.message())
        }
        MigrateError::Execute(sqlx::Error::Database(cause)) | MigrateError::ExecuteMigration(sqlx::Error::Database(cause), _)
            if cause.try_downcast_ref::<PgDatabaseError>().is_some() =>
        {
            // Without the position in PostgreSQL's own source, which the text of the error has.
            let (code, message) = (cause.code().unwrap_or_default(), cause.message());
            match code.as_ref() {
                INSUFFICIENT_PRIVILEGE => anyhow!("cannot bring the tables up to date: {message}; {MAKE_OWNER}"),
                _ => anyhow!("cannot bring the tables up to date: {message} (SQLSTATE {code})"),
            }
        }
        _ => anyhow::Error::new(error).context("cannot bring the tables up to date"),
    }
}
