//! The HTTP server of the platform and of the mock: routing, limits, validation against an OpenAPI document, errors, TLS.
//!
//! [`serve`] accepts connections and bounds them. It passes every request to the [`Dispatcher`], which calls a [`RequestHandler`] to
//! authenticate and authorize it and to produce the response.

mod access_log;
mod api_error;
mod body_memory;
pub mod client_ip;
pub mod client_version;
mod connection;
mod connection_io;
mod connection_limits;
mod connections;
mod detach_on_drop;
mod dispatcher;
pub mod error;
pub mod etag;
mod line_writer;
pub mod log;
pub mod rate_limit;
mod request_body;
mod request_handler;
mod request_head;
mod request_limit;
pub mod response_headers;
mod responses;
mod server;
mod shutdown;
mod string_newtype;
mod tls;
pub mod traces;

pub use api_error::ApiError;
pub use body_memory::{BodyMemoryLimits, BodyOwner};
pub use connection_limits::{CloseReason, ConnectionLimits};
pub use connections::Connections;
pub use dispatcher::{Dispatcher, check_version};
pub use request_body::BodyTimeouts;
pub use request_handler::{AccessContext, AuthorizedRequest, IncomingRequest, RateLimitContext, RejectedRequest, RequestHandler};
pub use request_limit::RequestLimit;
pub use responses::error_response;
pub use server::{Listener, ServerHandle, serve};
pub use shutdown::GracefulShutdown;
pub use string_newtype::{schema_from_json, text_schema};
pub use tls::Certificate;
