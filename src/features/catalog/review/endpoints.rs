//! The review operations of the contract.

use dropshot::{HttpResponseOk, endpoint};

use super::model::{Decision, Submission, SubmissionFilter, SubmissionPath};
use super::service;
use crate::kernel::types::paging::Page;
use boxoffice_http::error::Code;
use crate::kernel::http::{ApiError, Path, Query, Routes, Rq};

/// Adds these operations to the server.
pub fn register(api: &mut Routes) {
    api.add(submission_list, &[]);
    api.add_resource(
        submission_get,
        &[],
        |by, path: SubmissionPath| async move { service::get(&by.app, &path.submission).await },
    );
    api.add(submission_delete, &[Code::SubmissionDecided, Code::HostRemoved, Code::EventCancelled, Code::EventOver]);
}

#[endpoint { method = GET, path = "/submissions", tags = ["Review"] }]
async fn submission_list(rq: Rq, query: Query<SubmissionFilter>) -> Result<HttpResponseOk<Page<Submission>>, ApiError> {
    Ok(HttpResponseOk(service::list(rq.context(), &query.0).await?))
}

#[endpoint { method = GET, path = "/submissions/{submission}", tags = ["Review"] }]
async fn submission_get(rq: Rq, path: Path<SubmissionPath>) -> Result<HttpResponseOk<Submission>, ApiError> {
    Ok(HttpResponseOk(service::get(rq.context(), &path.0.submission).await?))
}

#[endpoint { method = DELETE, path = "/submissions/{submission}", tags = ["Review"] }]
async fn submission_delete(
    rq: Rq,
    path: Path<SubmissionPath>,
    query: Query<Decision>,
) -> Result<HttpResponseOk<Submission>, ApiError> {
    Ok(HttpResponseOk(service::decide(rq.context(), &path.0.submission, &query.0).await?))
}
