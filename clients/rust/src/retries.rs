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

/// How often a request is sent again, and for how long, until its answer is given to the caller as it is.
///
/// A request is sent again when the connection is lost, or no answer comes in time; when there have been too many (429); when
/// the server can't do it at the moment (503); and when it is still under way, because an answer to it was lost. The client waits
/// as long as `Retry-After` asks it to, or else a little longer each time, and by chance, so that many clients don't come back
/// at once.
///
/// ```no_run
/// # fn example() -> Result<(), Box<dyn std::error::Error>> {
/// use std::time::Duration;
///
/// use boxoffice_client::{Client, Retries};
///
/// let patient = Client::connect("http://127.0.0.1:8080", "the key")?
///     .with_retries(Retries { attempts: 20, total: Duration::from_secs(300) });
/// let plain = Client::connect("http://127.0.0.1:8080", "the key")?.with_retries(Retries::NONE);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retries {
    /// How often a request is sent at the most, the first time included.
    pub attempts: u32,
    /// After how long it is not sent again; a wait that would end later is not begun.
    pub total: Duration,
}

impl Retries {
    /// Every request is sent once.
    pub const NONE: Self = Self { attempts: 1, total: Duration::ZERO };
}

impl Default for Retries {
    /// Eight times within half a minute.
    fn default() -> Self {
        Self { attempts: 8, total: Duration::from_secs(30) }
    }
}

impl Client {
    /// The same client with other retries.
    #[must_use]
    pub fn with_retries(mut self, retries: Retries) -> Self {
        self.inner = retries;
        self
    }
}

/// Stands before the default of the generated client, which sends every request once and as it is.
impl ClientHooks<Retries> for Client {
    async fn exec(&self, mut request: Request, _: &OperationInfo) -> Result<Response> {
        // All other methods do the same when they come twice.
        if *request.method() == Method::POST && !request.headers().contains_key(IDEMPOTENCY_KEY) {
            request.headers_mut().insert(IDEMPOTENCY_KEY, new_key());
        }
        let started = Instant::now();
        let mut attempt = 1;
        let mut is_answer_lost = false;
        loop {
            // A body that can't be sent twice is none that this client makes.
            let Some(again) = request.try_clone() else { return self.client().execute(request).await };
            let outcome = send(self.client(), again).await;
            let waits = self.inner().wait(attempt, started.elapsed(), &outcome);
            let Some(wait) = waits else { return outcome.map(|answer| answer.told(request.method(), is_answer_lost)) };
            is_answer_lost |= outcome.is_err();
            attempt += 1;
            sleep(wait).await;
        }
    }
}

impl Retries {
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
    /// Whether the same request may soon be answered otherwise.
    fn may_differ_soon(&self) -> bool {
        match self {
            Self::Whole { status, body, .. } => match *status {
                StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => true,
                StatusCode::CONFLICT => code(body).as_deref() == Some("idempotency.under-way"),
                _ => false,
            },
            Self::Begun(response) => {
                [StatusCode::TOO_MANY_REQUESTS, StatusCode::SERVICE_UNAVAILABLE].contains(&response.status())
            }
        }
    }

    fn retry_after(&self) -> Option<Duration> {
        let headers = match self {
            Self::Whole { headers, .. } => headers,
            Self::Begun(response) => response.headers(),
        };
        headers.get(RETRY_AFTER)?.to_str().ok()?.parse().ok().map(Duration::from_secs)
    }

    /// The answer for the caller. Where an earlier answer was lost, what a DELETE doesn't find is most likely what that one told
    /// the end of; gone it is in any case.
    fn told(self, method: &Method, is_answer_lost: bool) -> Response {
        let (status, headers, body) = match self {
            Self::Whole { status, headers, body } => (status, headers, body),
            Self::Begun(response) => return response,
        };
        let is_gone = is_answer_lost && *method == Method::DELETE && code(&body).as_deref() == Some("resource.not-found");
        let (status, body) = if is_gone { (StatusCode::NO_CONTENT, Bytes::new()) } else { (status, body) };
        let mut response = http::Response::new(body);
        *response.status_mut() = status;
        *response.headers_mut() = headers;
        response.into()
    }
}

/// The code of an error's body.
fn code(body: &[u8]) -> Option<String> {
    #[derive(serde::Deserialize)]
    struct Refusal {
        code: String,
    }
    serde_json::from_slice::<Refusal>(body).ok().map(|refusal| refusal.code)
}

/// 128 bits by chance: no two requests have the same.
fn new_key() -> HeaderValue {
    let key = format!("{:032x}", rand::random::<u128>());
    HeaderValue::from_maybe_shared(Bytes::from(key)).unwrap_or(HeaderValue::from_static("none"))
}
