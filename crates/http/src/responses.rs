//! Responses that the dispatcher produces itself: errors, those to OPTIONS and to HEAD.

use std::collections::HashSet;

use boxoffice_openapi::Operation;
use dropshot::Body;
use http::request::Parts;
use http::{HeaderName, HeaderValue, Method, Response, StatusCode, Uri, header};
use hyper::body::Body as _;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use crate::ApiError;
use crate::error::Code;

/// Response header with the names of the query parameters that the operation doesn't define.
pub const IGNORED_PARAMETERS: HeaderName = HeaderName::from_static("x-ignored-parameters");
/// Maximum length of that header, in bytes. `...` replaces the names that don't fit.
const MAX_IGNORED_PARAMETERS_BYTES: usize = 1024;
/// The characters of a name that are not percent-encoded in that header: letters, digits and the other unreserved ones (RFC 3986).
const ESCAPED_IN_NAMES: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Returns the names of the query parameters that the operation ignores, each once, percent-encoded and separated by commas.
pub fn ignored_parameters(operation: &Operation, uri: &Uri) -> Option<HeaderValue> {
    let (mut list, mut listed) = (String::new(), HashSet::new());
    for name in operation.undefined_parameters(uri.query()?) {
        if listed.contains(&name) {
            continue;
        }
        let separator = if list.is_empty() { "" } else { ", " };
        let encoded = utf8_percent_encode(&name, ESCAPED_IN_NAMES).to_string();
        if list.len() + encoded.len() > MAX_IGNORED_PARAMETERS_BYTES - ", , ...".len() {
            list.extend([separator, "..."]);
            break;
        }
        list.extend([separator, &encoded]);
        listed.insert(name);
    }
    HeaderValue::try_from(list).ok().filter(|names| !names.is_empty())
}

/// Removes the body of a response, and keeps its length in `Content-Length`, if it is known.
pub fn without_body(response: Response<Body>) -> Response<Body> {
    let (mut head, body) = response.into_parts();
    if let Some(length) = body.size_hint().exact().filter(|length| *length > 0) {
        head.headers.insert(header::CONTENT_LENGTH, length.into());
    }
    Response::from_parts(head, Body::empty())
}

/// `Retry-After` of a 503, in seconds. Short, so that clients return soon after an outage; the timeouts of the failing dependency
/// limit how often a client can retry.
const RETRY_AFTER: &str = "1";

/// Returns the value of `Allow`: the methods of a path, and HEAD and OPTIONS, which the server handles itself.
pub fn allowed_methods(mut methods: Vec<String>) -> Option<HeaderValue> {
    if let Some(get) = methods.iter().position(|method| method == Method::GET.as_str()) {
        methods.insert(get + 1, Method::HEAD.to_string());
    }
    methods.push(Method::OPTIONS.to_string());
    HeaderValue::try_from(methods.join(", ")).ok()
}

/// Returns whether a browser asks by this request whether a page may send another one (Fetch, section 3.3.2).
pub fn is_preflight(head: &Parts) -> bool {
    head.method == Method::OPTIONS && head.headers.contains_key(header::ACCESS_CONTROL_REQUEST_METHOD)
}

/// Returns the response for an error.
pub fn error_response(error: &ApiError) -> Response<Body> {
    let body = error.body().unwrap_or_default();
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = error.status();
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if let Some(rate_limit) = error.rate_limit() {
        rate_limit.write_headers(response.headers_mut());
    }
    if error.code() == Code::SERVER_UNAVAILABLE {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static(RETRY_AFTER));
    }
    response
}

/// Returns the response to OPTIONS, which is also the one to a CORS preflight request. It allows any origin. That is safe, because a
/// browser never attaches API keys by itself.
pub fn respond_options(allowed: HeaderValue) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    let headers = response.headers_mut();
    headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, allowed.clone());
    headers.insert(header::ALLOW, allowed);
    // `*` covers every header except this one (Fetch, section 4.9).
    headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, HeaderValue::from_static("*, Authorization"));
    headers.insert(header::ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("86400"));
    response
}
