//! Sends requests over connections that are kept, and measures what comes back.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context, bail};
use bytes::Bytes;
use futures::future::join_all;
use hdrhistogram::Histogram;
use http::{Method, Request, StatusCode, header};
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1::{self, Connection, SendRequest};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep, sleep_until, timeout};

/// How long a request may take before it counts as lost.
const PATIENCE: Duration = Duration::from_secs(60);

/// A request.
#[derive(Debug, Clone)]
pub struct Ask {
    /// What is done.
    pub method: Method,
    /// Path and query.
    pub path: String,
    /// The caller's API key.
    pub key: Arc<str>,
    /// What is said; empty for nothing.
    pub body: Bytes,
}

/// What is asked for as the `n`th; `None` when there is no more to ask for.
pub type Asks = Arc<dyn Fn(u64) -> Option<Ask> + Send + Sync>;

/// How requests are sent.
#[derive(Debug, Clone)]
pub struct Load {
    /// The server's address.
    pub address: SocketAddr,
    /// How many are asked at the same time, at the most.
    pub connections: usize,
    /// How long is asked before anything is measured.
    pub warm_up: Duration,
    /// How long is measured.
    pub time: Duration,
    /// Requests a second, however fast they are answered (an open loop); without it each connection asks as soon as it is answered.
    pub rate: Option<f64>,
}

/// What came back.
#[derive(Debug)]
pub struct Measured {
    /// Microseconds until an answer was whole, of successes. In an open loop they begin when the request was due, so that a server
    /// that stands still is charged with all who wait for it.
    pub latencies: Histogram<u64>,
    /// How many answers there were of each other status; 0 stands for none at all.
    pub others: BTreeMap<u16, u64>,
    /// How long was measured.
    pub time: Duration,
    /// Whether what could be asked for was used up before that.
    pub is_exhausted: bool,
}

impl Measured {
    /// What came back before anything was asked.
    ///
    /// # Errors
    /// Never.
    pub fn nothing() -> anyhow::Result<Self> {
        Ok(Self { latencies: histogram()?, others: BTreeMap::new(), time: Duration::ZERO, is_exhausted: false })
    }

    /// Adds what came back from more of the same.
    ///
    /// # Errors
    /// Never.
    pub fn add(&mut self, more: &Self) -> anyhow::Result<()> {
        self.count(&more.latencies, &more.others)?;
        self.time += more.time;
        self.is_exhausted |= more.is_exhausted;
        Ok(())
    }

    fn count(&mut self, latencies: &Histogram<u64>, others: &BTreeMap<u16, u64>) -> anyhow::Result<()> {
        self.latencies.add(latencies).context("histograms of one form")?;
        for (status, count) in others {
            *self.others.entry(*status).or_default() += count;
        }
        Ok(())
    }

    /// Successes a second.
    pub fn rate(&self) -> f64 {
        self.latencies.len() as f64 / self.time.as_secs_f64()
    }
}

/// The same for all connections.
struct Course {
    load: Load,
    asks: Asks,
    begin: Instant,
    next: AtomicU64,
    is_exhausted: AtomicBool,
}

/// Sends what is to be asked for, and measures the answers. `at_edges` is called when the measuring begins and when it ends.
///
/// # Errors
/// When the server can't be connected to, or nothing succeeded.
pub async fn drive(load: &Load, asks: &Asks, mut at_edges: impl FnMut()) -> anyhow::Result<Measured> {
    let course = Course {
        load: load.clone(),
        asks: Arc::clone(asks),
        begin: Instant::now() + load.warm_up,
        next: AtomicU64::new(0),
        is_exhausted: AtomicBool::new(false),
    };
    let course = Arc::new(course);
    let mut connections = Vec::new();
    for _ in 0..load.connections {
        let line = Line::connect(load.address).await?;
        connections.push(tokio::spawn(ask_on(Arc::clone(&course), line)));
    }
    sleep_until(course.begin).await;
    at_edges();
    let mut measured = Measured::nothing()?;
    let asking = join_all(connections);
    let mut asking = std::pin::pin!(asking);
    // Whoever waits for the last answers doesn't count them.
    let ended = timeout(load.time, &mut asking).await;
    at_edges();
    measured.time = course.begin.elapsed().min(load.time);
    let ended = match ended {
        Ok(ended) => ended,
        Err(_) => asking.await,
    };
    for connection in ended {
        let (latencies, others) = connection.context("a connection's task has panicked")??;
        measured.count(&latencies, &others)?;
    }
    measured.is_exhausted = course.is_exhausted.load(Ordering::Relaxed);
    if measured.latencies.is_empty() {
        bail!("nothing succeeded: {:?}", measured.others);
    }
    Ok(measured)
}

