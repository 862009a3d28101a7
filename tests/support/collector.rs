//! A collector of traces: receives spans by OTLP over HTTP.

use std::io;
use std::sync::Arc;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Empty;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::trace::v1::Span;
use parking_lot::Mutex;
use prost::Message;

use super::serve_http;

/// A running collector.
pub struct Collector {
    /// The URL to which spans are sent.
    pub url: String,
    spans: Arc<Mutex<Vec<Span>>>,
}

impl Collector {
    pub async fn start() -> Self {
        let spans = Arc::<Mutex<Vec<Span>>>::default();
        let received = Arc::clone(&spans);
        let server = serve_http(move |request| std::future::ready(receive(request, &received))).await;
        Self { url: format!("{server}/v1/traces"), spans }
    }

    /// Returns all spans that it has received.
    pub fn spans(&self) -> Vec<Span> {
        self.spans.lock().clone()
    }
}

fn receive(request: Request<Bytes>, spans: &Mutex<Vec<Span>>) -> io::Result<Response<Empty<Bytes>>> {
    let exported = ExportTraceServiceRequest::decode(request.into_body()).unwrap().resource_spans;
    let exported = exported.into_iter().flat_map(|resource| resource.scope_spans).flat_map(|scope| scope.spans);
    spans.lock().extend(exported);
    Ok(Response::new(Empty::new()))
}

/// Returns an attribute of a span as text, or an empty one.
pub fn attribute(span: &Span, name: &str) -> String {
    let value = span.attributes.iter().find(|attribute| attribute.key == name).and_then(|found| found.value.clone()?.value);
    match value {
        Some(Value::StringValue(text)) => text,
        Some(Value::IntValue(number)) => number.to_string(),
        _ => String::new(),
    }
}
