//! Exports of accounts.

use boxoffice_http::error::{Error, Result};
use serde_json::{Map, Value};

use super::model::{AccountExport, AccountExportEntry, ExportPosition};
use super::store;
use super::tables::{ColumnFormat, PERSONAL_TABLES, PersonalTable};
use crate::features::identity::accounts::{self, AccountNumber};
use crate::kernel::auth::Caller;
use crate::kernel::types::api_types::{DateTime, NullableField, Uri};
use crate::kernel::types::clock::Timestamp;
use crate::kernel::types::id::Id;
use crate::state::Ctx;

/// Entries on a page.
const PAGE: usize = 500;

/// Returns a page of the export, for the account itself or a platform administrator.
///
/// # Errors
/// [`Error::NOT_FOUND`] and [`Error::FORBIDDEN`].
pub async fn page(ctx: &Ctx, caller: &Caller, number: &AccountNumber, after: Option<&ExportPosition>) -> Result<AccountExport> {
    let mut reader = ctx.unit.read().await?;
    let account = accounts::load(&mut reader, caller, number).await?;
    let (mut table, mut skip) = after.and_then(parse).unwrap_or((0, 0));
    let mut entries = Vec::new();
    while let Some(personal) = PERSONAL_TABLES.get(table) {
        let most = i64::try_from(PAGE - entries.len()).unwrap_or_default();
        if most == 0 {
            break;
        }
        let rows = store::rows(&mut reader, personal, account.id, skip, most).await?;
        let count = i64::try_from(rows.len()).unwrap_or_default();
        for row in rows {
            entries.push(entry(personal, &row)?);
        }
        (table, skip) = if count < most { (table + 1, 0) } else { (table, skip + count) };
    }
    let uri = format!("/accounts/{}/export", account.number);
    let next = (table < PERSONAL_TABLES.len()).then(|| Uri(format!("{uri}?after={table}-{skip}")));
    let exported = DateTime::from(ctx.app.clock.now());
    Ok(AccountExport { uri: Uri(uri), exported, entries, next: NullableField(next) })
}

fn parse(position: &ExportPosition) -> Option<(usize, i64)> {
    let (table, skip) = position.0.split_once('-')?;
    Some((table.parse().ok()?, skip.parse().ok()?))
}

fn entry(table: &PersonalTable, row: &str) -> Result<AccountExportEntry> {
    let mut data: Map<String, Value> = serde_json::from_str(row).map_err(|error| Error::Internal(error.into()))?;
    for (name, _, format) in table.columns {
        if let Some(value) = data.get_mut(*name) {
            *value = formatted(value, *format);
        }
    }
    Ok(AccountExportEntry { kind: table.kind.to_owned(), data })
}

/// Returns a stored value as clients know it.
fn formatted(value: &Value, format: ColumnFormat) -> Value {
    let Some(number) = value.as_i64() else { return value.clone() };
    match format {
        ColumnFormat::Plain => value.clone(),
        ColumnFormat::Id => Id(number).to_string().into(),
        ColumnFormat::Bool => (number != 0).into(),
        ColumnFormat::Time => Timestamp(number).format_rfc3339().into(),
        #[expect(clippy::cast_precision_loss, reason = "amounts are far below 2^53 minor units")]
        ColumnFormat::Money => (number as f64 / 100.0).into(),
    }
}
