//! Lists in pages: statements that return one page of a list and its total.

use std::collections::HashMap;
use std::mem;

use boxoffice_http::error::{Code, Result};
use sqlx::{ColumnIndex, Decode, FromRow, Row, Type};
use tokio::sync::{Semaphore, SemaphorePermit};

use super::query::{DbRow, Param};
use super::statement::Statement;
use crate::kernel::types::id::Id;
use crate::kernel::types::paging::{PageRequest, PagedRows, SizedPage, SortOrder};

/// Size in bytes above which a page is large. Pages of ordinary texts are smaller, also with the maximum number of entries.
pub const LARGE_PAGE: i64 = 1 << 20;
/// Large pages that are loaded at the same time. Each takes up to about 10 MiB of memory.
static LARGE_PAGES: Semaphore = Semaphore::const_new(4);

/// Limits of pages that are part of the text on PostgreSQL, which plans a bound limit for a tenth of all rows. The plan for the
/// limit of a request would always look cheaper, so each execution would be planned. Few texts, because connections keep plans by
/// text.
const USUAL_LIMITS: [i64; 6] = [5, 10, 20, 25, 50, 100];

/// Returns the permission to load a page of this size; none is needed for a page that isn't large.
///
/// # Errors
/// [`Code::SERVER_UNAVAILABLE`] if many large pages are being loaded.
pub fn permit_page(bytes: i64) -> Result<Option<SemaphorePermit<'static>>> {
    if bytes <= LARGE_PAGE {
        return Ok(None);
    }
    let text = "The server is loading too many large pages at the moment. Try again shortly, or ask for fewer records.";
    Ok(Some(LARGE_PAGES.try_acquire().map_err(|_| Code::SERVER_UNAVAILABLE.with_message(text))?))
}

impl Statement<'_> {
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

    /// Takes the total of each key from the table `list_counts`, in a list that ends with [`pages_by_key`](Self::pages_by_key).
    pub fn with_list_counts(mut self, list: &str) -> Self {
        self.total = Some(list_count_sql(list, "list_key"));
        self
    }

    /// Lets SQLite sort nothing but the identifiers of a list, and read the columns of the page's rows by them. Otherwise it would
    /// compute the columns, and the size, of nearly each row of the list if it comes to the first rows of the order last. For lists
    /// that no index has in their order.
    pub fn sort_by_id(mut self, id: &'static str) -> Self {
        self.sorted_id = (!self.is_postgres()).then_some(id);
        self
    }

    /// Ends a [`Reader::list`](super::Reader::list). Returns one page in this order, and the number of rows on all pages.
    ///
    /// A subquery of the same statement returns the total, so only the rows of the page are read completely.
    ///
    /// # Errors
    /// [`Code::PAGE_PAST_END`] for a page past the last one, except for the first page of an empty list.
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

    /// Ends a [`Reader::list`](super::Reader::list) whose rows belong to keys, such as the tickets of accounts. Returns the same page
    /// of the rows of each of these keys, by key and without the empty pages, sorted by identifier. `table` is the list's only table,
    /// and `key` its column with the key, with which an index begins that goes on with the identifier.
    ///
    /// One statement reads all of them, so concurrent requests can share it.
    pub async fn pages_by_key<R: DbRow>(
        mut self,
        table: &str,
        key: &str,
        keys: impl IntoIterator<Item = Id>,
        order: SortOrder,
        paging: PageRequest,
    ) -> Result<HashMap<Id, PagedRows<R>>> {
        let keys = self.bind_all(keys);
        let limit = self.limit_sql(paging.limit(), paging.offset());
        let (list, columns, order) = (mem::take(&mut self.text), self.columns, order.sql());
        let (of_key, keys, rows) = if self.is_postgres() {
            // See `and_key` for the range.
            let of_key = format!("{list} and {key} between list_key and list_key");
            let keys = format!("select list_key from unnest({keys}) list_key");
            let rows = format!("lateral (select {columns} {of_key} order by {key}{order}, id{order}{limit}) page");
            (of_key, keys, rows)
        } else {
            let of_key = format!("{list} and {key} = list_key");
            let keys = format!("select value as list_key from json_each({keys})");
            // SQLite has no lateral joins.
            let rows = format!("{table} where id in (select id {of_key} order by id{order}{limit})");
            (of_key, keys, rows)
        };
        let total = self.total.take().unwrap_or_else(|| format!("(select count(*) {of_key})"));
        // Materialized, so that the total is read once for each key.
        let lists = format!("with lists as materialized (select list_key, {total} as list_total from ({keys}) keys)");
        let statement = self.push(&format!(
            "{lists} select list_key, list_total, {columns} from lists cross join {rows} order by list_key, id{order}"
        ));
        let rows: Vec<KeyedRow<R>> = statement.all().await?;
        let mut pages: HashMap<Id, Vec<RowWithTotal<R>>> = HashMap::new();
        rows.into_iter().for_each(|KeyedRow { key, row }| pages.entry(key).or_default().push(row));
        pages.into_iter().map(|(key, rows)| Ok((key, PagedRows::of(rows, paging)?))).collect()
    }

    /// Ends a `select` from a list, whose text is `from`, with the order and the limits of a page.
    fn push_page(mut self, from: &str, order: &str, limit: i64, offset: i64) -> Self {
        let limit = self.limit_sql(limit, offset);
        match self.sorted_id {
            None => self.push(&format!(" order by {order}{limit}")),
            Some(id) => self.push(&format!(" and {id} in (select {id} {from} order by {order}{limit}) order by {order}")),
        }
    }

    /// Binds the limit and the offset of a page, and returns their SQL.
    pub fn limit_sql(&mut self, limit: i64, offset: i64) -> String {
        let is_part_of_text = self.is_postgres() && USUAL_LIMITS.contains(&limit);
        let limit = if is_part_of_text { limit.to_string() } else { self.bind(limit) };
        let offset = if offset == 0 { String::new() } else { format!(" offset {}", self.bind(offset)) };
        format!(" limit {limit}{offset}")
    }

    /// Ends a [`Reader::list`](super::Reader::list) like [`page`](Self::page), but a page ends before its entries are larger than
    /// [`PAGE_BYTES`](crate::kernel::types::paging::PAGE_BYTES), and the next page begins there. `size` is the SQL expression of
    /// the bytes that an entry takes, including its embedded resources.
    ///
    /// The sizes of all entries up to the page are read first, because they determine where it begins. So it is for lists whose
    /// entries can be large; 100 tickets or admissions always fit on a page.
    ///
    /// # Errors
    /// As for [`page`](Self::page), and [`Code::SERVER_UNAVAILABLE`] if many large pages are being loaded.
    pub async fn sized_page<R: DbRow>(mut self, order: &str, size: &str, paging: PageRequest) -> Result<PagedRows<R>> {
        let wanted = paging.end();
        let from = self.text.clone();
        let text = format!("select cast({size} as bigint) {from}");
        let sizes: Vec<(i64,)> = self.with_same_values(text).push_page(&from, order, wanted, 0).all().await?;
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
}

