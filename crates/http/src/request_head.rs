//! Head of a request: size limits, and checks of the host and the path.

use http::header::{self, HeaderName, HeaderValue};
use http::uri::Authority;
use http::{HeaderMap, Method, Uri};
use percent_encoding::percent_decode_str;

use super::ApiError;
use crate::error::Code;

/// Maximum size of path and query in bytes. The longest text in a query has 2,000 characters of up to twelve percent-encoded
/// bytes.
const MAX_URI_BYTES: usize = 32 * 1024;
/// Maximum size of all headers together in bytes, with the separators of HTTP/1.1.
const MAX_HEADER_BYTES: usize = 32 * 1024;

/// Returns the method in upper case. Methods are case-sensitive (RFC 9110, section 9.1), but some clients send them in lower case.
pub fn in_upper_case(method: Method) -> Method {
    if method.as_str().bytes().any(|byte| byte.is_ascii_lowercase()) {
        Method::from_bytes(method.as_str().to_ascii_uppercase().as_bytes()).unwrap_or(method)
    } else {
        method
    }
}

/// Rejects a head that is too large.
///
/// # Errors
/// 414 for the path and the query, 431 for the headers.
pub fn check_size(uri: &Uri, headers: &HeaderMap) -> Result<(), ApiError> {
    let uri_bytes = uri.path_and_query().map_or(0, |uri| uri.as_str().len());
    if uri_bytes > MAX_URI_BYTES {
        return Err(Code::URI_TOO_LONG
            .with_message(format!("The request's path and query are longer than {MAX_URI_BYTES} bytes."))
            .into());
    }
    let line_bytes = |(name, value): (&HeaderName, &HeaderValue)| name.as_str().len() + ": ".len() + value.len() + "\r\n".len();
    if headers.iter().map(line_bytes).sum::<usize>() > MAX_HEADER_BYTES {
        let text = format!("The request's headers together are larger than {MAX_HEADER_BYTES} bytes.");
        return Err(Code::HEADERS_TOO_LARGE.with_message(text).into());
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
    if is_valid { Ok(()) } else { Err(Code::HOST_INVALID.into()) }
}

/// Returns whether every segment of a path is percent-encoded UTF-8, and none is `.` or `..`. A proxy in front of the server may
/// resolve these two.
pub fn is_readable(path: &str) -> bool {
    let is_valid = |segment: &str| !matches!(segment, "." | "..") && percent_decode_str(segment).decode_utf8().is_ok();
    path.split('/').all(is_valid)
}
