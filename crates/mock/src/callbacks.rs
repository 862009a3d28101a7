//! Callbacks: requests that the document declares for an operation, sent shortly after its response.

use std::net::IpAddr;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use boxoffice_http::{ApiError, IncomingRequest, etag};
use boxoffice_openapi::callback::{Callback, RuntimeValues};
use boxoffice_openapi::{Contract, Direction, ExampleUse, Operation, Sampler};
use bytes::Bytes;
use dropshot::Body;
use http::{Method, Response, header};
use reqwest::redirect::Policy;
use reqwest::{Client, Url};
use serde_json::Value;
use slog::{Logger, info, warn};
use tokio::sync::Semaphore;

use crate::body::encode;

/// Pause between the response and its callbacks, so that the client usually has the response first.
const PAUSE: Duration = Duration::from_millis(100);
/// Timeout of a callback.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum number of callbacks in progress. Further ones are not sent.
const MAX_IN_PROGRESS: usize = 32;

/// The servers that callbacks may be sent to. A client chooses the URL, so by default only servers on this machine are allowed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallbackTargets {
    /// Loopback addresses and `localhost`.
    Loopback,
    /// Also these hosts.
    Hosts(Vec<String>),
    /// Every host.
    Any,
}

impl FromStr for CallbackTargets {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        let hosts: Vec<_> = text.split(',').map(|host| host.trim().to_lowercase()).collect();
        if let Some(wrong) = hosts.iter().find(|host| host.is_empty() || host.contains(['/', ' ', '@', '*'])) {
            bail!("must be loopback, any, or names of hosts such as hooks.example.com, separated by commas, and not {wrong:?}");
        }
        Ok(match hosts.as_slice() {
            [host] if host == "loopback" => Self::Loopback,
            [host] if host == "any" => Self::Any,
            _ => Self::Hosts(hosts),
        })
    }
}

impl CallbackTargets {
    /// Returns whether a callback may be sent to a URL.
    fn allows(&self, url: &Url) -> bool {
        let host = url.host_str().unwrap_or_default();
        let address = host.trim_matches(['[', ']']).parse::<IpAddr>().ok();
        let is_loopback = host == "localhost" || address.is_some_and(|address| address.to_canonical().is_loopback());
        match self {
            Self::Any => true,
            Self::Loopback => is_loopback,
            Self::Hosts(hosts) => is_loopback || hosts.iter().any(|allowed| allowed == host),
        }
    }
}

/// Sends callbacks.
pub struct CallbackSender {
    targets: CallbackTargets,
    client: Client,
    permits: Arc<Semaphore>,
    log: Logger,
}

impl CallbackSender {
    /// Creates a sender that has sent nothing.
    ///
    /// # Errors
    /// Returns an error if TLS can't be set up.
    pub fn new(targets: CallbackTargets, log: &Logger) -> anyhow::Result<Self> {
        // A redirect could lead to a host that isn't allowed. A connection that was idle may be closed by the server just when a
        // callback is sent, which is then lost.
        let client = Client::builder().timeout(TIMEOUT).redirect(Policy::none()).pool_max_idle_per_host(0).no_proxy();
        let client = client.build().context("callbacks can't be sent")?;
        Ok(Self { targets, client, permits: Arc::new(Semaphore::new(MAX_IN_PROGRESS)), log: log.clone() })
    }

    /// Sends the callbacks of an operation in tasks of their own, and returns its response.
    ///
    /// # Errors
    /// Returns an error if the response's body can't be read.
    pub async fn send(
        &self,
        contract: &Contract,
        operation: &Operation,
        request: &IncomingRequest,
        response: Response<Body>,
    ) -> Result<Response<Body>, ApiError> {
        let (head, body) = response.into_parts();
        let body = etag::collect_body(body).await?;
        let request_head = &request.head;
        let host = request_head.headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or("localhost");
        let values = RuntimeValues {
            operation,
            url: &format!("http://{host}{}", request_head.uri),
            request_headers: &request_head.headers,
            arguments: &request.arguments,
            status: head.status.as_u16(),
            response_headers: &head.headers,
            response_body: &serde_json::from_slice(&body).unwrap_or_default(),
        };
        for callback in &operation.callbacks {
            match self.prepare(contract, callback, &values) {
                Ok(request) => self.spawn(&operation.id, &callback.name, request),
                Err(error) => warn!(self.log, "callback not sent"; "operation" => &operation.id, "callback" => &callback.name,
                    "cause" => format!("{error:#}")),
            }
        }
        Ok(Response::from_parts(head, body.into()))
    }

