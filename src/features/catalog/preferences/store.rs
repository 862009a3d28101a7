//! SQL of preferences.

use boxoffice_http::error::Result;

use crate::kernel::db::{Reader, Tx};
use crate::kernel::types::id::Id;

/// Returns the region that an account prefers.
pub async fn region(reader: &mut Reader, account: Id) -> Result<Option<Id>> {
    let select = reader.query("select region_id from account_preferences where account_id = $1").bind(account);
    Ok(select.optional_scalar::<Option<Id>>().await?.flatten())
}

/// Sets the preferred region, or none, and replaces any previous one.
pub async fn put(tx: &mut Tx, account: Id, region: Option<Id>) -> Result<()> {
    tx.query(
        "insert into account_preferences (account_id, region_id) values ($1, $2)
         on conflict (account_id) do update set region_id = excluded.region_id",
    )
    .bind(account)
    .bind(region)
    .execute()
    .await
}

/// Deletes the preferences of an account.
pub async fn delete_of_account(tx: &mut Tx, account: Id) -> Result<()> {
    tx.query("delete from account_preferences where account_id = $1").bind(account).execute().await
}
