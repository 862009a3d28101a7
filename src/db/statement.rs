//! A statement that is put together at run time: a list with the filters that were asked for, a change of some rows.

use sqlx::postgres::PgRow;
use sqlx::sqlite::SqliteRow;
use sqlx::{FromRow, PgConnection, Postgres, QueryBuilder, Row, Sqlite, SqliteConnection};

use super::outage::in_time;
use super::pool::Tx;
use super::query::{Param, Record};
use crate::base::paging::{Paging, Rows};
use crate::error::{Code, Result};

/// A statement in the making, in the dialect of the transaction that it was begun on.
#[must_use]
pub enum Statement<'a> {
    /// On the embedded database.
    Sqlite(&'a mut SqliteConnection, QueryBuilder<Sqlite>),
    /// On PostgreSQL.
    Postgres(&'a mut PgConnection, QueryBuilder<Postgres>),
}

impl Tx {
    /// Begins `select …`; `rest` goes up to `where true` or to where conditions can follow with `and`.
    pub fn select(&mut self, rest: &str) -> Statement<'_> {
        self.build("select ", rest)
    }

    /// The same for a list that is answered in pages: every row also counts them all. To be ended by [`Statement::page`].
    pub fn list(&mut self, rest: &str) -> Statement<'_> {
        self.build("select count(*) over () as list_total, ", rest)
    }

    /// Begins `update …` of the rows that its conditions tell; to be ended by `returning`, which gives those it changed.
    pub fn update(&mut self, rest: &str) -> Statement<'_> {
        self.build("update ", rest)
    }

    /// Begins `delete from …` likewise.
    pub fn delete(&mut self, rest: &str) -> Statement<'_> {
        self.build("delete from ", rest)
    }

    /// Begins any statement that is put together at run time.
    pub(super) fn build(&mut self, start: &str, rest: &str) -> Statement<'_> {
        let text = format!("{start}{rest}");
        match self {
            Self::Sqlite(tx) => Statement::Sqlite(tx, QueryBuilder::new(text)),
            Self::SqliteReader(connection) => Statement::Sqlite(connection, QueryBuilder::new(text)),
            Self::Postgres(tx) => Statement::Postgres(tx, QueryBuilder::new(text)),
            Self::PostgresReader(connection) => Statement::Postgres(connection, QueryBuilder::new(text)),
        }
    }
}

impl Statement<'_> {
    /// Adds text that binds nothing.
    pub fn push(mut self, text: &str) -> Self {
        self.text(text);
        self
    }

    /// Adds text in which every `?` stands for `value`.
    pub fn with<T: Clone + for<'q> Param<'q>>(mut self, text: &str, value: T) -> Self {
        for (index, part) in text.split('?').enumerate() {
            if index > 0 {
                self.value(value.clone());
            }
            self.text(part);
        }
        self
    }

    /// Adds `and` and a condition in which every `?` stands for `value`; nothing where there is no value.
    pub fn and<T: Clone + for<'q> Param<'q>>(self, condition: &str, value: Option<T>) -> Self {
        let Some(value) = value else { return self };
        self.push(" and ").with(condition, value)
    }

    /// Adds a condition that the column contains this text, without regard to case; nothing where there is no text.
    /// (SQLite knows the case of ASCII letters alone.)
    pub fn and_contains(self, column: &str, text: Option<&str>) -> Self {
        let literal = |text: &str| text.replace('\\', r"\\").replace('%', r"\%").replace('_', r"\_");
        let pattern = text.map(|text| format!("%{}%", literal(text)));
        self.and(&format!(r"lower({column}) like lower(?) escape '\'"), pattern)
    }

    /// Adds `and column in (…)`. No values: no row.
    pub fn and_in<T: for<'q> Param<'q>>(mut self, column: &str, values: impl IntoIterator<Item = T>) -> Self {
        self.text(" and ");
        self.text(column);
        self.text(" in (null");
        for value in values {
            self.text(", ");
            self.value(value);
        }
        self.text(")");
        self
    }

    /// Every row.
    pub async fn all<R: Record>(self) -> Result<Vec<R>> {
        let rows: sqlx::Result<Vec<R>> = match self {
            Self::Sqlite(connection, mut query) => query.build().fetch_all(connection).await?.iter().map(R::from_row).collect(),
            Self::Postgres(connection, mut query) => {
                in_time(query.build().fetch_all(connection)).await?.iter().map(R::from_row).collect()
            }
        };
        Ok(rows?)
    }

    /// One page of a [`Tx::list`]. A page past the last one is an error; the first page of an empty list is not (wire facts).
    pub async fn page<R: Record>(mut self, paging: Paging) -> Result<Rows<R>> {
        self.text(" limit ");
        self.value(paging.limit());
        self.text(" offset ");
        self.value(paging.offset());
        let counted: Vec<Counted<R>> = self.all().await?;
        if counted.is_empty() && !paging.is_first() {
            return Err(Code::PagePastEnd.into());
        }
        let total = counted.first().map_or(0, |first| first.total);
        Ok(Rows { total, rows: counted.into_iter().map(|counted| counted.row).collect() })
    }

    fn text(&mut self, text: &str) {
        match self {
            Self::Sqlite(_, query) => {
                query.push(text);
            }
            Self::Postgres(_, query) => {
                query.push(text);
            }
        }
    }

    fn value<T: for<'q> Param<'q>>(&mut self, value: T) {
        match self {
            Self::Sqlite(_, query) => {
                query.push_bind(value);
            }
            Self::Postgres(_, query) => {
                query.push_bind(value);
            }
        }
    }
}

/// A row, and how many there are on all pages.
struct Counted<R> {
    total: i64,
    row: R,
}

impl<'r, R: FromRow<'r, SqliteRow>> FromRow<'r, SqliteRow> for Counted<R> {
    fn from_row(row: &'r SqliteRow) -> sqlx::Result<Self> {
        Ok(Self { total: row.try_get("list_total")?, row: R::from_row(row)? })
    }
}

impl<'r, R: FromRow<'r, PgRow>> FromRow<'r, PgRow> for Counted<R> {
    fn from_row(row: &'r PgRow) -> sqlx::Result<Self> {
        Ok(Self { total: row.try_get("list_total")?, row: R::from_row(row)? })
    }
}
