//! Plain HTTP, for requests that the generated client can't send.

use std::borrow::Borrow;
use std::net::SocketAddr;

use reqwest::Method;
use reqwest::header::HeaderMap;
use serde_json::Value;
use tokio::net::TcpSocket;

use super::users::plain_http;
use super::{ANY_PORT, TestApp};

/// A request builder. By default it sends the current API version and the public key.
pub struct Request {
    request: reqwest::RequestBuilder,
    key: Option<String>,
    version: Option<String>,
}

/// The parts of a request, so that many can be prepared and then sent at the same time.
pub struct Call {
    /// The API key.
    pub key: String,
    /// The method.
    pub method: &'static str,
    /// The path.
    pub path: String,
    /// The body; null if it has none.
    pub body: Value,
}

impl Call {
    /// Creates a call.
    pub fn new(key: &str, method: &'static str, path: impl Into<String>, body: Value) -> Self {
        Self { key: key.to_owned(), method, path: path.into(), body }
    }

    /// Builds the request.
    pub fn request(&self, app: &TestApp) -> Request {
        let request = app.request(self.method, &self.path).key(&self.key);
        if self.body.is_null() { request } else { request.json(&self.body) }
    }

    /// Sends it.
    pub async fn send(&self, app: &TestApp) -> Response {
        self.request(app).send().await
    }
}

/// A response.
#[derive(Debug)]
pub struct Response {
    /// The method and the URL of the request, for messages.
    pub request: String,
    /// The status.
    pub status: u16,
    /// The headers.
    pub headers: HeaderMap,
    /// The body as JSON; null if it is empty or not JSON.
    pub body: Value,
    /// The body as text; empty if it is JSON.
    pub text: String,
}

impl TestApp {
    /// Builds a request for a path.
    pub fn request(&self, method: &str, path: &str) -> Request {
        Request {
            request: self.http.request(Method::from_bytes(method.as_bytes()).unwrap(), format!("{}{path}", self.address)),
            key: Some(self.public_key.clone()),
            version: Some("3.0.0".to_owned()),
        }
    }

    /// Sends a GET with this key.
    pub async fn get(&self, key: &str, path: &str) -> Response {
        self.request("GET", path).key(key).send().await
    }

    /// Sends a GET without a key and a version, and returns the response before its body is read.
    pub async fn fetch(&self, path: &str) -> reqwest::Response {
        self.request("GET", path).anonymous().send_raw().await
    }

    /// Reads a list with this key, and returns this property of each entry.
    pub async fn list(&self, key: &str, path: &str, property: &str) -> Vec<String> {
        texts(&self.get(key, path).await.body, property).into_iter().map(str::to_owned).collect()
    }

    /// Sends a POST with this key.
    pub async fn post(&self, key: &str, path: &str, body: impl Borrow<Value>) -> Response {
        self.send("POST", key, path, body).await
    }

    /// Sends a POST with this key, without a body.
    pub async fn post_empty(&self, key: &str, path: &str) -> Response {
        self.request("POST", path).key(key).send().await
    }

    /// Sends a PUT with this key.
    pub async fn put(&self, key: &str, path: &str, body: impl Borrow<Value>) -> Response {
        self.send("PUT", key, path, body).await
    }

    /// Sends a DELETE with this key.
    pub async fn delete(&self, key: &str, path: &str) -> Response {
        self.request("DELETE", path).key(key).send().await
    }

    /// Sends a request with this key.
    pub async fn send(&self, method: &str, key: &str, path: &str, body: impl Borrow<Value>) -> Response {
        self.request(method, path).key(key).json(body.borrow()).send().await
    }
}

impl Request {
    /// Sends it to the server at this address instead.
    pub fn at(mut self, address: SocketAddr) -> Self {
        let (client, request) = self.request.build_split();
        let mut request = request.unwrap();
        request.url_mut().set_ip_host(address.ip()).unwrap();
        request.url_mut().set_port(Some(address.port())).unwrap();
        self.request = reqwest::RequestBuilder::from_parts(client, request);
        self
    }

    /// Sets the API key.
    pub fn key(mut self, key: &str) -> Self {
        self.key = Some(key.to_owned());
        self
    }

    /// Sends no API key.
    pub fn no_key(mut self) -> Self {
        self.key = None;
        self
    }

    /// Sends neither an API key nor a client version.
    pub fn anonymous(self) -> Self {
        self.no_key().version(None)
    }

    /// Sets the client version, or sends none.
    pub fn version(mut self, version: Option<&str>) -> Self {
        self.version = version.map(str::to_owned);
        self
    }

