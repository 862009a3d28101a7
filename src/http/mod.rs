//! HTTP: the front door before every endpoint, the endpoints' extractors and replies, and what a client sees of an error.

mod doors;
mod endpoints;
mod extract;
mod failure;
mod front;
mod reply;
mod server;

pub use doors::Doors;
pub use extract::{Json, Query};
pub use failure::Failure;
pub use front::{Admitted, Backend, Refused, check_version};
pub use reply::{Created, Located};
pub use server::{Api, Running, serve, start};

use std::sync::Arc;

use dropshot::RequestContext;

use crate::app::App;

/// What every endpoint is given by dropshot.
pub type Rq = RequestContext<Arc<App>>;
