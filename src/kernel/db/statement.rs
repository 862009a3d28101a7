//! Statements that are built at run time: filters, changes of some rows, inserts of many rows. `pages` has the lists.

use std::fmt::Write;
use std::slice;

use boxoffice_http::error::Result;
use serde_json::Value;
use sqlx::postgres::PgArguments;
use sqlx::sqlite::SqliteArguments;
use sqlx::{Arguments, AssertSqlSafe, Encode, PgConnection, Postgres, SqlSafeStr, SqliteConnection, Type};

use super::pool::PooledConnection;
use super::query::{DbRow, Param, Scalar, SqlQuery};
use super::transaction::{Reader, Tx};
use crate::kernel::types::folding::fold;
use crate::kernel::types::id::Id;

/// Number of values for which PostgreSQL plans an array of unknown length. A plan for fewer values would always look cheaper than that
/// one, so that each execution would be planned, which can take longer than the execution.
const PLANNED_VALUES: usize = 10;

const ENCODABLE: &str = "both databases can encode every bound value";

/// A statement that is being built, on the connection on which it will run. Values are bound and never become part of its text.
#[must_use]
pub struct Statement<'a> {
    pub(super) text: String,
    /// The columns of a list. The text of a list begins with `from`.
    pub(super) columns: &'static str,
    /// The SQL expression of a list's total; `None` if its rows are counted.
    pub(super) total: Option<String>,
    /// The identifier by which the rows of a page are read once they are sorted; `None` if they are read while they are sorted.
    pub(super) sorted_id: Option<&'static str>,
    /// True if placeholders have numbers.
    is_numbered: bool,
    driver: Driver<'a>,
}

/// The connection on which a statement will run, and the values that have been bound so far.
enum Driver<'a> {
    Sqlite(&'a mut PooledConnection<SqliteConnection>, SqliteArguments),
    Postgres(&'a mut PooledConnection<PgConnection>, PgArguments),
}

impl Reader {
    /// Begins `select …`. `rest` ends with `where true`, or with a condition that others can follow with `and`.
    pub fn select(&mut self, rest: &str) -> Statement<'_> {
        self.build("select ", rest)
    }

    /// Begins a paginated list. `rest` begins with `from`. The statement must end with [`Statement::page`].
    pub fn list(&mut self, columns: &'static str, rest: &str) -> Statement<'_> {
        Statement { columns, ..self.build("", rest) }
    }

    fn build(&mut self, start: &str, rest: &str) -> Statement<'_> {
        self.empty_statement().push(start).push(rest)
    }

    /// Begins a statement without text.
    pub(super) fn empty_statement(&mut self) -> Statement<'_> {
        let driver = match self {
            Self::Sqlite(pooled) => Driver::Sqlite(pooled, SqliteArguments::default()),
            Self::Postgres(pooled) => Driver::Postgres(pooled, PgArguments::default()),
        };
        Statement { text: String::new(), columns: "", total: None, sorted_id: None, is_numbered: false, driver }
    }
}

impl Tx {
    /// Begins `update …` of the rows that match the following conditions. With `returning` at its end it returns the changed
    /// rows.
    pub fn update(&mut self, rest: &str) -> Statement<'_> {
        self.build("update ", rest)
    }

    /// Begins `delete from …` of the rows that match the following conditions.
    pub fn delete(&mut self, rest: &str) -> Statement<'_> {
        self.build("delete from ", rest)
    }

    /// Begins `insert into …` with a table and its columns. [`Statement::values`] adds the rows.
    pub fn insert(&mut self, into: &str) -> Statement<'_> {
        self.build("insert into ", into)
    }
}

impl<'a> Statement<'a> {
    /// Adds text without values.
    pub fn push(mut self, text: &str) -> Self {
        self.text.push_str(text);
        self
    }

    /// Adds text, and binds `value` to every `?` in it.
    pub fn push_bind<T: for<'q> Param<'q>>(mut self, text: &str, value: T) -> Self {
        let placeholder = self.bind(value);
        self.text.push_str(&text.replace('?', &placeholder));
        self
    }

    /// Adds `and` and a condition, and binds `value` to every `?` in it. Adds nothing if there is no value. The condition selects
    /// some of a list's rows, so these are counted, and an expression of the total is dropped.
    pub fn and_where<T: for<'q> Param<'q>>(mut self, condition: &str, value: Option<T>) -> Self {
        let Some(value) = value else { return self };
        self.total = None;
        self.push(" and ").push_bind(condition, value)
    }

    /// Adds the condition that a column has this value, in a list whose order begins with the column and goes on with the identifier.
    ///
    /// PostgreSQL removes a column that equals a value from the order. If many rows have the value, it would read the rows of all
    /// values in the order of their identifiers until it has a page of those with this one. Of a range, only an index that begins
    /// with the column has the order.
    pub fn and_key(self, column: &str, value: Id) -> Self {
        let condition = if self.is_postgres() { " between ? and ?" } else { " = ?" };
        self.and_where(&format!("{column}{condition}"), Some(value))
    }

