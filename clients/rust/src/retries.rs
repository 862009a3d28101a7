//! Sending of requests: idempotency keys and retries.

use std::error::Error;
use std::future::ready;
use std::io;
use std::time::Duration;

use bytes::Bytes;
use chrono::{DateTime, Utc};
use futures_util::stream::{once, try_unfold};
use progenitor_client::{ClientHooks, ClientInfo, OperationInfo};
use rand::RngExt;
use reqwest::header::{DATE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};
use reqwest::{Body, Method, Request, Response, ResponseBuilderExt, Result, StatusCode, Url};
use tokio::time::{Instant, sleep, timeout};

use crate::Client;
use crate::errors::{server_of, without_path};

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
/// Approximate delay before the first retry; it doubles before each further one.
const FIRST_DELAY: Duration = Duration::from_millis(100);
/// Maximum delay unless the server requests a longer one.
const MAX_DELAY: Duration = Duration::from_secs(5);
/// Default timeout of an attempt.
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(30);

/// Number and duration of attempts to send a request.
///
/// A request is retried if the connection fails or the attempt times out; if there were too many requests (429); if the server is
/// unavailable (503); and if an earlier attempt with the same idempotency key is still in progress (409). The client waits as
/// long as `Retry-After` requires, or else longer before each retry, with jitter so that many clients don't return at once.
///
/// The server executes a retried POST or PATCH once, by its `Idempotency-Key`. A retried DELETE succeeds if the first attempt was
/// executed and its response lost. A retried PUT is executed again and may overwrite a change that another client made in
/// between, unless it has an `If-Match`.
///
/// ```no_run
/// # fn example() -> Result<(), Box<dyn std::error::Error>> {
/// use std::time::Duration;
///
/// use boxoffice_client::{Client, RetryPolicy};
///
/// let patient = Client::connect("http://127.0.0.1:8080", "the key")?
///     .with_retries(RetryPolicy { max_attempts: 20, retry_window: Duration::from_secs(300), ..RetryPolicy::default() });
/// let single_attempt = Client::connect("http://127.0.0.1:8080", "the key")?.with_retries(RetryPolicy::NONE);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryPolicy {
    /// Maximum number of attempts, the first one included.
    pub max_attempts: u32,
    /// Timeout of each attempt: from connecting to the head of the response, and then for each part of the body. A long response,
    /// such as an export, may take longer in total.
    pub attempt_timeout: Duration,
    /// Time after which no retry starts.
    pub retry_window: Duration,
}

impl RetryPolicy {
    /// A single attempt with a timeout of 30 seconds.
    pub const NONE: Self = Self { max_attempts: 1, attempt_timeout: ATTEMPT_TIMEOUT, retry_window: Duration::ZERO };
}

impl Default for RetryPolicy {
    /// Eight attempts within 100 seconds. Each has a timeout of 30 seconds, which is enough for an upload of 8 MiB.
    fn default() -> Self {
        Self { max_attempts: 8, attempt_timeout: ATTEMPT_TIMEOUT, retry_window: Duration::from_secs(100) }
    }
}

impl Client {
    /// Replaces the retry policy.
    #[must_use]
    pub fn with_retries(mut self, retries: RetryPolicy) -> Self {
        self.inner = retries;
        self
    }
}

/// Overrides the generated client, which sends every request unchanged and once.
impl ClientHooks<RetryPolicy> for Client {
    async fn exec(&self, mut request: Request, operation: &OperationInfo) -> Result<Response> {
        // Other methods are idempotent.
        let needs_key = [Method::POST, Method::PATCH].contains(request.method());
        if needs_key && !request.headers().contains_key(IDEMPOTENCY_KEY) {
            request.headers_mut().insert(IDEMPOTENCY_KEY, new_idempotency_key());
        }
        let started = Instant::now();
        let mut attempt = 1;
        let mut is_response_lost = false;
        loop {
            // Every body that this client creates can be cloned.
            let Some(copy) = request.try_clone() else {
                return self.client().execute(request).await.map_err(without_path);
            };
            let result = send(self.client(), copy, self.inner().attempt_timeout).await.map_err(without_path);
            let Some(delay) = self.inner().retry_delay(attempt, started.elapsed(), &result) else {
                let response = result?;
                let is_done = is_response_lost && self.has_deleted(&request, operation, &response).await;
                return Ok(if is_done { no_content(request.url()) } else { response.into() });
            };
            is_response_lost |= may_be_executed(&result);
            attempt += 1;
            sleep(delay).await;
        }
    }
}

