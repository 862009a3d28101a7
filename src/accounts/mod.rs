//! To be written.

use crate::http::Api;

/// Adds these operations to the server.
pub fn register(_: &mut Api) {}
