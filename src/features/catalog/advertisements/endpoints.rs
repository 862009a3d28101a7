//! HTTP endpoints of advertisements.

use boxoffice_http::error::Code;
use dropshot::{HttpResponseDeleted, HttpResponseOk, endpoint};

use super::model::{Advertisement, AdvertisementPath};
use super::requests::{
    AdvertisementCreate, AdvertisementFilter, AdvertisementQuery, AdvertisementUpdate, ZoneAdvertisementQuery,
};
use super::service;
use crate::features::catalog::hosts::HostPath;
use crate::features::catalog::review::Submission;
use crate::features::catalog::zones::ZonePath;
use crate::kernel::http::{ApiResult, Created, Json, Path, Query, Routes};
use crate::kernel::types::paging::Page;
use crate::state::{ApiRequest, App, Rq};

const CREATING: &[Code] =
    &[Code::AdvertisementTaken, Code::AdvertisementTooMany, Code::HostRemoved, Code::EventCancelled, Code::EventOver];
const CHANGING: &[Code] = &[
    Code::AdvertisementTaken,
    Code::AdvertisementTooMany,
    Code::AdvertisementCancelled,
    Code::HostRemoved,
    Code::EventCancelled,
    Code::EventOver,
];

/// Adds the endpoints to the route table.
pub fn register(routes: &mut Routes<App>) {
    routes.add(zone_advertisement_list, &[]);
    routes.add(host_advertisement_list, &[]);
    routes.add(advertisement_list, &[]);
    routes.add(advertisement_create, CREATING);
    routes.add_resource(advertisement_get, &[], |by, path: AdvertisementPath| async move {
        service::get(&by.ctx, &by.caller, path.id()).await
    });
    routes.add_upload(advertisement_update, CHANGING, |ctx, caller, path: AdvertisementPath| async move {
        service::check_managed(&ctx, &caller, path.id()).await
    });
    routes.add(advertisement_delete, &[]);
    routes.add(advertisement_submission_create, &[Code::AdvertisementNotDraft, Code::HostRemoved]);
    routes.add(advertisement_cancellation_create, &[Code::AdvertisementNotListed]);
}

#[endpoint { method = GET, path = "/zones/{zone}/advertisements", tags = ["Advertisements"] }]
async fn zone_advertisement_list(
    _: Rq,
    request: ApiRequest<(Path<ZonePath>, Query<ZoneAdvertisementQuery>)>,
) -> ApiResult<HttpResponseOk<Page<Advertisement>>> {
    request
        .respond(|ctx, _, (Path(path), Query(query))| async move {
            Ok(HttpResponseOk(service::list_running(&ctx, path.zone, query.paging).await?))
        })
        .await
}

#[endpoint { method = GET, path = "/hosts/{host}/advertisements", tags = ["Advertisements"] }]
async fn host_advertisement_list(
    _: Rq,
    request: ApiRequest<(Path<HostPath>, Query<AdvertisementFilter>)>,
) -> ApiResult<HttpResponseOk<Page<Advertisement>>> {
    request
        .respond(|ctx, caller, (Path(path), Query(query))| async move {
            Ok(HttpResponseOk(service::list_of_host(&ctx, &caller, path.host, &query).await?))
        })
        .await
}

#[endpoint { method = GET, path = "/advertisements", tags = ["Advertisements"] }]
async fn advertisement_list(
    _: Rq,
    request: ApiRequest<Query<AdvertisementQuery>>,
) -> ApiResult<HttpResponseOk<Page<Advertisement>>> {
    request
        .respond(|ctx, caller, Query(query)| async move { Ok(HttpResponseOk(service::list(&ctx, &caller, &query).await?)) })
        .await
}

#[endpoint { method = POST, path = "/advertisements", tags = ["Advertisements"] }]
async fn advertisement_create(_: Rq, request: ApiRequest<Json<AdvertisementCreate>>) -> ApiResult<Created<Advertisement>> {
    request.respond(|ctx, caller, Json(body)| async move { Ok(Created(service::create(&ctx, &caller, body).await?)) }).await
}

#[endpoint { method = GET, path = "/advertisements/{advertisement}", tags = ["Advertisements"] }]
async fn advertisement_get(_: Rq, request: ApiRequest<Path<AdvertisementPath>>) -> ApiResult<HttpResponseOk<Advertisement>> {
    request
        .respond(|ctx, caller, Path(path)| async move { Ok(HttpResponseOk(service::get(&ctx, &caller, path.id()).await?)) })
        .await
}

#[endpoint { method = PUT, path = "/advertisements/{advertisement}", tags = ["Advertisements"] }]
async fn advertisement_update(
    _: Rq,
    request: ApiRequest<(Path<AdvertisementPath>, Json<AdvertisementUpdate>)>,
) -> ApiResult<HttpResponseOk<Advertisement>> {
    request
        .respond(|ctx, caller, (Path(path), Json(body))| async move {
            Ok(HttpResponseOk(service::update(&ctx, &caller, path.id(), body).await?))
        })
        .await
}

#[endpoint { method = DELETE, path = "/advertisements/{advertisement}", tags = ["Advertisements"] }]
async fn advertisement_delete(_: Rq, request: ApiRequest<Path<AdvertisementPath>>) -> ApiResult<HttpResponseDeleted> {
    request
        .respond(|ctx, caller, Path(path)| async move {
            service::delete(&ctx, &caller, path.id()).await?;
            Ok(HttpResponseDeleted())
        })
        .await
}

#[endpoint { method = POST, path = "/advertisements/{advertisement}/submissions", tags = ["Advertisements"] }]
async fn advertisement_submission_create(_: Rq, request: ApiRequest<Path<AdvertisementPath>>) -> ApiResult<Created<Submission>> {
    request.respond(|ctx, caller, Path(path)| async move { Ok(Created(service::submit(&ctx, &caller, path.id()).await?)) }).await
}

#[endpoint { method = POST, path = "/advertisements/{advertisement}/cancellations", tags = ["Advertisements"] }]
async fn advertisement_cancellation_create(
    _: Rq,
    request: ApiRequest<Path<AdvertisementPath>>,
) -> ApiResult<HttpResponseOk<Advertisement>> {
    request
        .respond(|ctx, caller, Path(path)| async move { Ok(HttpResponseOk(service::cancel(&ctx, &caller, path.id()).await?)) })
        .await
}
