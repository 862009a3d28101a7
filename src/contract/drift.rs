//! placeholder
use std::collections::{BTreeMap, BTreeSet};
/// The server's side.
pub struct Server {
    pub openapi: serde_json::Value,
    pub error_statuses: BTreeMap<String, BTreeSet<u16>>,
}