    /// Builds the request of a callback.
    fn prepare(&self, contract: &Contract, callback: &Callback, values: &RuntimeValues<'_>) -> anyhow::Result<reqwest::Request> {
        let url = callback.resolve_url(values).map_err(anyhow::Error::msg)?;
        let url = Url::parse(&url).with_context(|| format!("{url} is not a URL"))?;
        ensure!(["http", "https"].contains(&url.scheme()), "{} is neither http nor https", url.scheme());
        ensure!(
            self.targets.allows(&url),
            "callbacks to {} are not allowed; see --callbacks",
            url.host_str().unwrap_or("no host")
        );
        let mut request = reqwest::Request::new(Method::from_bytes(callback.method.as_bytes())?, url);
        if let Some((media_type, body)) = callback_body(contract, callback)? {
            request.headers_mut().insert(header::CONTENT_TYPE, media_type.parse()?);
            *request.body_mut() = Some(body.into());
        }
        Ok(request)
    }

    fn spawn(&self, operation: &str, callback: &str, request: reqwest::Request) {
        let log = self.log.new(slog::o!("operation" => operation.to_owned(), "callback" => callback.to_owned()));
        let Ok(permit) = Arc::clone(&self.permits).try_acquire_owned() else {
            return warn!(log, "callback not sent"; "cause" => "too many callbacks are in progress");
        };
        let client = self.client.clone();
        tokio::spawn(async move {
            let _in_progress = permit;
            tokio::time::sleep(PAUSE).await;
            let target = request.url().origin().ascii_serialization();
            match client.execute(request).await {
                Ok(response) => info!(log, "callback sent"; "target" => target, "status" => response.status().as_u16()),
                Err(error) => {
                    warn!(log, "callback failed"; "target" => target, "cause" => format!("{:#}", anyhow::Error::from(error.without_url())))
                }
            }
        });
    }
}

/// Returns the media type and the body of a callback: its example, or else data generated from its schema. `None` if it has no body.
fn callback_body(contract: &Contract, callback: &Callback) -> anyhow::Result<Option<(String, Bytes)>> {
    let Some(content) = &callback.content else { return Ok(None) };
    let value = match (content.examples.values().next(), content.schema.as_deref()) {
        (Some(example), _) => example.clone(),
        (None, Some(schema)) => {
            let sampler = Sampler::new(&contract.document, &schema.raw, Direction::Request)?;
            sampler.sample_with(0, ExampleUse::Always).with_context(|| callback.pointer.clone())?
        }
        (None, None) => Value::Object(Default::default()),
    };
    ensure!(content.is_json() || value.is_string(), "no body of the media type {} can be generated", content.media_type);
    Ok(Some((content.media_type.clone(), encode(&content.media_type, &value, false))))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use slog::Discard;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;
    use tokio::time::timeout;

    use super::*;

    #[tokio::test]
    async fn each_callback_has_a_connection_of_its_own() {
        let server = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = Url::parse(&format!("http://{}", server.local_addr().unwrap())).unwrap();
        let sender = CallbackSender::new(CallbackTargets::Loopback, &Logger::root(Discard, slog::o!())).unwrap();
        // They remain open, like those of a server that closes them later.
        let mut connections = Vec::new();
        for callback in ["first", "second"] {
            sender.spawn("subscribe", callback, reqwest::Request::new(Method::POST, url.clone()));
            let (mut connection, _) = timeout(TIMEOUT, server.accept()).await.expect(callback).unwrap();
            let _size = connection.read(&mut [0; 1024]).await.unwrap();
            connection.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").await.unwrap();
            connections.push(connection);
            // Until the callback has its response.
            let _all = sender.permits.acquire_many(MAX_IN_PROGRESS as u32).await.unwrap();
        }
    }

    #[test]
    fn only_listed_hosts_are_allowed() {
        for (targets, url, expected) in [
            ("loopback", "http://127.0.0.1:9/x", true),
            ("loopback", "http://[::1]/", true),
            ("loopback", "http://[::ffff:127.0.0.1]/", true),
            ("loopback", "http://localhost:1/", true),
            ("loopback", "http://2130706433/", true),
            ("loopback", "http://localhost.example.com/", false),
            ("loopback", "http://127.0.0.1@example.com/", false),
            ("loopback", "http://10.0.0.1/", false),
            ("Hooks.example.com, 10.0.0.1", "https://hooks.EXAMPLE.com/a", true),
            ("hooks.example.com,10.0.0.1", "http://10.0.0.1/", true),
            ("hooks.example.com", "http://127.0.0.1/", true),
            ("hooks.example.com", "http://example.com/", false),
            ("any", "http://example.com/", true),
        ] {
            let targets: CallbackTargets = targets.parse().unwrap();
            assert_eq!(targets.allows(&Url::parse(url).unwrap()), expected, "{targets:?} {url}");
        }
        for wrong in ["", "a,,b", "http://a", "*.a"] {
            assert!(wrong.parse::<CallbackTargets>().is_err(), "{wrong}");
        }
    }
}
