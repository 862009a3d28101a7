//! Statements that are built at run time: lists with optional filters, changes of some rows, inserts of many rows.

use std::fmt::Write;
use std::{mem, slice};

use boxoffice_http::error::{Code, Result};
use serde_json::Value;
use sqlx::postgres::{PgArguments, PgRow};
use sqlx::sqlite::{SqliteArguments, SqliteRow};
use sqlx::{Arguments, AssertSqlSafe, Encode, FromRow, PgConnection, Postgres, Row, SqlSafeStr, SqliteConnection, Type};
use tokio::sync::{Semaphore, SemaphorePermit};

use super::pool::PooledConnection;
use super::query::{DbRow, Param, Query};
use super::transaction::Tx;
use crate::kernel::types::folding::fold;
use crate::kernel::types::id::Id;
use crate::kernel::types::paging::{PageRequest, PagedRows, SizedPage};

/// Size in bytes above which a page is large. Pages of ordinary texts are smaller, also with the maximum number of entries.
const LARGE_PAGE: i64 = 1 << 20;
/// Large pages that are loaded at the same time. Each takes up to about 10 MiB of memory.
static LARGE_PAGES: Semaphore = Semaphore::const_new(4);

const ENCODABLE: &str = "both databases can encode every bound value";

/// Returns the permission to load a page of this size; none is needed for a page that isn't large.
///
/// # Errors
/// [`Code::ServerUnavailable`] if many large pages are being loaded.
pub fn permit_page(bytes: i64) -> Result<Option<SemaphorePermit<'static>>> {
    if bytes <= LARGE_PAGE {
        return Ok(None);
    }
    let text = "The server is loading too many large pages at the moment. Try again shortly, or ask for fewer records.";
    Ok(Some(LARGE_PAGES.try_acquire().map_err(|_| Code::ServerUnavailable.with_message(text))?))
}

/// A statement that is being built, on the connection on which it will run. Values are bound and never become part of its text.
#[must_use]
pub struct Statement<'a> {
    pub(super) text: String,
    /// The columns of a list. The text of a list begins with `from`.
    columns: &'static str,
    /// The SQL expression of a list's total; `None` if its rows are counted.
    total: Option<String>,
    /// The identifier by which the rows of a page are read once they are sorted; `None` if they are read while they are sorted.
    sorted_id: Option<&'static str>,
    /// True if placeholders have numbers.
    is_numbered: bool,
    driver: Driver<'a>,
}

