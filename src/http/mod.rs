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

pub use body::BodyTime;
pub use doors::Doors;
pub use endpoints::api_key;
pub use extract::{Json, Path, Query};
pub use failure::Failure;
pub use front::{Admitted, Backend, Refused, check_version};
pub use options::{LimitOptions, LimitSettings, TlsOptions};
pub use reading::Reader;
pub use reply::{Created, Located, Written};
pub use server::{Api, Listener, Running, serve, start};
pub use tls::Certificate;

use std::sync::Arc;

use dropshot::RequestContext;

use crate::app::App;

/// What every endpoint is given by dropshot.
pub type Rq = RequestContext<Arc<App>>;