/// Asks once, and gives the body.
///
/// # Errors
/// When it doesn't succeed.
pub async fn ask_once(address: SocketAddr, ask: &Ask) -> anyhow::Result<Bytes> {
    let (status, body) = Line::connect(address).await?.send(ask).await?;
    if !status.is_success() {
        bail!("{} {} was answered {status}: {}", ask.method, ask.path, String::from_utf8_lossy(&body));
    }
    Ok(body)
}

fn histogram() -> anyhow::Result<Histogram<u64>> {
    Histogram::new_with_bounds(1, PATIENCE.as_micros() as u64 * 2, 3).context("a histogram of three digits")
}

type Counts = (Histogram<u64>, BTreeMap<u16, u64>);

async fn ask_on(course: Arc<Course>, mut line: Line) -> anyhow::Result<Counts> {
    let (mut latencies, mut others) = (histogram()?, BTreeMap::new());
    let load = &course.load;
    let (end, start) = (course.begin + load.time, course.begin - load.warm_up);
    loop {
        let number = course.next.fetch_add(1, Ordering::Relaxed);
        let due = load.rate.map(|rate| start + Duration::from_secs_f64(number as f64 / rate));
        if let Some(due) = due {
            sleep_until(due).await;
        }
        let asked = due.unwrap_or_else(Instant::now);
        if asked >= end {
            return Ok((latencies, others));
        }
        let Some(ask) = (course.asks)(number) else {
            course.is_exhausted.store(true, Ordering::Relaxed);
            return Ok((latencies, others));
        };
        let answer = timeout(PATIENCE, line.send(&ask)).await;
        let now = Instant::now();
        let status = match answer {
            Ok(Ok((status, _))) => status.as_u16(),
            Ok(Err(_)) | Err(_) => {
                sleep(Duration::from_millis(10)).await;
                line = Line::connect(load.address).await?;
                0
            }
        };
        if asked < course.begin || now > end {
            continue;
        }
        if (200..300).contains(&status) {
            latencies.saturating_record((now - asked).as_micros() as u64);
        } else {
            *others.entry(status).or_default() += 1;
        }
    }
}

/// A connection, which is worked on by whoever asks on it. In a task of its own it would answer and be asked by turns with all
/// others: so many requests would be sent at once, and the server would have nothing to do meanwhile.
struct Line {
    address: String,
    sender: SendRequest<Full<Bytes>>,
    connection: Connection<TokioIo<TcpStream>, Full<Bytes>>,
}

impl Line {
    async fn connect(address: SocketAddr) -> anyhow::Result<Self> {
        let stream = TcpStream::connect(address).await.with_context(|| format!("cannot connect to {address}"))?;
        stream.set_nodelay(true)?;
        let (sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        Ok(Self { address: address.to_string(), sender, connection })
    }

    async fn send(&mut self, ask: &Ask) -> anyhow::Result<(StatusCode, Bytes)> {
        let request = Request::builder()
            .method(&ask.method)
            .uri(&ask.path)
            .header(header::HOST, &self.address)
            .header(header::CONTENT_TYPE, "application/json")
            .header("x-api-key", &*ask.key)
            .header("x-client-version", env!("CARGO_PKG_VERSION"))
            .body(Full::new(ask.body.clone()))?;
        let answer = async {
            self.sender.ready().await?;
            let response = self.sender.send_request(request).await?;
            let status = response.status();
            anyhow::Ok((status, response.into_body().collect().await?.to_bytes()))
        };
        tokio::select! {
            biased;
            answer = answer => answer,
            ended = &mut self.connection => bail!("the connection ended: {ended:?}"),
        }
    }
}
