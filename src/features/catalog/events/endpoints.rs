//! The event operations of the contract.

use dropshot::{HttpResponseDeleted, HttpResponseOk, endpoint};

use super::model::{Event, EventPath};
use super::requests::{EventCreate, EventFilter, EventQuery, EventUpdate, HostEventQuery, PublishedEventQuery};
use super::{service, cache};
use crate::features::identity::accounts::AccountPath;
use crate::kernel::auth::Caller;
use crate::kernel::types::paging::Page;
use boxoffice_http::error::Code;
use crate::features::catalog::hosts::HostPath;
use crate::kernel::http::{ApiError, Created, Json, Path, Query, Routes, Rq, SerializedJson};
use crate::features::catalog::review::Submission;

/// Adds these operations to the server.
pub fn register(api: &mut Routes) {
    api.add(host_event_list, &[]);
    api.add(account_event_list, &[]);
    api.add(published_event_list, &[]);
    api.add(event_list, &[]);
    api.add(event_create, &[Code::EventTaken, Code::HostRemoved]);
    api.add_resource(event_get, &[], |by, path: EventPath| async move { service::get(&by.app, &by.caller, path.event).await });
    api.add(event_update, &[Code::EventTaken, Code::EventCancelled, Code::EventOver]);
    api.add(event_delete, &[Code::EventSold]);
    api.add(event_submission_create, &[Code::EventNotDraft, Code::HostRemoved]);
    api.add(event_withdrawal_create, &[Code::EventNotListed]);
    api.add(event_cancellation_create, &[Code::EventNotListed]);
}

#[endpoint { method = GET, path = "/hosts/{host}/events", tags = ["Events"] }]
async fn host_event_list(
    rq: Rq,
    caller: Caller,
    path: Path<HostPath>,
    query: Query<HostEventQuery>,
) -> Result<HttpResponseOk<Page<Event>>, ApiError> {
    Ok(HttpResponseOk(service::list_of_host(rq.context(), &caller, path.0.host, query.0).await?))
}

#[endpoint { method = GET, path = "/accounts/{number}/events", tags = ["Events"] }]
async fn account_event_list(
    rq: Rq,
    caller: Caller,
    path: Path<AccountPath>,
    query: Query<EventFilter>,
) -> Result<HttpResponseOk<Page<Event>>, ApiError> {
    Ok(HttpResponseOk(service::list_of_account(rq.context(), &caller, &path.0.number, &query.0).await?))
}

#[endpoint { method = GET, path = "/published-events", tags = ["Events"] }]
async fn published_event_list(rq: Rq, query: Query<PublishedEventQuery>) -> Result<SerializedJson<Page<Event>>, ApiError> {
    Ok(cache::list_published(rq.context(), query.0).await?)
}

#[endpoint { method = GET, path = "/events", tags = ["Events"] }]
async fn event_list(rq: Rq, caller: Caller, query: Query<EventQuery>) -> Result<HttpResponseOk<Page<Event>>, ApiError> {
    Ok(HttpResponseOk(service::list(rq.context(), &caller, query.0).await?))
}

#[endpoint { method = POST, path = "/events", tags = ["Events"] }]
async fn event_create(rq: Rq, caller: Caller, body: Json<EventCreate>) -> Result<Created<Event>, ApiError> {
    Ok(Created(service::create(rq.context(), &caller, &body.0).await?))
}

#[endpoint { method = GET, path = "/events/{event}", tags = ["Events"] }]
async fn event_get(rq: Rq, caller: Caller, path: Path<EventPath>) -> Result<SerializedJson<Event>, ApiError> {
    Ok(cache::get(rq.context(), &caller, path.0.event).await?)
}

#[endpoint { method = PUT, path = "/events/{event}", tags = ["Events"] }]
async fn event_update(
    rq: Rq,
    caller: Caller,
    path: Path<EventPath>,
    body: Json<EventUpdate>,
) -> Result<HttpResponseOk<Event>, ApiError> {
    Ok(HttpResponseOk(service::update(rq.context(), &caller, path.0.event, &body.0).await?))
}

#[endpoint { method = DELETE, path = "/events/{event}", tags = ["Events"] }]
async fn event_delete(rq: Rq, caller: Caller, path: Path<EventPath>) -> Result<HttpResponseDeleted, ApiError> {
    service::delete(rq.context(), &caller, path.0.event).await?;
    Ok(HttpResponseDeleted())
}

#[endpoint { method = POST, path = "/events/{event}/submissions", tags = ["Events"] }]
async fn event_submission_create(rq: Rq, caller: Caller, path: Path<EventPath>) -> Result<Created<Submission>, ApiError> {
    Ok(Created(service::submit(rq.context(), &caller, path.0.event).await?))
}

#[endpoint { method = POST, path = "/events/{event}/withdrawals", tags = ["Events"] }]
async fn event_withdrawal_create(rq: Rq, caller: Caller, path: Path<EventPath>) -> Result<HttpResponseOk<Event>, ApiError> {
    Ok(HttpResponseOk(service::withdraw(rq.context(), &caller, path.0.event).await?))
}

#[endpoint { method = POST, path = "/events/{event}/cancellations", tags = ["Events"] }]
async fn event_cancellation_create(rq: Rq, caller: Caller, path: Path<EventPath>) -> Result<HttpResponseOk<Event>, ApiError> {
    Ok(HttpResponseOk(service::cancel(rq.context(), &caller, path.0.event).await?))
}
