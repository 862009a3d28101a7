//! A statement on either database.

use boxoffice_http::error::Result;
use sqlx::postgres::{PgArguments, PgRow};
use sqlx::sqlite::{SqliteArguments, SqliteRow};
use sqlx::{Decode, Encode, FromRow, PgConnection, Postgres, Sqlite, SqliteConnection, Type};

use super::pool::PooledConnection;
use super::transient::database_error;

/// A value that both databases can take.
pub trait Param<'q>: Encode<'q, Sqlite> + Type<Sqlite> + Encode<'q, Postgres> + Type<Postgres> + Send + 'q {}
impl<'q, T> Param<'q> for T where T: Encode<'q, Sqlite> + Type<Sqlite> + Encode<'q, Postgres> + Type<Postgres> + Send + 'q {}

/// A value that both databases can give.
pub trait Scalar:
    for<'r> Decode<'r, Sqlite> + Type<Sqlite> + for<'r> Decode<'r, Postgres> + Type<Postgres> + Send + Unpin
{
}
impl<T> Scalar for T where
    T: for<'r> Decode<'r, Sqlite> + Type<Sqlite> + for<'r> Decode<'r, Postgres> + Type<Postgres> + Send + Unpin
{
}

/// A row that both databases can give: whatever derives `sqlx::FromRow` from values they share, and tuples of those.
pub trait DbRow: for<'r> FromRow<'r, SqliteRow> + for<'r> FromRow<'r, PgRow> + Send + Unpin {}
impl<T> DbRow for T where T: for<'r> FromRow<'r, SqliteRow> + for<'r> FromRow<'r, PgRow> + Send + Unpin {}

/// A statement with what has been bound to it so far.
#[must_use]
pub enum Query<'a> {
    /// On the embedded database.
    Sqlite(&'a mut PooledConnection<SqliteConnection>, sqlx::query::Query<'a, Sqlite, SqliteArguments>),
    /// On PostgreSQL.
    Postgres(&'a mut PooledConnection<PgConnection>, sqlx::query::Query<'a, Postgres, PgArguments>),
}

impl<'a> Query<'a> {
    /// Binds the next value.
    pub fn bind<T: Param<'a>>(self, value: T) -> Self {
        match self {
            Self::Sqlite(lent, query) => Self::Sqlite(lent, query.bind(value)),
            Self::Postgres(lent, query) => Self::Postgres(lent, query.bind(value)),
        }
    }

    /// Runs it and tells how many rows it touched.
    pub async fn execute(self) -> Result<u64> {
        Ok(match self {
            Self::Sqlite(lent, query) => lent.run(|connection| query.execute(connection)).await?.rows_affected(),
            Self::Postgres(lent, query) => lent.run(|connection| query.execute(connection)).await?.rows_affected(),
        })
    }

    /// Every row.
    pub async fn all<R: DbRow>(self) -> Result<Vec<R>> {
        let rows: sqlx::Result<Vec<R>> = match self {
            Self::Sqlite(lent, query) => {
                lent.run(|connection| query.fetch_all(connection)).await?.iter().map(R::from_row).collect()
            }
            Self::Postgres(lent, query) => {
                lent.run(|connection| query.fetch_all(connection)).await?.iter().map(R::from_row).collect()
            }
        };
        rows.map_err(database_error)
    }

    /// The first row, if there is one.
    pub async fn optional<R: DbRow>(self) -> Result<Option<R>> {
        let row: Option<sqlx::Result<R>> = match self {
            Self::Sqlite(lent, query) => {
                lent.run(|connection| query.fetch_optional(connection)).await?.map(|row| R::from_row(&row))
            }
            Self::Postgres(lent, query) => {
                lent.run(|connection| query.fetch_optional(connection)).await?.map(|row| R::from_row(&row))
            }
        };
        row.transpose().map_err(database_error)
    }

    /// The first row's first value, of a statement that always gives one.
    pub async fn scalar<T>(self) -> Result<T>
    where
        T: Scalar,
        (T,): DbRow,
    {
        let row: Option<(T,)> = self.optional().await?;
        Ok(row.ok_or(sqlx::Error::RowNotFound).map_err(database_error)?.0)
    }
}
