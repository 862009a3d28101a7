//! Load generator: sends requests over persistent connections and measures the responses.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context, bail};
use bytes::Bytes;
use futures::future::join_all;
use hdrhistogram::Histogram;
use http::{Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, Connection, SendRequest};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep, sleep_until, timeout};

/// Timeout of a request.
pub const REQUEST_TIMEOUT: Duration = Duration::from_secs(60);
/// The path of log-ins. Their responses take longer than others, because the server hashes the password.
pub const LOG_IN_PATH: &str = "/v3/sessions";

/// A request.
#[derive(Debug, Clone)]
pub struct LoadRequest {
    /// The method.
    pub method: Method,
    /// Path and query.
    pub path: String,
    /// The caller's API key.
    pub key: Arc<str>,
    /// The body, which may be empty.
    pub body: Bytes,
}

/// Returns the `n`th request; `None` if there are no more.
pub type RequestSource = Arc<dyn Fn(u64) -> Option<LoadRequest> + Send + Sync>;

/// Returns a source that ignores the number and returns these requests one after the other, so that each load continues where the
/// last one ended.
pub fn in_turn(requests: RequestSource) -> RequestSource {
    let next = AtomicU64::new(0);
    Arc::new(move |_| requests(next.fetch_add(1, Ordering::Relaxed)))
}

/// Returns sources that have no more requests as soon as one of them has none, so that two loads at the same time end together.
pub fn ending_together(sources: [RequestSource; 2]) -> [RequestSource; 2] {
    let has_ended = Arc::new(AtomicBool::new(false));
    sources.map(|requests| -> RequestSource {
        let has_ended = Arc::clone(&has_ended);
        Arc::new(move |number| {
            let request = if has_ended.load(Ordering::Relaxed) { None } else { requests(number) };
            if request.is_none() {
                has_ended.store(true, Ordering::Relaxed);
            }
            request
        })
    })
}

/// Parameters of a load.
#[derive(Debug, Clone)]
pub struct Load {
    /// The server's address.
    pub address: SocketAddr,
    /// Number of connections, and so the maximum number of concurrent requests.
    pub connections: usize,
    /// Duration of the load before the measurement.
    pub warm_up: Duration,
    /// Duration of the measurement.
    pub duration: Duration,
    /// Requests per second (open loop). Without it, each connection sends its next request when it has a response (closed loop).
    pub rate: Option<f64>,
}

/// Result of a load.
#[derive(Debug)]
pub struct Measurement {
    /// Microseconds until a successful response was complete. In a closed loop these are the responses that arrived during the
    /// measurement. In an open loop they are those to requests that were due during the measurement, even if they arrived later, and
    /// the time counts from the moment at which the request was due: a stalled server is charged with every request that waits.
    pub latencies: Histogram<u64>,
    /// The latencies of log-ins.
    pub log_in_latencies: Histogram<u64>,
    /// Number of other responses to the same requests by status; 0 means no response.
    pub others: BTreeMap<u16, u64>,
    /// Number of successful responses that arrived during the measurement.
    pub successes: u64,
    /// Number of all requests that ended during the measurement.
    pub responses: u64,
    /// Duration of the measurement.
    pub duration: Duration,
    /// True if the requests ran out before the end.
    pub is_exhausted: bool,
}

const SAME_BOUNDS: &str = "histograms have the same bounds";

impl Measurement {
    /// Creates an empty measurement.
    pub fn empty() -> anyhow::Result<Self> {
        Ok(Self {
            latencies: histogram()?,
            log_in_latencies: histogram()?,
            others: BTreeMap::new(),
            successes: 0,
            responses: 0,
            duration: Duration::ZERO,
            is_exhausted: false,
        })
    }