    /// Adds the condition that a column with folded text contains a text, which is folded, too. Adds nothing if there is no text.
    pub fn and_contains(self, column: &str, text: Option<&str>) -> Self {
        let literal = |text: String| text.replace('\\', r"\\").replace('%', r"\%").replace('_', r"\_");
        let pattern = text.map(|text| format!("%{}%", literal(fold(text))));
        self.and_where(&format!(r"{column} like ? escape '\'"), pattern)
    }

    /// Adds `and column in (…)`. Without values, no row matches. All values are bound as one, so the text is the same for any
    /// number of them, and the database plans the statement once.
    ///
    /// On PostgreSQL, the last of fewer than ten values is repeated, so that the database keeps its plan.
    pub fn and_in<T>(mut self, column: &str, values: impl IntoIterator<Item = T>) -> Self
    where
        T: Into<Value> + Clone,
        Vec<T>: for<'q> Encode<'q, Postgres> + Type<Postgres>,
    {
        let mut values: Vec<T> = values.into_iter().collect();
        if let Some(last) = values.last().filter(|_| self.is_postgres() && values.len() < PLANNED_VALUES) {
            values.resize(PLANNED_VALUES, last.clone());
        }
        let placeholder = self.bind_all(values);
        let condition = match self.driver {
            Driver::Sqlite(..) => format!(" and {column} in (select value from json_each({placeholder}))"),
            Driver::Postgres(..) => format!(" and {column} = any({placeholder})"),
        };
        self.total = None;
        self.push(&condition)
    }

    /// Ends a `select` with ascending order by `id`, and locks its rows until the transaction ends.
    ///
    /// A transaction must lock several rows like this before it changes them. PostgreSQL updates the rows of a statement in no
    /// defined order, so two transactions without these locks could deadlock. SQLite needs no row locks, because only one
    /// transaction writes at a time.
    pub fn for_update(self) -> Self {
        self.push(" order by id").push_lock(" for no key update")
    }

    /// Ends a `select` with ascending order by `id`, and keeps its rows from being removed until the transaction ends. A request
    /// reads the rows to which it refers like this: a read without a lock could find a row that is removed before the request
    /// refers to it, and a foreign key would reject the request. SQLite needs no row locks.
    pub fn for_key_share(self) -> Self {
        self.push(" order by id").push_lock(" for key share")
    }

    /// Ends a `select` with ascending order by `id`, and keeps its rows from being changed until the transaction ends. Other
    /// transactions may hold the same lock. SQLite needs no row locks.
    pub fn for_share(self) -> Self {
        self.push(" order by id").push_lock(" for share")
    }

    /// Adds a lock of PostgreSQL, such as ` for update`. SQLite needs no row locks, because only one transaction writes at a time.
    /// In debug builds, panics outside a transaction: there the lock would end with the statement.
    pub fn push_lock(self, lock: &str) -> Self {
        debug_assert!(self.is_in_transaction(), "a row is locked outside a transaction: {}{lock}", self.text);
        if self.is_postgres() { self.push(lock) } else { self }
    }

    /// Executes a `select` that ends with a lock, only for its lock. Does nothing on SQLite, whose writer has locked the whole
    /// database.
    ///
    /// # Errors
    /// Returns an error if the database fails.
    pub async fn lock(self) -> Result<()> {
        if self.is_postgres() {
            // All rows are read, so that all are locked.
            let _locked: Vec<Id> = self.scalars().await?;
        }
        Ok(())
    }

