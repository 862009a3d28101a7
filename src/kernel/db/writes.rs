//! Statements that are executed together.

use boxoffice_http::error::Result;

use super::statement::{Columns, Statement};
use super::transaction::Tx;

/// Maximum number of values in an insert on SQLite, whose prepared statements take memory for each value. PostgreSQL gets each column as
/// one value.
const MAX_VALUES: usize = 1000;
/// Number of values above which SQLite doesn't keep the prepared statements, because they take memory for each value.
const MAX_PREPARED_VALUES: usize = 3 * MAX_VALUES;

/// Statements that change rows and are executed together, in one round trip. Several round trips would take longer than the changes.
///
/// ```ignore
/// let writes = tx.writes().insert_rows("orders (id)", orders, |columns| _ = columns.add(|order| order.id));
/// writes.statement(|update| update.push_bind("update events set popularity = popularity + 1 where id = ?", event)).execute().await?;
/// ```
///
/// PostgreSQL gets them as one statement: none of them sees the changes of the others, but triggers and foreign keys see all changes. So
/// they must change different rows.
#[must_use]
pub struct Writes<'a> {
    /// The texts of the statements before the last one.
    texts: Vec<String>,
    /// The last statement, with the values of all.
    last: Statement<'a>,
}

impl Tx {
    /// Begins statements that are executed together.
    pub fn writes(&mut self) -> Writes<'_> {
        Writes { texts: Vec::new(), last: self.empty_statement() }
    }

    /// Inserts rows; see [`Writes::insert_rows`].
    ///
    /// ```ignore
    /// tx.insert_rows("tickets (id, serial)", rows, |columns| {
    ///     columns.add(|row| row.id).add(|row| row.serial.clone());
    /// })
    /// ```
    ///
    /// # Errors
    /// Returns an error if the database rejects a row. The rollback of the transaction then removes the other rows.
    pub async fn insert_rows<R>(
        &mut self,
        into: &str,
        rows: impl IntoIterator<Item = R>,
        add_columns: impl Fn(&mut Columns<'_, '_, R>),
    ) -> Result<()> {
        self.writes().insert_rows(into, rows, add_columns).execute().await
    }
}

impl<'a> Writes<'a> {
    /// Adds the statement that `build` makes of an empty one.
    pub fn statement(mut self, build: impl FnOnce(Statement<'a>) -> Statement<'a>) -> Self {
        if !self.last.text.is_empty() {
            self.texts.push(std::mem::take(&mut self.last.text));
        }
        Self { last: build(self.last), ..self }
    }

    /// Adds the insert of rows. `into` is a table with its columns, such as `tickets (id, serial)`. `add_columns` adds the values of each
    /// column. Many rows are split into several statements. Without rows, nothing is added.
    pub fn insert_rows<R>(
        self,
        into: &str,
        rows: impl IntoIterator<Item = R>,
        add_columns: impl Fn(&mut Columns<'_, '_, R>),
    ) -> Self {
        let columns = into.matches(',').count() + 1;
        let rows: Vec<R> = rows.into_iter().collect();
        let insert = |writes: Self, chunk: &[R]| {
            writes.statement(|insert| insert.push("insert into ").push(into).values(chunk, &add_columns))
        };
        rows.chunks(MAX_VALUES / columns).fold(self, insert)
    }

    /// Executes the statements. Without any, does nothing.
    ///
    /// # Errors
    /// Returns an error if the database rejects a row. The rollback of the transaction then removes the other changes.
    pub async fn execute(self) -> Result<()> {
        let Self { texts, mut last } = self;
        if last.text.is_empty() {
            return Ok(());
        }
        if last.is_postgres() {
            // A `with` clause has all but the last.
            let with = |(text, number): (&String, i32)| {
                let start = if number == 1 { "with" } else { "," };
                format!("{start} statement_{number} as (\n{text}\n)")
            };
            let with: String = texts.iter().zip(1..).map(with).collect();
            last.text = format!("{with}\n{}", last.text);
        } else {
            last.text = [&*texts, &[last.text]].concat().join(";\n");
        }
        let is_kept = last.argument_count() <= MAX_PREPARED_VALUES;
        last.query().persistent_if(is_kept).execute().await
    }
}