    /// Adds the result of a further round.
    pub fn add(&mut self, round: &Self) -> anyhow::Result<()> {
        self.latencies.add(&round.latencies).context(SAME_BOUNDS)?;
        self.log_in_latencies.add(&round.log_in_latencies).context(SAME_BOUNDS)?;
        for (status, count) in &round.others {
            *self.others.entry(*status).or_default() += count;
        }
        self.successes += round.successes;
        self.responses += round.responses;
        self.duration += round.duration;
        self.is_exhausted |= round.is_exhausted;
        Ok(())
    }

    /// Returns the latencies of all requests but the log-ins.
    pub fn latencies_without_log_ins(&self) -> anyhow::Result<Histogram<u64>> {
        let mut latencies = self.latencies.clone();
        latencies.subtract(&self.log_in_latencies).context(SAME_BOUNDS)?;
        Ok(latencies)
    }

    /// Returns successful responses per second.
    pub fn rate(&self) -> f64 {
        self.successes as f64 / self.duration.as_secs_f64()
    }

    /// Records the end of a request. `window` is the time of the measurement.
    fn record(&mut self, window: &Range<Instant>, is_open_loop: bool, ended: &EndedRequest) {
        let is_success = (200..300).contains(&ended.status);
        let ended_in_window = window.contains(&ended.end);
        if ended_in_window {
            self.responses += 1;
            self.successes += u64::from(is_success);
        }
        let is_measured = if is_open_loop { window.contains(&ended.begin) } else { ended_in_window };
        if is_measured && is_success {
            let latency = (ended.end - ended.begin).as_micros() as u64;
            self.latencies.saturating_record(latency);
            if ended.is_log_in {
                self.log_in_latencies.saturating_record(latency);
            }
        } else if is_measured {
            *self.others.entry(ended.status).or_default() += 1;
        }
    }
}

/// A request with or without a response.
struct EndedRequest {
    /// The time at which the request was due, in an open loop, or was sent.
    begin: Instant,
    /// The time at which the response was complete, or the client gave up.
    end: Instant,
    /// The status of the response; 0 means no response.
    status: u16,
    is_log_in: bool,
}

/// State that all connections of a load share.
struct LoadState {
    load: Load,
    requests: RequestSource,
    begin: Instant,
    next_request: AtomicU64,
}

/// Sends requests and measures the responses. `at_edges` is called at the beginning and at the end of the measurement.
///
/// # Errors
/// Returns an error if the client can't connect or no request succeeds.
pub async fn run_load(load: &Load, requests: &RequestSource, mut at_edges: impl FnMut()) -> anyhow::Result<Measurement> {
    let state = LoadState {
        load: load.clone(),
        requests: Arc::clone(requests),
        begin: Instant::now() + load.warm_up,
        next_request: AtomicU64::new(0),
    };
    let state = Arc::new(state);
    let mut connections = Vec::new();
    for _ in 0..load.connections {
        let connection = ClientConnection::open(load.address).await?;
        connections.push(tokio::spawn(run_connection(Arc::clone(&state), connection)));
    }
    sleep_until(state.begin).await;
    at_edges();
    let mut measurement = Measurement::empty()?;
    let running = join_all(connections);
    let mut running = std::pin::pin!(running);
    // The measurement ends here, before the last responses arrive.
    let results = timeout(load.duration, &mut running).await;
    at_edges();
    measurement.duration = state.begin.elapsed().min(load.duration);
    let results = match results {
        Ok(results) => results,
        Err(_) => running.await,
    };
    for result in results {
        measurement.add(&result.context("a connection's task has panicked")??)?;
    }
    if measurement.latencies.is_empty() {
        let reason = if measurement.is_exhausted { "the requests ran out" } else { "no request succeeded" };
        bail!("{reason}: {:?}", measurement.others);
    }
    Ok(measurement)
}

