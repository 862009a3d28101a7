//! Traces by OpenTelemetry: a span for each request, and below it spans of database statements, batches and mails.
//!
//! A [`Span`] is passed on explicitly: with the request, its unit of work and its transactions. It also has the identifier of the
//! request for the log, whether or not it is sampled. Finished spans go to a bounded queue, from which a thread sends them to a
//! collector. If the collector is slow or can't be reached, spans are dropped: no request waits.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use async_trait::async_trait;
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Version};
use opentelemetry::propagation::TextMapPropagator;
use opentelemetry::trace::{Link, SpanBuilder, Status, TraceContextExt, Tracer as _, TracerProvider};
use opentelemetry::{Context, KeyValue};
use opentelemetry_http::{HeaderExtractor, HttpClient, HttpError, Request, Response};
use opentelemetry_otlp::{RetryPolicy, SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::{Sampler, SdkTracer, SdkTracerProvider};
use slog::{Logger, warn};
use tokio::runtime::Handle;

use crate::access_log::AccessLogLine;
use crate::error::one_line;
use crate::log::Throttle;

pub use opentelemetry::trace::SpanKind;

/// Time limit for sending spans to the collector.
const EXPORT_TIMEOUT: Duration = Duration::from_secs(5);
/// Time in which the last spans are sent when the server stops.
const STOP_TIMEOUT: Duration = Duration::from_secs(2);
/// Maximum size of the collector's response that is read, in bytes.
const MAX_RESPONSE: usize = 64 * 1024;
/// Header with the trace and the span to which a request or a response belongs (W3C Trace Context).
pub(crate) const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

/// Creates spans; none if there is no collector.
#[derive(Debug, Clone, Default)]
pub struct Tracer(Option<Arc<SdkTracer>>);

/// Sends finished spans to the collector.
#[derive(Debug)]
pub struct TraceExporter(SdkTracerProvider);

/// A span. It ends with its last clone.
#[derive(Debug, Clone, Default)]
pub struct Span {
    /// `None` if its trace is not sampled.
    active: Option<Arc<ActiveSpan>>,
    /// The identifier of the request, for the log.
    request_id: Option<Arc<str>>,
}

#[derive(Debug)]
struct ActiveSpan {
    tracer: Arc<SdkTracer>,
    context: Context,
}

/// The span of a request, and the header that identifies it, which the response has.
pub(crate) struct RequestTrace {
    pub(crate) span: Span,
    pub(crate) header: Option<HeaderValue>,
}

impl Tracer {
    /// Creates spans of one in `sample` traces, and sends them to the collector at this URL by OTLP over HTTP. Must be called in a
    /// tokio runtime.
    ///
    /// # Errors
    /// Returns an error if the URL or a variable `OTEL_*` is invalid.
    pub fn open(endpoint: &str, sample: u32, log: &Logger) -> anyhow::Result<(Self, TraceExporter)> {
        let http = reqwest::Client::builder().timeout(EXPORT_TIMEOUT).build().context("cannot create an HTTP client")?;
        let client = CollectorClient { http, runtime: Handle::current(), log: log.clone(), failures: Throttle::default() };
        let exporter = SpanExporter::builder().with_http().with_http_client(client).with_endpoint(endpoint);
        // A retry would only delay the spans that follow.
        let exporter = exporter.with_timeout(EXPORT_TIMEOUT).with_retry_policy(RetryPolicy::disabled()).build()?;
        // If a proxy has begun the trace, it has decided whether it is sampled.
        let sampler = Sampler::ParentBased(Box::new(Sampler::TraceIdRatioBased(1.0 / f64::from(sample))));
        let version = KeyValue::new("service.version", env!("CARGO_PKG_VERSION"));
        let resource = Resource::builder().with_service_name("boxoffice").with_attribute(version).build();
        let provider = SdkTracerProvider::builder().with_batch_exporter(exporter).with_sampler(sampler).with_resource(resource);
        let provider = provider.build();
        Ok((Self(Some(Arc::new(provider.tracer("boxoffice")))), TraceExporter(provider)))
    }

    /// Begins a trace that no request belongs to.
    pub fn root(&self, name: &'static str, kind: SpanKind) -> Span {
        self.start(SpanBuilder::from_name(name).with_kind(kind), &Context::new()).0
    }

    /// Begins the span of a request. `headers` are there if a trusted proxy has sent them, so that its trace is continued.
    pub(crate) fn request(&self, id: &str, headers: Option<&HeaderMap>) -> RequestTrace {
        let request_id = Some(Arc::from(id));
        if self.0.is_none() {
            return RequestTrace { span: Span { active: None, request_id }, header: None };
        }
        let extract = |headers| TraceContextPropagator::new().extract_with_context(&Context::new(), &HeaderExtractor(headers));
        let parent = headers.map_or_else(Context::new, extract);
        let (span, header) = self.start(SpanBuilder::from_name("request").with_kind(SpanKind::Server), &parent);
        RequestTrace { span: Span { request_id, ..span }, header }
    }

    /// Begins a span. Returns it with the value of its `traceparent`, which it has also if its trace isn't sampled.
    fn start(&self, builder: SpanBuilder, parent: &Context) -> (Span, Option<HeaderValue>) {
        let Some(tracer) = &self.0 else { return (Span::default(), None) };
        let context = Context::new().with_span(tracer.build_with_context(builder, parent));
        let ids = context.span().span_context().clone();
        let header = format!("00-{}-{}-{:02x}", ids.trace_id(), ids.span_id(), ids.trace_flags().to_u8());
        let active = ids.is_sampled().then(|| Arc::new(ActiveSpan { tracer: Arc::clone(tracer), context }));
        (Span { active, request_id: None }, HeaderValue::try_from(header).ok().filter(|_| ids.is_valid()))
    }
}

impl TraceExporter {
    /// Sends the spans that are waiting, and stops.
    pub async fn stop(self) {
        let stopped = tokio::task::spawn_blocking(move || self.0.shutdown_with_timeout(STOP_TIMEOUT));
        // Without the collector, the spans are lost.
        let _lost = stopped.await;
    }
}

impl Span {
    /// Begins a span below this one.
    pub fn child(&self, kind: SpanKind, name: impl FnOnce() -> Cow<'static, str>) -> Self {
        self.child_of(|| SpanBuilder::from_name(name()).with_kind(kind))
    }

    /// Begins the span of a batch of requests: below the first one that is sampled, and with links to the others. If none is sampled,
    /// it has the identifier of the first one.
    pub fn of_batch<'a>(name: &'static str, spans: impl IntoIterator<Item = &'a Self>) -> Self {
        let mut spans = spans.into_iter();
        let Some(mut parent) = spans.next() else { return Self::default() };
        if parent.active.is_none() {
            parent = spans.find(|span| span.active.is_some()).unwrap_or(parent);
        }
        let ids = |span: &Self| Some(Link::with_context(span.active.as_ref()?.context.span().span_context().clone()));
        parent.child_of(|| SpanBuilder::from_name(name).with_links(spans.filter_map(ids).collect()))
    }

    fn child_of(&self, build: impl FnOnce() -> SpanBuilder) -> Self {
        let active = self.active.as_ref().map(|parent| {
            let context = Context::new().with_span(parent.tracer.build_with_context(build(), &parent.context));
            Arc::new(ActiveSpan { tracer: Arc::clone(&parent.tracer), context })
        });
        Self { active, request_id: self.request_id.clone() }
    }

    /// The identifier of its request, or of one of the requests of its batch. Jobs and commands have none.
    pub fn request_id(&self) -> Option<&str> {
        self.request_id.as_deref()
    }

    /// Sets an attribute.
    pub fn set(&self, name: &'static str, value: impl FnOnce() -> opentelemetry::Value) {
        if let Some(span) = &self.active {
            span.context.span().set_attribute(KeyValue::new(name, value()));
        }
    }

    /// Marks that it has failed. The reason is in the log only, because it may contain values.
    pub fn fail(&self) {
        if let Some(span) = &self.active {
            span.context.span().set_status(Status::error(""));
        }
    }

    /// Ends the span of a request with the facts about it. `route` is the path of the operation, without arguments: the path of the
    /// request may contain an admission token's code.
    pub(crate) fn end_request(&self, line: &AccessLogLine<'_>, route: Option<&str>, version: Version, is_tls: bool) {
        let Some(span) = &self.active else { return };
        let span = span.context.span();
        let method = line.method.as_str().to_owned();
        span.update_name(route.map_or_else(|| method.clone(), |route| format!("{method} {route}")));
        // The names are those of OpenTelemetry's semantic conventions.
        span.set_attributes([
            KeyValue::new("http.request.method", method),
            KeyValue::new("http.response.status_code", i64::from(line.status.as_u16())),
            KeyValue::new("url.scheme", if is_tls { "https" } else { "http" }),
            KeyValue::new("network.protocol.version", if version == Version::HTTP_2 { "2" } else { "1.1" }),
            KeyValue::new("client.address", line.client_address.to_string()),
            KeyValue::new("boxoffice.request", line.request_id.to_owned()),
        ]);
        span.set_attributes(route.map(|route| KeyValue::new("http.route", route.to_owned())));
        span.set_attributes(line.operation.map(|operation| KeyValue::new("boxoffice.operation", operation.to_owned())));
        span.set_attributes(line.code.map(|code| KeyValue::new("error.type", code.as_str())));
        if line.status.is_server_error() {
            span.set_status(Status::error(""));
        }
        span.end();
    }
}

