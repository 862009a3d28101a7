//! HTTP requests as they are sent, their responses, and the client of one server.

use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context, ensure};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use boxoffice_openapi::response::essence;
use boxoffice_openapi::{Contract, Operation};
use bytes::{Bytes, BytesMut};
use chrono::{DateTime, Utc};
use http::header::{ACCEPT_ENCODING, AsHeaderName, CONTENT_ENCODING, CONTENT_TYPE, LOCATION, RETRY_AFTER};
use http::{HeaderMap, HeaderValue};
use parking_lot::Mutex;
use reqwest::Method;
use serde_json::Value;

use crate::proxy::recording::is_secret_name;
use crate::resources::{CreatedResources, linked_path};

/// Timeout of one request, up to the end of the response body.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(30);

/// Time after which an idle connection isn't used again. Servers close idle connections, often after 2 or 5 s: a POST that is sent at
/// this moment fails, and can't be sent again, because the server may have received it.
pub(crate) const IDLE_TIMEOUT: Duration = Duration::from_secs(1);

/// Pause after a response from 500. Some servers close the connection right after it, and the next request would be lost.
const FAILURE_PAUSE: Duration = Duration::from_millis(20);

/// Largest body of a response, in bytes.
const MAX_BODY_BYTES: usize = 64 << 20;

/// Longest total pause of one request because of `429 Too Many Requests`.
const MAX_RETRY_PAUSE: Duration = Duration::from_secs(60);

/// Longest total pause that a server can demand by `Retry-After` after responses from 500, in seconds.
const MAX_FAILURE_SECONDS: u64 = 60;

/// Header of the API key.
pub const API_KEY_HEADER: &str = "X-API-Key";
/// Header of the version that a client was written for.
pub const CLIENT_VERSION_HEADER: &str = "X-Client-Version";
/// A client version that the platform and its mock support.
pub const SUPPORTED_CLIENT_VERSION: &str = "3.0.0";

/// The variable that stands for a key in a curl command.
pub const KEY_VARIABLE: &str = "$KEY";

/// A request, exactly as it is sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// The method, in capitals.
    pub method: String,
    /// The path, percent-encoded where necessary.
    pub path: String,
    /// Names and values of the query, not yet encoded.
    pub query: Vec<(String, String)>,
    /// Names and values of the headers.
    pub headers: Vec<(String, String)>,
    /// The body, if any.
    pub body: Option<Vec<u8>>,
}

/// A response with its complete body.
#[derive(Debug, Clone)]
pub struct ReceivedResponse {
    /// The status.
    pub status: u16,
    /// The headers.
    pub headers: HeaderMap,
    /// The body.
    pub body: Bytes,
}

/// A client of one server.
#[derive(Debug)]
pub struct HttpClient {
    /// Address of the server, without a trailing slash.
    pub base_url: String,
    /// Set to send no more requests. Requests in flight are completed, so that all created resources are known.
    pub stopped: Arc<AtomicBool>,
    /// Headers to add to each request, with their names.
    pub extra_headers: Vec<(String, String)>,
    /// The document. With it, the client finds what its POST requests create.
    pub contract: Option<Arc<Contract>>,
    client: reqwest::Client,
    request_count: AtomicUsize,
    failure_seconds: AtomicU64,
    created_uris: Mutex<Vec<String>>,
    /// The `Location` of every response with 202.
    task_uris: Mutex<Vec<String>>,
    deleted_paths: Mutex<Vec<String>>,
    created: Mutex<CreatedResources>,
}

impl Request {
    /// Creates a request without query, headers and body.
    pub fn new(method: &str, path: impl Into<String>) -> Self {
        let (query, headers) = (Vec::new(), Vec::new());
        Self { method: method.to_owned(), path: path.into(), query, headers, body: None }
    }

    /// Replaces all headers of this name by one.
    #[must_use]
    pub fn with_header(self, name: &str, value: &str) -> Self {
        let mut request = self.without_header(name);
        request.headers.push((name.to_owned(), value.to_owned()));
        request
    }

