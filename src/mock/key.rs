//! Whether the mock lets a request in.

use http::request::Parts;

use super::prefer::Role;
use crate::contract::Operation;
use crate::error::{Code, Error};

/// Steps 3 and 4 of the order of checks: a key where the operation asks for one, and its scope. Any key will do, unless there
/// is but one that is `accepted`. It acts as the caller prefers, else as one that reaches the operation.
///
/// # Errors
/// When the key is missing, or refused.
pub fn check(operation: &Operation, head: &Parts, accepted: Option<&str>, role: Option<Role>) -> Result<(), Error> {
    if !operation.needs_key {
        return Ok(());
    }
    let key = head.headers.get("x-api-key").map(|value| value.to_str().unwrap_or("unreadable").trim());
    let key = key.filter(|key| !key.is_empty()).ok_or(Code::KeyMissing)?;
    let reaches = match role {
        None => true,
        Some(Role::Unknown) => false,
        // A document that knows no scopes leaves every operation to all of them.
        Some(Role::Of(scope)) => operation.scopes.is_empty() || operation.scopes.contains(&scope),
    };
    if reaches && accepted.is_none_or(|accepted| accepted == key) { Ok(()) } else { Err(Code::KeyRefused.into()) }
}