impl Client {
    /// Returns whether a DELETE failed because an earlier attempt with a lost response already did what it requests.
    async fn has_deleted(&self, request: &Request, operation: &OperationInfo, response: &ReceivedResponse) -> bool {
        // The success of `submission_delete` has a body, which is lost. The caller has to read the decision.
        if *request.method() != Method::DELETE || operation.operation_id == "submission_delete" {
            return false;
        }
        match response.code().as_deref() {
            Some("resource.not-found" | "session.ended") => true,
            // The deleted session is that of the key itself.
            Some("key.refused") => operation.operation_id == "session_active_delete",
            // Another account may have claimed the transfer instead.
            Some("transfer.not-open") => self.is_cancelled(request).await,
            _ => false,
        }
    }

    /// Returns whether a transfer was cancelled.
    async fn is_cancelled(&self, delete: &Request) -> bool {
        #[derive(serde::Deserialize)]
        struct Transfer {
            status: String,
        }
        let read = Request::new(Method::GET, delete.url().clone());
        let response = send(self.client(), read, self.inner().attempt_timeout).await;
        let Ok(ReceivedResponse::Complete { body, .. }) = response else { return false };
        serde_json::from_slice::<Transfer>(&body).is_ok_and(|transfer| transfer.status == "Cancelled")
    }
}

/// Returns whether the server may have executed a failed request.
fn may_be_executed(result: &Result<ReceivedResponse>) -> bool {
    match result {
        Ok(response) => response.status() == StatusCode::SERVICE_UNAVAILABLE,
        Err(error) => !error.is_connect(),
    }
}

/// The response to a DELETE that was executed.
fn no_content(url: &Url) -> Response {
    response_of(url, StatusCode::NO_CONTENT, HeaderMap::new(), Bytes::new())
}

impl RetryPolicy {
    /// Returns the delay before a retry; `None` if the request is not to be retried.
    fn retry_delay(&self, attempt: u32, elapsed: Duration, result: &Result<ReceivedResponse>) -> Option<Duration> {
        let retry_after = match result {
            Ok(response) if response.is_temporary() => response.retry_after(),
            Ok(_) => return None,
            Err(error) if error.is_builder() || error.is_redirect() => return None,
            Err(_) => None,
        };
        let backoff = MAX_DELAY.min(FIRST_DELAY.saturating_mul(1 << attempt.min(16)));
        // Jitter: the upper half of the backoff, or slightly more than `Retry-After`.
        let jitter = rand::rng().random_range(0.0..1.0);
        let delay =
            retry_after.map_or(backoff.mul_f64(0.5 + jitter / 2.0), |delay| delay.saturating_add(FIRST_DELAY.mul_f64(jitter)));
        (attempt < self.max_attempts && elapsed.saturating_add(delay) <= self.retry_window).then_some(delay)
    }
}

/// A response whose body was read completely, because the connection may fail within a body; or a stream, for bodies that are no
/// JSON, such as images.
pub(crate) enum ReceivedResponse {
    Complete { url: Url, status: StatusCode, headers: HeaderMap, body: Bytes },
    Stream(Response),
}

