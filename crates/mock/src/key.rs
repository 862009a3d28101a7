//! Whether the mock lets a request in.

use http::request::Parts;

use super::prefer_header::AssumedScope;
use boxoffice_openapi::{Operation, SecurityScheme};
use boxoffice_http::error::{Code, Error};

/// Steps 3 and 4 of the order of checks: a key, or whatever else the operation asks for, and its scope. Any will do, unless there
/// is but one that is `accepted`. It acts as the caller prefers, else as one that reaches the operation.
///
/// # Errors
/// When the key is missing, or refused.
pub fn check(operation: &Operation, head: &Parts, accepted: Option<&str>, role: Option<AssumedScope>) -> Result<(), Error> {
    if !operation.needs_key {
        return Ok(());
    }
    let proofs = |all: &Vec<SecurityScheme>| {
        all.iter().map(|scheme| scheme.credential(&head.headers, head.uri.query())).collect::<Option<Vec<_>>>()
    };
    let keys = operation.security.iter().find_map(proofs).ok_or(Code::KeyMissing)?;
    let reaches = match role {
        None => true,
        Some(AssumedScope::Unknown) => false,
        // A document that knows no scopes leaves every operation to all of them.
        Some(AssumedScope::Of(scope)) => operation.scopes.is_empty() || operation.scopes.contains(&scope),
    };
    let is_accepted = accepted.is_none_or(|accepted| keys.iter().all(|key| key == accepted));
    if reaches && is_accepted { Ok(()) } else { Err(Code::KeyRefused.into()) }
}
