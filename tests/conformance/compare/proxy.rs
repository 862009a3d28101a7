//! A proxy in front of a sound server that breaks its behavior in one way.

use std::collections::HashMap;
use std::convert::Infallible;
use std::io;
use std::sync::Arc;

use boxoffice_openapi::RouteError;
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response, StatusCode, header};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Bytes, Frame};
use parking_lot::Mutex;
use serde_json::Value;

use crate::support::{CONTRACT, serve_http};

/// Changes a request, or answers it without the server.
type Before = Box<dyn Fn(&mut Call, &mut Memory) -> Option<Answer> + Send + Sync>;
/// Changes a response.
type After = Box<dyn Fn(&Call, &mut Answer, &mut Memory) + Send + Sync>;

/// Values that a fault stores between requests.
pub type Memory = HashMap<String, Value>;

/// A broken behavior.
pub struct Fault {
    pub group: &'static str,
    pub name: &'static str,
    /// The operations to compare, which the fault affects.
    pub operations: Vec<&'static str>,
    before: Before,
    after: After,
}

/// A request.
pub struct Call {
    /// The operationId; empty for undocumented paths and methods. HEAD belongs to the operation of GET.
    pub operation: &'static str,
    /// False if the contract has no operation at the path.
    pub is_path_known: bool,
    pub method: String,
    pub path: String,
    pub query: Vec<(String, String)>,
    pub headers: HeaderMap,
    pub body: Bytes,
}

/// A response.
pub struct Answer {
    /// 0 closes the connection without a response.
    pub status: u16,
    pub headers: HeaderMap,
    pub body: Bytes,
    /// True if the connection is closed after half of the body.
    pub is_truncated: bool,
}

/// Creates a fault that changes nothing yet. It affects the operations of its first change.
pub fn fault(group: &'static str, name: &'static str) -> Fault {
    Fault { group, name, operations: Vec::new(), before: Box::new(|_, _| None), after: Box::new(|_, _, _| ()) }
}

impl Fault {
    /// Sets the operations that the fault affects, if they are not those of its first change.
    pub fn affects(mut self, operations: &[&'static str]) -> Self {
        self.operations = operations.to_vec();
        self
    }

    fn affects_by_default(&mut self, operation: &'static str) {
        if self.operations.is_empty() {
            self.operations = operation.split(' ').collect();
        }
    }

    /// Changes valid requests to this operation: a faulty server validates its arguments, too.
    pub fn valid_request(
        self,
        operation: &'static str,
        change: impl Fn(&mut Call, &mut Memory) -> Option<Answer> + Send + Sync + 'static,
    ) -> Self {
        self.request(operation, move |call, memory| if call.is_valid() { change(call, memory) } else { None })
    }

    /// Changes requests to this operation; `*` is every operation.
    pub fn request(
        mut self,
        operation: &'static str,
        change: impl Fn(&mut Call, &mut Memory) -> Option<Answer> + Send + Sync + 'static,
    ) -> Self {
        self.affects_by_default(operation);
        self.before = Box::new(move |call, memory| if is_meant(operation, call) { change(call, memory) } else { None });
        self
    }

    /// Changes responses of this operation; `*` is every operation.
    pub fn response(
        mut self,
        operation: &'static str,
        change: impl Fn(&Call, &mut Answer, &mut Memory) + Send + Sync + 'static,
    ) -> Self {
        self.affects_by_default(operation);
        self.after = Box::new(move |call, answer, memory| {
            if is_meant(operation, call) {
                change(call, answer, memory);
            }
        });
        self
    }

    /// Changes responses of this operation with this status.
    pub fn response_with(
        self,
        operation: &'static str,
        status: u16,
        change: impl Fn(&mut Answer) + Send + Sync + 'static,
    ) -> Self {
        self.response(operation, move |_, answer, _| {
            if answer.status == status {
                change(answer);
            }
        })
    }

    /// Removes a header from valid requests to this operation.
    pub fn without_header(self, operation: &'static str, header: &'static str) -> Self {
        self.valid_request(operation, move |call, _| {
            call.headers.remove(header);
            None
        })
    }

    /// Changes the JSON of successful responses of this operation.
    pub fn json(self, operation: &'static str, change: impl Fn(&mut Value, &Call) + Send + Sync + 'static) -> Self {
        self.response(operation, move |call, answer, _| {
            if answer.is_success()
                && let Some(mut body) = answer.json()
            {
                change(&mut body, call);
                answer.set_json(&body);
            }
        })
    }

    /// Changes the JSON of valid requests to this operation.
    pub fn sent_json(self, operation: &'static str, change: impl Fn(&mut Value) + Send + Sync + 'static) -> Self {
        self.valid_request(operation, move |call, _| {
            if let Ok(mut body) = serde_json::from_slice(&call.body) {
                change(&mut body);
                call.body = body.to_string().into();
            }
            None
        })
    }
}

fn is_meant(operation: &str, call: &Call) -> bool {
    operation == "*" || operation == call.operation || operation.split(' ').any(|each| each == call.operation)
}

impl Call {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    pub fn query(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(other, _)| other == name).map(|(_, value)| value.as_str())
    }

