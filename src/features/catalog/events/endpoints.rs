//! HTTP endpoints of events.

use boxoffice_http::error::Code;
use dropshot::{HttpResponseDeleted, HttpResponseOk, endpoint};

use super::model::{Event, EventPath};
use super::requests::{EventCreate, EventFilter, EventQuery, EventUpdate, HostEventQuery, PublishedEventQuery};
use super::{cache, service};
use crate::features::catalog::hosts::HostPath;
use crate::features::catalog::review::Submission;
use crate::features::identity::accounts::AccountPath;
use crate::kernel::http::{ApiResult, Created, Json, Path, Query, Routes, SerializedJson};
use crate::kernel::types::paging::Page;
use crate::state::{ApiRequest, App, Rq};

/// Adds the endpoints to the route table.
pub fn register(routes: &mut Routes<App>) {
    routes.add(host_event_list, &[]);
    routes.add(account_event_list, &[]);
    routes.add(published_event_list, &[]);
    routes.add(event_list, &[]);
    routes.add(event_create, &[Code::EventTaken, Code::HostRemoved]);
    routes.add_resource(event_get, &[], |by, path: EventPath| async move { service::get(&by.ctx, &by.caller, path.event).await });
    routes.add_upload(
        event_update,
        &[Code::EventTaken, Code::EventCancelled, Code::EventOver],
        |ctx, caller, path: EventPath| async move { service::check_managed(&ctx, &caller, path.event).await },
    );
    routes.add(event_delete, &[Code::EventSold]);
    routes.add(event_submission_create, &[Code::EventNotDraft, Code::HostRemoved]);
    routes.add(event_withdrawal_create, &[Code::EventNotListed]);
    routes.add(event_cancellation_create, &[Code::EventNotListed]);
}

#[endpoint { method = GET, path = "/hosts/{host}/events", tags = ["Events"] }]
async fn host_event_list(
    _: Rq,
    request: ApiRequest<(Path<HostPath>, Query<HostEventQuery>)>,
) -> ApiResult<HttpResponseOk<Page<Event>>> {
    request
        .respond(|ctx, caller, (Path(path), Query(query))| async move {
            Ok(HttpResponseOk(service::list_of_host(&ctx, &caller, path.host, query).await?))
        })
        .await
}

#[endpoint { method = GET, path = "/accounts/{number}/events", tags = ["Events"] }]
async fn account_event_list(
    _: Rq,
    request: ApiRequest<(Path<AccountPath>, Query<EventFilter>)>,
) -> ApiResult<HttpResponseOk<Page<Event>>> {
    request
        .respond(|ctx, caller, (Path(path), Query(query))| async move {
            Ok(HttpResponseOk(service::list_of_account(&ctx, &caller, &path.number, &query).await?))
        })
        .await
}

#[endpoint { method = GET, path = "/published-events", tags = ["Events"] }]
async fn published_event_list(_: Rq, request: ApiRequest<Query<PublishedEventQuery>>) -> ApiResult<SerializedJson<Page<Event>>> {
    request.respond(|ctx, caller, Query(query)| async move { cache::list_published(&ctx, &caller, query).await }).await
}

#[endpoint { method = GET, path = "/events", tags = ["Events"] }]
async fn event_list(_: Rq, request: ApiRequest<Query<EventQuery>>) -> ApiResult<HttpResponseOk<Page<Event>>> {
    request
        .respond(|ctx, caller, Query(query)| async move { Ok(HttpResponseOk(service::list(&ctx, &caller, query).await?)) })
        .await
}

#[endpoint { method = POST, path = "/events", tags = ["Events"] }]
async fn event_create(_: Rq, request: ApiRequest<Json<EventCreate>>) -> ApiResult<Created<Event>> {
    request.respond(|ctx, caller, Json(body)| async move { Ok(Created(service::create(&ctx, &caller, &body).await?)) }).await
}

#[endpoint { method = GET, path = "/events/{event}", tags = ["Events"] }]
async fn event_get(_: Rq, request: ApiRequest<Path<EventPath>>) -> ApiResult<SerializedJson<Event>> {
    request.respond(|ctx, caller, Path(path)| async move { cache::get(&ctx, &caller, path.event).await }).await
}

#[endpoint { method = PUT, path = "/events/{event}", tags = ["Events"] }]
async fn event_update(_: Rq, request: ApiRequest<(Path<EventPath>, Json<EventUpdate>)>) -> ApiResult<HttpResponseOk<Event>> {
    request
        .respond(|ctx, caller, (Path(path), Json(body))| async move {
            Ok(HttpResponseOk(service::update(&ctx, &caller, path.event, &body).await?))
        })
        .await
}

#[endpoint { method = DELETE, path = "/events/{event}", tags = ["Events"] }]
async fn event_delete(_: Rq, request: ApiRequest<Path<EventPath>>) -> ApiResult<HttpResponseDeleted> {
    request
        .respond(|ctx, caller, Path(path)| async move {
            service::delete(&ctx, &caller, path.event).await?;
            Ok(HttpResponseDeleted())
        })
        .await
}

#[endpoint { method = POST, path = "/events/{event}/submissions", tags = ["Events"] }]
async fn event_submission_create(_: Rq, request: ApiRequest<Path<EventPath>>) -> ApiResult<Created<Submission>> {
    request.respond(|ctx, caller, Path(path)| async move { Ok(Created(service::submit(&ctx, &caller, path.event).await?)) }).await
}

#[endpoint { method = POST, path = "/events/{event}/withdrawals", tags = ["Events"] }]
async fn event_withdrawal_create(_: Rq, request: ApiRequest<Path<EventPath>>) -> ApiResult<HttpResponseOk<Event>> {
    request
        .respond(|ctx, caller, Path(path)| async move { Ok(HttpResponseOk(service::withdraw(&ctx, &caller, path.event).await?)) })
        .await
}

#[endpoint { method = POST, path = "/events/{event}/cancellations", tags = ["Events"] }]
async fn event_cancellation_create(_: Rq, request: ApiRequest<Path<EventPath>>) -> ApiResult<HttpResponseOk<Event>> {
    request
        .respond(|ctx, caller, Path(path)| async move { Ok(HttpResponseOk(service::cancel(&ctx, &caller, path.event).await?)) })
        .await
}
