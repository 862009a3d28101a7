//! The headers of every answer, whatever it answers: who may read it, and what a browser may not do with it.
//!
//! They follow the OWASP cheat sheets on REST security and on HTTP headers.

use http::header::{
    ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_EXPOSE_HEADERS, CACHE_CONTROL, CONTENT_SECURITY_POLICY, ETAG, HeaderMap,
    HeaderName, HeaderValue, REFERRER_POLICY, STRICT_TRANSPORT_SECURITY, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};

/// Hardly an answer has more, with those of the limits and of dropshot.
pub const MOST: usize = 16;

static ALWAYS: [(HeaderName, HeaderValue); 7] = [
    (ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*")),
    (
        ACCESS_CONTROL_EXPOSE_HEADERS,
        HeaderValue::from_static(
            "allow, etag, idempotency-replayed, location, preference-applied, ratelimit, ratelimit-policy, retry-after, x-mock-refusal, x-request-id",
        ),
    ),
    (X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    (CONTENT_SECURITY_POLICY, HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'")),
    (X_FRAME_OPTIONS, HeaderValue::from_static("DENY")),
    (REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
    // Images are shown, and answers read, by pages of any origin.
    (HeaderName::from_static("cross-origin-resource-policy"), HeaderValue::from_static("cross-origin")),
];

/// Two years, as the cheat sheet has it; what else is served below the same name is not for us to decide.
const STRICT: HeaderValue = HeaderValue::from_static("max-age=63072000");

/// Adds them. An answer that doesn't say itself how long it may be kept may be kept where it has a tag by which to ask again,
/// unless it carries a secret.
pub fn add(headers: &mut HeaderMap, is_secret: bool, is_tls: bool) {
    let may_be_kept = headers.contains_key(ETAG) && !is_secret;
    let kept = if may_be_kept { "private, no-cache" } else { "no-store" };
    headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static(kept));
    headers.extend(ALWAYS.iter().cloned());
    if is_tls {
        headers.insert(STRICT_TRANSPORT_SECURITY, STRICT);
    }
}
