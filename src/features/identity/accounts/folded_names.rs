//! The text in which an account's names are searched: first name, last name, username and e-mail address, [folded](fold).

use boxoffice_http::error::Result;

use super::model::AccountRow;
use super::store;
use crate::kernel::db::{Tx, transaction};
use crate::kernel::types::folding::fold;
use crate::kernel::types::id::Id;
use crate::state::App;

/// Number of rows that one transaction completes.
const BATCH: i64 = 500;

/// Returns the text of an account.
pub fn folded_names(row: &AccountRow) -> String {
    fold(&format!("{} {} {} {}", row.first_name, row.last_name, row.username, row.email))
}

/// Writes the texts of the accounts that have none, because a server of an earlier version wrote them.
///
/// # Errors
/// Returns an error if the database fails.
pub async fn complete_names(app: &App) -> Result<()> {
    while transaction!(app.db, |tx| complete_batch(tx).await)? == BATCH {}
    Ok(())
}

/// Completes up to [`BATCH`] rows. Returns their number.
async fn complete_batch(tx: &mut Tx) -> Result<i64> {
    let rows = store::lock_without_folded_names(tx, BATCH).await?;
    let texts: Vec<(Id, String)> = rows.iter().map(|row| (row.id, folded_names(row))).collect();
    store::set_folded_names(tx, &texts).await?;
    Ok(i64::try_from(rows.len()).unwrap_or(i64::MAX))
}
