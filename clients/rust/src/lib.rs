//! A typed client of the boxoffice ticketing API, generated from its OpenAPI document at build time.
//!
//! Every operation is a method of [`Client`] named after its operationId, which returns a builder; every schema is a type in
//! [`types`]. The client sends the key and the version with each request.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use boxoffice_client::Client;
//!
//! let application = Client::connect("http://127.0.0.1:8080", "the application's key")?;
//! let session = application.session_create().body_map(|body| body.identification("ama").password("a good one")).send().await?;
//! let ama = Client::connect("http://127.0.0.1:8080", &session.key)?;
//! for event in &ama.published_event_list().active(true).send().await?.entries {
//!     println!("{} at {}", event.title, event.venue.name);
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # Later versions of the server
//!
//! A later version of the server may send error codes, states and other values that this client doesn't know. They are the variant
//! `Unknown` of their type, with the value (`Other` if the contract lists a value `unknown`). Properties that the client doesn't
//! know are ignored.
//!
//! A later version of this package may have more values and properties, too. So the types are `#[non_exhaustive]`: make a value with
//! its builder, for example `types::OrderCreate::builder()`, and match other values with `_`.
//!
//! # Bodies
//!
//! `body_map` sets the properties of a body. A body that is made elsewhere is a value of its type. `try_into` finishes a builder, and
//! is an error if a property is missing:
//!
//! ```no_run
//! # async fn example(ama: boxoffice_client::Client) -> Result<(), Box<dyn std::error::Error>> {
//! use std::collections::HashMap;
//!
//! use boxoffice_client::types::OrderCreate;
//!
//! let order: OrderCreate = OrderCreate::builder().items(HashMap::from([("/sections/17637000000062".to_owned(), 2)])).try_into()?;
//! ama.order_create().body(order).send().await?;
//! # Ok(())
//! # }
//! ```
//!
//! # Retries
//!
//! A request without a response, or with one that reports a temporary error, is retried ([`RetryPolicy`]). To prevent duplicates,
//! every POST and PATCH has an `Idempotency-Key`. The client generates it unless the caller sets one (`idempotency_key`), with
//! which the request can be repeated even after a restart.
//!
//! After a lost response, a retry may be rejected because of the first attempt's own change: a PUT or DELETE with `If-Match` with
//! 412, and a `submission_delete` with 409. Read the resource again to find out. A request that ends the caller's own access, such as
//! an `account_delete` of the own account, is rejected with 403. A PUT without `If-Match` is executed again and may overwrite a change
//! that another client made in between.
//!
//! # Lists
//!
//! A list operation returns one page. [`List::stream`] reads page after page, each when its first entry is needed, so `take` bounds
//! the number of requests:
//!
//! ```no_run
//! # async fn example(ama: boxoffice_client::Client) -> Result<(), Box<dyn std::error::Error>> {
//! use boxoffice_client::List;
//! use futures::{StreamExt, TryStreamExt};
//!
//! let mut events = std::pin::pin!(ama.published_event_list().active(true).records(100).stream().take(1000));
//! while let Some(event) = events.try_next().await? {
//!     println!("{} at {}", event.title, event.venue.name);
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # Downloads
//!
//! Exports, PDFs and images are a [`ByteStream`], whose parts are read as they arrive. An item is an `Err` if the rest doesn't come,
//! so what was read until then is incomplete. There is no retry then: send the request again.
//!
//! ```no_run
//! # async fn example(kofi: boxoffice_client::Client) -> Result<(), Box<dyn std::error::Error>> {
//! use std::fs::File;
//! use std::io::Write;
//!
//! use futures::TryStreamExt;
//!
//! let mut export = kofi.event_order_export_get().event("17637000000051").send().await?.into_inner().into_inner();
//! let mut file = File::create("orders.csv")?;
//! while let Some(part) = export.try_next().await? {
//!     file.write_all(&part)?;
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # Conditional requests
//!
//! Responses to reads have an entity tag ([`HasEtag`]). With the tag, a client reads a resource only if it has changed, or
//! changes it only if it has not:
//!
//! ```no_run
//! # async fn example(ama: boxoffice_client::Client) -> Result<(), Box<dyn std::error::Error>> {
//! use boxoffice_client::{HasEtag, IfChanged};
//!
//! let mut host = ama.host_get().host("17637000000041").send().await?;
//! let etag = host.etag().unwrap_or_default().to_owned();
//! if let Some(changed) = ama.host_get().host("17637000000041").if_none_match(&*etag).send().await.if_changed()? {
//!     host = changed;
//! }
//! let update = ama.host_update().host("17637000000041").if_match(host.etag().unwrap_or_default());
//! update.body_map(|body| body.name("Accra Live".to_owned())).send().await?;
//! # Ok(())
//! # }
//! ```
//!
//! # Changes
//!
//! A PUT changes the properties that it contains. An empty text clears an optional text. Other properties that can be cleared have
//! the type [`Change`]:
//!
//! ```no_run
//! # async fn example(kofi: boxoffice_client::Client) -> Result<(), Box<dyn std::error::Error>> {
//! use boxoffice_client::Change;
//!
//! let update = kofi.section_update().event("17637000000051").section("17637000000062");
//! update.body_map(|body| body.capacity(80).maximum_per_account(Change::Clear)).send().await?;
//! # Ok(())
//! # }
//! ```
//!
//! # Redirects
//!
//! The client doesn't follow redirects, because the server that they lead to would receive the key. The API never redirects, so
//! a redirect is an [`Error::UnexpectedResponse`]: usually the address of the server is wrong, such as `http` in place of `https`.
//!
//! # Errors
//!
//! Each operation returns an [`Error`], with the response. An error response that is not one of the API, such as that of a load
//! balancer, is an [`Error::UnexpectedResponse`]. [`ApiError`] is a summary on one line, with the status, the code and the request's
//! identifier. `?` converts the one to the other:
//!
//! ```no_run
//! use boxoffice_client::{ApiError, Client};
//!
//! async fn first_region(client: &Client) -> Result<Option<String>, ApiError> {
//!     Ok(client.region_list().send().await?.entries.first().map(|region| region.name.clone()))
//! }
//! ```
//!
//! An identifier that is empty, `.` or `..` is an [`Error::InvalidRequest`], and nothing is sent: the request would be one for another
//! resource.
//!
//! # Proxies and certificates
//!
//! [`ClientBuilder`] creates a client with a proxy, another certificate authority or another retry policy. Their types are those of
//! [`reqwest`], which this package exports in the version that it uses.
//!
//! # Programs without asynchronous code
//!
//! There is no blocking client: the generated operations are asynchronous, and a second set would double the size of the package. A
//! program runs a single operation with a runtime of its own (tokio with the feature `rt`):
//!
//! ```no_run
//! use boxoffice_client::Client;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
//! let client = Client::connect("http://127.0.0.1:8080", "the application's key")?;
//! let regions = runtime.block_on(client.region_list().send())?;
//! println!("{} regions", regions.total);
//! # Ok(())
//! # }
//! ```

