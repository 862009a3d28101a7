//! Requests as they are sent, and what is answered to them.

use std::fmt::Write;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, ensure};
use bytes::Bytes;
use http::HeaderMap;
use http::header::LOCATION;
use reqwest::Method;
use serde_json::Value;

/// How long an answer may take.
const TIMEOUT: Duration = Duration::from_secs(30);

/// The header that a key is sent in.
pub const KEY: &str = "X-API-Key";
/// The header that tells which version a client was written for.
pub const VERSION: &str = "X-Client-Version";
/// A version that the platform and its mock serve.
pub const SERVED: &str = "3.0.0";

/// A request, exactly as it is sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// In capitals.
    pub method: String,
    /// The path, percent-encoded where it has to be.
    pub path: String,
    /// Names and values of the query, not yet encoded.
    pub query: Vec<(String, String)>,
    /// Names and values of the headers.
    pub headers: Vec<(String, String)>,
    /// The body, if any.
    pub body: Option<Vec<u8>>,
}

/// What was answered.
#[derive(Debug, Clone)]
pub struct ReceivedResponse {
    /// The status.
    pub status: u16,
    /// The headers.
    pub headers: HeaderMap,
    /// The body as it came.
    pub body: Bytes,
}

/// A server that is asked.
#[derive(Debug)]
pub struct HttpClient {
    /// Its address, without a slash at the end.
    pub address: String,
    /// Whether nothing more is to be sent to it: what is under way is finished, so that all that it makes is known.
    pub stopped: Arc<AtomicBool>,
    client: reqwest::Client,
    sent: AtomicUsize,
    made: Mutex<Vec<String>>,
}

impl Request {
    /// A request without query, headers and body.
    pub fn new(method: &str, path: impl Into<String>) -> Self {
        let (query, headers) = (Vec::new(), Vec::new());
        Self { method: method.to_owned(), path: path.into(), query, headers, body: None }
    }

    /// The same with a header, in the place of those of this name.
    #[must_use]
    pub fn with_header(self, name: &str, value: &str) -> Self {
        let mut request = self.without_header(name);
        request.headers.push((name.to_owned(), value.to_owned()));
        request
    }

    /// The same without the headers of this name.
    #[must_use]
    pub fn without_header(mut self, name: &str) -> Self {
        self.headers.retain(|(header, _)| !header.eq_ignore_ascii_case(name));
        self
    }

    /// The same with a JSON body.
    #[must_use]
    pub fn with_json(self, body: &Value) -> Self {
        let mut request = self.with_header("Content-Type", "application/json");
        request.body = Some(body.to_string().into_bytes());
        request
    }

    /// Path and query, as they are sent.
    pub fn target(&self) -> String {
        if self.query.is_empty() {
            return self.path.clone();
        }
        let query = form_urlencoded::Serializer::new(String::new()).extend_pairs(&self.query).finish();
        format!("{}?{query}", self.path)
    }

    /// The request as a curl command for a shell, with `$KEY` in the place of its key.
    pub fn curl(&self, address: &str) -> String {
        let mut command = format!("curl -i -X {} {}", self.method, quoted(&format!("{address}{}", self.target())));
        for (name, value) in &self.headers {
            let header = if name.eq_ignore_ascii_case(KEY) && !value.is_empty() {
                format!("\"{name}: $KEY\"")
            } else {
                quoted(&format!("{name}: {value}"))
            };
            let _infallible = write!(command, " -H {header}");
        }
        if let Some(body) = &self.body {
            let _infallible = write!(command, " --data-binary {}", quoted(&String::from_utf8_lossy(body)));
        }
        command
    }
}

/// A text as one word of a shell.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

impl ReceivedResponse {
    /// The body as JSON; null when it is none.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }
}

impl HttpClient {
    /// A server at this address.
    ///
    /// # Errors
    /// When the address is no URL.
    pub fn at(address: &str) -> anyhow::Result<Self> {
        let address = address.trim_end_matches('/').to_owned();
        reqwest::Url::parse(&address).with_context(|| format!("{address} is no URL, such as http://127.0.0.1:8080"))?;
        let redirects = reqwest::redirect::Policy::none();
        let client = reqwest::Client::builder().timeout(TIMEOUT).redirect(redirects).no_proxy().build()?;
        Ok(Self { address, stopped: Arc::default(), client, sent: AtomicUsize::new(0), made: Mutex::default() })
    }

    /// Sends a request and waits for the whole answer.
    ///
    /// # Errors
    /// When there is no answer, or it ends too early, or nothing more is to be sent.
    pub async fn send(&self, request: &Request) -> anyhow::Result<ReceivedResponse> {
        ensure!(!self.stopped.load(Ordering::Relaxed), "the comparison was stopped");
        self.sent.fetch_add(1, Ordering::Relaxed);
        let url = format!("{}{}", self.address, request.target());
        let mut sending = self.client.request(request.method.parse::<Method>()?, &url);
        for (name, value) in &request.headers {
            sending = sending.header(name, value);
        }
        if let Some(body) = &request.body {
            sending = sending.body(body.clone());
        }
        let about = || format!("no answer from {} {url}", request.method);
        let response = sending.send().await.with_context(about)?;
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        if let Some(uri) = headers.get(LOCATION).filter(|_| status == 201).and_then(|uri| uri.to_str().ok()) {
            self.made.lock().unwrap_or_else(PoisonError::into_inner).push(uri.to_owned());
        }
        Ok(ReceivedResponse { status, headers, body: response.bytes().await.with_context(about)? })
    }

    /// How many requests it was sent.
    pub fn sent(&self) -> usize {
        self.sent.load(Ordering::Relaxed)
    }

    /// The URIs of all that it was asked to make and has made, whoever asked, the oldest first.
    pub fn made(&self) -> Vec<String> {
        self.made.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
