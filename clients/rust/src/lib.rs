//! A typed client of the boxoffice ticketing API, generated from its OpenAPI document at build time.
//!
//! Every operation is a method of [`Client`] named by its operationId, which gives a builder; every schema is a type of [`types`].
//! The client sends the key and the version with each request.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use boxoffice_client::Client;
//!
//! let visitor = Client::connect("http://127.0.0.1:8080", "the application's key")?;
//! let session = visitor.session_create().body_map(|body| body.identification("ama").password("a good one")).send().await?;
//! let ama = Client::connect("http://127.0.0.1:8080", &session.key)?;
//! for event in &ama.published_event_list().active(true).send().await?.entries {
//!     println!("{} at {}", event.title, event.venue.name);
//! }
//! # Ok(())
//! # }
//! ```
//!
//! A request whose answer doesn't come, or tells that the server can't do it now, is sent again ([`RetryPolicy`]). So that nothing is
//! done twice, every POST and PATCH carries an `Idempotency-Key`: one of the client's own making, or the caller's
//! (`idempotency_key`), who can then ask once more even after a restart. What is lost beyond that is an error.
//!
//! When an answer was lost, a PUT or DELETE with an `If-Match` may be refused (412) for what it has done itself, and a
//! `submission_delete` (409) for its own decision: read again, and see. A PUT without an `If-Match` is carried out again, and so
//! may undo what somebody else has changed in between.
//!
//! Whoever reads gets a tag of the content with it ([`HasEtag`]), and with the tag asks only for what has changed since, or changes
//! only what has not:
//!
//! ```no_run
//! # async fn example(ama: boxoffice_client::Client) -> Result<(), Box<dyn std::error::Error>> {
//! use boxoffice_client::{IfChanged, HasEtag};
//!
//! let mut host = ama.host_get().host("17637000000041").send().await?;
//! let tag = host.tag().unwrap_or_default().to_owned();
//! if let Some(changed) = ama.host_get().host("17637000000041").if_none_match(&*tag).send().await.if_changed()? {
//!     host = changed;
//! }
//! let update = ama.host_update().host("17637000000041").if_match(host.tag().unwrap_or_default());
//! update.body_map(|body| body.name("Accra Live".to_owned())).send().await?;
//! # Ok(())
//! # }
//! ```

mod conditions;
mod retries;

use std::fmt;

use reqwest::header::{HeaderMap, HeaderValue};

#[expect(
    missing_docs,
    clippy::allow_attributes,
    clippy::allow_attributes_without_reason,
    clippy::unwrap_used,
    reason = "generated"
)]
mod generated {
    include!(concat!(env!("OUT_DIR"), "/generated.rs"));
}

pub use conditions::{HasEtag, IfChanged};
pub use generated::*;
pub use retries::RetryPolicy;

/// The version of the API that this client was generated for.
pub const VERSION: &str = "3.0.0";

/// Why a client can't be made.
#[derive(Debug)]
pub enum ConnectError {
    /// The key has characters that no header can carry.
    Key,
    /// The HTTP client can't be set up on this machine.
    Http(reqwest::Error),
}

impl fmt::Display for ConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Key => f.write_str("the key has characters that no header can carry"),
            Self::Http(error) => write!(f, "the HTTP client can't be set up: {error}"),
        }
    }
}

impl std::error::Error for ConnectError {}

impl Client {
    /// A client of the server at `address`, which acts with `key`: an application's, a session's or an admission token's.
    /// Nothing is sent yet.
    ///
    /// # Errors
    /// When the key can't be sent, or the machine has no HTTP.
    pub fn connect(address: &str, key: &str) -> Result<Self, ConnectError> {
        Self::connect_as(address, key, VERSION)
    }

    /// The same, telling the server that the client expects another `version` of the API.
    ///
    /// # Errors
    /// When the key or the version can't be sent, or the machine has no HTTP.
    pub fn connect_as(address: &str, key: &str, version: &str) -> Result<Self, ConnectError> {
        let header = |text: &str| HeaderValue::from_str(text).map_err(|_| ConnectError::Key);
        let mut key = header(key)?;
        key.set_sensitive(true);
        let headers = HeaderMap::from_iter([(http_name("x-api-key"), key), (http_name("x-client-version"), header(version)?)]);
        let http = reqwest::Client::builder().default_headers(headers).build();
        Ok(Self::new_with_client(address.trim_end_matches('/'), http.map_err(ConnectError::Http)?, RetryPolicy::default()))
    }
}

fn http_name(name: &'static str) -> reqwest::header::HeaderName {
    reqwest::header::HeaderName::from_static(name)
}
