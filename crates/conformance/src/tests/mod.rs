//! Comparisons of small servers with documents that are not the platform's.

mod alternatives;
mod counters;
mod effects;
mod forms;
mod lists;
mod notes;
mod redirects;
mod reports;
mod required_headers;
mod taken_texts;
mod tasks;
mod tolerance;
mod undeclared_statuses;

use std::convert::Infallible;
use std::sync::Arc;

use boxoffice_openapi::{Contract, RouteError};
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::comparison::Comparison;
use crate::model::{Finding, Report};
use crate::options::select_operations;
use crate::target::Target;

/// Starts a server that answers each request by a function, until the test ends. Returns its address.
pub async fn start<A>(answer: A) -> String
where
    A: Fn(&Request<Bytes>) -> Response<String> + Send + Sync + 'static,
{
    let (listener, answer) = (TcpListener::bind("127.0.0.1:0").await.unwrap(), Arc::new(answer));
    let address = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            let answer = Arc::clone(&answer);
            let service = service_fn(move |request: Request<Incoming>| {
                let answer = Arc::clone(&answer);
                async move {
                    let (head, body) = request.into_parts();
                    let body = body.collect().await.unwrap().to_bytes();
                    let response = answer(&Request::from_parts(head, body));
                    Ok::<_, Infallible>(response.map(|body| Full::new(Bytes::from(body))))
                }
            });
            tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(client), service));
        }
    });
    address
}

/// Prepares a comparison of a server with a document.
pub async fn comparison(document: Value, key: Option<&str>, address: &str) -> Comparison {
    let contract = || Contract::new(document.clone()).unwrap();
    let target = Target::connect(address, key).await.unwrap();
    let selected = select_operations(&contract(), &[], &[]).unwrap();
    Comparison::new(contract(), target, None, 1, selected, &json!({}), Vec::new())
}

/// Returns the operation, the check and the summary of each finding.
pub fn findings(report: &Report) -> Vec<String> {
    let text = |finding: &Finding| format!("{} {}: {}", finding.operation, finding.check.name(), finding.summary);
    report.findings.iter().map(text).collect()
}

/// Returns a JSON response.
pub fn json_response(status: u16, body: &Value) -> Response<String> {
    let mut response = response(status, body.to_string());
    response.headers_mut().insert("content-type", "application/json".parse().unwrap());
    response
}

/// Returns a response without headers.
pub fn response(status: u16, body: String) -> Response<String> {
    let mut response = Response::new(body);
    *response.status_mut() = status.try_into().unwrap();
    response
}

/// Returns the response to a request for a path or a method that the document doesn't have.
pub fn unrouted(error: RouteError) -> Response<String> {
    let RouteError::MethodNotAllowed(methods) = error else { return json_response(404, &json!({})) };
    let mut response = json_response(405, &json!({}));
    let methods: Vec<_> = methods.into_iter().collect();
    response.headers_mut().insert("allow", methods.join(", ").parse().unwrap());
    response
}
