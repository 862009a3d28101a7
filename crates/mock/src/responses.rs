//! Responses of each operation: the document's examples, each rendered once, and data generated from schemas.

use std::cmp::Reverse;
use std::sync::{Arc, OnceLock};

use anyhow::{Context, anyhow};
use boxoffice_openapi::response::{Content, Header, ResponseSpec, essence, matches_range};
use boxoffice_openapi::{Contract, Direction, ExampleUse, Operation, Sampler, Schema, escape, to_plain_string};
use bytes::Bytes;
use dropshot::Body;
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode, header};
use quick_cache::Weighter;
use quick_cache::sync::Cache;
use serde_json::Value;
use slog::{Logger, warn};

use crate::body::{concrete_media_type, encode};
use crate::prefer_header::{PREFER, PreferHeader};

/// JSON pointers to an error's reason, the most specific first (in RFC 9457, `title` is only the kind of error).
const REASON_POINTERS: [&str; 9] = [
    "/detail",
    "/message",
    "/error/message",
    "/error_description",
    "/errors/0/message",
    "/detail/0/msg",
    "/description",
    "/error",
    "/title",
];

/// JSON pointers to an error's status.
const STATUS_POINTERS: [&str; 5] = ["/status", "/statusCode", "/status_code", "/error/status", "/error/code"];

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

/// Responses of an operation. They are rendered on first use, so that the mock starts quickly.
pub struct OperationResponses {
    /// The status of the response without a preference: the lowest success.
    default_status: u16,
    /// In the order of the operation's declared responses.
    templates: Vec<ResponseTemplate>,
}

/// Rendered parts of a declared response.
struct ResponseTemplate {
    headers: OnceLock<Vec<(HeaderName, HeaderValue)>>,
    /// In the order of the response's media types.
    sources: Vec<BodySource>,
}

/// Rendered examples and generator of one media type.
struct BodySource {
    media_type: String,
    /// In the order of the content's examples; `None` for an invalid one.
    examples: Vec<OnceLock<Option<RenderedResponse>>>,
    /// The validity of the content's examples, in their order.
    validity: OnceLock<Vec<bool>>,
    sampler: OnceLock<Result<Sampler, String>>,
}

/// Headers and body of a response.
#[derive(Debug, Clone)]
struct RenderedResponse {
    headers: Arc<[(HeaderName, HeaderValue)]>,
    body: Bytes,
}

/// Maximum size of all generated responses in memory, in bytes.
const MAX_CACHED_BYTES: u64 = 32 * 1024 * 1024;
/// Approximate number of them.
const CACHED_RESPONSES: usize = 10_000;
/// Approximate size of an entry without its body, in bytes.
const ENTRY_BYTES: u64 = 512;

/// The generated responses of the last requests. Equal requests have equal responses, and generating one costs more than the rest of the
/// request.
pub struct GeneratedResponses(Cache<GeneratedKey, RenderedResponse, BodyWeight>);

/// Identifies a generated response.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct GeneratedKey {
    seed: u64,
    status: u16,
    /// The address of the [`BodySource`], which doesn't move.
    source: usize,
    is_dynamic: bool,
}

/// Weighs responses by their sizes.
#[derive(Clone)]
struct BodyWeight;

impl Weighter<GeneratedKey, RenderedResponse> for BodyWeight {
    fn weight(&self, _: &GeneratedKey, response: &RenderedResponse) -> u64 {
        response.body.len() as u64 + ENTRY_BYTES
    }
}

impl Default for GeneratedResponses {
    fn default() -> Self {
        Self(Cache::with_weighter(CACHED_RESPONSES, MAX_CACHED_BYTES, BodyWeight))
    }
}

/// The response selected for a request.
pub struct SelectedResponse<'a> {
    status: StatusCode,
    /// Its declaration in the document.
    spec: &'a ResponseSpec,
    template: &'a ResponseTemplate,
    content: Option<(&'a Content, &'a BodySource)>,
    /// The index of the example in the content; `None` for generated data.
    example_index: Option<usize>,
}

/// The reason why no response can be selected for a request.
#[derive(Debug, PartialEq)]
pub enum SelectionError {
    /// The preferred response doesn't exist. The text continues a sentence that begins with `Prefer` and lists those that do.
    UnknownPreference(String),
    /// The client accepts none of these media types.
    NotAcceptable(String),
    /// The client accepts only XML, and the document has no example of it as text.
    XmlNotGenerated,
}

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

