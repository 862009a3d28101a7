//! Headers common to all responses: CORS, caching and browser security.
//!
//! The values follow the OWASP cheat sheets on REST security and on HTTP headers.

use boxoffice_openapi::Operation;
use http::header::{
    ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_EXPOSE_HEADERS, CACHE_CONTROL, CONTENT_SECURITY_POLICY, ETAG, HeaderMap,
    HeaderName, HeaderValue, REFERRER_POLICY, STRICT_TRANSPORT_SECURITY, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};

const DEPRECATION: HeaderName = HeaderName::from_static("deprecation");
const SUNSET: HeaderName = HeaderName::from_static("sunset");

/// Usual maximum number of headers of a response, those of the rate limit and of dropshot included.
pub const USUAL_COUNT: usize = 16;

static COMMON: [(HeaderName, HeaderValue); 7] = [
    (ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*")),
    (
        ACCESS_CONTROL_EXPOSE_HEADERS,
        HeaderValue::from_static(
            "allow, content-disposition, date, deprecation, etag, idempotency-replayed, location, preference-applied, ratelimit, ratelimit-policy, retry-after, sunset, traceparent, x-ignored-parameters, x-mock-refusal, x-request-id",
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

/// Adds the common headers that the response doesn't have. Without a `Cache-Control` of its own, a response may be cached only if
/// it has an entity tag for revalidation and contains no secret.
pub fn add(headers: &mut HeaderMap, is_secret: bool, is_tls: bool) {
    let is_cacheable = headers.contains_key(ETAG) && !is_secret;
    let cache_control = if is_cacheable { "private, no-cache" } else { "no-store" };
    headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static(cache_control));
    for (name, value) in &COMMON {
        // A page has a security policy of its own.
        headers.entry(name).or_insert_with(|| value.clone());
    }
    if is_tls {
        headers.insert(STRICT_TRANSPORT_SECURITY, HSTS);
    }
}

/// Adds the dates of a deprecated operation (RFC 9745 and RFC 8594).
pub fn add_deprecation(headers: &mut HeaderMap, operation: Option<&Operation>) {
    let Some(deprecation) = operation.and_then(|operation| operation.deprecation.as_ref()) else { return };
    headers.insert(DEPRECATION, deprecation.since.clone());
    headers.extend(deprecation.sunset.clone().map(|sunset| (SUNSET, sunset)));
}