/// Sends requests to the collector on the server's runtime, because the thread that reads the queue has none.
#[derive(Debug)]
struct CollectorClient {
    http: reqwest::Client,
    runtime: Handle,
    log: Logger,
    failures: Throttle,
}

#[async_trait]
impl HttpClient for CollectorClient {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let sent = self.runtime.spawn(send(self.http.clone(), request)).await.map_err(anyhow::Error::from);
        // The URL may contain a password.
        let sent = sent.and_then(|sent| sent.map_err(|error| error.without_url().into()));
        let problem = match &sent {
            Ok(response) if response.status().is_success() => return Ok(sent?),
            Ok(response) => format!("the collector returned {}", response.status()),
            Err(error) => one_line(error),
        };
        if let Some(suppressed) = self.failures.line() {
            warn!(self.log, "traces could not be sent"; "cause" => problem, "suppressed" => suppressed);
        }
        Ok(sent?)
    }
}

async fn send(http: reqwest::Client, request: Request<Bytes>) -> reqwest::Result<Response<Bytes>> {
    let mut response = http.execute(request.try_into()?).await?;
    let (status, mut body) = (response.status(), Vec::new());
    while body.len() < MAX_RESPONSE {
        let Some(part) = response.chunk().await? else { break };
        body.extend_from_slice(&part);
    }
    let mut response = Response::new(body.into());
    *response.status_mut() = status;
    Ok(response)
}
