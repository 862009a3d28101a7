//! What an operation can be answered with: the document's examples, each made ready to be sent once, and data from schemas.

use std::cmp::Reverse;
use std::sync::OnceLock;

use anyhow::{Context, anyhow, bail};
use bytes::Bytes;
use dropshot::Body;
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode, header};
use serde_json::Value;
use slog::{Logger, warn};

use super::body::{bytes, concrete};
use super::prefer_header::{PREFER, PreferHeader};
use boxoffice_openapi::response::{Content, Header, ResponseSpec, ViolationKind, essence, matches_range};
use boxoffice_openapi::{Contract, Direction, Operation, Sampler, Schema, escape, to_plain_string};

/// Where errors tell what was wrong, as JSON pointers; the more exact go first (RFC 9457 has `title` for the kind alone).
const REASONS: [&str; 8] =
    ["/detail", "/message", "/error/message", "/error_description", "/errors/0/message", "/description", "/error", "/title"];

/// What an operation can be answered with. Nothing is made before it is asked for, so that the mock starts at once.
pub struct OperationResponses {
    /// What is answered unless something else is preferred: the lowest success.
    usual: u16,
    /// In the order of the operation's answers.
    stock: Vec<ResponseTemplate>,
}

/// What one of the operation's answers is made of.
struct ResponseTemplate {
    headers: OnceLock<Result<Vec<(HeaderName, HeaderValue)>, String>>,
    /// In the order of the answer's contents.
    sources: Vec<BodySource>,
}

/// What a body of one media type is made of.
struct BodySource {
    media_type: String,
    /// In the order of the content's examples; `None` where one isn't valid.
    examples: Vec<OnceLock<Option<RenderedResponse>>>,
    /// Which of the content's examples are valid, in their order.
    valid: OnceLock<Vec<bool>>,
    sampler: OnceLock<Result<Sampler, String>>,
}

/// Headers and body of an answer, as they are sent.
#[derive(Debug, Clone)]
struct RenderedResponse {
    headers: Vec<(HeaderName, HeaderValue)>,
    body: Bytes,
}

/// One answer out of those that an operation can be given.
pub struct SelectedResponse<'a> {
    /// Its status.
    pub status: StatusCode,
    /// What the document says of it.
    pub answer: &'a ResponseSpec,
    stock: &'a ResponseTemplate,
    content: Option<(&'a Content, &'a BodySource)>,
    /// The example's place among those of the content; `None` for data from the schema.
    example: Option<usize>,
}

/// What data are made from.
pub struct RenderContext<'a> {
    /// The document, to which schemas refer.
    pub contract: &'a Contract,
    /// The same seed makes the same headers, whatever the request.
    pub seed: u64,
    /// Is told of examples that aren't valid.
    pub log: &'a Logger,
}

impl OperationResponses {
    /// What this operation can be answered with.
    pub fn of(operation: &Operation) -> Self {
        let source = |content: &Content| BodySource {
            media_type: concrete(&content.media_type),
            examples: content.examples.iter().map(|_| OnceLock::new()).collect(),
            valid: OnceLock::new(),
            sampler: OnceLock::new(),
        };
        let stock = |answer: &ResponseSpec| ResponseTemplate {
            headers: OnceLock::new(),
            sources: answer.contents.iter().map(source).collect(),
        };
        let first = operation.answers.iter().map(|answer| *answer.statuses.start());
        let success = first.clone().filter(|status| (200..300).contains(status)).min();
        // What `default` stands for is a success where no other is declared.
        let other = first.map(|status| if status < 200 { 200 } else { status }).min();
        Self { usual: success.or(other).unwrap_or(200), stock: operation.answers.iter().map(stock).collect() }
    }

