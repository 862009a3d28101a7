//! Headers common to all responses: CORS, caching and browser security.
//!
//! The values follow the OWASP cheat sheets on REST security and on HTTP headers.

use http::header::{
    ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_EXPOSE_HEADERS, CACHE_CONTROL, CONTENT_SECURITY_POLICY, ETAG, HeaderMap,
    HeaderName, HeaderValue, REFERRER_POLICY, STRICT_TRANSPORT_SECURITY, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};

/// Usual maximum number of headers of a response, those of the rate limit and of dropshot included.
pub const USUAL_COUNT: usize = 16;

static COMMON: [(HeaderName, HeaderValue); 7] = [
    (ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*")),
    (
        ACCESS_CONTROL_EXPOSE_HEADERS,
        HeaderValue::from_static(
            "allow, etag, idempotency-replayed, location, preference-applied, ratelimit, ratelimit-policy, retry-after, x-ignored-parameters, x-mock-refusal, x-request-id",
        ),
    ),
    (X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    (CONTENT_SECURITY_POLICY, HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'")),
    (X_FRAME_OPTIONS, HeaderValue::from_static("DENY")),
    (REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
    // Pages of any origin may show images and read responses.
    (HeaderName::from_static("cross-origin-resource-policy"), HeaderValue::from_static("cross-origin")),
];

/// Two years, as in the cheat sheet. Without `includeSubDomains`, because other servers may run below the same domain.
const HSTS: HeaderValue = HeaderValue::from_static("max-age=63072000");

/// Adds the common headers. Without a `Cache-Control` of its own, a response may be cached only if it has an entity tag for
/// revalidation and contains no secret.
pub fn add(headers: &mut HeaderMap, is_secret: bool, is_tls: bool) {
    let is_cacheable = headers.contains_key(ETAG) && !is_secret;
    let cache_control = if is_cacheable { "private, no-cache" } else { "no-store" };
    headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static(cache_control));
    headers.extend(COMMON.iter().cloned());
    if is_tls {
        headers.insert(STRICT_TRANSPORT_SECURITY, HSTS);
    }
}