/// The connection on which a statement will run, and the values that have been bound so far.
enum Driver<'a> {
    Sqlite(&'a mut PooledConnection<SqliteConnection>, SqliteArguments),
    Postgres(&'a mut PooledConnection<PgConnection>, PgArguments),
}

impl Tx {
    /// Begins `select …`. `rest` ends with `where true`, or with a condition that others can follow with `and`.
    pub fn select(&mut self, rest: &str) -> Statement<'_> {
        self.build("select ", rest)
    }

    /// Begins a paginated list. `rest` begins with `from`. The statement must end with [`Statement::page`].
    pub fn list(&mut self, columns: &'static str, rest: &str) -> Statement<'_> {
        Statement { columns, ..self.build("", rest) }
    }

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

    /// Adds the condition that a column with folded text contains a text, which is folded, too. Adds nothing if there is no text.
    pub fn and_contains(self, column: &str, text: Option<&str>) -> Self {
        let literal = |text: String| text.replace('\\', r"\\").replace('%', r"\%").replace('_', r"\_");
        let pattern = text.map(|text| format!("%{}%", literal(fold(text))));
        self.and_where(&format!(r"{column} like ? escape '\'"), pattern)
    }

    /// Adds `and column in (…)`. Without values, no row matches. All values are bound as one, so the text is the same for any
    /// number of them, and the database plans the statement once.
    pub fn and_in<T>(mut self, column: &str, values: impl IntoIterator<Item = T>) -> Self
    where
        T: Into<Value>,
        Vec<T>: for<'q> Encode<'q, Postgres> + Type<Postgres>,
    {
        let condition = match &mut self.driver {
            Driver::Sqlite(_, arguments) => {
                let values: Vec<Value> = values.into_iter().map(Into::into).collect();
                arguments.add(Value::Array(values).to_string()).expect(ENCODABLE);
                format!(" and {column} in (select value from json_each(${}))", arguments.len())
            }
            Driver::Postgres(_, arguments) => {
                arguments.add(values.into_iter().collect::<Vec<T>>()).expect(ENCODABLE);
                format!(" and {column} = any(${})", arguments.len())
            }
        };
        (self.total, self.is_numbered) = (None, true);
        self.push(&condition)
    }

    /// Ends a `select` with ascending order by `id`, and locks its rows until the transaction ends.
    ///
    /// A transaction must lock several rows like this before it changes them. PostgreSQL updates the rows of a statement in no
    /// defined order, so two transactions without these locks could deadlock. SQLite needs no row locks, because only one
    /// transaction writes at a time.
    pub fn for_update(self) -> Self {
        let lock = matches!(self.driver, Driver::Postgres(..)).then_some(" for no key update");
        self.push(" order by id").push(lock.unwrap_or_default())
    }

    /// Ends a `select` with ascending order by `id`, and keeps its rows from being removed until the transaction ends. A request
    /// reads the rows to which it refers like this: a read without a lock could find a row that is removed before the request
    /// refers to it, and a foreign key would reject the request. SQLite needs no row locks.
    pub fn for_key_share(self) -> Self {
        let lock = matches!(self.driver, Driver::Postgres(..)).then_some(" for key share");
        self.push(" order by id").push(lock.unwrap_or_default())
    }

    /// Ends a `select` with ascending order by `id`, and keeps its rows from being changed until the transaction ends. Other
    /// transactions may hold the same lock. SQLite needs no row locks.
    pub fn for_share(self) -> Self {
        let lock = matches!(self.driver, Driver::Postgres(..)).then_some(" for share");
        self.push(" order by id").push(lock.unwrap_or_default())
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

    /// Adds text to the SQL expression of a list's total, and binds `value` to every `?` in it. Without such an expression, the
    /// rows of all pages are counted, which takes the longer, the more there are. It follows the conditions that every request for
    /// the list has; a further condition drops it.
    pub fn push_total<T: for<'q> Param<'q>>(mut self, text: &str, value: T) -> Self {
        let placeholder = self.bind(value);
        self.total.get_or_insert_default().push_str(&text.replace('?', &placeholder));
        self
    }

    /// Adds a number that the database keeps in the table `list_counts` to the total, like [`push_total`](Self::push_total).
    pub fn push_list_count(self, list: &str, owner: Id) -> Self {
        let plus = if self.total.is_some() { " + " } else { "" };
        self.push_total(&format!("{plus}{}", list_count_sql(list, "?")), owner)
    }

    /// Lets SQLite sort nothing but the identifiers of a list, and read the columns of the page's rows by them. Otherwise it would
    /// compute the columns, and the size, of nearly each row of the list if it comes to the first rows of the order last. For lists
    /// that no index has in their order.
    pub fn sort_by_id(mut self, id: &'static str) -> Self {
        self.sorted_id = matches!(self.driver, Driver::Sqlite(..)).then_some(id);
        self
    }

    /// Executes the statement and returns the number of affected rows.
    pub async fn execute(self) -> Result<u64> {
        self.query().execute().await
    }

    /// Returns all rows.
    pub async fn all<R: DbRow>(self) -> Result<Vec<R>> {
        self.query().all().await
    }

    /// Returns whether the database is PostgreSQL.
    pub(super) fn is_postgres(&self) -> bool {
        matches!(self.driver, Driver::Postgres(..))
    }

    /// Returns the number of bound values.
    pub(super) fn argument_count(&self) -> usize {
        self.driver.argument_count()
    }

    pub(super) fn query(self) -> Query<'a> {
        let text = AssertSqlSafe(self.text).into_sql_str();
        match self.driver {
            Driver::Sqlite(pooled, arguments) => {
                pooled.statement = text.clone();
                Query::Sqlite(pooled, sqlx::query_with(text, arguments))
            }
            Driver::Postgres(pooled, arguments) => {
                pooled.statement = text.clone();
                Query::postgres(pooled, sqlx::query_with(text, arguments))
            }
        }
    }

    /// Ends a [`Tx::list`]. Returns one page in this order, and the number of rows on all pages.
    ///
    /// A subquery of the same statement returns the total, so only the rows of the page are read completely.
    ///
    /// # Errors
    /// [`Code::PagePastEnd`] for a page past the last one, except for the first page of an empty list.
    pub async fn page<R: DbRow>(self, order: &str, paging: PageRequest) -> Result<PagedRows<R>> {
        PagedRows::of(self.rows(order, paging.limit(), paging.offset()).await?, paging)
    }

    /// Returns the rows of a list from `offset`, at most `limit`, each with the list's total.
    async fn rows<R: DbRow>(mut self, order: &str, limit: i64, offset: i64) -> Result<Vec<RowWithTotal<R>>> {
        let from = mem::take(&mut self.text);
        let total = self.total.clone().unwrap_or_else(|| format!("(select count(*) {from})"));
        let select = format!("select {total} as list_total, {} {from}", self.columns);
        self.push(&select).push_page(&from, order, limit, offset).all().await
    }

    /// Ends a `select` from a list, whose text is `from`, with the order and the limits of a page.
    fn push_page(self, from: &str, order: &str, limit: i64, offset: i64) -> Self {
        let order = format!(" order by {order}");
        let Some(id) = self.sorted_id else {
            return self.push(&order).push_bind(" limit ?", limit).push_bind(" offset ?", offset);
        };
        let page = self.push(&format!(" and {id} in (select {id} {from}{order}"));
        page.push_bind(" limit ?", limit).push_bind(" offset ?", offset).push(")").push(&order)
    }

    /// Ends a [`Tx::list`] like [`page`](Self::page), but a page ends before its entries are larger than
    /// [`PAGE_BYTES`](crate::kernel::types::paging::PAGE_BYTES), and the next page begins there. `size` is the SQL expression of
    /// the bytes that an entry takes, including its embedded resources.
    ///
    /// The sizes of all entries up to the page are read first, because they determine where it begins. So it is for lists whose
    /// entries can be large; 100 tickets or admissions always fit on a page.
    ///
    /// # Errors
    /// As for [`page`](Self::page), and [`Code::ServerUnavailable`] if many large pages are being loaded.
    pub async fn sized_page<R: DbRow>(mut self, order: &str, size: &str, paging: PageRequest) -> Result<PagedRows<R>> {
        let wanted = paging.offset() + paging.limit();
        let text = format!("select cast({size} as bigint) {}", self.text);
        let (sorted_id, driver) = (self.sorted_id, self.driver.reborrow());
        let sizes = Statement { text, columns: "", total: None, sorted_id, is_numbered: true, driver };
        let sizes: Vec<(i64,)> = sizes.push_page(&self.text, order, wanted, 0).all().await?;
        let sizes: Vec<i64> = sizes.into_iter().map(|(size,)| size).collect();
        let SizedPage { offset, count, bytes } = paging.divide(&sizes);
        if count == 0 {
            return PagedRows::of(Vec::new(), paging);
        }
        let permit = permit_page(bytes)?;
        // The list ends with these entries, so nothing needs to be counted.
        if (sizes.len() as i64) < wanted {
            self.total = Some(self.bind(sizes.len() as i64));
        }
        // A page that isn't cut by its size has room for entries that were added since the sizes were read.
        let limit = if offset + count < sizes.len() { count as i64 } else { paging.limit() };
        let page = PagedRows::of(self.rows(order, limit, offset as i64).await?, paging)?;
        let total = page.total.max((offset + page.rows.len()) as i64);
        Ok(PagedRows { total, bytes, permit, ..page })
    }

    /// Binds a value and returns its placeholder.
    fn bind<T: for<'q> Param<'q>>(&mut self, value: T) -> String {
        match &mut self.driver {
            Driver::Sqlite(_, arguments) => arguments.add(value).expect(ENCODABLE),
            Driver::Postgres(_, arguments) => arguments.add(value).expect(ENCODABLE),
        }
        self.is_numbered = true;
        format!("${}", self.driver.argument_count())
    }
}

/// Returns the SQL expression of a number in the table `list_counts`. `owner` is the SQL expression of the row to which the list
/// belongs.
pub fn list_count_sql(list: &str, owner: &str) -> String {
    format!("coalesce((select cast(sum(c.count) as bigint) from list_counts c where c.list = '{list}' and c.owner = {owner}), 0)")
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

    /// Returns the same connection with a copy of the values, for another statement.
    fn reborrow(&mut self) -> Driver<'_> {
        match self {
            Self::Sqlite(pooled, arguments) => Driver::Sqlite(pooled, arguments.clone()),
            Self::Postgres(pooled, arguments) => Driver::Postgres(pooled, arguments.clone()),
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

impl<R> PagedRows<R> {
    /// Returns the page of these rows.
    fn of(rows: Vec<RowWithTotal<R>>, paging: PageRequest) -> Result<Self> {
        if rows.is_empty() && !paging.is_first() {
            return Err(Code::PagePastEnd.into());
        }
        let total = rows.first().map_or(0, |first| first.total);
        Ok(Self { total, rows: rows.into_iter().map(|row| row.row).collect(), bytes: 0, permit: None })
    }
}

/// A row of a page, and the number of rows on all pages.
struct RowWithTotal<R> {
    total: i64,
    row: R,
}

impl<'r, R: FromRow<'r, SqliteRow>> FromRow<'r, SqliteRow> for RowWithTotal<R> {
    fn from_row(row: &'r SqliteRow) -> sqlx::Result<Self> {
        Ok(Self { total: row.try_get("list_total")?, row: R::from_row(row)? })
    }
}

impl<'r, R: FromRow<'r, PgRow>> FromRow<'r, PgRow> for RowWithTotal<R> {
    fn from_row(row: &'r PgRow) -> sqlx::Result<Self> {
        Ok(Self { total: row.try_get("list_total")?, row: R::from_row(row)? })
    }
}
