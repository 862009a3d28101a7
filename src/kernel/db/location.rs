//! The location of a database, parsed from its URL.

use std::path::PathBuf;
use std::str::FromStr;

use anyhow::{Context, anyhow, bail, ensure};
use sqlx::postgres::{PgConnectOptions, PgSslMode};

/// Number of statements that each connection to PostgreSQL keeps prepared. All operations together have several hundred.
const PREPARED_STATEMENTS: usize = 500;
/// The parameters of a PostgreSQL URL that take a file, with their other names.
const FILE_PARAMETERS: [&str; 7] = ["sslrootcert", "ssl-root-cert", "ssl-ca", "sslcert", "ssl-cert", "sslkey", "ssl-key"];
/// The other parameters of a PostgreSQL URL.
const PARAMETERS: [&str; 11] = [
    "sslmode",
    "ssl-mode",
    "host",
    "hostaddr",
    "port",
    "dbname",
    "user",
    "password",
    "application_name",
    "options",
    STATEMENT_CACHE,
];
/// The parameter for the number of statements that each connection keeps prepared.
const STATEMENT_CACHE: &str = "statement-cache-capacity";
/// The parameter for a connection pooler in transaction mode.
const NO_STATEMENT_CACHE: &str = "statement-cache-capacity=0";
/// The reason why a password with special characters is rejected: its end would be taken for the host or a parameter, and be shown in
/// the next error.
const NOT_ENCODED: &str = "in the username and the password, write %2F for `/`, %3F for `?`, %23 for `#` and %25 for `%`";

/// The location of a database.
#[derive(Debug, Clone)]
pub enum DatabaseLocation {
    /// The file of an embedded database.
    Sqlite(PathBuf),
    /// A PostgreSQL server, with the database and the credentials.
    Postgres(Box<PostgresLocation>),
}

/// A PostgreSQL server.
#[derive(Debug, Clone)]
pub struct PostgresLocation {
    /// Its address, the database and the credentials.
    pub(super) options: PgConnectOptions,
    /// True with the parameter `statement-cache-capacity=0`: a pooler such as PgBouncer in transaction mode passes each transaction
    /// to any connection. Then each statement is unnamed and in a transaction, because sqlx prepares and executes it in two steps.
    pub(super) is_behind_pooler: bool,
}

impl FromStr for DatabaseLocation {
    type Err = anyhow::Error;

    /// Parses `sqlite:PATH` or `postgres://…`. Errors don't contain the password.
    fn from_str(url: &str) -> anyhow::Result<Self> {
        match url.split_once(':') {
            Some(("sqlite", path)) => {
                let path = path.trim_start_matches("//");
                ensure!(!path.is_empty(), "the path of the file is missing, as in sqlite:data/boxoffice.db");
                ensure!(
                    path != ":memory:",
                    "a database in memory is not supported: give the path of a file, as in sqlite:data/boxoffice.db"
                );
                ensure!(
                    !path.contains('?'),
                    "a SQLite database has no parameters: give only the path, as in sqlite:data/boxoffice.db"
                );
                Ok(Self::Sqlite(path.into()))
            }
            Some(("postgres" | "postgresql", rest)) => {
                let before_parameters = rest.split('?').next().unwrap_or_default();
                let user = before_parameters.trim_start_matches('/').rsplit_once('@').map_or("", |(user, _)| user);
                ensure!(!user.contains(['/', '#']), NOT_ENCODED);
                let parameters = parse_parameters(url)?;
                let is_behind_pooler = url.contains(NO_STATEMENT_CACHE);
                ensure!(rest.starts_with("//"), "the host is missing, as in postgres://USER@HOST/NAME");
                let mut options = PgConnectOptions::from_str(url).map_err(|error| match error {
                    sqlx::Error::Configuration(cause) => {
                        anyhow!("not a PostgreSQL URL such as postgres://USER@HOST/NAME: {cause}")
                    }
                    error => error.into(),
                })?;
                let has_authority =
                    parameters.iter().any(|name| ["sslrootcert", "ssl-root-cert", "ssl-ca"].contains(&name.as_str()));
                // As in libpq: `require` verifies the certificate if there is an authority. sqlx would ignore the authority.
                if has_authority && matches!(options.get_ssl_mode(), PgSslMode::Require) {
                    options = options.ssl_mode(PgSslMode::VerifyCa);
                }
                if !parameters.iter().any(|name| name == STATEMENT_CACHE) {
                    options = options.statement_cache_capacity(PREPARED_STATEMENTS);
                }
                // PgBouncer rejects this parameter. The server reads numbers in binary form, which it does not affect.
                let options = options.extra_float_digits(None);
                Ok(Self::Postgres(Box::new(PostgresLocation { options, is_behind_pooler })))
            }
            _ => bail!("a database is sqlite:PATH or postgres://USER@HOST/NAME"),
        }
    }
}

/// Checks the parameters of a PostgreSQL URL, because sqlx ignores unknown ones. Returns their names.
fn parse_parameters(url: &str) -> anyhow::Result<Vec<String>> {
    let query = url.split_once('?').map_or("", |(_, query)| query);
    let mut names = Vec::new();
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let value = percent_encoding::percent_decode_str(value).decode_utf8_lossy();
        if FILE_PARAMETERS.contains(&name) {
            let pem = std::fs::read_to_string(&*value);
            let pem = pem.with_context(|| format!("cannot read {value}, the file of the parameter {name}"))?;
            let content = if name.ends_with("key") { "PRIVATE KEY-----" } else { "BEGIN CERTIFICATE-----" };
            ensure!(pem.contains(content), "{value}, the file of the parameter {name}, is no PEM file with {content}");
        } else if ["sslmode", "ssl-mode"].contains(&name) {
            value
                .parse::<PgSslMode>()
                .map_err(|_| anyhow!("`{name}={value}` is none of disable, allow, prefer, require, verify-ca and verify-full"))?;
        } else if !PARAMETERS.contains(&name) && !name.starts_with("options[") {
            ensure!(!name.contains('@'), NOT_ENCODED);
            let known: Vec<&str> =
                ["sslmode", "sslrootcert", "sslcert", "sslkey"].into_iter().chain(PARAMETERS.into_iter().skip(2)).collect();
            bail!("the parameter `{name}` is unknown; the parameters are {}", known.join(", "));
        }
        names.push(name.to_owned());
    }
    Ok(names)
}
