//! A faulty server: a proxy in front of a mock that changes some responses.

use std::convert::Infallible;
use std::io;
use std::sync::{Arc, LazyLock};

use boxoffice_openapi::{Contract, RouteError};
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response, StatusCode, header};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Bytes, Frame, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpListener;

static CONTRACT: LazyLock<Arc<Contract>> = LazyLock::new(|| boxoffice::contract::load().unwrap());

/// The responses that are changed. Without another rule they belong to the operation under test.
#[derive(Debug, Clone, Copy)]
pub enum On {
    /// Successful responses.
    Success,
    /// Responses with this status.
    Status(u16),
    /// Rejections of arguments that contain this text.
    Rejection(&'static str),
    /// Successful responses to queries that contain this text.
    Query(&'static str),
    /// Successful responses of another operation.
    Other(&'static str),
    /// Responses to paths that the document doesn't have.
    UnknownPath,
    /// None.
    Never,
}

/// The change.
#[derive(Debug, Clone, Copy)]
pub enum Change {
    /// Sets the JSON at this pointer.
    Set(&'static str, &'static str),
    /// Removes the JSON at this pointer.
    Remove(&'static str),
    /// Duplicates the list item at this pointer.
    Twice(&'static str),
    /// Sets or removes a header.
    Header(&'static str, Option<&'static str>),
    /// Replaces the status.
    Status(u16),
    /// Replaces the body.
    Body(&'static str),
    /// Adds texts before and after the body.
    Around(&'static str, &'static str),
    /// Replaces the status and the JSON body.
    Answer(u16, &'static str),
    /// Removes the body and its media type.
    Bare,
    /// Truncates the body.
    Truncated,
    /// Closes the connection without a response.
    Closed,
}

struct Answer {
    status: u16,
    headers: HeaderMap,
    body: Bytes,
}

/// Starts a proxy in front of a mock, and returns its address. `requested` is the operation under test.
pub async fn faulty(mock: &str, requested: &'static str, on: On, change: Change) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let (mock, http) = (mock.to_owned(), reqwest::Client::new());
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            let (mock, http) = (mock.clone(), http.clone());
            let answer = service_fn(move |request| {
                let (mock, http) = (mock.clone(), http.clone());
                async move { pass(&mock, &http, request, requested, on, change).await }
            });
            tokio::spawn(hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(client), answer));
        }
    });
    address
}

async fn pass(
    mock: &str,
    http: &reqwest::Client,
    request: Request<Incoming>,
    requested: &str,
    on: On,
    change: Change,
) -> io::Result<Response<BoxBody<Bytes, io::Error>>> {
    let (mut head, body) = request.into_parts();
    head.headers.remove(header::HOST);
    let url = format!("{mock}{}", head.uri);
    let sending = http.request(head.method.clone(), url).headers(head.headers).body(body.collect().await.unwrap().to_bytes());
    let response = sending.send().await.unwrap();
    let (status, headers) = (response.status().as_u16(), response.headers().clone());
    let mut answer = Answer { status, headers, body: response.bytes().await.unwrap() };
    if head.uri.path().ends_with("/broken") && status == 200 {
        answer.become_json(404, &json!({ "error": "There is no such resource.", "code": "resource.not-found" }));
    }
    let query = head.uri.query().unwrap_or_default();
    let found = CONTRACT.find(head.method.as_str(), head.uri.path());
    if found.as_ref().is_ok_and(|operation| operation.id == "region_list") && status == 200 {
        answer.become_page(query);
    }
    let is_here = match &found {
        Ok(operation) => operation.id == requested,
        Err(RouteError::MethodNotAllowed(_)) => true,
        Err(RouteError::NotFound) => false,
    };
    let (is_success, text) = ((200..300).contains(&answer.status), String::from_utf8_lossy(&answer.body));
    let is_meant = match on {
        On::Success => is_here && is_success,
        On::Status(status) => is_here && answer.status == status,
        On::Rejection(detail) => is_here && answer.status == 400 && text.contains(detail),
        On::Query(part) => is_here && is_success && query.contains(part),
        On::Other(other) => found.is_ok_and(|operation| operation.id == other) && is_success,
        On::UnknownPath => matches!(found, Err(RouteError::NotFound)),
        On::Never => false,
    };
    if is_meant && !["HEAD", "OPTIONS"].contains(&head.method.as_str()) { answer.changed(change) } else { answer.whole() }
}

impl Answer {
    fn become_json(&mut self, status: u16, body: &Value) {
        self.status = status;
        self.headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        self.body = body.to_string().into();
    }

    /// Replaces the body by a page of five regions.
    fn become_page(&mut self, query: &str) {
        const TOTAL: usize = 5;
        let given = |name: &str, default| {
            let mut pairs = form_urlencoded::parse(query.as_bytes());
            pairs.find(|(given, _)| given == name).map_or(default, |(_, number)| number.parse::<usize>().unwrap())
        };
        let (page, records) = (given("page", 1), given("records", 25));
        let example = serde_json::from_slice::<Value>(&self.body).unwrap()["entries"][0].clone();
        let entries: Vec<_> = (0..TOTAL).skip((page - 1).saturating_mul(records)).take(records).collect();
        if entries.is_empty() {
            return self.become_json(404, &json!({ "error": "There is no such page.", "code": "page.past-end" }));
        }
        let entries = entries.into_iter().map(|number| {
            let mut region = example.clone();
            region["self"] = json!(format!("/regions/1763700000001{}", number + 1));
            region
        });
        let entries: Vec<_> = entries.collect();
        self.become_json(200, &json!({ "total": TOTAL, "page": page, "records": records, "entries": entries }));
    }

    fn changed(mut self, change: Change) -> io::Result<Response<BoxBody<Bytes, io::Error>>> {
        // Empty bodies and HTML pages are not JSON.
        let mut body: Value = serde_json::from_slice(&self.body).unwrap_or_default();
        let split = |pointer: &'static str| pointer.rsplit_once('/').unwrap();
        match change {
            Change::Set(pointer, value) => {
                let (parent, name) = split(pointer);
                let value: Value = serde_json::from_str(value).unwrap();
                match body.pointer_mut(parent).unwrap() {
                    Value::Array(items) => items[name.parse::<usize>().unwrap()] = value,
                    object => object[name] = value,
                }
                self.body = body.to_string().into();
            }
            Change::Remove(pointer) => {
                let (parent, name) = split(pointer);
                body.pointer_mut(parent).unwrap().as_object_mut().unwrap().remove(name).unwrap();
                self.body = body.to_string().into();
            }
            Change::Twice(pointer) => {
                let item = body.pointer(pointer).unwrap().clone();
                body.pointer_mut(split(pointer).0).unwrap().as_array_mut().unwrap().push(item);
                self.body = body.to_string().into();
            }
            Change::Header(name, value) => {
                let name = name.parse::<HeaderName>().unwrap();
                self.headers.remove(&name);
                self.headers.extend(value.map(|value| (name, HeaderValue::from_static(value))));
            }
            Change::Status(status) => self.status = status,
            Change::Body(body) => self.body = body.into(),
            Change::Around(before, after) => {
                self.body = [before.as_bytes(), &self.body, after.as_bytes()].concat().into();
            }
            Change::Answer(status, body) => self.become_json(status, &serde_json::from_str(body).unwrap()),
            Change::Bare => {
                self.body = Bytes::new();
                self.headers.remove(header::CONTENT_TYPE);
            }
            Change::Truncated => {
                let half = self.body.slice(..self.body.len() / 2);
                let frames = [Ok(Frame::data(half)), Err(io::Error::other("it ends here"))];
                return self.response(StreamBody::new(futures::stream::iter(frames)).boxed());
            }
            Change::Closed => return Err(io::Error::other("no answer")),
        }
        self.whole()
    }

    fn whole(mut self) -> io::Result<Response<BoxBody<Bytes, io::Error>>> {
        let body = std::mem::take(&mut self.body);
        self.response(Full::new(body).map_err(|error: Infallible| match error {}).boxed())
    }

    fn response(mut self, body: BoxBody<Bytes, io::Error>) -> io::Result<Response<BoxBody<Bytes, io::Error>>> {
        for name in [header::CONTENT_LENGTH, header::TRANSFER_ENCODING, header::CONNECTION] {
            self.headers.remove(name);
        }
        let mut response = Response::new(body);
        *response.status_mut() = StatusCode::from_u16(self.status).unwrap();
        *response.headers_mut() = self.headers;
        Ok(response)
    }
}
