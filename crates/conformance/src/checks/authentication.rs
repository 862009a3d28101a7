//! Who is turned away: callers without a key, with a bad one, with one that reaches less far, or of an old version.

use boxoffice_openapi::Scope;
use crate::http_client::{Request, VERSION};
use crate::operation_run::{OperationRun, RequestPair};
use crate::model::Check;

/// A key that no server knows.
const UNKNOWN: &str = "a-key-that-nobody-has";
/// A version below any that is served.
const OLD: &str = "0.0.1";

impl OperationRun<'_> {
    /// No key, an unknown one, and one of a scope that doesn't reach the operation. What it prefers tells a mock, which takes any
    /// key, what to make of it; a server that doesn't know the preference ignores it (RFC 7240).
    pub async fn check_keys(&mut self, pair: &RequestPair) {
        let subject = self.subject;
        let operation = subject.operation;
        if !operation.needs_key {
            return;
        }
        let without = |request: &Request| subject.with_key(request, None);
        self.check_refused(Check::KeyMissing, pair, without, "a missing key", &[401]).await;
        let unknown = |request: &Request| subject.with_key(request, Some(UNKNOWN)).with_header("Prefer", "scope=none");
        // Another document may say 401 of both, as RFC 9110 does.
        let refusals: &[u16] = if operation.statuses.contains(&403) { &[403] } else { &[403, 401] };
        self.check_refused(Check::KeyBad, pair, unknown, "an unknown key", refusals).await;
        if let (Some(key), false) =
            (&self.comparison.target.public_key, operation.scopes.is_empty() || operation.scopes.contains(&Scope::Public))
        {
            let low = |request: &Request| subject.with_key(request, Some(key)).with_header("Prefer", "scope=public");
            self.check_refused(Check::KeyScope, pair, low, "a key of too low a scope", &[403]).await;
        }
    }

    /// No version, and one that is too old.
    pub async fn check_versions(&mut self, pair: &RequestPair) {
        if !self.subject.operation.needs_version {
            return;
        }
        let without = |request: &Request| request.clone().without_header(VERSION);
        self.check_refused(Check::VersionMissing, pair, without, "a missing client version", &[412]).await;
        let old = |request: &Request| request.clone().with_header(VERSION, OLD);
        self.check_refused(Check::VersionOld, pair, old, "an old client version", &[412]).await;
    }

    async fn check_refused(
        &mut self,
        check: Check,
        pair: &RequestPair,
        change: impl Fn(&Request) -> Request,
        about: &str,
        statuses: &[u16],
    ) {
        let Some(asked) = self.send_mutated(pair, true, change).await else { return };
        let is_right = statuses.contains(&asked.reply.status);
        let expected: Vec<_> = statuses.iter().map(u16::to_string).collect();
        let pointer = self.subject.operation.pointer.clone();
        self.judge_status(check, &asked, is_right, &pointer, about, &expected.join(" or "));
    }
}
