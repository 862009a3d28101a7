//! Entity tags, and the conditions of requests that name them (RFC 9110, sections 8.8.3 and 13.1).

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use dropshot::Body;
use http::header::{CONTENT_TYPE, ETAG, IF_NONE_MATCH, VARY};
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use http_body_util::BodyExt;
use sha2::{Digest, Sha256};

use crate::string_newtype;
use boxoffice_openapi::response;
use crate::error::Error;

/// How much of a body's hash is its tag, in bytes: two bodies of the same tag are not found by trying.
const LENGTH: usize = 16;

string_newtype!(
    /// A tag that is made here.
    Tag, None, Some(r#"^"[A-Za-z0-9_-]{22}"$"#), None, None
);

/// The strong tag of a body, in its quotation marks: other bytes have another one.
pub fn etag_of(body: &[u8]) -> String {
    let hash = Sha256::digest(body);
    format!("\"{}\"", URL_SAFE_NO_PAD.encode(hash.get(..LENGTH).unwrap_or(&hash)))
}

/// Whether these lines of `If-None-Match` name a tag. Its comparison is weak: a cache on the way may have added `W/`.
pub fn matches_weak<'a>(lines: impl IntoIterator<Item = &'a HeaderValue>, tag: &str) -> bool {
    parse_tags(lines).any(|named| named == "*" || named.strip_prefix("W/").unwrap_or(named) == tag)
}

/// Whether these lines of `If-Match` name a tag. Its comparison is strong: a tag with `W/` only tells what is much the same.
pub fn matches_strong<'a>(lines: impl IntoIterator<Item = &'a HeaderValue>, tag: &str) -> bool {
    parse_tags(lines).any(|named| named == "*" || named == tag)
}

/// The tags that a header names. No tag of ours has a comma in it, so a comma parts all that could be ours.
fn parse_tags<'a>(lines: impl IntoIterator<Item = &'a HeaderValue>) -> impl Iterator<Item = &'a str> {
    let lines = lines.into_iter().filter_map(|line| line.to_str().ok());
    lines.flat_map(|line| line.split(',')).map(str::trim)
}

/// The lines of `If-None-Match`.
pub fn if_none_match(headers: &HeaderMap) -> Vec<HeaderValue> {
    headers.get_all(IF_NONE_MATCH).into_iter().cloned().collect()
}

/// A success with its tag; or 304 in its place, where the tag is `known` by these lines of `If-None-Match`. The tag of JSON is made
/// here, unless it was made when the body was; anything else, an image, has its own. `is_of_key` tells what is answered to a key.
///
/// # Errors
/// When the body can't be read.
pub async fn with_etag(response: Response<Body>, is_of_key: bool, known: &[HeaderValue]) -> Result<Response<Body>, Error> {
    let (mut head, mut body) = response.into_parts();
    if is_json(&head.headers) && !head.headers.contains_key(ETAG) {
        let whole = collect_body(body).await?;
        head.headers.insert(ETAG, HeaderValue::try_from(etag_of(&whole)).map_err(anyhow::Error::from)?);
        body = whole.into();
    }
    if is_of_key {
        // Whoever sends another key may see something else.
        head.headers.append(VARY, HeaderValue::from_static("x-api-key"));
    }
    let tag = head.headers.get(ETAG).and_then(|tag| tag.to_str().ok());
    if tag.is_some_and(|tag| matches_weak(known, tag)) {
        head.status = StatusCode::NOT_MODIFIED;
        head.headers.remove(CONTENT_TYPE);
        body = Body::empty();
    }
    Ok(Response::from_parts(head, body))
}

/// A body that is at hand as a whole.
///
/// # Errors
/// When it is not.
pub async fn collect_body(body: Body) -> Result<Bytes, Error> {
    Ok(body.collect().await.map_err(|error| anyhow::anyhow!("an answer's body: {error}"))?.to_bytes())
}

/// Whether these are the headers of JSON.
pub fn is_json(headers: &HeaderMap) -> bool {
    let media_type = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    response::is_json(response::essence(media_type))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(lines: &[&'static str]) -> bool {
        matches_weak(&lines.iter().map(|line| HeaderValue::from_static(line)).collect::<Vec<_>>(), "\"a\"")
    }

    #[test]
    fn a_tag_is_found_in_every_form_of_both_headers() {
        for (line, weakly, strongly) in [
            ("\"a\"", true, true),
            ("W/\"a\"", true, false),
            ("\"b\", \"a\"", true, true),
            ("\"b\",W/\"a\"", true, false),
            ("*", true, true),
            ("\"b\"", false, false),
            ("a", false, false),
            ("", false, false),
        ] {
            let matched = matches_strong(&[HeaderValue::from_static(line)], "\"a\"");
            assert_eq!((known(&[line]), matched), (weakly, strongly), "{line}");
        }
        assert!(known(&["\"b\"", "\"a\""]) && !known(&[]));
    }

    #[test]
    fn a_tag_follows_from_the_body() {
        assert_eq!(etag_of(b"{}"), "\"RBNvo1WzZ4oRRq0W9-hkng\"");
        assert_ne!(etag_of(b"{}"), etag_of(b"{ }"));
    }
}
