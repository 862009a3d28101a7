//! The endpoints' side of HTTP: routes, extraction of typed arguments, execution in a unit of work, responses.
//!
//! The crate `boxoffice_http` has everything in front of it: the dispatcher, limits, validation against the contract, errors.

mod endpoint;
mod endpoint_metadata;
mod execute;
mod extract;
mod file_response;
mod handler;
mod operator;
mod response;
mod routes;
mod streamed_file;

pub use dropshot::HttpResponseDeleted;
pub use endpoint::{delete, get, patch, post, put};
pub use endpoint_metadata::CODES;
pub use extract::{AcceptedLanguage, ApiKey, ClientAddress, Json, Path, Query};
pub use file_response::FileResponse;
pub use handler::{AppState, OutsideContractFn};
pub use operator::{Operator, run_as_operator, user_name};
pub(crate) use response::has_location;
pub use response::{Created, HasLocation, SerializedJson};
pub use routes::{Routes, start};
pub use streamed_file::{FileSender, StreamedFile};
