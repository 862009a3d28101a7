//! HTTP endpoints of submissions and their review.

use boxoffice_http::error::Result;

use super::model::{Decision, Submission, SubmissionFilter, SubmissionPath};
use super::service;
use crate::features::codes;
use crate::kernel::http::{Path, Query, Routes, delete, get};
use crate::kernel::types::paging::Page;
use crate::state::{App, Ctx};

/// Adds the endpoints to the route table.
pub fn register(routes: &mut Routes<App>) {
    routes.add(
        "Review",
        [
            get("submission_list", "/submissions", submission_list),
            get("submission_get", "/submissions/{submission}", submission_get),
            delete("submission_delete", "/submissions/{submission}", submission_delete).errors(&[
                codes::SUBMISSION_DECIDED,
                codes::HOST_REMOVED,
                codes::EVENT_CANCELLED,
                codes::EVENT_OVER,
            ]),
        ],
    );
}

async fn submission_list(ctx: Ctx, query: Query<SubmissionFilter>) -> Result<Page<Submission>> {
    service::list(&ctx, &query).await
}

async fn submission_get(ctx: Ctx, path: Path<SubmissionPath>) -> Result<Submission> {
    service::get(&ctx, &path.submission).await
}

async fn submission_delete(ctx: Ctx, path: Path<SubmissionPath>, query: Query<Decision>) -> Result<Submission> {
    service::decide(&ctx, &path.submission, &query).await
}
