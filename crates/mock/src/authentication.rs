//! Authentication: the checks of a request's key and scope.

use boxoffice_http::error::{Code, Error};
use boxoffice_openapi::{Operation, SecurityScheme};
use http::request::Parts;

use crate::prefer_header::AssumedScope;

/// Checks the key, or the other credentials that the operation requires, and its scope (steps 3 and 4 of the order of checks).
///
/// Any key is valid unless `accepted_key` is set. It has the scope that the client prefers, or else one that the operation
/// allows.
///
/// # Errors
/// 401 if the key is missing, 403 if it is invalid or its scope doesn't cover the operation.
pub fn authenticate(
    operation: &Operation,
    head: &Parts,
    accepted_key: Option<&str>,
    scope: Option<AssumedScope>,
) -> Result<(), Error> {
    if !operation.needs_key {
        return Ok(());
    }
    let credentials = |schemes: &Vec<SecurityScheme>| {
        schemes.iter().map(|scheme| scheme.credential(&head.headers, head.uri.query())).collect::<Option<Vec<_>>>()
    };
    let keys = operation.security.iter().find_map(credentials).ok_or(Code::KeyMissing)?;
    let is_in_scope = match scope {
        None => true,
        Some(AssumedScope::Unknown) => false,
        // A document without scopes allows every operation to all of them.
        Some(AssumedScope::Of(scope)) => operation.scopes.is_empty() || operation.scopes.contains(&scope),
    };
    let is_accepted = accepted_key.is_none_or(|accepted| keys.iter().all(|key| key == accepted));
    if is_in_scope && is_accepted { Ok(()) } else { Err(Code::KeyRefused.into()) }
}
