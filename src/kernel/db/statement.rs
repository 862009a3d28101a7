//! A statement that is put together at run time: a list with the filters that were asked for, a change of some rows, many rows
//! at once.

use std::fmt::Write;

use boxoffice_http::error::{Code, Result};
use serde_json::Value;
use sqlx::postgres::{PgArguments, PgRow};
use sqlx::sqlite::{SqliteArguments, SqliteRow};
use sqlx::{Arguments, AssertSqlSafe, Encode, FromRow, PgConnection, Postgres, Row, SqliteConnection, Type};

use super::pg_array::PgArray;
use super::pool::PooledConnection;
use super::query::{DbRow, Param, Query};
use super::transaction::Tx;
use crate::kernel::types::paging::{PageRequest, PagedRows};

const BOUND: &str = "both databases take every value that can be bound";

/// A statement in the making, for the transaction that it was begun on. Values are bound, and never part of its text.
#[must_use]
pub struct Statement<'a> {
    text: String,
    /// What a list shows of its rows. Its text begins with `from`.
    columns: &'static str,
    bound: Bound<'a>,
}

/// Where it is going to run, with what has been bound to it so far.
enum Bound<'a> {
    Sqlite(&'a mut PooledConnection<SqliteConnection>, SqliteArguments),
    Postgres(&'a mut PooledConnection<PgConnection>, PgArguments),
}

impl Tx {
    /// Begins `select …`; `rest` goes up to `where true` or to where conditions can follow with `and`.
    pub fn select(&mut self, rest: &str) -> Statement<'_> {
        self.build("select ", rest)
    }

    /// The same for a list that is answered in pages, where `rest` begins with `from`. To be ended by [`Statement::page`].
    pub fn list(&mut self, columns: &'static str, rest: &str) -> Statement<'_> {
        Statement { columns, ..self.build("", rest) }
    }

    /// Begins `update …` of the rows that its conditions tell; to be ended by `returning`, which gives those it changed.
    pub fn update(&mut self, rest: &str) -> Statement<'_> {
        self.build("update ", rest)
    }

    /// Begins `delete from …` likewise.
    pub fn delete(&mut self, rest: &str) -> Statement<'_> {
        self.build("delete from ", rest)
    }

    /// Begins `insert into …`, a table and its columns; [`Statement::values`] goes on.
    pub fn insert(&mut self, into: &str) -> Statement<'_> {
        self.build("insert into ", into)
    }

    fn build(&mut self, start: &str, rest: &str) -> Statement<'_> {
        let bound = match self {
            Self::Sqlite(lent) => Bound::Sqlite(lent, SqliteArguments::default()),
            Self::Postgres(lent) => Bound::Postgres(lent, PgArguments::default()),
        };
        Statement { text: format!("{start}{rest}"), columns: "", bound }
    }
}

impl<'a> Statement<'a> {
    /// Adds text that binds nothing.
    pub fn push(mut self, text: &str) -> Self {
        self.text.push_str(text);
        self
    }

    /// Adds text in which every `?` stands for `value`.
    pub fn push_bind<T: for<'q> Param<'q>>(mut self, text: &str, value: T) -> Self {
        let place = self.bind(value);
        self.text.push_str(&text.replace('?', &place));
        self
    }

    /// Adds `and` and a condition in which every `?` stands for `value`; nothing where there is no value.
    pub fn and_where<T: for<'q> Param<'q>>(self, condition: &str, value: Option<T>) -> Self {
        let Some(value) = value else { return self };
        self.push(" and ").push_bind(condition, value)
    }

    /// Adds a condition that the column contains this text, without regard to case; nothing where there is no text.
    /// (SQLite knows the case of ASCII letters alone.)
    pub fn and_contains(self, column: &str, text: Option<&str>) -> Self {
        let literal = |text: &str| text.replace('\\', r"\\").replace('%', r"\%").replace('_', r"\_");
        let pattern = text.map(|text| format!("%{}%", literal(text)));
        self.and_where(&format!(r"lower({column}) like lower(?) escape '\'"), pattern)
    }

    /// Adds `and column in (…)`. No values: no row. They are bound as one, so that the text is the same for any number of them,
    /// and the database needs to plan it once.
    pub fn and_in<T>(mut self, column: &str, values: impl IntoIterator<Item = T>) -> Self
    where
        T: Into<Value>,
        Vec<T>: for<'q> Encode<'q, Postgres> + Type<Postgres>,
    {
        let condition = match &mut self.bound {
            Bound::Sqlite(_, bound) => {
                let values: Vec<Value> = values.into_iter().map(Into::into).collect();
                bound.add(Value::Array(values).to_string()).expect(BOUND);
                format!(" and {column} in (select value from json_each(${}))", bound.len())
            }
            Bound::Postgres(_, bound) => {
                bound.add(values.into_iter().collect::<Vec<T>>()).expect(BOUND);
                format!(" and {column} = any(${})", bound.len())
            }
        };
        self.push(&condition)
    }

