//! How the client sends: with a key by which the server knows a request again, and once more where that may help.

use std::time::Duration;

use bytes::Bytes;
use progenitor_client::{ClientHooks, ClientInfo, OperationInfo};
use rand::RngExt;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};
use reqwest::{Method, Request, Response, Result, StatusCode};
use tokio::time::{Instant, sleep};

use crate::Client;

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
/// About how long the client waits before it sends a request for the second time; before each further time, twice as long.
const FIRST_WAIT: Duration = Duration::from_millis(100);
/// The longest that it waits by itself. A server may ask for more.
const LONGEST_WAIT: Duration = Duration::from_secs(5);
/// How long an answer may take.
const ATTEMPT: Duration = Duration::from_secs(30);

/// How often a request is sent again, and for how long, until its answer is given to the caller as it is.
///
/// A request is sent again when there is no connection, or it is lost, or no answer comes in time; when there have been too many
/// (429); when the server can't do it at the moment (503); and when it is still under way, because an answer to it was lost. The
/// client waits as long as `Retry-After` asks it to, or else a little longer each time, and by chance, so that many clients don't
/// come back at once.
///
/// A POST or PATCH sent again is known by its `Idempotency-Key`, and carried out once. A DELETE sent again finds nothing to do if
/// the first was carried out and its answer lost: it then succeeds. A PUT sent again is carried out again, and so may undo what
/// somebody else has changed in between, unless it has an `If-Match`.
///
/// ```no_run
/// # fn example() -> Result<(), Box<dyn std::error::Error>> {
/// use std::time::Duration;
///
/// use boxoffice_client::{Client, RetryPolicy};
///
/// let patient = Client::connect("http://127.0.0.1:8080", "the key")?
///     .with_retries(RetryPolicy { attempts: 20, total: Duration::from_secs(300), ..RetryPolicy::default() });
/// let plain = Client::connect("http://127.0.0.1:8080", "the key")?.with_retries(RetryPolicy::NONE);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryPolicy {
    /// How often a request is sent at the most, the first time included.
    pub attempts: u32,
    /// How long an answer may take, each time, from the connection's begin to the answer's last byte.
    pub attempt: Duration,
    /// After how long it is not sent again; a wait that would end later is not begun. So a caller waits for `total` and
    /// `attempt` together at the most.
    pub total: Duration,
}

impl RetryPolicy {
    /// Every request is sent once, and has half a minute.
    pub const NONE: Self = Self { attempts: 1, attempt: ATTEMPT, total: Duration::ZERO };
}

impl Default for RetryPolicy {
    /// Eight times within 100 seconds, and half a minute for each, in which also an upload of 8 MiB has its time.
    fn default() -> Self {
        Self { attempts: 8, attempt: ATTEMPT, total: Duration::from_secs(100) }
    }
}

impl Client {
    /// The same client with other retries.
    #[must_use]
    pub fn with_retries(mut self, retries: RetryPolicy) -> Self {
        self.inner = retries;
        self
    }
}

/// Stands before the default of the generated client, which sends every request once and as it is.
impl ClientHooks<RetryPolicy> for Client {
    async fn exec(&self, mut request: Request, operation: &OperationInfo) -> Result<Response> {
        // These alone do more when they come twice.
        let needs_key = [Method::POST, Method::PATCH].contains(request.method());
        if needs_key && !request.headers().contains_key(IDEMPOTENCY_KEY) {
            request.headers_mut().insert(IDEMPOTENCY_KEY, new_key());
        }
        *request.timeout_mut() = Some(self.inner().attempt);
        let started = Instant::now();
        let mut attempt = 1;
        let mut is_answer_lost = false;
        loop {
            // A body that can't be sent twice is none that this client makes.
            let Some(again) = request.try_clone() else { return self.client().execute(request).await };
            let outcome = send(self.client(), again).await;
            let Some(wait) = self.inner().wait(attempt, started.elapsed(), &outcome) else {
                let answer = outcome?;
                let is_done = is_answer_lost && self.has_deleted(&request, operation, &answer).await;
                return Ok(if is_done { done() } else { answer.into() });
            };
            is_answer_lost |= may_be_carried_out(&outcome);
            attempt += 1;
            sleep(wait).await;
        }
    }
}

impl Client {
    /// Whether what a DELETE is refused for is most likely its own doing, as an earlier answer to it was lost; it is as the
    /// caller wants it in any case.
    async fn has_deleted(&self, request: &Request, operation: &OperationInfo, answer: &Answer) -> bool {
        // Its success has a body, which nobody knows; whoever is refused reads what was decided.
        if *request.method() != Method::DELETE || operation.operation_id == "submission_delete" {
            return false;
        }
        match answer.code().as_deref() {
            Some("resource.not-found" | "session.ended") => true,
            // The session that was to end is that of the key itself.
            Some("key.refused") => operation.operation_id == "session_active_delete",
            // Somebody may have claimed it instead.
            Some("transfer.not-open") => self.is_cancelled(request).await,
            _ => false,
        }
    }

