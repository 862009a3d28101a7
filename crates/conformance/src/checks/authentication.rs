//! Checks that requests without a sufficient key or a supported client version are rejected.

use boxoffice_openapi::{Scope, SecurityScheme};

use crate::http_client::{CLIENT_VERSION_HEADER, Request};
use crate::model::Check;
use crate::operation_run::{OperationRun, RequestPair};
use crate::server_kind::ServerKind;

/// A key that exists on no server.
const UNKNOWN_KEY: &str = "a-key-that-does-not-exist";
/// Credentials for Basic authentication that exist on no server. The key above would be malformed.
const UNKNOWN_USER: &str = "unknown-user:unknown-password";
/// A client version that no server supports.
const UNSUPPORTED_VERSION: &str = "0.0.1";

impl OperationRun<'_> {
    /// Checks a missing key, an unknown key and a key of another scope.
    ///
    /// A mock accepts any key. The `Prefer` header makes it reject the request; other servers ignore the preference (RFC 7240).
    pub async fn check_keys(&mut self, pair: &RequestPair) {
        let operation = self.operation;
        let spec = operation.spec;
        if !spec.needs_key {
            return;
        }
        let remove_key = |request: &Request| operation.with_key(request, None);
        let is_builtin = self.comparison.is_builtin();
        let declares = |status: u16| spec.statuses.contains(&status);
        // Some frameworks have only 403.
        let statuses: &[u16] = if !is_builtin && !declares(401) && declares(403) { &[401, 403] } else { &[401] };
        self.check_rejected(Check::KeyMissing, pair, remove_key, "a missing key", statuses).await;
        let is_basic =
            |scheme: &SecurityScheme| matches!(scheme, SecurityScheme::Authorization(kind) if kind.eq_ignore_ascii_case("basic"));
        let unknown_key = if spec.security.iter().flatten().any(is_basic) { UNKNOWN_USER } else { UNKNOWN_KEY };
        let set_unknown_key =
            |request: &Request| operation.with_key(request, Some(unknown_key)).with_header("Prefer", "scope=none");
        // Mocks of other documents accept any key, and have no preference for it.
        if !is_builtin && self.comparison.kind() != ServerKind::Real {
            return;
        }
        // Other documents may mean 401 for both, as RFC 9110 does.
        let statuses: &[u16] = if is_builtin && declares(403) { &[403] } else { &[401, 403] };
        self.check_rejected(Check::KeyUnknown, pair, set_unknown_key, "an unknown key", statuses).await;
        if let Some(key) = &self.comparison.target.public_key
            && !spec.scopes.is_empty()
            && !spec.scopes.contains(&Scope::Public)
        {
            let set_public_key = |request: &Request| operation.with_key(request, Some(key)).with_header("Prefer", "scope=public");
            self.check_rejected(Check::KeyScope, pair, set_public_key, "a key of too low a scope", &[403]).await;
        }
    }

    /// Checks a missing and an unsupported client version.
    pub async fn check_versions(&mut self, pair: &RequestPair) {
        if !self.operation.spec.needs_version {
            return;
        }
        let remove_version = |request: &Request| request.clone().without_header(CLIENT_VERSION_HEADER);
        self.check_rejected(Check::VersionMissing, pair, remove_version, "a missing client version", &[412]).await;
        let set_old_version = |request: &Request| request.clone().with_header(CLIENT_VERSION_HEADER, UNSUPPORTED_VERSION);
        self.check_rejected(Check::VersionOld, pair, set_old_version, "an old client version", &[412]).await;
    }

    async fn check_rejected(
        &mut self,
        check: Check,
        pair: &RequestPair,
        mutate: impl Fn(&Request) -> Request,
        name: &str,
        statuses: &[u16],
    ) {
        let Some(exchange) = self.send_mutated(pair, true, mutate).await else { return };
        let is_expected = statuses.contains(&exchange.response.status);
        let expected: Vec<_> = statuses.iter().map(u16::to_string).collect();
        let pointer = self.operation.spec.pointer.clone();
        self.record_rejection(check, &exchange, is_expected, &pointer, name, &expected.join(" or "));
    }
}
