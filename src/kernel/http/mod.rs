//! HTTP: the front door before every endpoint, the endpoints' extractors and replies, and what a client sees of an error.

mod body;
mod doors;
mod handler;
mod api_request;
mod failure;
mod front;
mod head;
mod headers;
mod rate_limit;
mod options;
mod outliving;
mod endpoint_metadata;
mod precondition;
mod response;
mod routes;
pub mod tag;
mod tls;

pub use body::BodyTimeouts;
pub use doors::GracefulShutdown;
pub use handler::api_key;
pub use api_request::{Json, Path, Query};
pub use failure::ApiError;
pub use front::{AuthorizedRequest, RejectedRequest, RequestHandler, check_version};
pub use options::{LimitOptions, LimitSettings, TlsOptions};
pub use precondition::PreconditionContext;
pub use response::{Created, HasLocation, SerializedJson};
pub use routes::{Listener, Routes, ServerHandle, serve, start};
pub use tls::Certificate;

use std::sync::Arc;

use dropshot::RequestContext;

use crate::state::App;

/// What every endpoint is given by dropshot.
pub type Rq = RequestContext<Arc<App>>;
