//! Authentication: the checks of a request's key and scope.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use boxoffice_http::error::{Code, Error};
use boxoffice_openapi::{Operation, SecurityScheme};
use http::request::Parts;

use crate::prefer_header::AssumedScope;

/// Checks the key, or the other credentials that the operation requires, and its scope (steps 3 and 4 of the
/// [order of checks](boxoffice_http::Dispatcher#order-of-checks)).
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
    let is_accepted = |scheme: &SecurityScheme, credential: String| {
        // Basic credentials may be given as they are, or encoded already.
        let is_basic = matches!(scheme, SecurityScheme::Authorization(kind) if kind.eq_ignore_ascii_case("basic"));
        accepted_key.is_none_or(|accepted| credential == accepted || is_basic && credential == STANDARD.encode(accepted))
    };
    // Returns true if all credentials of an alternative are accepted, and `None` if one is missing.
    let check = |schemes: &Vec<SecurityScheme>| {
        let credential = |scheme: &SecurityScheme| scheme.credential(&head.headers, head.uri.query());
        let checked = schemes.iter().map(|scheme| Some(is_accepted(scheme, credential(scheme)?)));
        checked.collect::<Option<Vec<_>>>().map(|checked| !checked.contains(&false))
    };
    let mut alternatives = operation.security.iter().filter_map(check).peekable();
    if alternatives.peek().is_none() {
        return Err(Code::KEY_MISSING.into());
    }
    let is_in_scope = match scope {
        None => true,
        Some(AssumedScope::Unknown) => false,
        // A document without scopes allows every operation to all of them.
        Some(AssumedScope::Of(scope)) => operation.scopes.is_empty() || operation.scopes.contains(&scope),
    };
    if is_in_scope && alternatives.any(|is_accepted| is_accepted) { Ok(()) } else { Err(Code::KEY_REFUSED.into()) }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use boxoffice_openapi::Contract;
    use http::Request;
    use serde_json::json;

    use super::authenticate;

    #[test]
    fn one_alternative_is_enough() {
        let schemes = json!({
            "basic": { "type": "http", "scheme": "basic" },
            "key": { "type": "apiKey", "in": "header", "name": "X-Key" },
        });
        let operation = json!({ "security": [{ "basic": [] }, { "key": [] }], "responses": { "204": { "description": "" } } });
        let document = json!({
            "openapi": "3.0.3", "paths": { "/things": { "get": operation } }, "components": { "securitySchemes": schemes },
        });
        let contract = Contract::new(document).unwrap();
        let accepts = |key: &str, headers: &[(&str, &str)]| {
            let request = headers.iter().fold(Request::get("/things"), |request, (name, value)| request.header(*name, *value));
            let (head, ()) = request.body(()).unwrap().into_parts();
            authenticate(contract.find("GET", "/things").unwrap(), &head, Some(key), None).is_ok()
        };
        let is_accepted = |headers: &[(&str, &str)]| accepts("secret", headers);

        let basic = ("Authorization", "Basic eDp5");
        assert!(is_accepted(&[("X-Key", "secret")]) && is_accepted(&[basic, ("X-Key", "secret")]));
        assert!(accepts("x:y", &[basic]) && accepts("eDp5", &[basic]) && !accepts("x:z", &[basic]));
        assert!(!is_accepted(&[]) && !is_accepted(&[basic]) && !is_accepted(&[basic, ("X-Key", "other")]));
    }
}