    /// The answer that is given to a request, by what it prefers and accepts.
    ///
    /// # Errors
    /// When what is preferred isn't there; the text, which completes a sentence that `Prefer` begins, tells what is.
    pub fn choose<'a>(
        &'a self,
        operation: &'a Operation,
        preferences: Option<&PreferHeader>,
        accept: Option<&HeaderValue>,
    ) -> Result<SelectedResponse<'a>, String> {
        let code = preferences.and_then(|preferences| preferences.code);
        let status = code.unwrap_or(self.usual);
        let Some((answer, stock)) = self.declared(operation, status) else {
            let there: Vec<_> = operation.answers.iter().map(name).collect();
            return Err(format!("has code={status}, which the operation doesn't declare; there are {}", there.join(", ")));
        };
        let Some(example) = preferences.and_then(|preferences| preferences.example.as_deref()) else {
            let content = answer.contents.iter().zip(&stock.sources);
            let content = if answer.contents.len() > 1 { accepted(content, accept) } else { content.into_iter().next() };
            let example = content.filter(|(content, _)| !content.examples.is_empty()).map(|_| 0);
            return Ok(SelectedResponse { status: status_code(status), answer, stock, content, example });
        };
        // Without a code, the example chooses the status too; where several have one of this name, the usual one goes first.
        let others = operation.answers.iter().zip(&self.stock);
        let others = others.filter(|(other, _)| code.is_none() && !std::ptr::eq(*other, answer));
        let places = || [(answer, stock)].into_iter().chain(others.clone());
        let found = places().find_map(|(answer, stock)| SelectedResponse::by_example(answer, stock, example, status, accept));
        if let Some(wrong) = found.as_ref().and_then(SelectedResponse::wrong_example) {
            let wrong = wrong.trim_start_matches(": ");
            return Err(format!("has example={example}, which is not as its schema says: {wrong}; correct it in the document"));
        }
        found.ok_or_else(|| {
            let there = places().filter(|(answer, _)| answer.contents.iter().any(|content| !content.examples.is_empty()));
            let names =
                |answer: &'a ResponseSpec| answer.contents.iter().flat_map(|content| content.examples.keys().map(String::as_str));
            let there = there.map(|(answer, _)| format!("{} of {}", names(answer).collect::<Vec<_>>().join(", "), name(answer)));
            let there = there.collect::<Vec<_>>().join("; ");
            let there = if there.is_empty() { "there is none".to_owned() } else { format!("there are {there}") };
            format!("has example={example}, which is no example here; {there}")
        })
    }

    /// The answer that the document declares for a status.
    fn declared<'a>(&'a self, operation: &'a Operation, status: u16) -> Option<(&'a ResponseSpec, &'a ResponseTemplate)> {
        let declared = operation.answer(status)?;
        operation.answers.iter().zip(&self.stock).find(|(answer, _)| std::ptr::eq(*answer, declared))
    }
}

impl<'a> SelectedResponse<'a> {
    /// This example of an answer, with this status if it may have it; `None` where it has no example of this name.
    fn by_example(
        answer: &'a ResponseSpec,
        stock: &'a ResponseTemplate,
        example: &str,
        status: u16,
        accept: Option<&HeaderValue>,
    ) -> Option<Self> {
        let place = |content: &Content| {
            let names = || content.examples.keys();
            let like = || names().position(|name| normalize_name(name) == normalize_name(example));
            names().position(|name| name == example).or_else(like)
        };
        let having = answer.contents.iter().zip(&stock.sources).filter(|(content, _)| place(content).is_some());
        let content = accepted(having, accept)?;
        let status = if answer.statuses.contains(&status) { status } else { first_status(answer) };
        Some(Self { status: status_code(status), answer, stock, content: Some(content), example: place(content.0) })
    }

    /// The answer: the example, or where there is none, it isn't valid or `is_dynamic`, data made from the schema by `seed`.
    ///
    /// # Errors
    /// When no data can be made; the error names the place in the document.
    pub fn response(
        &self,
        making: &RenderContext<'_>,
        is_dynamic: bool,
        seed: impl FnOnce() -> u64,
    ) -> anyhow::Result<Response<Body>> {
        let Some((content, source)) = self.content else {
            let ready = RenderedResponse { headers: self.headers(making, &Value::Null, None)?, body: Bytes::new() };
            return Ok(self.send(&ready));
        };
        if content.is_xml_unseen() {
            bail!("{}: XML is answered with examples alone, and only with texts", self.answer.pointer);
        }
        if let Some(number) = self.example.filter(|_| !is_dynamic)
            && let Some((name, example)) = content.examples.iter().nth(number)
        {
            let ready = source.examples[number].get_or_init(|| {
                let wrong = self.wrong(content, example);
                if let Some(wrong) = wrong {
                    let place = format!("{}/content/{}", self.answer.pointer, escape(&content.media_type));
                    warn!(making.log, "an example that isn't valid is not served"; "of" => place, "name" => name, "wrong" => wrong);
                    return None;
                }
                self.ready(making, source, example, None).ok()
            });
            if let Some(ready) = ready {
                return Ok(self.send(ready));
            }
        }
        let value = self.generate(making, content, source, seed())?;
        Ok(self.send(&self.ready(making, source, &value, None)?))
    }

    /// The answer with this body. `location` is where a new resource is, which goes into `Location` unless the body has a `self`.
    ///
    /// # Errors
    /// When the answer has no body, or no headers can be made for it.
    pub fn with(&self, making: &RenderContext<'_>, value: &Value, location: Option<&str>) -> anyhow::Result<Response<Body>> {
        let (_, source) = self.content.context("the answer has no body")?;
        Ok(self.send(&self.ready(making, source, value, location)?))
    }

