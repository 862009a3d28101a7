//! HTTP endpoints of documents.

use boxoffice_http::error::{Code, Result};
use boxoffice_http::etag::etag_of;
use dropshot::{ApiEndpointResponse, Body, FreeformBody, HttpError, HttpResponse, HttpResponseHeaders, HttpResponseOk};
use http::{HeaderValue, Response, StatusCode, header};
use schemars::JsonSchema;
use serde::Serialize;

use super::service;
use crate::features::sales::orders::OrderPath;
use crate::kernel::auth::Caller;
use crate::kernel::http::{Path, Routes, get};
use crate::state::{App, Ctx};

/// Adds the endpoints to the route table.
pub fn register(routes: &mut Routes<App>) {
    routes.add(
        "Orders",
        [get("order_document_get", "/orders/{order}/tickets.pdf", order_document_get).errors(&[Code::TicketNotIssued])],
    );
}

async fn order_document_get(ctx: Ctx, caller: Caller, Path(path): Path<OrderPath>) -> Result<DocumentResponse> {
    Ok(DocumentResponse(service::of_order(&ctx, &caller, path.order.id()).await?))
}

/// A PDF in a response.
struct DocumentResponse(Vec<u8>);

/// The response header that the contract declares.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
struct DocumentResponseHeaders {
    etag: String,
}

impl HttpResponse for DocumentResponse {
    fn to_result(self) -> Result<Response<Body>, HttpError> {
        let etag = etag_of(&self.0);
        let etag = HeaderValue::try_from(etag).map_err(|error| HttpError::for_internal_error(error.to_string()))?;
        let mut response = Response::new(Body::from(self.0));
        let headers = response.headers_mut();
        headers.insert(header::ETAG, etag);
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/pdf"));
        headers.insert(header::CONTENT_DISPOSITION, HeaderValue::from_static("attachment; filename=\"tickets.pdf\""));
        headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        // The codes admit everybody who has them.
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        Ok(response)
    }

    fn response_metadata() -> ApiEndpointResponse {
        HttpResponseHeaders::<HttpResponseOk<FreeformBody>, DocumentResponseHeaders>::response_metadata()
    }

    fn status_code(&self) -> StatusCode {
        StatusCode::OK
    }
}