/// Returns the SQL expression of a number in the table `list_counts`. `owner` is the SQL expression of the row to which the list
/// belongs.
pub fn list_count_sql(list: &str, owner: &str) -> String {
    format!("coalesce((select cast(sum(c.count) as bigint) from list_counts c where c.list = '{list}' and c.owner = {owner}), 0)")
}

impl<R> PagedRows<R> {
    /// Returns the page of these rows.
    fn of(rows: Vec<RowWithTotal<R>>, paging: PageRequest) -> Result<Self> {
        if rows.is_empty() {
            paging.require_first()?;
        }
        let total = rows.first().map_or(0, |first| first.total);
        Ok(Self { total, rows: rows.into_iter().map(|row| row.row).collect(), paging, bytes: 0, permit: None })
    }
}

/// A row of a page, and the number of rows on all pages.
struct RowWithTotal<R> {
    total: i64,
    row: R,
}

impl<'r, D: Row, R: FromRow<'r, D>> FromRow<'r, D> for RowWithTotal<R>
where
    &'static str: ColumnIndex<D>,
    i64: Decode<'r, D::Database> + Type<D::Database>,
{
    fn from_row(row: &'r D) -> sqlx::Result<Self> {
        Ok(Self { total: row.try_get("list_total")?, row: R::from_row(row)? })
    }
}

/// A row of the page of a key.
struct KeyedRow<R> {
    key: Id,
    row: RowWithTotal<R>,
}

impl<'r, D: Row, R> FromRow<'r, D> for KeyedRow<R>
where
    &'static str: ColumnIndex<D>,
    Id: Decode<'r, D::Database> + Type<D::Database>,
    RowWithTotal<R>: FromRow<'r, D>,
{
    fn from_row(row: &'r D) -> sqlx::Result<Self> {
        Ok(Self { key: row.try_get("list_key")?, row: RowWithTotal::from_row(row)? })
    }
}
