//! A collector of traces: receives spans by OTLP over HTTP.

use std::convert::Infallible;
use std::sync::Arc;

use bytes::Bytes;
use http_body_util::{BodyExt, Empty};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::trace::v1::Span;
use parking_lot::Mutex;
use prost::Message;
use tokio::net::TcpListener;

/// A running collector.
pub struct Collector {
    /// The URL to which spans are sent.
    pub url: String,
    spans: Arc<Mutex<Vec<Span>>>,
}

impl Collector {
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/v1/traces", listener.local_addr().unwrap());
        let spans = Arc::<Mutex<Vec<Span>>>::default();
        let received = Arc::clone(&spans);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let received = Arc::clone(&received);
                let service = service_fn(move |request| receive(request, Arc::clone(&received)));
                tokio::spawn(hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service));
            }
        });
        Self { url, spans }
    }

    /// Returns all spans that it has received.
    pub fn spans(&self) -> Vec<Span> {
        self.spans.lock().clone()
    }
}

async fn receive(
    request: http::Request<Incoming>,
    spans: Arc<Mutex<Vec<Span>>>,
) -> Result<http::Response<Empty<Bytes>>, Infallible> {
    let body = request.into_body().collect().await.unwrap().to_bytes();
    let exported = ExportTraceServiceRequest::decode(body).unwrap().resource_spans;
    let exported = exported.into_iter().flat_map(|resource| resource.scope_spans).flat_map(|scope| scope.spans);
    spans.lock().extend(exported);
    Ok(http::Response::new(Empty::new()))
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