    /// Whether a transfer that is not open any more was cancelled.
    async fn is_cancelled(&self, delete: &Request) -> bool {
        #[derive(serde::Deserialize)]
        struct Transfer {
            status: String,
        }
        let mut read = Request::new(Method::GET, delete.url().clone());
        *read.timeout_mut() = delete.timeout().copied();
        let Ok(Answer::Whole { body, .. }) = send(self.client(), read).await else { return false };
        serde_json::from_slice::<Transfer>(&body).is_ok_and(|transfer| transfer.status == "Cancelled")
    }
}

/// Whether a request with this outcome, which doesn't say so, may have been carried out.
fn may_be_carried_out(outcome: &Result<Answer>) -> bool {
    match outcome {
        Ok(answer) => answer.status() == StatusCode::SERVICE_UNAVAILABLE,
        Err(error) => !error.is_connect(),
    }
}

/// The answer to a DELETE that was carried out.
fn done() -> Response {
    let mut response = http::Response::new(Bytes::new());
    *response.status_mut() = StatusCode::NO_CONTENT;
    response.into()
}

impl RetryPolicy {
    /// How long to wait before a request with this outcome is sent again; `None` where it isn't.
    fn wait(&self, attempt: u32, elapsed: Duration, outcome: &Result<Answer>) -> Option<Duration> {
        let asked = match outcome {
            Ok(answer) if answer.may_differ_soon() => answer.retry_after(),
            Ok(_) => return None,
            Err(error) if error.is_builder() || error.is_redirect() => return None,
            Err(_) => None,
        };
        let longest = LONGEST_WAIT.min(FIRST_WAIT.saturating_mul(1 << attempt.min(16)));
        // Somewhere in the upper half; beyond what the server asks for, a little.
        let chance = rand::rng().random_range(0.0..1.0);
        let wait = asked.map_or(longest.mul_f64(0.5 + chance / 2.0), |asked| asked + FIRST_WAIT.mul_f64(chance));
        (attempt < self.attempts && elapsed + wait <= self.total).then_some(wait)
    }
}

/// What was answered, and whole: a connection may be lost in the midst of a body. A body that is no JSON, an image, is left to
/// be read by the caller.
enum Answer {
    Whole { status: StatusCode, headers: HeaderMap, body: Bytes },
    Begun(Response),
}

async fn send(client: &reqwest::Client, request: Request) -> Result<Answer> {
    let response = client.execute(request).await?;
    let (status, headers) = (response.status(), response.headers().clone());
    let media_type = headers.get(reqwest::header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    if media_type.is_some_and(|media_type| !media_type.starts_with("application/json")) {
        return Ok(Answer::Begun(response));
    }
    Ok(Answer::Whole { status, headers, body: response.bytes().await? })
}

impl Answer {
    fn status(&self) -> StatusCode {
        match self {
            Self::Whole { status, .. } => *status,
            Self::Begun(response) => response.status(),
        }
    }

    /// The code of an error.
    fn code(&self) -> Option<String> {
        #[derive(serde::Deserialize)]
        struct Refusal {
            code: String,
        }
        let Self::Whole { body, .. } = self else { return None };
        serde_json::from_slice::<Refusal>(body).ok().map(|refusal| refusal.code)
    }

    /// Whether the same request may soon be answered otherwise.
    fn may_differ_soon(&self) -> bool {
        match self.status() {
            StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => true,
            StatusCode::CONFLICT => self.code().as_deref() == Some("idempotency.under-way"),
            _ => false,
        }
    }

    fn retry_after(&self) -> Option<Duration> {
        let headers = match self {
            Self::Whole { headers, .. } => headers,
            Self::Begun(response) => response.headers(),
        };
        headers.get(RETRY_AFTER)?.to_str().ok()?.parse().ok().map(Duration::from_secs)
    }
}

/// As the caller is given it.
impl From<Answer> for Response {
    fn from(answer: Answer) -> Self {
        match answer {
            Answer::Begun(response) => response,
            Answer::Whole { status, headers, body } => {
                let mut response = http::Response::new(body);
                *response.status_mut() = status;
                *response.headers_mut() = headers;
                response.into()
            }
        }
    }
}

/// 128 bits by chance: no two requests have the same.
fn new_key() -> HeaderValue {
    let key = format!("{:032x}", rand::random::<u128>());
    HeaderValue::from_maybe_shared(Bytes::from(key)).unwrap_or(HeaderValue::from_static("none"))
}
