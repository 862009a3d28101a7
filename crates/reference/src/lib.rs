//! The pages of an OpenAPI document: a start page, a reference with code samples where requests can be tried, and the document itself.
//! They need no key.

mod code_samples;
mod html;

use std::collections::HashMap;
use std::sync::Arc;

use anyhow::Context as _;
use boxoffice_http::error::Error;
use boxoffice_http::etag::etag_of;
use boxoffice_http::{ApiError, error_response};
use boxoffice_openapi::Contract;
use bytes::Bytes;
use dropshot::Body;
use futures::FutureExt;
use futures::future::BoxFuture;
use http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use serde_json::{Value, json};
use tokio::sync::OnceCell;
use tokio::task::spawn_blocking;

/// The paths of all pages and of their parts. They refer to each other with relative URLs, so that a proxy can add a prefix.
pub const PATHS: [&str; 9] = [
    "/",
    html::REFERENCE,
    html::REFERENCE_FOLDER,
    html::EXPLORER,
    html::LOADER,
    html::STYLE_SHEET,
    html::ICON,
    "/openapi.json",
    "/openapi.yaml",
];

/// Nothing but the style sheet and the icon.
const START_POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; style-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
);
/// Scripts and requests of this server alone. The components of the reference write their own styles into the page.
const REFERENCE_POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; script-src 'self'; connect-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; \
     base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
);
/// Caches may keep a page, and ask with its tag before each use.
const CACHE_CONTROL: HeaderValue = HeaderValue::from_static("public, no-cache");

/// The pages of one document. They are rendered at the first request.
#[derive(Debug)]
pub struct ReferencePages {
    contract: Arc<Contract>,
    /// The address of the server, without a slash at its end.
    address: String,
    pages: OnceCell<HashMap<&'static str, ReferencePage>>,
}

/// A rendered page.
#[derive(Debug)]
struct ReferencePage {
    status: StatusCode,
    headers: HeaderMap,
    body: Bytes,
}

impl ReferencePage {
    fn new(media_type: &'static str, body: impl Into<Bytes>) -> anyhow::Result<Self> {
        let body = body.into();
        let tag = HeaderValue::try_from(etag_of(&body))?;
        let media_type = HeaderValue::from_static(media_type);
        let headers = [(header::CONTENT_TYPE, media_type), (header::ETAG, tag), (header::CACHE_CONTROL, CACHE_CONTROL)];
        Ok(Self { status: StatusCode::OK, headers: headers.into_iter().collect(), body })
    }

    /// Leads to the page at this relative URL.
    fn redirect(location: &'static str) -> Self {
        let headers = [(header::LOCATION, HeaderValue::from_static(location)), (header::CACHE_CONTROL, CACHE_CONTROL)];
        Self { status: StatusCode::PERMANENT_REDIRECT, headers: headers.into_iter().collect(), body: Bytes::new() }
    }

    fn html(html: String, policy: HeaderValue) -> anyhow::Result<Self> {
        let mut page = Self::new("text/html; charset=utf-8", html)?;
        page.headers.insert(header::CONTENT_SECURITY_POLICY, policy);
        Ok(page)
    }

    fn respond(&self) -> Response<Body> {
        let mut response = Response::new(Body::from(self.body.clone()));
        *response.status_mut() = self.status;
        *response.headers_mut() = self.headers.clone();
        response
    }
}

impl ReferencePages {
    /// Creates the pages of a document, for a server at this address.
    pub fn new(contract: Arc<Contract>, address: &str) -> Self {
        Self { contract, address: address.trim_end_matches('/').to_owned(), pages: OnceCell::new() }
    }

    /// Begins the response to a GET of one of the [`PATHS`].
    pub fn respond(self: &Arc<Self>, path: &'static str) -> BoxFuture<'static, Response<Body>> {
        let pages = Arc::clone(self);
        async move { pages.read(path).await.unwrap_or_else(|error| error_response(&error)) }.boxed()
    }

    async fn read(self: &Arc<Self>, path: &str) -> Result<Response<Body>, ApiError> {
        let render = async || {
            let pages = Arc::clone(self);
            // A large document takes long.
            spawn_blocking(move || pages.render()).await.context("the pages were not rendered")?
        };
        let pages = self.pages.get_or_try_init(render).await.map_err(Error::from)?;
        Ok(pages.get(path).context("there is no such page").map_err(Error::from)?.respond())
    }

    fn render(&self) -> anyhow::Result<HashMap<&'static str, ReferencePage>> {
        let document = self.document();
        let pages = [
            ReferencePage::html(html::start_page(&document), START_POLICY)?,
            ReferencePage::html(html::reference_page(&document), REFERENCE_POLICY)?,
            // The page refers to its files with URLs that are relative to the path without a slash.
            ReferencePage::redirect("../docs"),
            ReferencePage::new("text/javascript; charset=utf-8", html::EXPLORER_SCRIPT)?,
            ReferencePage::new("text/javascript; charset=utf-8", html::LOADER_SCRIPT)?,
            ReferencePage::new("text/css; charset=utf-8", html::STYLES)?,
            ReferencePage::new("image/svg+xml", html::ICON_IMAGE)?,
            ReferencePage::new("application/json", document.to_string())?,
            ReferencePage::new("application/yaml", serde_yaml_ng::to_string(&document)?)?,
        ];
        Ok(PATHS.into_iter().zip(pages).collect())
    }

    /// Returns the document with this server as its first one, and with code samples.
    fn document(&self) -> Value {
        let mut document = self.contract.document.clone();
        let server = json!({ "url": self.address, "description": "This server." });
        match document["servers"].as_array_mut() {
            Some(servers) => servers.insert(0, server),
            None => document["servers"] = json!([server]),
        }
        code_samples::add(&mut document, &self.contract, &self.address);
        document
    }
}
