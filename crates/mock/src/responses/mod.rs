//! Responses of each operation: the document's examples, each rendered once, and data generated from schemas.

mod cache;
mod errors;
mod headers;
mod negotiation;
mod rendering;

use std::sync::{Arc, OnceLock};

use anyhow::Context;
use boxoffice_openapi::paging::normalize_name;
use boxoffice_openapi::response::{BodyContent, ResponseSpec};
use boxoffice_openapi::{ExampleUse, Operation, Sampler, Schema};
use bytes::Bytes;
use http::{HeaderName, HeaderValue, StatusCode};
use serde_json::Value;

pub use cache::GeneratedResponses;
use negotiation::negotiate;
pub use rendering::RenderContext;

use crate::body::concrete_media_type;
use crate::prefer_header::PreferHeader;

/// Responses of an operation. They are rendered on first use, so that the mock starts quickly.
pub struct OperationResponses {
    /// The status of the response without a preference: the lowest success, or else the lowest redirect.
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

/// The response selected for a request.
pub struct SelectedResponse<'a> {
    status: StatusCode,
    /// Its declaration in the document.
    spec: &'a ResponseSpec,
    template: &'a ResponseTemplate,
    content: Option<(&'a BodyContent, &'a BodySource)>,
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

impl OperationResponses {
    /// Creates the responses of an operation.
    pub fn new(operation: &Operation) -> Self {
        let source = |content: &BodyContent| BodySource {
            media_type: concrete_media_type(&content.media_type),
            examples: content.examples.iter().map(|_| OnceLock::new()).collect(),
            validity: OnceLock::new(),
            sampler: OnceLock::new(),
        };
        let template = |spec: &ResponseSpec| ResponseTemplate {
            headers: OnceLock::new(),
            sources: spec.contents.iter().map(source).collect(),
        };
        let statuses = || operation.responses.iter().map(|spec| *spec.statuses.start());
        let success = statuses().filter(|status| (200..300).contains(status)).min();
        // 304 is only for conditional requests.
        let redirect = || statuses().filter(|status| (300..400).contains(status) && *status != 304).min();
        // `default`, which starts below 200, is a success if neither a success nor a redirect is declared. An interim response is none.
        let finals = operation.responses.iter().filter(|spec| *spec.statuses.end() >= 200);
        let other = finals.map(|spec| *spec.statuses.start().max(&200)).min();
        let default_status = success.or_else(redirect).or(other).unwrap_or(200);
        Self { default_status, templates: operation.responses.iter().map(template).collect() }
    }

    /// Selects the response to a request by its `Prefer` and `Accept` headers.
    ///
    /// # Errors
    /// Returns an error if the preferred response doesn't exist, or has no acceptable media type.
    pub fn select<'a>(
        &'a self,
        operation: &'a Operation,
        prefer: Option<&PreferHeader>,
        accept: Option<&str>,
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
        accept: Option<&str>,
    ) -> Option<Result<Self, SelectionError>> {
        let index = |content: &BodyContent| {
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
}

/// Returns the first violation of a body by its schema. Undeclared properties are none where the schema allows them.
fn first_violation(content: &BodyContent, value: &Value) -> Option<String> {
    let schema = content.schema.as_deref().filter(|_| content.is_json())?;
    schema.first_declared_error(value).unwrap_or_else(|error| Some(format!("{error:#}")))
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