mod change;
mod client_builder;
mod conditions;
mod errors;
mod identifiers;
mod lists;
mod retries;

use std::fmt;

#[expect(missing_docs, clippy::allow_attributes, clippy::allow_attributes_without_reason, reason = "generated")]
mod generated {
    include!(concat!(env!("OUT_DIR"), "/generated.rs"));
}

pub use change::Change;
pub use client_builder::ClientBuilder;
pub use conditions::{HasEtag, IfChanged};
pub use errors::ApiError;
pub use generated::*;
pub use lists::{List, Page};
// The types of proxies, certificates, statuses and errors.
pub use reqwest;
pub use retries::RetryPolicy;

/// The example of the README, compiled with the documentation's tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

/// API version for which this client was generated.
pub const VERSION: &str = "3.0.0";

/// The error of creating a client.
#[derive(Debug)]
pub enum ConnectError {
    /// The key or version contains characters that a header can't have.
    Key,
    /// The HTTP client can't be initialized on this machine.
    Http(reqwest::Error),
}

impl fmt::Display for ConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Key => f.write_str("the key contains characters that a header can't have"),
            Self::Http(error) => write!(f, "the HTTP client can't be initialized: {error}"),
        }
    }
}

impl std::error::Error for ConnectError {}

impl Client {
    /// Creates a client of the server at `address` with the key of an application, a session or an admission token. Sends nothing
    /// yet.
    ///
    /// # Errors
    /// Returns an error if the key can't be sent or the HTTP client can't be initialized.
    pub fn connect(address: &str, key: &str) -> Result<Self, ConnectError> {
        Self::connect_as(address, key, VERSION)
    }

    /// Creates a client that expects another `version` of the API.
    ///
    /// # Errors
    /// Returns an error if the key or the version can't be sent or the HTTP client can't be initialized.
    pub fn connect_as(address: &str, key: &str, version: &str) -> Result<Self, ConnectError> {
        ClientBuilder::new(address, key).version(version).build()
    }
}