    /// Adds a table of at least one row. `add_columns` adds the values of each column. The table follows the columns of an
    /// `insert`. Elsewhere it must be in parentheses, and its columns are named `column1`, `column2` …
    pub fn values<R>(mut self, rows: &[R], add_columns: impl Fn(&mut Columns<'_, 'a, R>)) -> Self {
        let bind = |rows, driver: &mut Driver<'a>| {
            let first = driver.argument_count() + 1;
            add_columns(&mut Columns { rows, driver });
            first..=driver.argument_count()
        };
        match self.driver {
            Driver::Sqlite(..) => {
                // SQLite searches the list of all numbered placeholders for each of them.
                for (row, number) in rows.iter().zip(1..) {
                    self.text.push_str(if number == 1 { " values " } else { ", " });
                    for (placeholder, column) in bind(slice::from_ref(row), &mut self.driver).zip(1..) {
                        self.text.push_str(if column == 1 { "(" } else { "," });
                        if self.is_numbered {
                            let _infallible = write!(self.text, "${placeholder}");
                        } else {
                            self.text.push('?');
                        }
                    }
                    self.text.push(')');
                }
            }
            Driver::Postgres(..) => {
                for (placeholder, column) in bind(rows, &mut self.driver).zip(1..) {
                    let start = if column == 1 { " select" } else { "," };
                    let _infallible = write!(self.text, "{start} unnest(${placeholder}) as column{column}");
                }
            }
        }
        self
    }

    /// Executes the statement.
    pub async fn execute(self) -> Result<()> {
        self.query().execute().await
    }

    /// Executes the statement, and returns the number of affected rows.
    pub async fn rows_affected(self) -> Result<u64> {
        self.query().rows_affected().await
    }

    /// Returns all rows.
    pub async fn all<R: DbRow>(self) -> Result<Vec<R>> {
        self.query().all().await
    }

    /// Returns the first row, if there is one.
    pub async fn optional<R: DbRow>(self) -> Result<Option<R>> {
        Ok(self.all().await?.into_iter().next())
    }

    /// Returns the first value of each row.
    pub async fn scalars<T: Scalar>(self) -> Result<Vec<T>>
    where
        (T,): DbRow,
    {
        self.query().scalars().await
    }

    /// Returns the first value of the first row, if there is one.
    pub async fn optional_scalar<T: Scalar>(self) -> Result<Option<T>>
    where
        (T,): DbRow,
    {
        Ok(self.scalars().await?.into_iter().next())
    }

    /// Returns whether the statement, which selects identifiers, returns a row.
    pub async fn exists(self) -> Result<bool> {
        Ok(self.optional_scalar::<Id>().await?.is_some())
    }

    /// Returns whether the database is PostgreSQL.
    pub(super) fn is_postgres(&self) -> bool {
        matches!(self.driver, Driver::Postgres(..))
    }

    fn is_in_transaction(&self) -> bool {
        match &self.driver {
            Driver::Sqlite(pooled, _) => pooled.is_in_transaction(),
            Driver::Postgres(pooled, _) => pooled.is_in_transaction(),
        }
    }

    /// Returns the number of bound values.
    pub(super) fn argument_count(&self) -> usize {
        self.driver.argument_count()
    }

    pub(super) fn query(self) -> SqlQuery<'a> {
        let text = AssertSqlSafe(self.text).into_sql_str();
        match self.driver {
            Driver::Sqlite(pooled, arguments) => {
                pooled.statement = text.clone();
                SqlQuery::Sqlite(pooled, sqlx::query_with(text, arguments))
            }
            Driver::Postgres(pooled, arguments) => {
                pooled.statement = text.clone();
                SqlQuery::postgres(pooled, sqlx::query_with(text, arguments))
            }
        }
    }

    /// Begins another statement on the same connection, with a copy of the bound values.
    pub(super) fn with_same_values(&mut self, text: String) -> Statement<'_> {
        let driver = match &mut self.driver {
            Driver::Sqlite(pooled, arguments) => Driver::Sqlite(pooled, arguments.clone()),
            Driver::Postgres(pooled, arguments) => Driver::Postgres(pooled, arguments.clone()),
        };
        Statement { text, columns: "", total: None, sorted_id: self.sorted_id, is_numbered: true, driver }
    }

    /// Binds all values as one, an array in JSON on SQLite, and returns its placeholder.
    pub(super) fn bind_all<T>(&mut self, values: impl IntoIterator<Item = T>) -> String
    where
        T: Into<Value>,
        Vec<T>: for<'q> Encode<'q, Postgres> + Type<Postgres>,
    {
        match &mut self.driver {
            Driver::Sqlite(_, arguments) => {
                let values: Vec<Value> = values.into_iter().map(Into::into).collect();
                arguments.add(Value::Array(values).to_string()).expect(ENCODABLE);
            }
            Driver::Postgres(_, arguments) => arguments.add(values.into_iter().collect::<Vec<T>>()).expect(ENCODABLE),
        }
        self.is_numbered = true;
        format!("${}", self.driver.argument_count())
    }

    /// Binds a value and returns its placeholder.
    pub(super) fn bind<T: for<'q> Param<'q>>(&mut self, value: T) -> String {
        match &mut self.driver {
            Driver::Sqlite(_, arguments) => arguments.add(value).expect(ENCODABLE),
            Driver::Postgres(_, arguments) => arguments.add(value).expect(ENCODABLE),
        }
        self.is_numbered = true;
        format!("${}", self.driver.argument_count())
    }
}

/// The columns of a table that is being added to a statement.
pub struct Columns<'s, 'a, R> {
    rows: &'s [R],
    driver: &'s mut Driver<'a>,
}

impl Driver<'_> {
    /// Returns the number of bound values.
    fn argument_count(&self) -> usize {
        match self {
            Self::Sqlite(_, arguments) => arguments.len(),
            Self::Postgres(_, arguments) => arguments.len(),
        }
    }
}

impl<R> Columns<'_, '_, R> {
    /// Binds the next column: `value` of each row. PostgreSQL gets them as one array, so the statement has the same text for any
    /// number of rows, and the database plans it once.
    pub fn add<T>(&mut self, value: impl Fn(&R) -> T) -> &mut Self
    where
        T: for<'q> Param<'q>,
        Vec<T>: for<'q> Encode<'q, Postgres> + Type<Postgres>,
    {
        let values = self.rows.iter().map(value);
        match &mut self.driver {
            Driver::Sqlite(_, arguments) => values.for_each(|value| arguments.add(value).expect(ENCODABLE)),
            Driver::Postgres(_, arguments) => arguments.add(values.collect::<Vec<T>>()).expect(ENCODABLE),
        }
        self
    }
}
