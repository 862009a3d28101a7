//! The category operations of the contract.

use dropshot::{HttpResponseDeleted, HttpResponseOk, endpoint};

use super::model::{Category, CategoryCreate, CategoryPath, CategoryUpdate};
use super::service;
use crate::kernel::types::paging::{Page, PageRequest};
use boxoffice_http::error::Code;
use crate::kernel::http::{ApiError, Created, Json, Path, Query, Routes, Rq};

/// Adds these operations to the server.
pub fn register(api: &mut Routes) {
    api.add(category_list, &[]);
    api.add(category_create, &[Code::CategoryTaken]);
    api.add_resource(category_get, &[], |by, path: CategoryPath| async move { service::get(&by.app, path.category).await });
    api.add(category_update, &[Code::CategoryTaken, Code::CategoryInUse]);
    api.add(category_delete, &[Code::CategoryInUse]);
}

#[endpoint { method = GET, path = "/categories", tags = ["Categories"] }]
async fn category_list(rq: Rq, query: Query<PageRequest>) -> Result<HttpResponseOk<Page<Category>>, ApiError> {
    Ok(HttpResponseOk(service::list(rq.context(), query.0).await?))
}

#[endpoint { method = POST, path = "/categories", tags = ["Categories"] }]
async fn category_create(rq: Rq, body: Json<CategoryCreate>) -> Result<Created<Category>, ApiError> {
    Ok(Created(service::create(rq.context(), &body.0).await?))
}

#[endpoint { method = GET, path = "/categories/{category}", tags = ["Categories"] }]
async fn category_get(rq: Rq, path: Path<CategoryPath>) -> Result<HttpResponseOk<Category>, ApiError> {
    Ok(HttpResponseOk(service::get(rq.context(), path.0.category).await?))
}

#[endpoint { method = PUT, path = "/categories/{category}", tags = ["Categories"] }]
async fn category_update(
    rq: Rq,
    path: Path<CategoryPath>,
    body: Json<CategoryUpdate>,
) -> Result<HttpResponseOk<Category>, ApiError> {
    Ok(HttpResponseOk(service::update(rq.context(), path.0.category, &body.0).await?))
}

#[endpoint { method = DELETE, path = "/categories/{category}", tags = ["Categories"] }]
async fn category_delete(rq: Rq, path: Path<CategoryPath>) -> Result<HttpResponseDeleted, ApiError> {
    service::delete(rq.context(), path.0.category).await?;
    Ok(HttpResponseDeleted())
}