    pub fn remove_query(&mut self, name: &str) {
        self.query.retain(|(other, _)| other != name);
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    /// Turns the request into a GET of the same path, so that it has no effect.
    pub fn become_read(&mut self) {
        self.method = "GET".to_owned();
        self.body = Bytes::new();
        for name in ["content-type", "idempotency-key", "if-match"] {
            self.headers.remove(name);
        }
    }

    /// Returns if the contract allows the request.
    fn is_valid(&self) -> bool {
        let query = form_urlencoded::Serializer::new(String::new()).extend_pairs(&self.query).finish();
        let path = CONTRACT.without_prefix(&self.path);
        let operation = CONTRACT.operation(self.operation);
        operation.is_some_and(|operation| operation.check(path, Some(&query), &self.headers, &self.body).is_ok())
    }

    pub fn uri(&self) -> String {
        if self.query.is_empty() {
            return self.path.clone();
        }
        let query = form_urlencoded::Serializer::new(String::new()).extend_pairs(&self.query).finish();
        format!("{}?{query}", self.path)
    }
}

impl Answer {
    pub fn new(status: u16, body: &Value) -> Self {
        let mut answer = Self { status, headers: HeaderMap::new(), body: Bytes::new(), is_truncated: false };
        answer.set_json(body);
        answer
    }

    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    pub fn json(&self) -> Option<Value> {
        serde_json::from_slice(&self.body).ok()
    }

    pub fn set_json(&mut self, body: &Value) {
        self.headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        self.body = body.to_string().into();
    }

    pub fn replace(&mut self, status: u16, body: &Value) {
        self.status = status;
        self.set_json(body);
    }

    pub fn empty(&mut self, status: u16) {
        self.status = status;
        self.body = Bytes::new();
        self.headers.remove(header::CONTENT_TYPE);
        self.headers.remove(header::ETAG);
    }

    pub fn set_header(&mut self, name: &str, value: &str) {
        self.headers.insert(name.parse::<HeaderName>().unwrap(), HeaderValue::from_str(value).unwrap());
    }

    pub fn replace_text(&mut self, from: &str, to: &str) {
        self.body = String::from_utf8_lossy(&self.body).replace(from, to).into();
    }
}

/// Starts a proxy with a fault in front of a server, and returns its address.
pub async fn start(server: &str, fault: impl Into<Arc<Fault>>) -> String {
    let http = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).build().unwrap();
    let proxy = Arc::new(Proxy { server: server.to_owned(), http, fault: fault.into(), memory: Mutex::default() });
    serve_http(move |request| {
        let proxy = Arc::clone(&proxy);
        async move { proxy.forward(request).await }
    })
    .await
}

/// The proxy in front of a server.
struct Proxy {
    server: String,
    http: reqwest::Client,
    fault: Arc<Fault>,
    memory: Mutex<Memory>,
}

impl Proxy {
    async fn forward(&self, request: Request<Bytes>) -> io::Result<Response<BoxBody<Bytes, io::Error>>> {
        let (head, body) = request.into_parts();
        let path = head.uri.path().to_owned();
        let method = head.method.as_str().to_owned();
        let documented = CONTRACT.find(if method == "HEAD" { "GET" } else { &method }, CONTRACT.without_prefix(&path));
        let query = form_urlencoded::parse(head.uri.query().unwrap_or_default().as_bytes()).into_owned().collect();
        let is_path_known = !matches!(documented, Err(RouteError::NotFound));
        let operation = documented.map_or("", |operation| operation.id.as_str());
        let mut call = Call { operation, is_path_known, method, path, query, headers: head.headers, body };
        let early = (self.fault.before)(&mut call, &mut self.memory.lock());
        let mut answer = match early {
            Some(answer) => answer,
            None => self.send(&call).await?,
        };
        (self.fault.after)(&call, &mut answer, &mut self.memory.lock());
        if answer.status == 0 {
            return Err(io::Error::other("no answer"));
        }
        for name in [header::TRANSFER_ENCODING, header::CONNECTION] {
            answer.headers.remove(name);
        }
        // Only faults of methods send a length in the response to HEAD.
        let is_head = call.method == "HEAD";
        if !is_head || self.fault.group != "methods" {
            answer.headers.remove(header::CONTENT_LENGTH);
        }
        let body = if is_head { Bytes::new() } else { answer.body };
        let mut response = Response::new(if answer.is_truncated { truncated(&body) } else { full(body) });
        *response.status_mut() = StatusCode::from_u16(answer.status).unwrap();
        *response.headers_mut() = answer.headers;
        Ok(response)
    }

    async fn send(&self, call: &Call) -> io::Result<Answer> {
        let mut headers = call.headers.clone();
        for name in [header::HOST, header::CONTENT_LENGTH, header::TRANSFER_ENCODING, header::CONNECTION] {
            headers.remove(name);
        }
        let url = format!("{}{}", self.server, call.uri());
        let request = self.http.request(call.method.parse().unwrap(), url).headers(headers);
        let request = if call.body.is_empty() { request } else { request.body(call.body.clone()) };
        let response = request.send().await.map_err(io::Error::other)?;
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        Ok(Answer { status, headers, body: response.bytes().await.map_err(io::Error::other)?, is_truncated: false })
    }
}

fn full(body: Bytes) -> BoxBody<Bytes, io::Error> {
    Full::new(body).map_err(|error: Infallible| match error {}).boxed()
}

fn truncated(body: &Bytes) -> BoxBody<Bytes, io::Error> {
    let half = body.slice(..body.len() / 2);
    let frames = [Ok(Frame::data(half)), Err(io::Error::other("it ends here"))];
    StreamBody::new(futures::stream::iter(frames)).boxed()
}
