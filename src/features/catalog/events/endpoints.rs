//! HTTP endpoints of events.

use boxoffice_http::error::Result;

use super::model::{Event, EventPath};
use super::requests::{EventCreate, EventFilter, EventQuery, EventUpdate, HostEventQuery, PublishedEventQuery};
use super::{cached_reads, calendar, lists, permissions, service};
use crate::features::catalog::hosts::HostPath;
use crate::features::catalog::review::Submission;
use crate::features::codes;
use crate::features::identity::accounts::AccountPath;
use crate::kernel::auth::Caller;
use crate::kernel::http::{
    Created, FileResponse, HttpResponseDeleted, Json, Path, Query, Routes, SerializedJson, delete, get, post, put,
};
use crate::kernel::types::paging::Page;
use crate::state::{App, Ctx};

/// Adds the endpoints to the route table.
pub fn register(routes: &mut Routes<App>) {
    routes.add(
        "Events",
        [
            get("host_event_list", "/hosts/{host}/events", host_event_list),
            get("account_event_list", "/accounts/{number}/events", account_event_list),
            get("published_event_list", "/published-events", published_event_list),
            get("event_list", "/events", event_list),
            post("event_create", "/events", event_create).errors(&[codes::EVENT_TAKEN, codes::HOST_REMOVED]),
            get("event_get", "/events/{event}", event_get).read_for_if_match(event_get_uncached),
            get("event_calendar_get", "/events/{event}/calendar.ics", event_calendar_get),
            put("event_update", "/events/{event}", event_update)
                .errors(&[codes::EVENT_TAKEN, codes::EVENT_CANCELLED, codes::EVENT_OVER])
                .check_access(|ctx, caller, path: EventPath| async move {
                    permissions::check_managed(&ctx, &caller, path.event).await
                }),
            delete("event_delete", "/events/{event}", event_delete).errors(&[codes::EVENT_SOLD]),
            post("event_submission_create", "/events/{event}/submissions", event_submission_create)
                .errors(&[codes::EVENT_NOT_DRAFT, codes::HOST_REMOVED]),
            post("event_withdrawal_create", "/events/{event}/withdrawals", event_withdrawal_create)
                .errors(&[codes::EVENT_NOT_LISTED]),
            post("event_cancellation_create", "/events/{event}/cancellations", event_cancellation_create)
                .errors(&[codes::EVENT_NOT_LISTED]),
        ],
    );
}

async fn host_event_list(
    ctx: Ctx,
    caller: Caller,
    path: Path<HostPath>,
    query: Query<HostEventQuery>,
) -> Result<SerializedJson<Page<Event>>> {
    lists::list_of_host(&ctx, &caller, path.host, query.0).await
}

async fn account_event_list(ctx: Ctx, caller: Caller, path: Path<AccountPath>, query: Query<EventFilter>) -> Result<Page<Event>> {
    service::list_of_account(&ctx, &caller, &path.number, &query).await
}

async fn published_event_list(
    ctx: Ctx,
    caller: Caller,
    query: Query<PublishedEventQuery>,
) -> Result<SerializedJson<Page<Event>>> {
    cached_reads::list_published(&ctx, &caller, query.0).await
}

async fn event_list(ctx: Ctx, caller: Caller, query: Query<EventQuery>) -> Result<SerializedJson<Page<Event>>> {
    lists::list(&ctx, &caller, query.0).await
}

async fn event_create(ctx: Ctx, caller: Caller, body: Json<EventCreate>) -> Result<Created<Event>> {
    Ok(Created(service::create(&ctx, &caller, &body).await?))
}

async fn event_get(ctx: Ctx, caller: Caller, path: Path<EventPath>) -> Result<SerializedJson<Event>> {
    cached_reads::get(&ctx, &caller, path.event).await
}

async fn event_calendar_get(ctx: Ctx, caller: Caller, path: Path<EventPath>) -> Result<FileResponse> {
    let content = calendar::get(&ctx, &caller, path.event).await?.into_bytes();
    Ok(FileResponse { content, media_type: "text/calendar; charset=utf-8", name: "event.ics", is_secret: false })
}

/// The same for `If-Match`, which must not read from the cache: the event's row may be locked and changed by now.
async fn event_get_uncached(ctx: Ctx, caller: Caller, path: Path<EventPath>) -> Result<Event> {
    service::get(&ctx, &caller, path.event).await
}

async fn event_update(ctx: Ctx, caller: Caller, path: Path<EventPath>, body: Json<EventUpdate>) -> Result<Event> {
    service::update(&ctx, &caller, path.event, &body).await
}

async fn event_delete(ctx: Ctx, caller: Caller, path: Path<EventPath>) -> Result<HttpResponseDeleted> {
    service::delete(&ctx, &caller, path.event).await.map(|()| HttpResponseDeleted())
}

async fn event_submission_create(ctx: Ctx, caller: Caller, path: Path<EventPath>) -> Result<Created<Submission>> {
    Ok(Created(service::submit(&ctx, &caller, path.event).await?))
}

async fn event_withdrawal_create(ctx: Ctx, caller: Caller, path: Path<EventPath>) -> Result<Event> {
    service::withdraw(&ctx, &caller, path.event).await
}

async fn event_cancellation_create(ctx: Ctx, caller: Caller, path: Path<EventPath>) -> Result<Event> {
    service::cancel(&ctx, &caller, path.event).await
}
