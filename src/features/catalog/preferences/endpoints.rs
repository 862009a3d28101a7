//! HTTP endpoints of preferences.

use dropshot::{HttpResponseOk, endpoint};

use super::model::{Preferences, PreferencesUpdate};
use super::service;
use crate::features::identity::accounts::AccountPath;
use crate::kernel::http::{ApiResult, Json, Path, Routes};
use crate::state::{ApiRequest, App, Rq};

/// Adds the endpoints to the route table.
pub fn register(routes: &mut Routes<App>) {
    routes.add_resource(account_preferences_get, &[], |by, path: AccountPath| async move {
        service::get(&by.ctx, &by.caller, &path.number).await
    });
    routes.add(account_preferences_update, &[]);
}

#[endpoint { method = GET, path = "/accounts/{number}/preferences", tags = ["Accounts"] }]
async fn account_preferences_get(_: Rq, request: ApiRequest<Path<AccountPath>>) -> ApiResult<HttpResponseOk<Preferences>> {
    request
        .respond(|ctx, caller, Path(path)| async move { Ok(HttpResponseOk(service::get(&ctx, &caller, &path.number).await?)) })
        .await
}

#[endpoint { method = PUT, path = "/accounts/{number}/preferences", tags = ["Accounts"] }]
async fn account_preferences_update(
    _: Rq,
    request: ApiRequest<(Path<AccountPath>, Json<PreferencesUpdate>)>,
) -> ApiResult<HttpResponseOk<Preferences>> {
    request
        .respond(|ctx, caller, (Path(path), Json(body))| async move {
            Ok(HttpResponseOk(service::update(&ctx, &caller, &path.number, &body).await?))
        })
        .await
}
