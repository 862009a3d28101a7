//! HTTP endpoints of preferences.

use boxoffice_http::error::Result;

use super::model::{Preferences, PreferencesUpdate};
use super::service;
use crate::features::identity::accounts::AccountPath;
use crate::kernel::auth::Caller;
use crate::kernel::http::{Json, Path, Routes, get, put};
use crate::state::{App, Ctx};

/// Adds the endpoints to the route table.
pub fn register(routes: &mut Routes<App>) {
    routes.add(
        "Accounts",
        [
            get("account_preferences_get", "/accounts/{number}/preferences", account_preferences_get),
            put("account_preferences_update", "/accounts/{number}/preferences", account_preferences_update),
        ],
    );
}

async fn account_preferences_get(ctx: Ctx, caller: Caller, path: Path<AccountPath>) -> Result<Preferences> {
    service::get(&ctx, &caller, &path.number).await
}

async fn account_preferences_update(
    ctx: Ctx,
    caller: Caller,
    path: Path<AccountPath>,
    body: Json<PreferencesUpdate>,
) -> Result<Preferences> {
    service::update(&ctx, &caller, &path.number, &body).await
}
