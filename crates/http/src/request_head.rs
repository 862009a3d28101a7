//! Head of a request: size limits, and rejection of requests that dropshot's router can't route.

use std::fmt;
use std::sync::Arc;

use dropshot::{Body, DynamicVersionPolicy, ErrorStatusCode, HttpError};
use http::header::{self, HeaderName, HeaderValue};
use http::uri::Authority;
use http::{HeaderMap, Request, Uri};
use percent_encoding::percent_decode_str;
use semver::Version;
use slog::Logger;

use super::ApiError;
use super::dispatcher::{Dispatcher, RequestHandler};
use crate::error::Code;

/// Maximum size of path and query in bytes. The longest text in a query has 2,000 characters of up to twelve percent-encoded
/// bytes.
const MAX_URI_BYTES: usize = 32 * 1024;
/// Maximum size of all headers together in bytes, with the separators of HTTP/1.1.
const MAX_HEADER_BYTES: usize = 32 * 1024;

/// Methods registered with IANA. dropshot passes all of them to the dispatcher, which returns 405 for most.
#[rustfmt::skip]
pub const METHODS: [&str; 40] = [
    "ACL", "BASELINE-CONTROL", "BIND", "CHECKIN", "CHECKOUT", "CONNECT", "COPY", "DELETE", "GET", "HEAD", "LABEL", "LINK",
    "LOCK", "MERGE", "MKACTIVITY", "MKCALENDAR", "MKCOL", "MKREDIRECTREF", "MKWORKSPACE", "MOVE", "OPTIONS", "ORDERPATCH",
    "PATCH", "POST", "PRI", "PROPFIND", "PROPPATCH", "PUT", "QUERY", "REBIND", "REPORT", "SEARCH", "TRACE", "UNBIND",
    "UNCHECKOUT", "UNLINK", "UNLOCK", "UPDATE", "UPDATEREDIRECTREF", "VERSION-CONTROL",
];

/// Rejects a head that is too large.
///
/// # Errors
/// 414 for the path and the query, 431 for the headers.
pub fn check_size(uri: &Uri, headers: &HeaderMap) -> Result<(), ApiError> {
    let uri_bytes = uri.path_and_query().map_or(0, |uri| uri.as_str().len());
    if uri_bytes > MAX_URI_BYTES {
        return Err(Code::UriTooLong
            .with_message(format!("The request's path and query are longer than {MAX_URI_BYTES} bytes."))
            .into());
    }
    let line_bytes = |(name, value): (&HeaderName, &HeaderValue)| name.as_str().len() + ": ".len() + value.len() + "\r\n".len();
    if headers.iter().map(line_bytes).sum::<usize>() > MAX_HEADER_BYTES {
        let text = format!("The request's headers together are larger than {MAX_HEADER_BYTES} bytes.");
        return Err(Code::HeadersTooLarge.with_message(text).into());
    }
    Ok(())
}

/// Rejects a request of HTTP/1.1 without a `Host` header, with several, or with one that is no name of a server (RFC 9112, section
/// 3.2). A proxy in front of the server and the server could take such a request for different hosts.
///
/// # Errors
/// 400.
pub fn check_host(version: http::Version, headers: &HeaderMap) -> Result<(), ApiError> {
    let mut hosts = headers.get_all(header::HOST).iter();
    let is_valid = match (hosts.next(), hosts.next()) {
        (None, _) => version != http::Version::HTTP_11,
        (Some(host), None) => {
            host.is_empty() || Authority::try_from(host.as_bytes()).is_ok_and(|host| !host.as_str().contains('@'))
        }
        (Some(_), Some(_)) => false,
    };
    if is_valid { Ok(()) } else { Err(Code::HostInvalid.into()) }
}

/// Returns whether dropshot's router can parse a path. It percent-decodes every segment and rejects `.` and `..`.
pub fn is_readable(path: &str) -> bool {
    let is_valid = |segment: &str| !matches!(segment, "." | "..") && percent_decode_str(segment).decode_utf8().is_ok();
    path.split('/').all(is_valid)
}

/// Rejects requests that dropshot's router would reject, with the dispatcher's status, text, code and headers. The body's format
/// is dropshot's: the text is in `message` and the code in `error_code`.
///
/// dropshot's only hook before routing is the choice of an API version, which this filter implements.
pub struct UnroutableRequestFilter<B>(pub Arc<Dispatcher<B>>);

impl<B> fmt::Debug for UnroutableRequestFilter<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("UnroutableRequestFilter")
    }
}

impl<B: RequestHandler> DynamicVersionPolicy for UnroutableRequestFilter<B> {
    fn request_extract_version(&self, request: &Request<Body>, _: &Logger) -> Result<Version, HttpError> {
        // The router ignores case too.
        let is_method = METHODS.iter().any(|method| method.eq_ignore_ascii_case(request.method().as_str()));
        if is_method && is_readable(request.uri().path()) {
            // Any version: the endpoint is registered for all of them.
            return Ok(Version::new(3, 0, 0));
        }
        let (error, headers) = self.0.reject_unroutable(request);
        let status_code = ErrorStatusCode::from_status(error.status()).unwrap_or(ErrorStatusCode::NOT_FOUND);
        Err(HttpError {
            status_code,
            error_code: Some(error.code().as_str().to_owned()),
            external_message: error.to_string(),
            internal_message: error.code().as_str().to_owned(),
            headers: Some(Box::new(headers)),
        })
    }
}