/// Sends a single request and returns the body.
///
/// # Errors
/// Returns an error if the request doesn't succeed.
pub async fn send_once(address: SocketAddr, request: &LoadRequest) -> anyhow::Result<Bytes> {
    let (status, body) = ClientConnection::open(address).await?.send(request).await?;
    if !status.is_success() {
        bail!("{} {} returned {status}: {}", request.method, request.path, String::from_utf8_lossy(&body));
    }
    Ok(body)
}

/// Returns an empty histogram of microseconds.
pub fn histogram() -> anyhow::Result<Histogram<u64>> {
    Histogram::new_with_bounds(1, REQUEST_TIMEOUT.as_micros() as u64 * 2, 3).context("the histogram's bounds are valid")
}

/// Sends requests over a connection. Returns a measurement without a duration.
async fn run_connection(state: Arc<LoadState>, mut connection: ClientConnection) -> anyhow::Result<Measurement> {
    let mut measurement = Measurement::empty()?;
    let load = &state.load;
    let window = state.begin..state.begin + load.duration;
    let start = state.begin - load.warm_up;
    loop {
        let number = state.next_request.fetch_add(1, Ordering::Relaxed);
        let due = load.rate.map(|rate| start + Duration::from_secs_f64(number as f64 / rate));
        if let Some(due) = due {
            sleep_until(due).await;
        }
        let begin = due.unwrap_or_else(Instant::now);
        if begin >= window.end {
            return Ok(measurement);
        }
        let Some(request) = (state.requests)(number) else {
            measurement.is_exhausted = true;
            return Ok(measurement);
        };
        // A request that has waited too long is not sent. Otherwise the load would not end if the server stalls for good.
        let (status, end) = match begin.elapsed() < REQUEST_TIMEOUT {
            true => connection.attempt(load.address, &request).await?,
            false => (0, Instant::now()),
        };
        let is_log_in = request.path == LOG_IN_PATH;
        measurement.record(&window, due.is_some(), &EndedRequest { begin, end, status, is_log_in });
    }
}

/// A client connection, polled by the task that sends on it. In a separate task, all connections would take turns in sending and
/// receiving: requests would arrive at the server in bursts, and it would be idle in between.
pub struct ClientConnection {
    address: String,
    sender: SendRequest<Full<Bytes>>,
    connection: Connection<TokioIo<TcpStream>, Full<Bytes>>,
}

