//! Rendering of a selected response.

use anyhow::{Context, anyhow};
use boxoffice_openapi::response::BodyContent;
use boxoffice_openapi::{Contract, Direction, ExampleUse, Parameter, Sampler, Schema, escape};
use bytes::Bytes;
use dropshot::Body;
use http::{HeaderMap, HeaderName, HeaderValue, Response, header};
use serde_json::Value;
use slog::{Logger, warn};

use super::cache::{GeneratedKey, GeneratedResponses};
use super::headers::{render_header, rendered_headers};
use super::{BodySource, RenderedResponse, SelectedResponse, first_violation};
use crate::body::encode;
use crate::prefer_header::PREFER;

/// Inputs of rendering that all responses share.
pub struct RenderContext<'a> {
    /// The document.
    pub contract: &'a Contract,
    /// Seed of generated headers, which are the same for all requests.
    pub seed: u64,
    /// Log for invalid examples.
    pub log: &'a Logger,
    /// Responses that were generated before.
    pub generated: &'a GeneratedResponses,
}

impl SelectedResponse<'_> {
    /// Renders the example, or the next valid one if it is invalid. If there is none or `is_dynamic` is set, renders data generated
    /// from the schema by `seed`: from the schema's own examples, or without them if `is_dynamic` is set.
    ///
    /// # Errors
    /// Returns an error if no data can be generated; the error contains the location in the document.
    pub fn render(
        &self,
        context: &RenderContext<'_>,
        is_dynamic: bool,
        seed: impl FnOnce() -> u64,
    ) -> anyhow::Result<Response<Body>> {
        let Some((content, source)) = self.content else {
            let headers = self.render_headers(context, &Value::Null, &[])?.into();
            let rendered = RenderedResponse { headers, body: Bytes::new() };
            return Ok(self.to_response(&rendered));
        };
        if let Some(index) = self.example_index.filter(|_| !is_dynamic) {
            let render = |name: &str, example: &Value| {
                if let Some(violation) = first_violation(content, example) {
                    let location = format!("{}/content/{}", self.spec.pointer, escape(&content.media_type));
                    warn!(context.log, "invalid example skipped"; "location" => location, "name" => name, "error" => violation);
                    return None;
                }
                self.render_value(context, source, example, &[]).ok()
            };
            let mut examples = content.examples.iter().zip(&source.examples).skip(index);
            let rendered =
                examples.find_map(|((name, example), rendered)| rendered.get_or_init(|| render(name, example)).as_ref());
            if let Some(rendered) = rendered {
                return Ok(self.to_response(rendered));
            }
        }
        let seed = seed();
        let source_address = std::ptr::from_ref(source).addr();
        let key = GeneratedKey { seed, status: self.status.as_u16(), source: source_address, is_dynamic };
        let rendered = context.generated.0.get_or_insert_with(&key, || {
            let examples = if is_dynamic { ExampleUse::Never } else { ExampleUse::Always };
            let mut value = self.generate(context, content, source, seed, examples)?;
            if content.is_json() && (self.status.is_client_error() || self.status.is_server_error()) {
                self.correct_status(content, &mut value);
            }
            self.render_value(context, source, &value, &[])
        })?;
        Ok(self.to_response(&rendered))
    }

    /// Renders a body. `locations` are URIs of a new resource: the header `Location` has the first one that its schema allows.
    ///
    /// # Errors
    /// Returns an error if the response has no body or its headers can't be generated.
    pub fn render_body(
        &self,
        context: &RenderContext<'_>,
        value: &Value,
        locations: &[String],
    ) -> anyhow::Result<Response<Body>> {
        let (_, source) = self.content.context("the response has no body")?;
        Ok(self.to_response(&self.render_value(context, source, value, locations)?))
    }

    pub(super) fn generate(
        &self,
        context: &RenderContext<'_>,
        content: &BodyContent,
        source: &BodySource,
        seed: u64,
        examples: ExampleUse,
    ) -> anyhow::Result<Value> {
        let Some(schema) = &content.schema else { return Ok(Value::Object(Default::default())) };
        let location = || format!("{}/content/{}/schema", self.spec.pointer, escape(&content.media_type));
        let sampler = source.sampler.get_or_init(|| sampler(context, schema).map_err(|error| format!("{error:#}")));
        let sampler = sampler.as_ref().map_err(|error| anyhow!("{error}")).with_context(location)?;
        let (value, violation) = sampler.sample_or_invalid(seed, examples).with_context(location)?;
        if let Some(violation) = violation {
            // Such a value is more useful for a client's tests than an error, and the schema may allow no value at all.
            warn!(context.log, "the generated response violates its schema"; "location" => location(), "error" => violation);
        }
        Ok(value)
    }

    fn render_value(
        &self,
        context: &RenderContext<'_>,
        source: &BodySource,
        value: &Value,
        locations: &[String],
    ) -> anyhow::Result<RenderedResponse> {
        let mut headers = self.render_headers(context, value, locations)?;
        headers.push((header::CONTENT_TYPE, HeaderValue::try_from(&source.media_type)?));
        let schema = self.content.and_then(|(content, _)| content.schema.as_deref());
        let is_binary = schema.is_some_and(|schema| matches!(schema.resolved["format"].as_str(), Some("byte" | "binary")));
        Ok(RenderedResponse { headers: headers.into(), body: encode(&source.media_type, value, is_binary) })
    }

    /// Renders the declared headers. `Location` is one of `locations`, or else the body's `self`.
    fn render_headers(
        &self,
        context: &RenderContext<'_>,
        body: &Value,
        locations: &[String],
    ) -> anyhow::Result<Vec<(HeaderName, HeaderValue)>> {
        let rendered = self.template.headers.get_or_init(|| {
            let render = |header: &Parameter| match render_header(context, header) {
                Ok(rendered) => Some(rendered),
                Err(error) => {
                    let location = format!("{}/headers/{}", self.spec.pointer, escape(&header.name));
                    warn!(context.log, "header left out"; "location" => location, "cause" => format!("{error:#}"));
                    None
                }
            };
            rendered_headers(self.spec).filter_map(render).collect()
        });
        let mut headers = rendered.clone();
        let of_body = body["self"].as_str().map(str::to_owned).filter(|_| locations.is_empty());
        let declared = self.spec.headers.iter().find(|header| header.name.eq_ignore_ascii_case(header::LOCATION.as_str()));
        let is_valid = |uri: &&String| declared.is_some_and(|header| header.schema.is_valid(&uri.as_str().into()));
        let rendered = headers.iter_mut().find(|(name, _)| *name == header::LOCATION);
        if let Some((uri, (_, value))) = locations.iter().chain(&of_body).find(is_valid).zip(rendered) {
            *value = HeaderValue::try_from(uri)?;
        }
        Ok(headers)
    }

    fn to_response(&self, rendered: &RenderedResponse) -> Response<Body> {
        let mut response = Response::new(Body::from(rendered.body.clone()));
        *response.status_mut() = self.status;
        // Plus those that the dispatcher adds.
        let mut headers = HeaderMap::with_capacity(rendered.headers.len() + 6);
        headers.extend(rendered.headers.iter().cloned());
        let vary = if self.template.sources.len() > 1 { "Accept, Prefer" } else { PREFER };
        headers.insert(header::VARY, HeaderValue::from_static(vary));
        *response.headers_mut() = headers;
        response
    }
}

/// Creates a generator of responses with this schema.
///
/// # Errors
/// Returns an error if the schema can't be compiled.
pub fn sampler(context: &RenderContext<'_>, schema: &Schema) -> anyhow::Result<Sampler> {
    Sampler::new(&context.contract.document, &schema.raw, Direction::Response)
}
