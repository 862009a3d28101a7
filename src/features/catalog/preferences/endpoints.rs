//! The preference operations of the contract.

use dropshot::{HttpResponseOk, endpoint};

use super::model::{Preferences, PreferencesUpdate};
use super::service;
use crate::features::identity::accounts::AccountPath;
use crate::kernel::auth::Caller;
use crate::kernel::http::{ApiError, Json, Path, Routes, Rq};

/// Adds these operations to the server.
pub fn register(api: &mut Routes) {
    api.add_resource(account_preferences_get, &[], |by, path: AccountPath| async move {
        service::get(&by.app, &by.caller, &path.number).await
    });
    api.add(account_preferences_update, &[]);
}

#[endpoint { method = GET, path = "/accounts/{number}/preferences", tags = ["Accounts"] }]
async fn account_preferences_get(
    rq: Rq,
    caller: Caller,
    path: Path<AccountPath>,
) -> Result<HttpResponseOk<Preferences>, ApiError> {
    Ok(HttpResponseOk(service::get(rq.context(), &caller, &path.0.number).await?))
}

#[endpoint { method = PUT, path = "/accounts/{number}/preferences", tags = ["Accounts"] }]
async fn account_preferences_update(
    rq: Rq,
    caller: Caller,
    path: Path<AccountPath>,
    body: Json<PreferencesUpdate>,
) -> Result<HttpResponseOk<Preferences>, ApiError> {
    Ok(HttpResponseOk(service::update(rq.context(), &caller, &path.0.number, &body.0).await?))
}
