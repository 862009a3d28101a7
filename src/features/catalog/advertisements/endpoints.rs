//! HTTP endpoints of advertisements.

use boxoffice_http::error::{Code, Result};

use super::model::{Advertisement, AdvertisementPath};
use super::requests::{AdvertisementCreate, AdvertisementFilter, AdvertisementQuery, AdvertisementUpdate};
use super::service;
use crate::features::catalog::hosts::HostPath;
use crate::features::catalog::review::Submission;
use crate::features::catalog::zones::ZonePath;
use crate::features::codes;
use crate::kernel::auth::Caller;
use crate::kernel::http::{Created, HttpResponseDeleted, Json, Path, Query, Routes, delete, get, post, put};
use crate::kernel::types::paging::{Page, PageRequest};
use crate::state::{App, Ctx};

const CREATING: &[Code] =
    &[codes::ADVERTISEMENT_TAKEN, codes::ADVERTISEMENT_TOO_MANY, codes::HOST_REMOVED, codes::EVENT_CANCELLED, codes::EVENT_OVER];
const CHANGING: &[Code] = &[
    codes::ADVERTISEMENT_TAKEN,
    codes::ADVERTISEMENT_TOO_MANY,
    codes::ADVERTISEMENT_CANCELLED,
    codes::HOST_REMOVED,
    codes::EVENT_CANCELLED,
    codes::EVENT_OVER,
];

/// Adds the endpoints to the route table.
pub fn register(routes: &mut Routes<App>) {
    routes.add(
        "Advertisements",
        [
            get("zone_advertisement_list", "/zones/{zone}/advertisements", zone_advertisement_list),
            get("host_advertisement_list", "/hosts/{host}/advertisements", host_advertisement_list),
            get("advertisement_list", "/advertisements", advertisement_list),
            post("advertisement_create", "/advertisements", advertisement_create).errors(CREATING),
            get("advertisement_get", "/advertisements/{advertisement}", advertisement_get),
            put("advertisement_update", "/advertisements/{advertisement}", advertisement_update).errors(CHANGING).check_access(
                |ctx, caller, path: AdvertisementPath| async move { service::check_managed(&ctx, &caller, path.id()).await },
            ),
            delete("advertisement_delete", "/advertisements/{advertisement}", advertisement_delete),
            post(
                "advertisement_submission_create",
                "/advertisements/{advertisement}/submissions",
                advertisement_submission_create,
            )
            .errors(&[
                codes::ADVERTISEMENT_NOT_DRAFT,
                codes::EVENT_CANCELLED,
                codes::EVENT_OVER,
                codes::HOST_REMOVED,
            ]),
            post(
                "advertisement_cancellation_create",
                "/advertisements/{advertisement}/cancellations",
                advertisement_cancellation_create,
            )
            .errors(&[codes::ADVERTISEMENT_NOT_LISTED]),
        ],
    );
}

async fn zone_advertisement_list(ctx: Ctx, path: Path<ZonePath>, paging: Query<PageRequest>) -> Result<Page<Advertisement>> {
    service::list_running(&ctx, path.zone, paging.0).await
}

async fn host_advertisement_list(
    ctx: Ctx,
    caller: Caller,
    path: Path<HostPath>,
    query: Query<AdvertisementFilter>,
) -> Result<Page<Advertisement>> {
    service::list_of_host(&ctx, &caller, path.host, &query).await
}

async fn advertisement_list(ctx: Ctx, caller: Caller, query: Query<AdvertisementQuery>) -> Result<Page<Advertisement>> {
    service::list(&ctx, &caller, &query).await
}

async fn advertisement_create(ctx: Ctx, caller: Caller, body: Json<AdvertisementCreate>) -> Result<Created<Advertisement>> {
    Ok(Created(service::create(&ctx, &caller, body.0).await?))
}

async fn advertisement_get(ctx: Ctx, caller: Caller, path: Path<AdvertisementPath>) -> Result<Advertisement> {
    service::get(&ctx, &caller, path.id()).await
}

async fn advertisement_update(
    ctx: Ctx,
    caller: Caller,
    path: Path<AdvertisementPath>,
    body: Json<AdvertisementUpdate>,
) -> Result<Advertisement> {
    service::update(&ctx, &caller, path.id(), body.0).await
}

async fn advertisement_delete(ctx: Ctx, caller: Caller, path: Path<AdvertisementPath>) -> Result<HttpResponseDeleted> {
    service::delete(&ctx, &caller, path.id()).await.map(|()| HttpResponseDeleted())
}

async fn advertisement_submission_create(ctx: Ctx, caller: Caller, path: Path<AdvertisementPath>) -> Result<Created<Submission>> {
    Ok(Created(service::submit(&ctx, &caller, path.id()).await?))
}

async fn advertisement_cancellation_create(ctx: Ctx, caller: Caller, path: Path<AdvertisementPath>) -> Result<Advertisement> {
    service::cancel(&ctx, &caller, path.id()).await
}