    /// Removes all headers of this name.
    #[must_use]
    pub fn without_header(mut self, name: &str) -> Self {
        self.headers.retain(|(header, _)| !header.eq_ignore_ascii_case(name));
        self
    }

    /// Replaces the body by JSON.
    #[must_use]
    pub fn with_json(self, body: &Value) -> Self {
        // A media type such as `application/vnd.books+json` stays.
        let is_json = |(name, value): &(String, String)| name.eq_ignore_ascii_case("content-type") && value.contains("json");
        let mut request = match self.headers.iter().any(is_json) {
            true => self,
            false => self.with_header("Content-Type", "application/json"),
        };
        request.body = Some(body.to_string().into_bytes());
        request
    }

    /// Replaces the body and its media type.
    #[must_use]
    pub fn with_body(self, media_type: &str, body: Vec<u8>) -> Self {
        Self { body: Some(body), ..self.with_header("Content-Type", media_type) }
    }

    /// Returns the body as JSON, or `None` if there is no body or it isn't JSON.
    pub fn json(&self) -> Option<Value> {
        serde_json::from_slice(self.body.as_deref()?).ok()
    }

    /// Returns path and query as they are sent.
    pub fn path_and_query(&self) -> String {
        if self.query.is_empty() {
            return self.path.clone();
        }
        let query = form_urlencoded::Serializer::new(String::new()).extend_pairs(&self.query).finish();
        format!("{}?{query}", self.path)
    }

    /// Returns the request as a curl command for a shell. The key is replaced by [`KEY_VARIABLE`].
    pub fn to_curl(&self, base_url: &str, key: &str) -> String {
        let (keys, query): (Vec<_>, Vec<_>) = self.query.iter().cloned().partition(|(_, value)| value == key);
        let url = format!("{base_url}{}", Self { query, ..self.clone() }.path_and_query());
        let mut command = format!("curl -i -X {} {}", self.method, shell_quote(&url));
        for (name, _) in keys {
            let _infallible = write!(command, " --url-query \"{}={KEY_VARIABLE}\"", escape(&name));
        }
        for (name, value) in &self.headers {
            let is_key = name.eq_ignore_ascii_case(API_KEY_HEADER) && !value.is_empty();
            let masked = if is_key { Some(KEY_VARIABLE.to_owned()) } else { mask_key(value, key) };
            let header = match masked {
                Some(masked) => format!("\"{}: {masked}\"", escape(name)),
                None => shell_quote(&format!("{name}: {value}")),
            };
            let _infallible = write!(command, " -H {header}");
        }
        if let Some(body) = &self.body {
            let _infallible = write!(command, " --data-binary {}", shell_quote(&String::from_utf8_lossy(body)));
        }
        command
    }
}

/// Returns the value of a header with [`KEY_VARIABLE`] instead of the key, for a text in double quotes. `None` if it isn't the key,
/// alone, after a scheme, or in a cookie.
fn mask_key(value: &str, key: &str) -> Option<String> {
    if value == key {
        return Some(KEY_VARIABLE.to_owned());
    }
    match value.split_once(' ') {
        Some((scheme, credential)) if credential == key => return Some(format!("{} {KEY_VARIABLE}", escape(scheme))),
        Some((scheme, credential)) if credential == BASE64_STANDARD.encode(key) => {
            // `base64` wraps its lines.
            return Some(format!("{} $(printf %s \"{KEY_VARIABLE}\" | base64 | tr -d '\\n')", escape(scheme)));
        }
        _ => {}
    }
    let cookies: Vec<_> = value.split("; ").map(|cookie| cookie.split_once('=').unwrap_or((cookie, ""))).collect();
    let mask = |(name, value): &(&str, &str)| {
        let value = if *value == key { KEY_VARIABLE.to_owned() } else { escape(value) };
        format!("{}={value}", escape(name))
    };
    cookies.iter().any(|(_, value)| *value == key).then(|| cookies.iter().map(mask).collect::<Vec<_>>().join("; "))
}

