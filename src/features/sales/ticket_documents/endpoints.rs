//! HTTP endpoints of documents.

use boxoffice_http::error::Result;

use super::service;
use crate::features::codes;
use crate::features::sales::orders::OrderPath;
use crate::kernel::auth::Caller;
use crate::kernel::http::{FileResponse, Path, Routes, get};
use crate::state::{App, Ctx};

/// Adds the endpoints to the route table.
pub fn register(routes: &mut Routes<App>) {
    routes.add(
        "Orders",
        [get("order_document_get", "/orders/{order}/tickets.pdf", order_document_get).errors(&[codes::TICKET_NOT_ISSUED])],
    );
}

async fn order_document_get(ctx: Ctx, caller: Caller, path: Path<OrderPath>) -> Result<FileResponse> {
    let content = service::of_order(&ctx, &caller, path.order.0).await?;
    // A code admits the first person who shows it.
    Ok(FileResponse { content, media_type: "application/pdf", name: "tickets.pdf", is_secret: true })
}