impl OperationResponses {
    /// Creates the responses of an operation.
    pub fn new(operation: &Operation) -> Self {
        let source = |content: &Content| BodySource {
            media_type: concrete_media_type(&content.media_type),
            examples: content.examples.iter().map(|_| OnceLock::new()).collect(),
            validity: OnceLock::new(),
            sampler: OnceLock::new(),
        };
        let template = |spec: &ResponseSpec| ResponseTemplate {
            headers: OnceLock::new(),
            sources: spec.contents.iter().map(source).collect(),
        };
        let statuses = operation.responses.iter().map(|spec| *spec.statuses.start());
        let success = statuses.clone().filter(|status| (200..300).contains(status)).min();
        // `default`, which starts below 200, is a success if no other success is declared.
        let other = statuses.map(|status| if status < 200 { 200 } else { status }).min();
        Self { default_status: success.or(other).unwrap_or(200), templates: operation.responses.iter().map(template).collect() }
    }

    /// Selects the response to a request by its `Prefer` and `Accept` headers.
    ///
    /// # Errors
    /// Returns an error if the preferred response doesn't exist, or has no acceptable media type.
    pub fn select<'a>(
        &'a self,
        operation: &'a Operation,
        prefer: Option<&PreferHeader>,
        accept: Option<&HeaderValue>,
    ) -> Result<SelectedResponse<'a>, SelectionError> {
        let code = prefer.and_then(|prefer| prefer.code);
        let status = code.unwrap_or(self.default_status);
        let Some((spec, template)) = self.find(operation, status) else {
            let declared: Vec<_> = operation.responses.iter().map(status_key).collect();
            let text = format!("has code={status}, which the operation doesn't declare; there are {}", declared.join(", "));
            return Err(SelectionError::UnknownPreference(text));
        };
        let Some(example) = prefer.and_then(|prefer| prefer.example.as_deref()) else {
            let contents = spec.contents.iter().zip(&template.sources).filter(|_| has_body(status));
            let content = negotiate(contents, accept)?;
            let example_index = content.filter(|(content, _)| !content.examples.is_empty()).map(|_| 0);
            return Ok(SelectedResponse { status: status_code(status), spec, template, content, example_index });
        };
        // Without a code, the example also selects the status; the default status comes first.
        let others = operation.responses.iter().zip(&self.templates);
        let others = others.filter(|(other, _)| code.is_none() && !std::ptr::eq(*other, spec));
        let candidates = || [(spec, template)].into_iter().chain(others.clone());
        let selected =
            candidates().find_map(|(spec, template)| SelectedResponse::by_example(spec, template, example, status, accept));
        let selected = selected.transpose()?;
        if let Some(violation) = selected.as_ref().and_then(SelectedResponse::example_violation) {
            let violation = violation.trim_start_matches(": ");
            return Err(SelectionError::UnknownPreference(format!(
                "has example={example}, which is not as its schema says: {violation}; correct it in the document"
            )));
        }
        selected.ok_or_else(|| {
            let names =
                |spec: &'a ResponseSpec| spec.contents.iter().flat_map(|content| content.examples.keys().map(String::as_str));
            let existing = candidates().map(|(spec, _)| (names(spec).collect::<Vec<_>>(), status_key(spec)));
            let existing = existing.filter(|(names, _)| !names.is_empty());
            let existing: Vec<_> = existing.map(|(names, status)| format!("{} of {status}", names.join(", "))).collect();
            let existing =
                if existing.is_empty() { "there is none".to_owned() } else { format!("there are {}", existing.join("; ")) };
            SelectionError::UnknownPreference(format!("has example={example}, which is no example here; {existing}"))
        })
    }

    /// Returns the response that the document declares for a status.
    fn find<'a>(&'a self, operation: &'a Operation, status: u16) -> Option<(&'a ResponseSpec, &'a ResponseTemplate)> {
        let declared = operation.response_for(status)?;
        operation.responses.iter().zip(&self.templates).find(|(spec, _)| std::ptr::eq(*spec, declared))
    }
}

impl<'a> SelectedResponse<'a> {
    /// Selects an example by name, with the preferred status if the response may have it; `None` if it has no such example.
    fn by_example(
        spec: &'a ResponseSpec,
        template: &'a ResponseTemplate,
        example: &str,
        status: u16,
        accept: Option<&HeaderValue>,
    ) -> Option<Result<Self, SelectionError>> {
        let index = |content: &Content| {
            let names = || content.examples.keys();
            let similar = || names().position(|name| normalize_name(name) == normalize_name(example));
            names().position(|name| name == example).or_else(similar)
        };
        let contents = spec.contents.iter().zip(&template.sources).filter(|(content, _)| index(content).is_some());
        let content = match negotiate(contents, accept) {
            Ok(content) => content?,
            Err(error) => return Some(Err(error)),
        };
        let status = if spec.statuses.contains(&status) { status } else { first_status(spec) };
        Some(Ok(Self { status: status_code(status), spec, template, content: Some(content), example_index: index(content.0) }))
    }