/// Escapes what has a meaning within double quotes of a shell.
fn escape(text: &str) -> String {
    text.chars().flat_map(|c| ['\\', '"', '$', '`'].contains(&c).then_some('\\').into_iter().chain([c])).collect()
}

/// Quotes a text as one word of a shell.
fn shell_quote(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

impl ReceivedResponse {
    /// Returns the body as JSON, or null if it isn't JSON.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    /// Returns the coding of the body, such as `gzip`. Neither the comparison nor the proxy accepts one.
    pub fn coding(&self) -> Option<&str> {
        self.header(CONTENT_ENCODING).filter(|coding| !coding.is_empty() && !coding.eq_ignore_ascii_case("identity"))
    }

    /// Returns if the body is a stream of events, of which only the head was read.
    pub fn is_event_stream(&self) -> bool {
        is_event_stream(&self.headers)
    }

    /// Returns if the status is 2xx.
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// Returns the first header of this name, or `None` if it is missing or not printable ASCII.
    pub fn header(&self, name: impl AsHeaderName) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// Returns how long the server demands to wait by `Retry-After`, which has seconds or a date (RFC 9110, section 10.2.3).
    pub fn retry_after(&self) -> Option<Duration> {
        let text = self.header(RETRY_AFTER)?;
        let until = || (DateTime::parse_from_rfc2822(text).ok()?.to_utc() - Utc::now()).to_std().ok();
        text.parse().ok().map(Duration::from_secs).or_else(until)
    }

    /// Returns status and body for a report.
    pub fn describe(&self) -> String {
        match self.body.len() {
            0 => format!("{} without a body", self.status),
            _ => format!("{} {}", self.status, String::from_utf8_lossy(&self.body)),
        }
    }

    /// Returns the headers for a report, without cookies and other secrets.
    pub fn describe_headers(&self) -> String {
        let mut headers = self.headers.clone();
        for (name, value) in &mut headers {
            value.set_sensitive(is_secret_name(name.as_str()));
        }
        format!("{headers:?}")
    }
}

/// Returns if a response is a stream of events, which may have no end.
fn is_event_stream(headers: &HeaderMap) -> bool {
    let media_type = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    essence(media_type).eq_ignore_ascii_case("text/event-stream")
}

impl HttpClient {
    /// Creates a client of the server at this address.
    ///
    /// # Errors
    /// Fails if the address is not a URL.
    pub fn new(address: &str) -> anyhow::Result<Self> {
        let base_url = address.trim_end_matches('/').to_owned();
        reqwest::Url::parse(&base_url).with_context(|| format!("{base_url} is not a URL, such as http://127.0.0.1:8080"))?;
        let redirects = reqwest::redirect::Policy::none();
        let client = reqwest::Client::builder().timeout(RESPONSE_TIMEOUT).pool_idle_timeout(IDLE_TIMEOUT);
        // Without it, a server may send any coding (RFC 9110, section 12.5.3).
        let headers = HeaderMap::from_iter([(ACCEPT_ENCODING, HeaderValue::from_static("identity"))]);
        let client = client.default_headers(headers).redirect(redirects).no_proxy().build()?;
        Ok(Self {
            base_url,
            stopped: Arc::default(),
            extra_headers: Vec::new(),
            contract: None,
            client,
            request_count: AtomicUsize::new(0),
            failure_seconds: AtomicU64::new(0),
            created_uris: Mutex::default(),
            task_uris: Mutex::default(),
            deleted_paths: Mutex::default(),
            created: Mutex::default(),
        })
    }

    /// Sends a request and reads the complete response, or only the head of a stream of events.
    ///
    /// # Errors
    /// Fails if there is no response, it is incomplete or too large, or the client is stopped.
    pub async fn send(&self, request: &Request) -> anyhow::Result<ReceivedResponse> {
        ensure!(!self.stopped.load(Ordering::Relaxed), "the comparison was stopped");
        self.request_count.fetch_add(1, Ordering::Relaxed);
        let url = format!("{}{}", self.base_url, request.path_and_query());
        let mut builder = self.client.request(request.method.parse::<Method>()?, &url);
        let has = |name: &str| request.headers.iter().any(|(other, _)| other.eq_ignore_ascii_case(name));
        let extra = self.extra_headers.iter().filter(|(name, _)| !has(name));
        for (name, value) in request.headers.iter().chain(extra) {
            builder = builder.header(name, value);
        }
        if let Some(body) = &request.body {
            builder = builder.body(body.clone());
        }
        // The query may contain a key.
        let context = || format!("no response to {} {}{}", request.method, self.base_url, request.path);
        // The server may have closed the idle connection just when the request was sent.
        let is_safe = ["GET", "HEAD", "OPTIONS"].contains(&request.method.as_str());
        let second = if is_safe { builder.try_clone() } else { None };
        let response = match (builder.send().await, second) {
            (Err(error), Some(second)) if error.is_request() && !error.is_timeout() && !error.is_connect() => second.send().await,
            (response, _) => response,
        };
        let mut response = response.map_err(reqwest::Error::without_url).with_context(context)?;
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        if let Some(uri) = headers.get(LOCATION).and_then(|uri| uri.to_str().ok()) {
            match status {
                201 => self.created_uris.lock().push(uri.to_owned()),
                202 => self.task_uris.lock().push(uri.to_owned()),
                _ => {}
            }
        }
        if request.method == "DELETE" {
            self.deleted_paths.lock().push(request.path.clone());
        }
        let mut body = BytesMut::new();
        if !is_event_stream(&headers) {
            while let Some(part) = response.chunk().await.map_err(reqwest::Error::without_url).with_context(context)? {
                body.extend_from_slice(&part);
                ensure!(body.len() <= MAX_BODY_BYTES, "the body of the response is larger than {} MiB", MAX_BODY_BYTES >> 20);
            }
        }
        let response = ReceivedResponse { status, headers, body: body.freeze() };
        if response.status >= 500 {
            tokio::time::sleep(self.failure_pause(&response)).await;
        }
        if let Some(contract) = self.contract.as_ref().filter(|_| response.is_success()) {
            let mut created = self.created.lock();
            match request.method.as_str() {
                "POST" => created.add(contract, &self.base_url, &request.path, &response),
                "DELETE" => created.remove(&request.path),
                _ => {}
            }
        }
        Ok(response)
    }

    /// Returns the pause after a response from 500: as long as the server demands, until all pauses add up to a minute. A mock demands
    /// nothing by a response that the request selected.
    fn failure_pause(&self, response: &ReceivedResponse) -> Duration {
        let used = self.failure_seconds.load(Ordering::Relaxed);
        let demanded = response.retry_after().filter(|_| response.header("Preference-Applied").is_none());
        let demanded = demanded.unwrap_or_default().as_secs();
        let pause = demanded.min(MAX_FAILURE_SECONDS.saturating_sub(used));
        self.failure_seconds.fetch_add(pause, Ordering::Relaxed);
        FAILURE_PAUSE.max(Duration::from_secs(pause))
    }

    /// Sends a request, and retries it after 429 as soon as `Retry-After` allows (RFC 6585, RFC 9110 section 10.2.3).
    ///
    /// Returns the 429 if the pauses would add up to more than a minute.
    ///
    /// # Errors
    /// See [`HttpClient::send`].
    pub async fn send_with_retries(&self, request: &Request) -> anyhow::Result<ReceivedResponse> {
        let mut remaining = MAX_RETRY_PAUSE;
        loop {
            let response = self.send(request).await?;
            let pause = response.retry_after().unwrap_or_default().max(Duration::from_secs(1));
            if response.status != 429 || pause > remaining {
                return Ok(response);
            }
            remaining -= pause;
            tokio::time::sleep(pause).await;
        }
    }

    /// Returns the number of requests sent.
    pub fn request_count(&self) -> usize {
        self.request_count.load(Ordering::Relaxed)
    }

    /// Returns if a request of this client created the resource at a URI, and none deleted it.
    pub fn has_created(&self, uri: &str) -> bool {
        let is_it = |uris: &[String]| uris.iter().any(|other| other == uri);
        is_it(&self.created_uris.lock()) && !is_it(&self.deleted_paths.lock())
    }

    /// Returns the path of a task that a request of this client started, if this operation reads it.
    pub fn started_task(&self, contract: &Contract, operation: &Operation) -> Option<String> {
        let is_its = |path: &String| contract.find_ignoring_slashes("GET", path).is_ok_and(|found| found.id == operation.id);
        let uris = self.task_uris.lock();
        uris.iter().rev().filter_map(|uri| linked_path(contract, &self.base_url, "/", uri)).find(is_its)
    }

    /// Returns the resources that the POST requests of this client created, and no DELETE deleted.
    pub fn created(&self) -> CreatedResources {
        self.created.lock().clone()
    }

    /// Returns the `Location` of every resource that requests of this client created, the oldest first.
    pub fn created_uris(&self) -> Vec<String> {
        self.created_uris.lock().clone()
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use std::time::Duration;

    use bytes::Bytes;
    use chrono::{TimeDelta, Utc};
    use http::header::RETRY_AFTER;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::{FAILURE_PAUSE, HttpClient, IDLE_TIMEOUT, RESPONSE_TIMEOUT, ReceivedResponse, Request};

    #[tokio::test]
    async fn idle_connection_is_not_used_again() {
        let socket = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let client = HttpClient::new(&format!("http://{}", socket.local_addr().unwrap())).unwrap();
        // Responds to the first request of a connection, and closes it when the second one arrives.
        tokio::spawn(async move {
            loop {
                let (mut connection, _) = socket.accept().await.unwrap();
                tokio::spawn(async move {
                    let mut request = [0; 1024];
                    let _size = connection.read(&mut request).await.unwrap();
                    connection.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").await.unwrap();
                    let _size = connection.read(&mut request).await.unwrap();
                });
            }
        });
        let request = Request::new("POST", "/a");

        let first = client.send(&request).await.unwrap();
        tokio::time::sleep(IDLE_TIMEOUT * 11 / 10).await;
        let second = client.send(&request).await.unwrap();

        assert_eq!((first.status, second.status), (204, 204));
    }

    #[tokio::test]
    async fn connection_that_is_closed_after_a_failure_is_not_used_again() {
        let socket = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let client = HttpClient::new(&format!("http://{}", socket.local_addr().unwrap())).unwrap();
        tokio::spawn(async move {
            for status in ["500 Internal Server Error", "204 No Content"] {
                let (mut connection, _) = socket.accept().await.unwrap();
                let _size = connection.read(&mut [0; 1024]).await.unwrap();
                let response = format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n");
                // The connection is closed after it.
                connection.write_all(response.as_bytes()).await.unwrap();
            }
        });
        let failed = client.send(&Request::new("GET", "/a")).await.unwrap();
        let next = client.send(&Request::new("POST", "/a")).await.unwrap();
        assert_eq!((failed.status, next.status), (500, 204));
    }

    #[test]
    fn pauses_after_failures_are_as_demanded_and_bounded() {
        let client = HttpClient::new("http://127.0.0.1:1").unwrap();
        let response = |retry_after: &str| {
            let headers = [(RETRY_AFTER, retry_after.parse().unwrap())].into_iter().collect();
            ReceivedResponse { status: 503, headers, body: Bytes::new() }
        };
        let date = (Utc::now() + TimeDelta::seconds(100)).format("%a, %d %b %Y %H:%M:%S GMT").to_string();
        let mut selected = response("40");
        selected.headers.insert("Preference-Applied", "code=503".parse().unwrap());
        assert_eq!(client.failure_pause(&selected), FAILURE_PAUSE, "the request selected the response");
        for (retry_after, expected) in
            [("soon", FAILURE_PAUSE), ("0", FAILURE_PAUSE), ("40", Duration::from_secs(40)), (&date, Duration::from_secs(20))]
        {
            assert_eq!(client.failure_pause(&response(retry_after)), expected, "{retry_after}");
        }
        assert_eq!(client.failure_pause(&response("40")), FAILURE_PAUSE, "the pauses have added up to a minute");
    }

    #[tokio::test]
    async fn error_has_no_value_of_the_query() {
        let socket = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let client = HttpClient::new(&format!("http://{}", socket.local_addr().unwrap())).unwrap();
        drop(socket);
        let query = vec![("api_key".to_owned(), "hunter2".to_owned())];
        let error = client.send(&Request { query, ..Request::new("GET", "/pets") }).await.unwrap_err();
        let text = format!("{error:#}");
        assert!(text.contains("/pets") && !text.contains("hunter2"), "{text}");
    }

    /// Starts a server that sends this head, and then this number of bytes without closing the connection. Returns its client.
    async fn client_of(head: &'static str, size: usize) -> HttpClient {
        let socket = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let client = HttpClient::new(&format!("http://{}", socket.local_addr().unwrap())).unwrap();
        tokio::spawn(async move {
            let (mut connection, _) = socket.accept().await.unwrap();
            let _size = connection.read(&mut [0; 1024]).await.unwrap();
            connection.write_all(head.as_bytes()).await.unwrap();
            let _closed = connection.write_all(&vec![b'x'; size]).await;
            tokio::time::sleep(RESPONSE_TIMEOUT).await;
        });
        client
    }

    #[tokio::test]
    async fn body_without_end_is_not_read() {
        let request = Request::new("GET", "/events");
        let head = "HTTP/1.1 200 OK\r\nContent-Type: Text/Event-Stream; charset=utf-8\r\n\r\n";
        let client = client_of(head, 10).await;
        let response = tokio::time::timeout(Duration::from_secs(5), client.send(&request)).await.unwrap().unwrap();
        assert_eq!((response.status, response.body.len()), (200, 0));

        let client = client_of("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n", 65 << 20).await;
        let sent = tokio::time::timeout(Duration::from_secs(20), client.send(&request)).await.unwrap();
        assert_eq!(format!("{:#}", sent.unwrap_err()), "the body of the response is larger than 64 MiB");
    }

    #[test]
    fn shell_expands_the_key() {
        let key = "qa:se$cret";
        let request = |name: &str, value: &str| Request::new("GET", "/a").with_header(name, value).to_curl("http://h", key);
        for (name, value, expected) in [
            ("X-A", key, r#""X-A: $KEY""#),
            ("Authorization", "Bearer qa:se$cret", r#""Authorization: Bearer $KEY""#),
            ("Authorization", "Basic cWE6c2UkY3JldA==", r#""Authorization: Basic $(printf %s "$KEY" | base64 | tr -d '\n')""#),
            ("Cookie", "a=$b; SID=qa:se$cret", r#""Cookie: a=\$b; SID=$KEY""#),
            ("X-B", "it's $1", r"'X-B: it'\''s $1'"),
            ("X-API-Key", "another", r#""X-API-Key: $KEY""#),
        ] {
            assert_eq!(request(name, value), format!("curl -i -X GET 'http://h/a' -H {expected}"));
        }
    }

    #[test]
    fn only_whole_values_of_the_query_are_keys() {
        let mut request = Request::new("GET", "/orders");
        request.query =
            [("sort", "orders_by"), ("token", "orders")].map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let expected = r#"curl -i -X GET 'http://h/orders?sort=orders_by' --url-query "token=$KEY""#;
        assert_eq!(request.to_curl("http://h", "orders"), expected);
    }
}
