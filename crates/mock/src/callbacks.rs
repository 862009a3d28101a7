//! Callbacks: requests that the document declares for an operation, sent shortly after its response.

use std::collections::HashMap;
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
use http::request::Parts;
use http::uri::{Authority, PathAndQuery};
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
    /// Also these hosts, each with a port or for all of its ports.
    Hosts(Vec<String>),
    /// Every host.
    Any,
}

impl FromStr for CallbackTargets {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        let hosts: Vec<_> = text.split(',').map(|host| host.trim().to_lowercase()).collect();
        let is_host = |host: &str| !host.contains(['/', ' ', '@', '*']) && Url::parse(&format!("http://{host}")).is_ok();
        if let Some(wrong) = hosts.iter().find(|host| !is_host(host)) {
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
        let with_port = url.port_or_known_default().map(|port| format!("{host}:{port}"));
        match self {
            Self::Any => true,
            Self::Loopback => is_loopback,
            Self::Hosts(hosts) => {
                is_loopback || hosts.iter().any(|allowed| allowed == host || Some(allowed) == with_port.as_ref())
            }
        }
    }
}

/// Sends callbacks.
pub struct CallbackSender {
    targets: CallbackTargets,
    /// The scheme of the mock's own URL.
    scheme: &'static str,
    /// The body of each callback with its media type, or the reason why none can be generated, by the callback's pointer.
    bodies: HashMap<String, Result<Option<(String, Bytes)>, String>>,
    client: Client,
    permits: Arc<Semaphore>,
    log: Logger,
}

impl CallbackSender {
    /// Creates a sender of the callbacks of a document.
    ///
    /// # Errors
    /// Returns an error if TLS can't be set up.
    pub fn new(targets: CallbackTargets, contract: &Contract, scheme: &'static str, log: &Logger) -> anyhow::Result<Self> {
        // A redirect could lead to a host that isn't allowed. A connection that was idle may be closed by the server just when a
        // callback is sent, which is then lost.
        let client = Client::builder().timeout(TIMEOUT).redirect(Policy::none()).pool_max_idle_per_host(0).no_proxy();
        let client = client.build().context("callbacks can't be sent")?;
        let body = |callback: &Callback| callback_body(contract, callback).map_err(|error| format!("{error:#}"));
        let callbacks = contract.operations().flat_map(|operation| &operation.callbacks);
        let bodies = callbacks.map(|callback| (callback.pointer.clone(), body(callback))).collect();
        let permits = Arc::new(Semaphore::new(MAX_IN_PROGRESS));
        Ok(Self { targets, scheme, bodies, client, permits, log: log.clone() })
    }

    /// Sends the callbacks of an operation in tasks of their own, and returns its response.
    ///
    /// # Errors
    /// Returns an error if the response's body can't be read.
    pub async fn send(
        &self,
        operation: &Operation,
        request: &IncomingRequest,
        response: Response<Body>,
    ) -> Result<Response<Body>, ApiError> {
        let (head, body) = response.into_parts();
        let body = etag::collect_body(body).await?;
        let request_head = &request.head;
        let values = RuntimeValues {
            operation,
            url: &request_url(self.scheme, request_head),
            request_headers: &request_head.headers,
            arguments: &request.arguments,
            status: head.status.as_u16(),
            response_headers: &head.headers,
            response_body: &serde_json::from_slice(&body).unwrap_or_default(),
        };
        for callback in &operation.callbacks {
            match self.prepare(callback, &values) {
                Ok(request) => self.spawn(&operation.id, &callback.name, request),
                Err(error) => warn!(self.log, "callback not sent"; "operation" => &operation.id, "callback" => &callback.name,
                    "cause" => format!("{error:#}")),
            }
        }
        Ok(Response::from_parts(head, body.into()))
    }

    /// Builds the request of a callback.
    fn prepare(&self, callback: &Callback, values: &RuntimeValues<'_>) -> anyhow::Result<reqwest::Request> {
        let url = callback.resolve_url(values).map_err(anyhow::Error::msg)?;
        let url = Url::parse(&url).with_context(|| format!("{url} is not a URL"))?;
        ensure!(["http", "https"].contains(&url.scheme()), "{} is neither http nor https", url.scheme());
        ensure!(
            self.targets.allows(&url),
            "callbacks to {} are not allowed; see --callbacks",
            url.host_str().unwrap_or("no host")
        );
        let mut request = reqwest::Request::new(Method::from_bytes(callback.method.as_bytes())?, url);
        match &self.bodies[&callback.pointer] {
            Ok(Some((media_type, body))) => {
                request.headers_mut().insert(header::CONTENT_TYPE, media_type.parse()?);
                *request.body_mut() = Some(body.clone().into());
            }
            Ok(None) => {}
            Err(error) => bail!("{error}"),
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

/// Returns the URL of a request.
fn request_url(scheme: &str, head: &Parts) -> String {
    server_url(scheme, head) + head.uri.path_and_query().map_or("/", PathAndQuery::as_str)
}

/// Returns the URL of the server to which a request was sent, without a path. The host is in the URI with HTTP/2, and else in the header
/// `Host`.
pub fn server_url(scheme: &str, head: &Parts) -> String {
    let host = || head.headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or("localhost");
    let host = head.uri.authority().map_or_else(host, Authority::as_str);
    format!("{scheme}://{host}")
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
    use serde_json::json;
    use slog::Discard;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;
    use tokio::time::timeout;

    use super::*;

    #[tokio::test]
    async fn each_callback_has_a_connection_of_its_own() {
        let server = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = Url::parse(&format!("http://{}", server.local_addr().unwrap())).unwrap();
        let contract = Contract::new(json!({ "openapi": "3.0.3", "paths": {} })).unwrap();
        let log = Logger::root(Discard, slog::o!());
        let sender = CallbackSender::new(CallbackTargets::Loopback, &contract, "http", &log).unwrap();
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
    fn url_has_scheme_and_host_of_request() {
        for (scheme, uri, expected) in [
            ("http", "/a?b=1", "http://mock.example:81/a?b=1"),
            ("https", "/a", "https://mock.example:81/a"),
            // The URI of a request with HTTP/2.
            ("https", "https://other.example/a?b=1", "https://other.example/a?b=1"),
        ] {
            let request = http::Request::get(uri).header(header::HOST, "mock.example:81").body(()).unwrap();
            assert_eq!(request_url(scheme, &request.into_parts().0), expected);
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
            ("hooks.example.com:8443", "https://hooks.example.com:8443/a", true),
            ("hooks.example.com:443", "https://hooks.example.com/a", true),
            ("hooks.example.com:8443", "https://hooks.example.com/a", false),
            ("[2001:db8::1]:80,[2001:db8::2]", "http://[2001:db8::1]/", true),
            ("[2001:db8::1]:80,[2001:db8::2]", "http://[2001:db8::2]:9/", true),
            ("any", "http://example.com/", true),
        ] {
            let targets: CallbackTargets = targets.parse().unwrap();
            assert_eq!(targets.allows(&Url::parse(url).unwrap()), expected, "{targets:?} {url}");
        }
        for wrong in ["", "a,,b", "http://a", "*.a", "a:x", "2001:db8::1"] {
            assert!(wrong.parse::<CallbackTargets>().is_err(), "{wrong}");
        }
    }
}