    /// Renders the example. If there is none, it is invalid or `is_dynamic` is set, renders data generated from the schema by
    /// `seed`: from the schema's own examples, or without them if `is_dynamic` is set.
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
            let headers = self.render_headers(context, &Value::Null, None)?.into();
            let rendered = RenderedResponse { headers, body: Bytes::new() };
            return Ok(self.to_response(&rendered));
        };
        if let Some(index) = self.example_index.filter(|_| !is_dynamic)
            && let Some((name, example)) = content.examples.iter().nth(index)
        {
            let rendered = source.examples[index].get_or_init(|| {
                if let Some(violation) = first_violation(content, example) {
                    let location = format!("{}/content/{}", self.spec.pointer, escape(&content.media_type));
                    warn!(context.log, "invalid example skipped"; "location" => location, "name" => name, "error" => violation);
                    return None;
                }
                self.render_value(context, source, example, None).ok()
            });
            if let Some(rendered) = rendered {
                return Ok(self.to_response(rendered));
            }
        }
        let seed = seed();
        let source_address = std::ptr::from_ref(source).addr();
        let key = GeneratedKey { seed, status: self.status.as_u16(), source: source_address, is_dynamic };
        let rendered = context.generated.0.get_or_insert_with(&key, || {
            let examples = if is_dynamic { ExampleUse::Never } else { ExampleUse::Always };
            let value = self.generate(context, content, source, seed, examples)?;
            self.render_value(context, source, &value, None)
        })?;
        Ok(self.to_response(&rendered))
    }

    /// Renders a body. `location` is the URI of a new resource for the `Location` header; a `self` in the body has precedence.
    ///
    /// # Errors
    /// Returns an error if the response has no body or its headers can't be generated.
    pub fn render_body(
        &self,
        context: &RenderContext<'_>,
        value: &Value,
        location: Option<&str>,
    ) -> anyhow::Result<Response<Body>> {
        let (_, source) = self.content.context("the response has no body")?;
        Ok(self.to_response(&self.render_value(context, source, value, location)?))
    }

    /// Renders an error with a reason and the response's status. The reason replaces the first string at [`REASON_POINTERS`], or is
    /// added there, as far as the schema allows it.
    ///
    /// # Errors
    /// Returns an error if no data can be generated; the error contains the location in the document.
    pub fn render_error(&self, context: &RenderContext<'_>, reason: &str, seed: u64) -> anyhow::Result<Response<Body>> {
        let Some((content, _)) = self.content.filter(|(content, _)| content.is_json()) else {
            return self.render(context, false, || seed);
        };
        let mut value = self.body_value(context, seed)?;
        let violations = |value: &Value| content.schema.as_deref().map_or(0, |schema| schema.violations(value).len());
        self.correct_status(content, &mut value, violations);
        let count = violations(&value);
        let is_string = |pointer: &str| value.pointer(pointer).is_some_and(Value::is_string);
        let (present, absent): (Vec<&str>, Vec<&str>) = REASON_POINTERS.iter().copied().partition(|pointer| is_string(pointer));
        let with_reason = present.into_iter().chain(absent).find_map(|pointer| {
            let candidate = with_value_at(&value, pointer, reason.into())?;
            let remaining = violations(&candidate);
            // The example itself may have undeclared properties, which count as violations.
            (remaining == 0 || is_string(pointer) && remaining <= count).then_some(candidate)
        });
        self.render_body(context, with_reason.as_ref().unwrap_or(&value), None)
    }

    /// Replaces another status in an error by that of the response. Adds it to a problem (RFC 9457) if the schema allows it.
    fn correct_status(&self, content: &Content, value: &mut Value, violations: impl Fn(&Value) -> usize) {
        let status = self.status.as_u16();
        let is_status = |value: &Value| value.as_u64().is_some_and(|status| (100..600).contains(&status));
        let wrong = STATUS_POINTERS.into_iter().find(|pointer| value.pointer(pointer).is_some_and(is_status));
        let is_problem = essence(&content.media_type).eq_ignore_ascii_case("application/problem+json");
        let Some(pointer) = wrong.or(is_problem.then_some("/status")) else { return };
        if let Some(corrected) =
            with_value_at(value, pointer, status.into()).filter(|corrected| violations(corrected) <= violations(value))
        {
            *value = corrected;
        }
    }

    /// Returns the schema of a JSON body.
    pub fn schema(&self) -> Option<&Schema> {
        self.content.filter(|(content, _)| content.is_json()).and_then(|(content, _)| content.schema.as_deref())
    }

    /// Returns the valid examples of a JSON body, in the document's order.
    pub fn examples(&self) -> impl Iterator<Item = &Value> {
        let content = self.content.filter(|(content, _)| content.is_json());
        let examples = content.into_iter().flat_map(|(content, source)| {
            let is_valid = |example: &Value| first_violation(content, example).is_none();
            let validity = source.validity.get_or_init(|| content.examples.values().map(is_valid).collect());
            content.examples.values().zip(validity)
        });
        examples.filter(|(_, is_valid)| **is_valid).map(|(example, _)| example)
    }

    /// Returns the body: the first valid example, or data generated from the schema by `seed`.
    ///
    /// # Errors
    /// Returns an error if the response has no body or no data can be generated.
    pub fn body_value(&self, context: &RenderContext<'_>, seed: u64) -> anyhow::Result<Value> {
        let (content, source) = self.content.context("the response has no body")?;
        let generate = || self.generate(context, content, source, seed, ExampleUse::Always);
        self.examples().next().map_or_else(generate, |example| Ok(example.clone()))
    }

    /// Returns the first violation of the selected example.
    fn example_violation(&self) -> Option<String> {
        let (content, _) = self.content?;
        first_violation(content, content.examples.values().nth(self.example_index?)?)
    }

    fn generate(
        &self,
        context: &RenderContext<'_>,
        content: &Content,
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
        location: Option<&str>,
    ) -> anyhow::Result<RenderedResponse> {
        let mut headers = self.render_headers(context, value, location)?;
        headers.push((header::CONTENT_TYPE, HeaderValue::try_from(&source.media_type)?));
        let schema = self.content.and_then(|(content, _)| content.schema.as_deref());
        let is_binary = schema.is_some_and(|schema| matches!(schema.resolved["format"].as_str(), Some("byte" | "binary")));
        Ok(RenderedResponse { headers: headers.into(), body: encode(&source.media_type, value, is_binary) })
    }

    /// Renders the declared headers. `Location` is the body's `self`.
    fn render_headers(
        &self,
        context: &RenderContext<'_>,
        body: &Value,
        location: Option<&str>,
    ) -> anyhow::Result<Vec<(HeaderName, HeaderValue)>> {
        let rendered = self.template.headers.get_or_init(|| {
            let render = |header: &Header| match render_header(context, header) {
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
        if let Some(uri) = body["self"].as_str().or(location) {
            let declared = self.spec.headers.iter().find(|header| header.name.eq_ignore_ascii_case(header::LOCATION.as_str()));
            let rendered = headers.iter_mut().find(|(name, _)| *name == header::LOCATION);
            // A `self` that is only a path isn't valid if the header's schema requires an absolute URI.
            let is_valid = declared.is_some_and(|header| header.schema.violations(&uri.into()).is_empty());
            if let Some((_, value)) = rendered.filter(|_| is_valid) {
                *value = HeaderValue::try_from(uri)?;
            }
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

/// Returns the first violation of a body by its schema. Undeclared properties are none where the schema allows them.
fn first_violation(content: &Content, value: &Value) -> Option<String> {
    let schema = content.schema.as_deref().filter(|_| content.is_json())?;
    schema.first_declared_error(value).unwrap_or_else(|error| Some(format!("{error:#}")))
}

fn sampler(context: &RenderContext<'_>, schema: &Schema) -> anyhow::Result<Sampler> {
    Sampler::new(&context.contract.document, &schema.raw, Direction::Response)
}

/// Returns the declared headers that the mock renders: not [`SERVER_HEADERS`], nor those that the server adds itself if they apply.
fn rendered_headers(spec: &ResponseSpec) -> impl Iterator<Item = &Header> {
    let added = ["x-request-id", "x-ignored-parameters", "ratelimit", "ratelimit-policy", "idempotency-replayed"];
    spec.headers
        .iter()
        .filter(|header| !SERVER_HEADERS.iter().any(|name| header.name.eq_ignore_ascii_case(name.as_str())))
        .filter(move |header| header.is_required || !added.iter().any(|name| header.name.eq_ignore_ascii_case(name)))
}

/// Renders a declared header from its example or its schema.
fn render_header(context: &RenderContext<'_>, header: &Header) -> anyhow::Result<(HeaderName, HeaderValue)> {
    let example = header.example.clone().filter(|example| header.schema.violations(example).is_empty());
    let value = match example {
        Some(example) => example,
        None => sampler(context, &header.schema)?.sample_with(context.seed, ExampleUse::Always)?,
    };
    let text = match &value {
        // Lists have the style `simple`, the only one for headers (OpenAPI 3.0, Header Object).
        Value::Array(items) => items.iter().map(to_plain_string).collect::<Vec<_>>().join(","),
        _ => to_plain_string(&value),
    };
    let header_name = || format!("the header {}", header.name);
    Ok((HeaderName::try_from(&header.name).with_context(header_name)?, HeaderValue::try_from(text).with_context(header_name)?))
}

/// Returns a copy of a value with another value at a pointer; `None` if its parent is no object.
fn with_value_at(value: &Value, pointer: &str, new: Value) -> Option<Value> {
    let (parent, name) = pointer.rsplit_once('/')?;
    let mut copy = value.clone();
    copy.pointer_mut(parent)?.as_object_mut()?.insert(name.to_owned(), new);
    Some(copy)
}

/// Returns the content that the client prefers (RFC 9110, section 12.5.1); among equals JSON, then the first. Without `accept`, the
/// client accepts everything. `None` if there is no content.
///
/// # Errors
/// Returns an error if the client accepts none of them, or only XML that can't be generated.
fn negotiate<'a>(
    contents: impl Iterator<Item = (&'a Content, &'a BodySource)>,
    accept: Option<&HeaderValue>,
) -> Result<Option<(&'a Content, &'a BodySource)>, SelectionError> {
    let accept = accept.and_then(|accept| accept.to_str().ok()).unwrap_or("*/*");
    let weigh = |(content, source): &(&Content, &BodySource)| match quality(accept, essence(&source.media_type)) {
        // A range of the document may include an accepted media type.
        0 if essence(&content.media_type).ends_with('*') => 1,
        weight => weight,
    };
    let contents: Vec<_> = contents.collect();
    if contents.is_empty() {
        return Ok(None);
    }
    let acceptable = || contents.iter().filter(|content| weigh(content) > 0);
    let generated = acceptable().filter(|(content, _)| !content.is_xml_unseen());
    let best = generated.min_by_key(|content| (Reverse(weigh(content)), !content.0.is_json()));
    match best {
        Some(best) => Ok(Some(*best)),
        None if acceptable().next().is_some() => Err(SelectionError::XmlNotGenerated),
        None => {
            let types: Vec<_> = contents.iter().map(|(content, _)| content.media_type.as_str()).collect();
            Err(SelectionError::NotAcceptable(types.join(", ")))
        }
    }
}

/// Returns the weight of a media type in thousandths, from the most specific range that matches it.
fn quality(accept: &str, media_type: &str) -> u32 {
    let ranges = accept.split(',').filter(|range| matches_range(range, media_type));
    let most_specific = ranges.min_by_key(|range| essence(range).bytes().filter(|byte| *byte == b'*').count());
    let Some(range) = most_specific else { return 0 };
    let weight = range.split(';').skip(1).find_map(|parameter| parameter.trim().strip_prefix("q="));
    let weight = weight.map_or(Some(1.0), |weight| weight.trim().parse::<f64>().ok());
    (weight.unwrap_or(1.0).clamp(0.0, 1.0) * 1000.0) as u32
}

/// Returns a response's key in the document: `200`, `4XX`, `default`.
fn status_key(spec: &ResponseSpec) -> &str {
    spec.pointer.rsplit('/').next().unwrap_or_default()
}

/// Returns the status of a response that was selected only by its example. `default` is then an error.
fn first_status(spec: &ResponseSpec) -> u16 {
    if *spec.statuses.start() < 200 { 500 } else { *spec.statuses.start() }
}

/// Returns whether a response may have a body, if the document declares one (RFC 9110, section 6.4.1).
fn has_body(status: u16) -> bool {
    !matches!(status, 204 | 205 | 304)
}

fn status_code(status: u16) -> StatusCode {
    StatusCode::from_u16(status).unwrap_or(StatusCode::OK)
}

/// Returns a name without separators, in lower case: the same for `soldOut`, `sold-out` and `sold_out`.
pub fn normalize_name(name: &str) -> String {
    name.chars().filter(|character| !"-_ ".contains(*character)).flat_map(char::to_lowercase).collect()
}
