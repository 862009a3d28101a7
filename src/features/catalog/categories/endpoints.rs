//! HTTP endpoints of categories.

use boxoffice_http::error::Code;
use dropshot::{HttpResponseDeleted, HttpResponseOk, endpoint};

use super::model::{Category, CategoryCreate, CategoryPath, CategoryUpdate};
use super::service;
use crate::kernel::http::{ApiResult, Created, Json, Path, Query, Routes};
use crate::kernel::types::paging::{Page, PageRequest};
use crate::state::{ApiRequest, App, Rq};

/// Adds the endpoints to the route table.
pub fn register(routes: &mut Routes<App>) {
    routes.add(category_list, &[]);
    routes.add(category_create, &[Code::CategoryTaken]);
    routes.add_resource(category_get, &[], |by, path: CategoryPath| async move { service::get(&by.ctx, path.category).await });
    routes.add(category_update, &[Code::CategoryTaken, Code::CategoryInUse]);
    routes.add(category_delete, &[Code::CategoryInUse]);
}

#[endpoint { method = GET, path = "/categories", tags = ["Categories"] }]
async fn category_list(_: Rq, request: ApiRequest<Query<PageRequest>>) -> ApiResult<HttpResponseOk<Page<Category>>> {
    request.respond(|ctx, _, Query(query)| async move { Ok(HttpResponseOk(service::list(&ctx, query).await?)) }).await
}

#[endpoint { method = POST, path = "/categories", tags = ["Categories"] }]
async fn category_create(_: Rq, request: ApiRequest<Json<CategoryCreate>>) -> ApiResult<Created<Category>> {
    request.respond(|ctx, _, Json(body)| async move { Ok(Created(service::create(&ctx, &body).await?)) }).await
}

#[endpoint { method = GET, path = "/categories/{category}", tags = ["Categories"] }]
async fn category_get(_: Rq, request: ApiRequest<Path<CategoryPath>>) -> ApiResult<HttpResponseOk<Category>> {
    request.respond(|ctx, _, Path(path)| async move { Ok(HttpResponseOk(service::get(&ctx, path.category).await?)) }).await
}

#[endpoint { method = PUT, path = "/categories/{category}", tags = ["Categories"] }]
async fn category_update(
    _: Rq,
    request: ApiRequest<(Path<CategoryPath>, Json<CategoryUpdate>)>,
) -> ApiResult<HttpResponseOk<Category>> {
    request
        .respond(|ctx, _, (Path(path), Json(body))| async move {
            Ok(HttpResponseOk(service::update(&ctx, path.category, &body).await?))
        })
        .await
}

#[endpoint { method = DELETE, path = "/categories/{category}", tags = ["Categories"] }]
async fn category_delete(_: Rq, request: ApiRequest<Path<CategoryPath>>) -> ApiResult<HttpResponseDeleted> {
    request
        .respond(|ctx, _, Path(path)| async move {
            service::delete(&ctx, path.category).await?;
            Ok(HttpResponseDeleted())
        })
        .await
}
