//! HTTP: the front door before every endpoint, the endpoints' extractors and replies, and what a client sees of an error.

mod body;
mod doors;
mod endpoints;
mod extract;
mod failure;
mod front;
mod head;
mod headers;
mod limits;
mod options;
mod outliving;
mod protocol;
mod reading;
mod reply;
mod server;
pub mod tag;
mod tls;

pub use body::BodyTimeouts;
pub use doors::GracefulShutdown;
pub use endpoints::api_key;
pub use extract::{Json, Path, Query};
pub use failure::ApiError;
pub use front::{AuthorizedRequest, RejectedRequest, RequestHandler, check_version};
pub use options::{LimitOptions, LimitSettings, TlsOptions};
pub use reading::PreconditionContext;
pub use reply::{Created, HasLocation, SerializedJson};
pub use server::{Listener, Routes, ServerHandle, serve, start};
pub use tls::Certificate;

use std::sync::Arc;

use dropshot::RequestContext;

use crate::app::App;

/// What every endpoint is given by dropshot.
pub type Rq = RequestContext<Arc<App>>;
