//! The head of a request: how large it may be, and what dropshot would refuse in words of its own.

use std::fmt;
use std::sync::Arc;

use dropshot::{Body, DynamicVersionPolicy, ErrorStatusCode, HttpError};
use http::header::{HeaderName, HeaderValue};
use http::{HeaderMap, Request, Uri};
use percent_encoding::percent_decode_str;
use semver::Version;
use slog::Logger;

use super::ApiError;
use super::dispatcher::{Dispatcher, RequestHandler};
use crate::error::Code;

/// Largest path and query, in bytes as they are sent: the longest text that a query may have is one of 2,000 characters, each of
/// which may be twelve bytes.
const URI_LIMIT: usize = 32 * 1024;
/// Largest headers together, in bytes, with the separators of HTTP/1.1.
const HEADERS_LIMIT: usize = 32 * 1024;

/// The methods that dropshot leads to the front door: those of IANA's registry, where all but a few are answered with 405.
#[rustfmt::skip]
pub const METHODS: [&str; 40] = [
    "ACL", "BASELINE-CONTROL", "BIND", "CHECKIN", "CHECKOUT", "CONNECT", "COPY", "DELETE", "GET", "HEAD", "LABEL", "LINK",
    "LOCK", "MERGE", "MKACTIVITY", "MKCALENDAR", "MKCOL", "MKREDIRECTREF", "MKWORKSPACE", "MOVE", "OPTIONS", "ORDERPATCH",
    "PATCH", "POST", "PRI", "PROPFIND", "PROPPATCH", "PUT", "QUERY", "REBIND", "REPORT", "SEARCH", "TRACE", "UNBIND",
    "UNCHECKOUT", "UNLINK", "UNLOCK", "UPDATE", "UPDATEREDIRECTREF", "VERSION-CONTROL",
];

/// Refuses a head that is too large.
///
/// # Errors
/// 414 for the path and the query, 431 for the headers.
pub fn check_size(uri: &Uri, headers: &HeaderMap) -> Result<(), ApiError> {
    let uri = uri.path_and_query().map_or(0, |uri| uri.as_str().len());
    if uri > URI_LIMIT {
        return Err(Code::UriTooLong
            .with_message(format!("The request's path and query are longer than {URI_LIMIT} bytes."))
            .into());
    }
    let line = |(name, value): (&HeaderName, &HeaderValue)| name.as_str().len() + ": ".len() + value.len() + "\r\n".len();
    if headers.iter().map(line).sum::<usize>() > HEADERS_LIMIT {
        let text = format!("The request's headers together are larger than {HEADERS_LIMIT} bytes.");
        return Err(Code::HeadersTooLarge.with_message(text).into());
    }
    Ok(())
}

/// Whether dropshot's router can read a path. It decodes every segment, and knows neither `.` nor `..`.
pub fn is_readable(path: &str) -> bool {
    let is_segment = |segment: &str| !matches!(segment, "." | "..") && percent_decode_str(segment).decode_utf8().is_ok();
    path.split('/').all(is_segment)
}

/// What stands before dropshot's router, whose only hook there is the choice of a version. What that router would refuse is
/// refused here, as the front door would: status, text, code and headers. The body alone is dropshot's, which has the text in
/// `message` and the code in `error_code`.
pub struct UnroutableRequestFilter<B>(pub Arc<Dispatcher<B>>);

impl<B> fmt::Debug for UnroutableRequestFilter<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Gate")
    }
}

impl<B: RequestHandler> DynamicVersionPolicy for UnroutableRequestFilter<B> {
    fn request_extract_version(&self, request: &Request<Body>, _: &Logger) -> Result<Version, HttpError> {
        // In capitals or not, as the router takes them.
        let is_known = METHODS.iter().any(|method| method.eq_ignore_ascii_case(request.method().as_str()));
        if is_known && is_readable(request.uri().path()) {
            // Any: the one endpoint is of all versions.
            return Ok(Version::new(3, 0, 0));
        }
        let (failure, headers) = self.0.reject_unroutable(request);
        let status_code = ErrorStatusCode::from_status(failure.status()).unwrap_or(ErrorStatusCode::NOT_FOUND);
        Err(HttpError {
            status_code,
            error_code: Some(failure.code().as_str().to_owned()),
            external_message: failure.to_string(),
            internal_message: failure.code().as_str().to_owned(),
            headers: Some(Box::new(headers)),
        })
    }
}
