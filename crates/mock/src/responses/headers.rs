//! Headers that the document declares.

use anyhow::Context;
use boxoffice_openapi::response::ResponseSpec;
use boxoffice_openapi::{ExampleUse, Parameter};
use http::{HeaderName, HeaderValue, header};
use serde_json::json;

use super::RenderContext;
use super::rendering::sampler;

/// Headers that describe the message or the connection. The server sets those that it needs, so an example would be wrong.
const SERVER_HEADERS: [HeaderName; 9] = [
    header::CONNECTION,
    header::CONTENT_ENCODING,
    header::CONTENT_LENGTH,
    header::DATE,
    HeaderName::from_static("keep-alive"),
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
];

/// Returns the declared headers that the mock renders: not [`SERVER_HEADERS`], nor those that the server adds itself if they apply.
pub fn rendered_headers(spec: &ResponseSpec) -> impl Iterator<Item = &Parameter> {
    let added = ["x-request-id", "x-ignored-parameters", "ratelimit", "ratelimit-policy", "idempotency-replayed"];
    spec.headers
        .iter()
        .filter(|header| !SERVER_HEADERS.iter().any(|name| header.name.eq_ignore_ascii_case(name.as_str())))
        .filter(move |header| header.required || !added.iter().any(|name| header.name.eq_ignore_ascii_case(name)))
}

/// Renders a declared header from its example or its schema. `Location` is a URI also if its schema doesn't say so.
///
/// # Errors
/// Returns an error if no value can be generated, or it can't be sent as a header.
pub fn render_header(context: &RenderContext<'_>, header: &Parameter) -> anyhow::Result<(HeaderName, HeaderValue)> {
    let example = header.examples.values().find(|example| header.schema.violations(example).is_empty());
    // A document may say no more of it than that it is a string.
    let keywords = ["format", "pattern", "enum", "example", "default"];
    let says_more = keywords.iter().any(|keyword| header.schema.resolved.get(keyword).is_some());
    let is_reference = header.name.eq_ignore_ascii_case(header::LOCATION.as_str()) && !says_more;
    let value = match example {
        Some(example) => example.clone(),
        None if is_reference => json!("/"),
        None => sampler(context, &header.schema)?.sample_with(context.seed, ExampleUse::Always)?,
    };
    let text = header.serialize(&value).into_iter().map(|(_, text)| text).collect::<String>();
    let header_name = || format!("the header {}", header.name);
    Ok((HeaderName::try_from(&header.name).with_context(header_name)?, HeaderValue::try_from(text).with_context(header_name)?))
}