    /// The answer with the reason of a refusal in the property that is meant for one, where the schema lets it: in one that has
    /// a text already, else in one more.
    ///
    /// # Errors
    /// When no data can be made; the error names the place in the document.
    pub fn error_response(&self, making: &RenderContext<'_>, reason: &str, seed: u64) -> anyhow::Result<Response<Body>> {
        let Some(schema) = self.schema() else { return self.response(making, false, || seed) };
        let value = self.value(making, seed)?;
        let faults = schema.wrong(&value).len();
        let is_text = |place: &str| value.pointer(place).is_some_and(Value::is_string);
        let (there, others): (Vec<&str>, Vec<&str>) = REASONS.iter().copied().partition(|place| is_text(place));
        let told = there.into_iter().chain(others).find_map(|place| {
            let (parent, name) = place.rsplit_once('/')?;
            let mut told = value.clone();
            told.pointer_mut(parent)?.as_object_mut()?.insert(name.to_owned(), reason.into());
            let wrong = schema.wrong(&told);
            // What the document shows may have undeclared properties, and keeps those.
            (wrong.is_empty() || is_text(place) && wrong.len() <= faults).then_some(told)
        });
        self.with(making, told.as_ref().unwrap_or(&value), None)
    }

    /// The schema of its body, where that is JSON.
    pub fn schema(&self) -> Option<&Schema> {
        self.content.filter(|(content, _)| content.is_json()).and_then(|(content, _)| content.schema.as_ref())
    }

    /// The valid examples of its body, where that is JSON, in the document's order.
    pub fn examples(&self) -> impl Iterator<Item = &Value> {
        let content = self.content.filter(|(content, _)| content.is_json());
        let examples = content.into_iter().flat_map(|(content, source)| {
            let is_valid = |example: &Value| self.wrong(content, example).is_none();
            let valid = source.valid.get_or_init(|| content.examples.values().map(is_valid).collect());
            content.examples.values().zip(valid)
        });
        examples.filter(|(_, is_valid)| **is_valid).map(|(example, _)| example)
    }

    /// Its body: the first example, or data made from the schema by `seed`.
    ///
    /// # Errors
    /// When it has none, or no data can be made.
    pub fn value(&self, making: &RenderContext<'_>, seed: u64) -> anyhow::Result<Value> {
        let (content, source) = self.content.context("the answer has no body")?;
        self.examples().next().map_or_else(|| self.generate(making, content, source, seed), |example| Ok(example.clone()))
    }

    /// The first thing that is wrong with its example.
    fn wrong_example(&self) -> Option<String> {
        let (content, _) = self.content?;
        self.wrong(content, content.examples.values().nth(self.example?)?)
    }

    /// The first thing that is wrong with a body, undeclared properties apart, which a schema allows.
    fn wrong(&self, content: &Content, value: &Value) -> Option<String> {
        let wrong = content.schema.as_ref().filter(|_| content.is_json())?.wrong(value);
        wrong.into_iter().find(|(kind, _)| *kind != ViolationKind::Undeclared).map(|(_, text)| text)
    }

    fn generate(&self, making: &RenderContext<'_>, content: &Content, source: &BodySource, seed: u64) -> anyhow::Result<Value> {
        let Some(schema) = &content.schema else { return Ok(Value::Object(Default::default())) };
        let about = || format!("{}/content/{}/schema", self.answer.pointer, escape(&content.media_type));
        let sampler = source.sampler.get_or_init(|| sampler(making, schema).map_err(|error| format!("{error:#}")));
        let sampler = sampler.as_ref().map_err(|error| anyhow!("{error}")).with_context(about)?;
        sampler.sample(seed).with_context(about)
    }

    fn ready(
        &self,
        making: &RenderContext<'_>,
        source: &BodySource,
        value: &Value,
        location: Option<&str>,
    ) -> anyhow::Result<RenderedResponse> {
        let mut headers = self.headers(making, value, location)?;
        headers.push((header::CONTENT_TYPE, HeaderValue::try_from(&source.media_type)?));
        let schema = self.content.and_then(|(content, _)| content.schema.as_ref());
        let is_binary = schema.is_some_and(|schema| matches!(schema.resolved["format"].as_str(), Some("byte" | "binary")));
        Ok(RenderedResponse { headers, body: bytes(&source.media_type, value, is_binary) })
    }

