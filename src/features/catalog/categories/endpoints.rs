//! HTTP endpoints of categories.

use boxoffice_http::error::Result;

use super::model::{Category, CategoryCreate, CategoryPath, CategoryUpdate};
use super::service;
use crate::features::codes;
use crate::kernel::http::{Created, HttpResponseDeleted, Json, Path, Query, Routes, delete, get, post, put};
use crate::kernel::types::paging::{Page, PageRequest};
use crate::state::{App, Ctx};

/// Adds the endpoints to the route table.
pub fn register(routes: &mut Routes<App>) {
    routes.add(
        "Categories",
        [
            get("category_list", "/categories", category_list),
            post("category_create", "/categories", category_create).errors(&[codes::CATEGORY_TAKEN]),
            get("category_get", "/categories/{category}", category_get),
            put("category_update", "/categories/{category}", category_update)
                .errors(&[codes::CATEGORY_TAKEN, codes::CATEGORY_IN_USE]),
            delete("category_delete", "/categories/{category}", category_delete).errors(&[codes::CATEGORY_IN_USE]),
        ],
    );
}

async fn category_list(ctx: Ctx, query: Query<PageRequest>) -> Result<Page<Category>> {
    service::list(&ctx, query.0).await
}

async fn category_create(ctx: Ctx, body: Json<CategoryCreate>) -> Result<Created<Category>> {
    Ok(Created(service::create(&ctx, &body).await?))
}

async fn category_get(ctx: Ctx, path: Path<CategoryPath>) -> Result<Category> {
    service::get(&ctx, path.category).await
}

async fn category_update(ctx: Ctx, path: Path<CategoryPath>, body: Json<CategoryUpdate>) -> Result<Category> {
    service::update(&ctx, path.category, &body).await
}

async fn category_delete(ctx: Ctx, path: Path<CategoryPath>) -> Result<HttpResponseDeleted> {
    service::delete(&ctx, path.category).await.map(|()| HttpResponseDeleted())
}
