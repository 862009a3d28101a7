//! The endpoints' side of HTTP: routes, extraction of typed arguments, execution in a unit of work, responses.
//!
//! The crate `boxoffice_http` has everything in front of it: the dispatcher, limits, validation against the contract, errors.

mod api_request;
mod endpoint_metadata;
mod execute;
mod handler;
mod options;
mod precondition;
mod response;
mod routes;

pub use api_request::{ApiRequest, ApiResponse, ApiResult, Json, Path, Query};
pub use endpoint_metadata::CODES;
pub use handler::{AppState, api_key, client_address};
pub use options::{BodyMemoryOptions, LimitOptions, LimitSettings, ListenAddress, TlsOptions};
pub use precondition::PreconditionContext;
pub use response::{Created, HasLocation, SerializedJson};
pub use routes::{Routes, start};