    /// The declared headers, of which `Location` is what the body calls itself.
    fn headers(
        &self,
        making: &RenderContext<'_>,
        body: &Value,
        location: Option<&str>,
    ) -> anyhow::Result<Vec<(HeaderName, HeaderValue)>> {
        let made = self.stock.headers.get_or_init(|| {
            let made = self.answer.headers.iter().map(|header| make_header(making, header));
            made.collect::<anyhow::Result<_>>().map_err(|error| format!("{error:#}"))
        });
        let mut headers = made.clone().map_err(|error| anyhow!(error)).with_context(|| self.answer.pointer.clone())?;
        if let Some(uri) = body["self"].as_str().or(location) {
            let declared = headers.iter_mut().zip(&self.answer.headers).filter(|((name, _), _)| *name == header::LOCATION);
            // What calls itself by a path alone doesn't fit a schema that asks for a whole URI.
            for ((_, location), _) in declared.filter(|(_, header)| header.schema.wrong(&uri.into()).is_empty()) {
                *location = HeaderValue::try_from(uri)?;
            }
        }
        Ok(headers)
    }

    fn send(&self, ready: &RenderedResponse) -> Response<Body> {
        let mut response = Response::new(Body::from(ready.body.clone()));
        *response.status_mut() = self.status;
        // With those that the front door and dropshot add.
        let mut headers = HeaderMap::with_capacity(ready.headers.len() + 6);
        headers.extend(ready.headers.iter().cloned());
        let vary = if self.stock.sources.len() > 1 { "Accept, Prefer" } else { PREFER };
        headers.insert(header::VARY, HeaderValue::from_static(vary));
        *response.headers_mut() = headers;
        response
    }
}

fn sampler(making: &RenderContext<'_>, schema: &Schema) -> anyhow::Result<Sampler> {
    Sampler::new(&making.contract.document, &schema.raw, Direction::Response)
}

/// A declared header with its example, or made from its schema.
fn make_header(making: &RenderContext<'_>, header: &Header) -> anyhow::Result<(HeaderName, HeaderValue)> {
    let example = header.example.clone().filter(|example| header.schema.wrong(example).is_empty());
    let value = match example {
        Some(example) => example,
        None => sampler(making, &header.schema)?.sample(making.seed)?,
    };
    let text = match &value {
        // A list is written in the style `simple`, the only one that headers have (OpenAPI 3.0, Header Object).
        Value::Array(items) => items.iter().map(to_plain_string).collect::<Vec<_>>().join(","),
        _ => to_plain_string(&value),
    };
    let about = || format!("the header {}", header.name);
    Ok((HeaderName::try_from(&header.name).with_context(about)?, HeaderValue::try_from(text).with_context(about)?))
}

/// The content that a caller accepts most (RFC 9110, section 12.5.1); among equals JSON, then the first. A caller that accepts
/// none, or none but XML that can't be made, is given one all the same, as the RFC allows.
fn accepted<'a>(
    contents: impl Iterator<Item = (&'a Content, &'a BodySource)>,
    accept: Option<&HeaderValue>,
) -> Option<(&'a Content, &'a BodySource)> {
    let accept = accept.and_then(|accept| accept.to_str().ok()).unwrap_or("*/*");
    contents.min_by_key(|(content, source)| {
        (content.is_xml_unseen(), Reverse(quality(accept, essence(&source.media_type))), !content.is_json())
    })
}

/// How much a caller wants a media type, in thousandths: what the closest of its ranges says.
fn quality(accept: &str, media_type: &str) -> u32 {
    let ranges = accept.split(',').filter(|range| matches_range(range, media_type));
    let closest = ranges.min_by_key(|range| essence(range).bytes().filter(|byte| *byte == b'*').count());
    let Some(range) = closest else { return 0 };
    let weight = range.split(';').skip(1).find_map(|parameter| parameter.trim().strip_prefix("q="));
    let weight = weight.map_or(Some(1.0), |weight| weight.trim().parse::<f64>().ok());
    (weight.unwrap_or(1.0).clamp(0.0, 1.0) * 1000.0) as u32
}

/// The name of an answer as the document has it: `200`, `4XX`, `default`.
fn name(answer: &ResponseSpec) -> &str {
    answer.pointer.rsplit('/').next().unwrap_or_default()
}

/// A status of an answer that is chosen by its example alone: that of `default`, next to a success, is a failure.
fn first_status(answer: &ResponseSpec) -> u16 {
    if *answer.statuses.start() < 200 { 500 } else { *answer.statuses.start() }
}

fn status_code(status: u16) -> StatusCode {
    StatusCode::from_u16(status).unwrap_or(StatusCode::OK)
}

/// A name without what tells `soldOut`, `sold-out` and `sold_out` apart.
pub fn normalize_name(name: &str) -> String {
    name.chars().filter(|character| !"-_ ".contains(*character)).flat_map(char::to_lowercase).collect()
}