    /// Ends a `select` by ascending `id`, and has nobody else change its rows before the transaction ends. Whoever changes several rows
    /// locks them like this before: PostgreSQL updates those of one statement in no order, and transactions would wait for one
    /// another in a circle. On SQLite a transaction is alone from its beginning.
    pub fn for_update(self) -> Self {
        let held = matches!(self.bound, Bound::Postgres(..)).then_some(" for no key update");
        self.push(" order by id").push(held.unwrap_or_default())
    }

    /// Adds a table of at least one row; `bind` gives a row's values. It follows the columns of an `insert`; elsewhere, in brackets,
    /// its columns are called `column1`, `column2` …
    pub fn values<R>(mut self, rows: impl IntoIterator<Item = R>, bind: impl Fn(R, &mut Values<'_>)) -> Self {
        match &mut self.bound {
            Bound::Sqlite(_, bound) => {
                for (index, row) in rows.into_iter().enumerate() {
                    self.text.push_str(if index == 0 { " values " } else { ", " });
                    bind(row, &mut Values::Sqlite { text: &mut self.text, bound, separator: '(' });
                    self.text.push(')');
                }
            }
            Bound::Postgres(_, bound) => {
                let mut columns = Vec::new();
                rows.into_iter().for_each(|row| bind(row, &mut Values::Postgres { columns: &mut columns, next: 0 }));
                for (column, number) in columns.into_iter().zip(1..) {
                    bound.add(column).expect(BOUND);
                    let start = if number == 1 { " select" } else { "," };
                    let _fits = write!(self.text, "{start} unnest(${}) as column{number}", bound.len());
                }
            }
        }
        self
    }

    /// Runs it and tells how many rows it touched.
    pub async fn execute(self) -> Result<u64> {
        self.query().execute().await
    }

    /// Every row.
    pub async fn all<R: DbRow>(self) -> Result<Vec<R>> {
        self.query().all().await
    }

    fn query(self) -> Query<'a> {
        let text = AssertSqlSafe(self.text);
        match self.bound {
            Bound::Sqlite(lent, bound) => Query::Sqlite(lent, sqlx::query_with(text, bound)),
            Bound::Postgres(lent, bound) => Query::Postgres(lent, sqlx::query_with(text, bound)),
        }
    }

    /// One page of a [`Tx::list`] in this order, and how many rows there are on all pages. A page past the last one is an error;
    /// the first page of an empty list is not (wire facts).
    ///
    /// The rows are counted beside the page, in the same statement, so that none but the page's is read as a whole.
    pub async fn page<R: DbRow>(mut self, order: &str, paging: PageRequest) -> Result<PagedRows<R>> {
        let (from, columns) = (std::mem::take(&mut self.text), self.columns);
        self.text = format!("select (select count(*) {from}) as list_total, {columns} {from} order by {order}");
        let counted: Vec<Counted<R>> =
            self.push_bind(" limit ?", paging.limit()).push_bind(" offset ?", paging.offset()).all().await?;
        if counted.is_empty() && !paging.is_first() {
            return Err(Code::PagePastEnd.into());
        }
        let total = counted.first().map_or(0, |first| first.total);
        Ok(PagedRows { total, rows: counted.into_iter().map(|counted| counted.row).collect() })
    }

    /// Binds a value, and gives its place in the text.
    fn bind<T: for<'q> Param<'q>>(&mut self, value: T) -> String {
        let number = match &mut self.bound {
            Bound::Sqlite(_, bound) => {
                bound.add(value).expect(BOUND);
                bound.len()
            }
            Bound::Postgres(_, bound) => {
                bound.add(value).expect(BOUND);
                bound.len()
            }
        };
        format!("${number}")
    }
}

/// The values of one row.
pub enum Values<'s> {
    /// Become part of the text.
    Sqlite {
        /// The statement's.
        text: &'s mut String,
        /// What is bound to it.
        bound: &'s mut SqliteArguments,
        /// What stands before the next one.
        separator: char,
    },
    /// Become the last in their columns.
    Postgres {
        /// The columns.
        columns: &'s mut Vec<PgArray>,
        /// The next one's place.
        next: usize,
    },
}

impl Values<'_> {
    /// Binds the next column's value.
    pub fn bind<T: for<'q> Param<'q>>(&mut self, value: T) -> &mut Self {
        match self {
            Self::Sqlite { text, bound, separator } => {
                bound.add(value).expect(BOUND);
                let _fits = write!(text, "{separator}${}", bound.len());
                *separator = ',';
            }
            Self::Postgres { columns, next } => {
                if *next == columns.len() {
                    columns.push(PgArray::default());
                }
                columns[*next].push(&value).expect(BOUND);
                *next += 1;
            }
        }
        self
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
