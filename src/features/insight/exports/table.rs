//! Writing rows as CSV, and streaming them.

use anyhow::anyhow;
use boxoffice_http::error::Result;
use bytes::Bytes;
use futures::future::BoxFuture;

use crate::kernel::db::{Reader, read_from_standby};
use crate::kernel::http::{FileSender, StreamedFile};
use crate::kernel::types::currency::Currency;
use crate::kernel::types::id::Id;
use crate::state::Ctx;

/// Media type of an export.
const CSV: &str = "text/csv; charset=utf-8";
/// Number of rows that are read at a time.
pub const BATCH: usize = 1000;

/// A row of an export.
pub trait TableRow: Send + Sized + 'static {
    /// The names of the columns.
    const COLUMNS: &'static [&'static str];

    /// Returns the identifier, by which the rows are sorted.
    fn id(&self) -> Id;

    /// Returns the values of the columns, with the amounts in this currency.
    fn values(self, currency: Currency) -> Vec<String>;
}

/// Reads the next [`BATCH`] rows after an identifier.
pub type ReadBatch<R> = Box<dyn for<'a> Fn(&'a mut Reader, Id) -> BoxFuture<'a, Result<Vec<R>>> + Send + Sync>;

/// Returns a table as a response. Reads the first batch before the response begins, so that a failure of it is an error response.
pub async fn stream<R: TableRow>(ctx: &Ctx, name: &'static str, read: ReadBatch<R>) -> Result<StreamedFile> {
    let (text, last) = read_batch(ctx, &read, None).await?;
    let (sender, response) = StreamedFile::new(CSV, name);
    let ctx = ctx.background();
    tokio::spawn(async move { send_all(&ctx, &read, sender, text, last).await });
    Ok(response)
}

/// Sends all batches. `last` is the last identifier of the first batch, if there may be more.
async fn send_all<R: TableRow>(ctx: &Ctx, read: &ReadBatch<R>, sender: FileSender, text: Bytes, mut last: Option<Id>) {
    let mut is_connected = sender.send(text).await;
    while is_connected && last.is_some() {
        match read_batch(ctx, read, last).await {
            Ok((text, next)) => {
                last = next;
                is_connected = sender.send(text).await;
            }
            Err(error) => return sender.fail(&ctx.app.log, error),
        }
    }
    if is_connected {
        sender.finish().await;
    }
}

/// Returns the next batch as CSV, with the header if it is the first one, and its last identifier if there may be more.
async fn read_batch<R: TableRow>(ctx: &Ctx, read: &ReadBatch<R>, after: Option<Id>) -> Result<(Bytes, Option<Id>)> {
    let rows = read_from_standby!(ctx.unit, |reader| read(reader, after.unwrap_or(Id::NONE)).await)?;
    let last = rows.last().filter(|_| rows.len() == BATCH).map(TableRow::id);
    let mut writer = csv::WriterBuilder::new().terminator(csv::Terminator::CRLF).from_writer(Vec::new());
    let failed = |error: csv::Error| anyhow!("cannot write CSV: {error}");
    if after.is_none() {
        writer.write_record(R::COLUMNS).map_err(failed)?;
    }
    for row in rows {
        writer.write_record(row.values(ctx.app.settings.currency)).map_err(failed)?;
    }
    let text = writer.into_inner().map_err(|error| anyhow!("cannot write CSV: {error}"))?;
    Ok((text.into(), last))
}

/// Returns a text by a user so that a spreadsheet shows it: what would begin a formula gets an apostrophe before it (OWASP, CSV injection).
///
/// Spreadsheets of many languages separate cells by `;`. Then a cell can begin within the text, with or without quotation marks.
pub fn text(text: String) -> String {
    let mut escaped = String::with_capacity(text.len());
    let mut begins_cell = true;
    for letter in text.chars() {
        if begins_cell && matches!(letter, '=' | '+' | '-' | '@' | '\t' | '\r' | '\n' | '＝' | '＋' | '－' | '＠') {
            escaped.push('\'');
        }
        begins_cell = matches!(letter, ';' | ',' | '\t' | '\r' | '\n' | '"') || begins_cell && letter == ' ';
        escaped.push(letter);
    }
    escaped
}
