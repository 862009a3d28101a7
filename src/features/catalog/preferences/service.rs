//! Operations on preferences.

use boxoffice_http::error::{Error, Result};

use super::model::{Preferences, PreferencesUpdate, RegionRef};
use super::store;
use crate::features::catalog::regions;
use crate::features::identity::accounts::{self, AccountNumber, AccountRow};
use crate::kernel::auth::Caller;
use crate::kernel::db::{Tx, transaction};
use crate::kernel::types::api_types::{NullableField, Uri};
use crate::kernel::types::id::{Id, IdText};
use crate::state::Ctx;

pub async fn get(ctx: &Ctx, caller: &Caller, number: &AccountNumber) -> Result<Preferences> {
    let mut reader = ctx.unit.read().await?;
    let account = accounts::load(&mut reader, caller, number).await?;
    let region = store::region(&mut reader, account.id).await?;
    Ok(view(&account, region))
}

pub async fn update(ctx: &Ctx, caller: &Caller, number: &AccountNumber, change: &PreferencesUpdate) -> Result<Preferences> {
    transaction!(ctx.unit, |tx| update_in_tx(tx, caller, number, change).await)
}

async fn update_in_tx(tx: &mut Tx, caller: &Caller, number: &AccountNumber, change: &PreferencesUpdate) -> Result<Preferences> {
    let account = accounts::load(tx, caller, number).await?;
    // The account may have been removed since it was loaded, and must not get preferences then.
    let account = accounts::lock(tx, account.id).await?.ok_or(Error::NOT_FOUND)?;
    let Some(reference) = &change.region else {
        let region = store::region(tx, account.id).await?;
        return Ok(view(&account, region));
    };
    let region = reference.as_ref().map(RegionRef::id);
    // Locked before the row of the preferences: the removal of a region locks both in this order.
    if let Some(region) = region
        && !regions::lock_shared(tx, region).await?
    {
        return Err(Error::invalid("region", "names no region"));
    }
    store::put(tx, account.id, region).await?;
    Ok(view(&account, region))
}

fn view(account: &AccountRow, region: Option<Id>) -> Preferences {
    Preferences { uri: Uri(format!("/accounts/{}/preferences", account.number)), region: NullableField(region.map(IdText)) }
}