    /// Adds a header.
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.request = self.request.header(name, value);
        self
    }

    /// Sets a JSON body.
    pub fn json(mut self, body: &Value) -> Self {
        self.request = self.request.json(body);
        self
    }

    /// Sets any body.
    pub fn body(mut self, body: impl Into<reqwest::Body>) -> Self {
        self.request = self.request.body(body);
        self
    }

    fn build(self) -> (reqwest::Client, reqwest::Request) {
        let mut request = self.request;
        if let Some(key) = self.key {
            request = request.header("X-API-Key", key);
        }
        if let Some(version) = self.version {
            request = request.header("X-Client-Version", version);
        }
        let (client, request) = request.build_split();
        (client, request.unwrap())
    }

    /// Sends the request, and returns the response before its body is read.
    pub async fn send_raw(self) -> reqwest::Response {
        let (client, request) = self.build();
        client.execute(request).await.unwrap()
    }

    /// Sends the request.
    pub async fn send(self) -> Response {
        let (client, request) = self.build();
        let line = format!("{} {}", request.method(), request.url());
        let response = client.execute(request).await.unwrap();
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let bytes = response.bytes().await.unwrap();
        match serde_json::from_slice(&bytes) {
            Ok(body) => Response { request: line, status, headers, body, text: String::new() },
            Err(_) => {
                let text = String::from_utf8_lossy(&bytes).into_owned();
                Response { request: line, status, headers, body: Value::Null, text }
            }
        }
    }
}

impl Response {
    /// Returns the body of a response that must be a success.
    #[track_caller]
    pub fn success(self) -> Value {
        assert!((200..300).contains(&self.status), "{self:?}");
        self.body
    }

    /// Returns the URI of the resource in the body.
    pub fn uri(&self) -> &str {
        self.body["self"].as_str().unwrap_or_else(|| panic!("{self:?}"))
    }

    /// Returns the error code, or an empty text.
    pub fn code(&self) -> &str {
        self.body["code"].as_str().unwrap_or_default()
    }

    /// Returns a header, or an empty text.
    pub fn header(&self, name: &str) -> &str {
        header(&self.headers, name)
    }

    /// Returns the arguments that a 400 names, with `-` in front of the missing ones.
    pub fn invalid_arguments(&self) -> Vec<String> {
        assert_eq!(self.status, 400, "{self:?}");
        let fields = self.body["fields"].as_array().cloned().unwrap_or_default();
        let name = |field: &Value| {
            let sign = if field["problem"] == "missing" { "-" } else { "" };
            format!("{sign}{}", field["name"].as_str().unwrap_or_default())
        };
        fields.iter().map(name).collect()
    }
}

/// Returns a header, or an empty text.
pub fn header<'a>(headers: &'a HeaderMap, name: &str) -> &'a str {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

/// Sends a GET without a key and a version to any URL.
pub async fn fetch_url(url: &str) -> reqwest::Response {
    plain_http().build().unwrap().get(url).send().await.unwrap()
}

/// Returns the entries of a page.
pub fn entries_of(page: &Value) -> &[Value] {
    page["entries"].as_array().unwrap_or_else(|| panic!("{page}"))
}

/// Returns this property of each entry of a page, such as `self`.
pub fn texts<'a>(page: &'a Value, property: &str) -> Vec<&'a str> {
    entries_of(page).iter().map(|entry| entry[property].as_str().unwrap()).collect()
}

/// Returns the URIs of the entries of a page.
pub fn uris(page: &Response) -> Vec<&str> {
    assert_eq!(page.status, 200, "{}", page.body);
    texts(&page.body, "self")
}

/// Returns a socket that keeps a port and refuses connections until it listens.
pub fn refusing_socket() -> TcpSocket {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(ANY_PORT).unwrap();
    socket
}

/// Returns the status and the error code of a response, such as `(409, "section.sold-out")`.
pub fn rejection(response: &Response) -> (u16, &str) {
    (response.status, response.code())
}

/// The status and the error code of a request that the generated client sent.
pub trait Rejection {
    /// Returns, for example, `(409, "section.sold-out")`.
    fn rejection(self) -> (u16, String);
}

impl<T: std::fmt::Debug> Rejection for Result<T, boxoffice_client::Error<boxoffice_client::types::Error>> {
    fn rejection(self) -> (u16, String) {
        match self {
            Err(boxoffice_client::Error::ErrorResponse(response)) => {
                (response.status().as_u16(), response.into_inner().code.to_string())
            }
            other => panic!("expected an error response, got {other:?}"),
        }
    }
}
