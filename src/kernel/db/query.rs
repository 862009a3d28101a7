//! Statements that run on either database.

use boxoffice_http::error::Result;
use sqlx::postgres::{PgArguments, PgRow};
use sqlx::sqlite::{SqliteArguments, SqliteRow};
use sqlx::{Decode, Encode, FromRow, PgConnection, Postgres, Sqlite, SqliteConnection, Type};

use super::pool::PooledConnection;
use super::transient::database_error;

/// Defines a macro of this name for a part of SQL statements, such as a list of columns. It is a macro, not a constant, because statements
/// are literals, and `concat!` takes only literals.
macro_rules! define_sql {
    ($name:ident, $sql:literal) => {
        macro_rules! $name {
            () => {
                $sql
            };
        }
    };
}
pub(crate) use define_sql;

/// A value that can be bound on both databases.
pub trait Param<'q>: Encode<'q, Sqlite> + Type<Sqlite> + Encode<'q, Postgres> + Type<Postgres> + Send + 'q {}
impl<'q, T> Param<'q> for T where T: Encode<'q, Sqlite> + Type<Sqlite> + Encode<'q, Postgres> + Type<Postgres> + Send + 'q {}

/// A value that can be decoded from both databases.
pub trait Scalar:
    for<'r> Decode<'r, Sqlite> + Type<Sqlite> + for<'r> Decode<'r, Postgres> + Type<Postgres> + Send + Unpin
{
}
impl<T> Scalar for T where
    T: for<'r> Decode<'r, Sqlite> + Type<Sqlite> + for<'r> Decode<'r, Postgres> + Type<Postgres> + Send + Unpin
{
}

/// A row that can be decoded from both databases: a type that derives `sqlx_macros::FromRow` from values of both, or a tuple of such
/// values.
pub trait DbRow: for<'r> FromRow<'r, SqliteRow> + for<'r> FromRow<'r, PgRow> + Send + Unpin {}
impl<T> DbRow for T where T: for<'r> FromRow<'r, SqliteRow> + for<'r> FromRow<'r, PgRow> + Send + Unpin {}

/// Rows of either database.
enum Rows {
    Sqlite(Vec<SqliteRow>),
    Postgres(Vec<PgRow>),
}

/// A statement and the values that have been bound so far.
#[must_use]
pub enum SqlQuery<'a> {
    /// On the embedded database.
    Sqlite(&'a mut PooledConnection<SqliteConnection>, sqlx::query::Query<'a, Sqlite, SqliteArguments>),
    /// On PostgreSQL.
    Postgres(&'a mut PooledConnection<PgConnection>, sqlx::query::Query<'a, Postgres, PgArguments>),
}

impl<'a> SqlQuery<'a> {
    /// A statement on PostgreSQL. Behind a pooler in transaction mode it is unnamed.
    pub(super) fn postgres(
        pooled: &'a mut PooledConnection<PgConnection>,
        query: sqlx::query::Query<'a, Postgres, PgArguments>,
    ) -> Self {
        let query = query.persistent(!pooled.is_behind_pooler());
        Self::Postgres(pooled, query)
    }

    /// Lets SQLite forget the prepared statement after its execution, unless `is_kept`. On PostgreSQL a pooler decides.
    pub(super) fn persistent_if(self, is_kept: bool) -> Self {
        match self {
            Self::Sqlite(pooled, query) => Self::Sqlite(pooled, query.persistent(is_kept)),
            Self::Postgres(..) => self,
        }
    }

    /// Binds the next value.
    pub fn bind<T: Param<'a>>(self, value: T) -> Self {
        match self {
            Self::Sqlite(pooled, query) => Self::Sqlite(pooled, query.bind(value)),
            Self::Postgres(pooled, query) => Self::Postgres(pooled, query.bind(value)),
        }
    }

    /// Executes the statement.
    pub async fn execute(self) -> Result<()> {
        self.rows_affected().await.map(drop)
    }

    /// Executes the statement, and returns the number of affected rows.
    pub async fn rows_affected(self) -> Result<u64> {
        Ok(match self {
            Self::Sqlite(pooled, query) => pooled.run(|connection| query.execute(connection)).await?.rows_affected(),
            Self::Postgres(pooled, query) => pooled.run(|connection| query.execute(connection)).await?.rows_affected(),
        })
    }

    /// Returns all rows.
    pub async fn all<R: DbRow>(self) -> Result<Vec<R>> {
        let rows: sqlx::Result<Vec<R>> = match self.fetch_all().await? {
            Rows::Sqlite(rows) => rows.iter().map(R::from_row).collect(),
            Rows::Postgres(rows) => rows.iter().map(R::from_row).collect(),
        };
        rows.map_err(database_error)
    }

    /// Returns the first row, if there is one.
    pub async fn optional<R: DbRow>(self) -> Result<Option<R>> {
        let row: Option<sqlx::Result<R>> = match self.fetch_first().await? {
            Rows::Sqlite(rows) => rows.first().map(R::from_row),
            Rows::Postgres(rows) => rows.first().map(R::from_row),
        };
        row.transpose().map_err(database_error)
    }

    // Not generic, so that they are compiled once and not for each type of row.
    async fn fetch_all(self) -> Result<Rows> {
        Ok(match self {
            Self::Sqlite(pooled, query) => Rows::Sqlite(pooled.run(|connection| query.fetch_all(connection)).await?),
            Self::Postgres(pooled, query) => Rows::Postgres(pooled.run(|connection| query.fetch_all(connection)).await?),
        })
    }

    async fn fetch_first(self) -> Result<Rows> {
        Ok(match self {
            Self::Sqlite(pooled, query) => {
                Rows::Sqlite(pooled.run(|connection| query.fetch_optional(connection)).await?.into_iter().collect())
            }
            Self::Postgres(pooled, query) => {
                Rows::Postgres(pooled.run(|connection| query.fetch_optional(connection)).await?.into_iter().collect())
            }
        })
    }

    /// Returns the only row.
    ///
    /// # Errors
    /// Returns an error if the statement returns no row.
    pub async fn one<R: DbRow>(self) -> Result<R> {
        self.optional().await?.ok_or(sqlx::Error::RowNotFound).map_err(database_error)
    }

    /// Returns the first value of the only row.
    ///
    /// # Errors
    /// Returns an error if the statement returns no row.
    pub async fn scalar<T: Scalar>(self) -> Result<T>
    where
        (T,): DbRow,
    {
        Ok(self.one::<(T,)>().await?.0)
    }

    /// Returns the first value of the first row, if there is one.
    pub async fn optional_scalar<T: Scalar>(self) -> Result<Option<T>>
    where
        (T,): DbRow,
    {
        Ok(self.optional::<(T,)>().await?.map(|(value,)| value))
    }

    /// Returns the first value of each row.
    pub async fn scalars<T: Scalar>(self) -> Result<Vec<T>>
    where
        (T,): DbRow,
    {
        Ok(self.all::<(T,)>().await?.into_iter().map(|(value,)| value).collect())
    }
}