impl ClientConnection {
    /// Connects to a server.
    pub async fn open(address: SocketAddr) -> anyhow::Result<Self> {
        let stream = TcpStream::connect(address).await.with_context(|| format!("cannot connect to {address}"))?;
        stream.set_nodelay(true)?;
        let (sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        Ok(Self { address: address.to_string(), sender, connection })
    }

    /// Sends a request, and returns the response's status and the time at which it was complete. The status is 0 if there is none in
    /// time; then the connection is replaced by a new one to `address`.
    pub async fn attempt(&mut self, address: SocketAddr, request: &LoadRequest) -> anyhow::Result<(u16, Instant)> {
        let response = timeout(REQUEST_TIMEOUT, self.send(request)).await;
        let now = Instant::now();
        if let Ok(Ok((status, _))) = response {
            return Ok((status.as_u16(), now));
        }
        sleep(Duration::from_millis(10)).await;
        *self = Self::open(address).await?;
        Ok((0, now))
    }

    /// Sends a request and returns the response's status and body.
    pub async fn send(&mut self, request: &LoadRequest) -> anyhow::Result<(StatusCode, Bytes)> {
        self.exchange(request, async |response| {
            let status = response.status();
            Ok((status, response.into_body().collect().await?.to_bytes()))
        })
        .await
    }

    /// Sends a request, calls `receive` with each part of the response's body, and returns its status.
    pub async fn receive(&mut self, request: &LoadRequest, mut receive: impl FnMut(&Bytes)) -> anyhow::Result<StatusCode> {
        self.exchange(request, async |mut response| {
            while let Some(frame) = response.frame().await {
                if let Some(part) = frame?.data_ref() {
                    receive(part);
                }
            }
            Ok(response.status())
        })
        .await
    }

    /// Sends a request, and returns what `read` returns for the response.
    async fn exchange<T>(
        &mut self,
        request: &LoadRequest,
        read: impl AsyncFnOnce(Response<Incoming>) -> anyhow::Result<T>,
    ) -> anyhow::Result<T> {
        let request = self.http_request(request)?;
        let response = async {
            self.sender.ready().await?;
            read(self.sender.send_request(request).await?).await
        };
        tokio::select! {
            biased;
            response = response => response,
            ended = &mut self.connection => bail!("the connection was closed: {ended:?}"),
        }
    }

    fn http_request(&self, request: &LoadRequest) -> anyhow::Result<Request<Full<Bytes>>> {
        Ok(Request::builder()
            .method(&request.method)
            .uri(&request.path)
            .header(header::HOST, &self.address)
            .header(header::CONTENT_TYPE, "application/json")
            .header("x-api-key", &*request.key)
            .header("x-client-version", env!("CARGO_PKG_VERSION"))
            .body(Full::new(request.body.clone()))?)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use bytes::Bytes;
    use http::Method;
    use tokio::time::Instant;

    use super::{EndedRequest, LoadRequest, Measurement, RequestSource, ending_together};

    /// Records a request from `begin` to `end`, in seconds, of a measurement from 10 to 20 seconds.
    fn record(is_open_loop: bool, begin: u64, end: u64, status: u16) -> anyhow::Result<Measurement> {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut measurement = Measurement::empty()?;
        let ended = EndedRequest { begin: at(begin), end: at(end), status, is_log_in: false };
        measurement.record(&(at(10)..at(20)), is_open_loop, &ended);
        Ok(measurement)
    }

    #[test]
    fn sources_end_together() {
        let source = |count: u64| -> RequestSource {
            let request = LoadRequest { method: Method::GET, path: String::new(), key: Arc::from(""), body: Bytes::new() };
            Arc::new(move |number| (number < count).then(|| request.clone()))
        };
        for counts in [[2, 9], [9, 2]] {
            let [first, second] = ending_together(counts.map(source));
            let ended: Vec<bool> =
                (0..4).flat_map(|number| [first(number), second(number)]).map(|request| request.is_none()).collect();
            let begin = if counts[0] == 2 { 4 } else { 5 };
            assert!(ended.iter().enumerate().all(|(index, ended)| *ended == (index >= begin)), "{counts:?}: {ended:?}");
        }
    }

    #[test]
    fn open_loop_measures_each_request_that_was_due() -> anyhow::Result<()> {
        for (begin, end, latencies, successes) in [(9, 11, 0, 1), (11, 12, 1, 1), (19, 50, 1, 0), (21, 22, 0, 0)] {
            let measurement = record(true, begin, end, 200)?;
            assert_eq!((measurement.latencies.len(), measurement.successes), (latencies, successes), "{begin} to {end}");
            assert_eq!(measurement.responses, successes, "{begin} to {end}");
        }
        assert!(record(true, 19, 50, 200)?.latencies.max() >= 31_000_000);
        assert_eq!(record(true, 19, 79, 0)?.others.into_iter().collect::<Vec<_>>(), [(0, 1)]);
        Ok(())
    }

    #[test]
    fn closed_loop_measures_each_response_that_arrived() -> anyhow::Result<()> {
        for (begin, end, count) in [(8, 9, 0), (9, 11, 1), (11, 12, 1), (19, 21, 0)] {
            let success = record(false, begin, end, 200)?;
            assert_eq!(
                (success.latencies.len(), success.successes, success.responses),
                (count, count, count),
                "{begin} to {end}"
            );
            let failure = record(false, begin, end, 503)?;
            assert_eq!(
                (failure.others.len() as u64, failure.successes, failure.responses),
                (count, 0, count),
                "{begin} to {end}"
            );
        }
        Ok(())
    }
}
