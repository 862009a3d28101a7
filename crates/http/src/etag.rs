//! Entity tags and conditional requests (RFC 9110, sections 8.8.3 and 13.1).

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use boxoffice_openapi::response;
use bytes::Bytes;
use dropshot::Body;
use http::header::{CONTENT_TYPE, ETAG, IF_NONE_MATCH, VARY};
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use http_body_util::BodyExt;
use sha2::{Digest, Sha256};

use crate::error::Error;
use crate::string_newtype;

/// Number of bytes of the body's hash in its tag: enough that collisions can't be found by search.
const TAG_BYTES: usize = 16;

string_newtype!(
    /// An entity tag of this server.
    EntityTag, None, Some(r#"^"[A-Za-z0-9_-]{22}"$"#), None, None
);

/// Returns the strong entity tag of a body, with its quotation marks.
pub fn etag_of(body: &[u8]) -> String {
    let hash = Sha256::digest(body);
    format!("\"{}\"", URL_SAFE_NO_PAD.encode(hash.get(..TAG_BYTES).unwrap_or(&hash)))
}

/// Returns whether these lines of `If-None-Match` contain a tag. The comparison is weak: a cache may have added `W/`.
fn matches_weak<'a>(lines: impl IntoIterator<Item = &'a HeaderValue>, tag: &str) -> bool {
    parse_tags(lines).any(|listed| listed == "*" || listed.strip_prefix("W/").unwrap_or(listed) == tag)
}

/// Returns whether these lines of `If-Match` contain a tag. The comparison is strong: a tag with `W/` never matches.
pub fn matches_strong<'a>(lines: impl IntoIterator<Item = &'a HeaderValue>, tag: &str) -> bool {
    parse_tags(lines).any(|listed| listed == "*" || listed == tag)
}

/// Returns the tags in a header. Splitting at every comma is safe because no tag of this server contains one.
fn parse_tags<'a>(lines: impl IntoIterator<Item = &'a HeaderValue>) -> impl Iterator<Item = &'a str> {
    let lines = lines.into_iter().filter_map(|line| line.to_str().ok());
    lines.flat_map(|line| line.split(',')).map(str::trim)
}

/// Returns the lines of `If-None-Match`.
pub fn if_none_match(headers: &HeaderMap) -> Vec<HeaderValue> {
    headers.get_all(IF_NONE_MATCH).into_iter().cloned().collect()
}

/// Adds an `ETag` to a successful JSON response that has none, and returns 304 if the tag matches these lines of `If-None-Match`.
/// Other media types, such as images, bring their own tag. `needs_key` adds `Vary: x-api-key`.
///
/// # Errors
/// [`Error::Internal`] if the body can't be read.
pub async fn with_etag(
    response: Response<Body>,
    needs_key: bool,
    if_none_match: &[HeaderValue],
) -> Result<Response<Body>, Error> {
    let (mut head, mut body) = response.into_parts();
    if is_json(&head.headers) && !head.headers.contains_key(ETAG) {
        let bytes = collect_body(body).await?;
        head.headers.insert(ETAG, HeaderValue::try_from(etag_of(&bytes)).map_err(anyhow::Error::from)?);
        body = bytes.into();
    }
    if needs_key {
        // The response may differ for another key.
        head.headers.append(VARY, HeaderValue::from_static("x-api-key"));
    }
    Ok(revalidate(Response::from_parts(head, body), if_none_match))
}

/// Returns 304 in place of a response whose tag matches these lines of `If-None-Match`.
pub fn revalidate(response: Response<Body>, if_none_match: &[HeaderValue]) -> Response<Body> {
    let tag = response.headers().get(ETAG).and_then(|tag| tag.to_str().ok());
    if !tag.is_some_and(|tag| matches_weak(if_none_match, tag)) {
        return response;
    }
    let (mut head, _) = response.into_parts();
    head.status = StatusCode::NOT_MODIFIED;
    head.headers.remove(CONTENT_TYPE);
    Response::from_parts(head, Body::empty())
}

/// Returns a body's bytes.
///
/// # Errors
/// [`Error::Internal`] if the body can't be read.
pub async fn collect_body(body: Body) -> Result<Bytes, Error> {
    Ok(body.collect().await.map_err(|error| anyhow::anyhow!("cannot read a response's body: {error}"))?.to_bytes())
}

/// Returns whether the media type is JSON.
pub fn is_json(headers: &HeaderMap) -> bool {
    let media_type = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    response::is_json(response::essence(media_type))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_weak_match(lines: &[&'static str]) -> bool {
        matches_weak(&lines.iter().map(|line| HeaderValue::from_static(line)).collect::<Vec<_>>(), "\"a\"")
    }

    #[test]
    fn finds_tag_in_every_form_of_both_headers() {
        for (line, weak, strong) in [
            ("\"a\"", true, true),
            ("W/\"a\"", true, false),
            ("\"b\", \"a\"", true, true),
            ("\"b\",W/\"a\"", true, false),
            ("*", true, true),
            ("\"b\"", false, false),
            ("a", false, false),
            ("", false, false),
        ] {
            let is_strong_match = matches_strong(&[HeaderValue::from_static(line)], "\"a\"");
            assert_eq!((is_weak_match(&[line]), is_strong_match), (weak, strong), "{line}");
        }
        assert!(is_weak_match(&["\"b\"", "\"a\""]) && !is_weak_match(&[]));
    }

    #[test]
    fn tag_depends_on_body_bytes() {
        assert_eq!(etag_of(b"{}"), "\"RBNvo1WzZ4oRRq0W9-hkng\"");
        assert_ne!(etag_of(b"{}"), etag_of(b"{ }"));
    }
}