/// Sends a request, and bounds the time without any part of the response.
async fn send(client: &reqwest::Client, request: Request, limit: Duration) -> Result<ReceivedResponse> {
    let url = request.url().clone();
    let response = match timeout(limit, client.execute(request)).await {
        Ok(response) => bound_parts(response?, limit),
        // Only `reqwest` can create its errors, so this response has a body that fails.
        Err(_) => {
            let body = Body::wrap_stream(once(ready(timed_out::<Bytes>())));
            response_of(&url, StatusCode::GATEWAY_TIMEOUT, HeaderMap::new(), body)
        }
    };
    let (status, headers) = (response.status(), response.headers().clone());
    let media_type = headers.get(reqwest::header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    if media_type.is_some_and(|media_type| !media_type.starts_with("application/json")) {
        return Ok(ReceivedResponse::Stream(response));
    }
    Ok(ReceivedResponse::Complete { url, status, headers, body: response.bytes().await? })
}

/// Returns a response whose body fails if its next part doesn't arrive in time.
fn bound_parts(response: Response, limit: Duration) -> Response {
    let (url, status, headers) = (response.url().clone(), response.status(), response.headers().clone());
    let parts = try_unfold(response, move |mut response| async move {
        match timeout(limit, response.chunk()).await {
            Ok(part) => Ok(part.map_err(without_path)?.map(|part| (part, response))),
            Err(_) => timed_out(),
        }
    });
    response_of(&url, status, headers, Body::wrap_stream(parts))
}

fn timed_out<T>() -> std::result::Result<T, Box<dyn Error + Send + Sync>> {
    Err(io::Error::new(io::ErrorKind::TimedOut, "the attempt timed out").into())
}

/// Returns a response that names the server of this address.
fn response_of(url: &Url, status: StatusCode, headers: HeaderMap, body: impl Into<Body>) -> Response {
    let response = http::Response::builder().url(server_of(url)).status(status).body(body.into());
    let mut response = response.expect("the status is valid");
    *response.headers_mut() = headers;
    response.into()
}

impl ReceivedResponse {
    fn status(&self) -> StatusCode {
        match self {
            Self::Complete { status, .. } => *status,
            Self::Stream(response) => response.status(),
        }
    }

    /// Returns the code of an error.
    fn code(&self) -> Option<String> {
        #[derive(serde::Deserialize)]
        struct ApiError {
            code: String,
        }
        let Self::Complete { body, .. } = self else { return None };
        serde_json::from_slice::<ApiError>(body).ok().map(|error| error.code)
    }

    /// Returns whether the error is temporary, so that a retry may succeed.
    fn is_temporary(&self) -> bool {
        match self.status() {
            StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => true,
            StatusCode::CONFLICT => self.code().as_deref() == Some("idempotency.under-way"),
            _ => false,
        }
    }

    /// Returns the seconds or the date of `Retry-After` as a delay.
    fn retry_after(&self) -> Option<Duration> {
        let headers = match self {
            Self::Complete { headers, .. } => headers,
            Self::Stream(response) => response.headers(),
        };
        let retry_after = headers.get(RETRY_AFTER)?.to_str().ok()?;
        if let Ok(seconds) = retry_after.parse() {
            return Some(Duration::from_secs(seconds));
        }
        let date = |text: &str| DateTime::parse_from_rfc2822(text).ok();
        // The clock of the server may differ from ours.
        let now = headers.get(DATE).and_then(|now| date(now.to_str().ok()?)).unwrap_or_else(|| Utc::now().fixed_offset());
        Some((date(retry_after)? - now).to_std().unwrap_or_default())
    }
}

impl From<ReceivedResponse> for Response {
    fn from(response: ReceivedResponse) -> Self {
        match response {
            ReceivedResponse::Stream(response) => response,
            ReceivedResponse::Complete { url, status, headers, body } => response_of(&url, status, headers, body),
        }
    }
}

/// Returns a random key of 128 bits, which is unique in practice.
fn new_idempotency_key() -> HeaderValue {
    let key = format!("{:032x}", rand::random::<u128>());
    HeaderValue::from_maybe_shared(Bytes::from(key)).unwrap_or(HeaderValue::from_static("none"))
}
