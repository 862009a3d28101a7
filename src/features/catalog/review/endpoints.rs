//! HTTP endpoints of submissions and their review.

use boxoffice_http::error::Code;
use dropshot::{HttpResponseOk, endpoint};

use super::model::{Decision, Submission, SubmissionFilter, SubmissionPath};
use super::service;
use crate::kernel::http::{ApiResult, Path, Query, Routes};
use crate::kernel::types::paging::Page;
use crate::state::{ApiRequest, App, Rq};

/// Adds the endpoints to the route table.
pub fn register(routes: &mut Routes<App>) {
    routes.add(submission_list, &[]);
    routes.add_resource(
        submission_get,
        &[],
        |by, path: SubmissionPath| async move { service::get(&by.ctx, &path.submission).await },
    );
    routes.add(submission_delete, &[Code::SubmissionDecided, Code::HostRemoved, Code::EventCancelled, Code::EventOver]);
}

#[endpoint { method = GET, path = "/submissions", tags = ["Review"] }]
async fn submission_list(_: Rq, request: ApiRequest<Query<SubmissionFilter>>) -> ApiResult<HttpResponseOk<Page<Submission>>> {
    request.respond(|ctx, _, Query(query)| async move { Ok(HttpResponseOk(service::list(&ctx, &query).await?)) }).await
}

#[endpoint { method = GET, path = "/submissions/{submission}", tags = ["Review"] }]
async fn submission_get(_: Rq, request: ApiRequest<Path<SubmissionPath>>) -> ApiResult<HttpResponseOk<Submission>> {
    request.respond(|ctx, _, Path(path)| async move { Ok(HttpResponseOk(service::get(&ctx, &path.submission).await?)) }).await
}

#[endpoint { method = DELETE, path = "/submissions/{submission}", tags = ["Review"] }]
async fn submission_delete(
    _: Rq,
    request: ApiRequest<(Path<SubmissionPath>, Query<Decision>)>,
) -> ApiResult<HttpResponseOk<Submission>> {
    request
        .respond(|ctx, _, (Path(path), Query(query))| async move {
            Ok(HttpResponseOk(service::decide(&ctx, &path.submission, &query).await?))
        })
        .await
}
