//! Requests that are due at given times, whether or not the server keeps up, and their responses by interval.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context, bail};
use futures::future::{try_join, try_join_all};
use hdrhistogram::Histogram;
use parking_lot::Mutex;
use tokio::time::{Instant, sleep_until};

use crate::load::{ClientConnection, REQUEST_TIMEOUT, RequestSource, histogram};

/// A rate of requests that changes evenly.
#[derive(Debug, Clone, Copy)]
pub struct Segment {
    /// Requests per second at its beginning.
    pub from: f64,
    /// Requests per second at its end.
    pub to: f64,
    /// Its duration in seconds.
    pub seconds: f64,
}

impl Segment {
    fn requests(&self) -> f64 {
        (self.from + self.to) / 2.0 * self.seconds
    }

    /// Returns the seconds after which this many requests are due: the solution of `from t + (to - from) t² / (2 seconds) = requests`.
    fn due(&self, requests: f64) -> f64 {
        let slope = (self.to - self.from) / self.seconds;
        2.0 * requests / (self.from + (self.from * self.from + 2.0 * slope * requests).max(0.0).sqrt())
    }
}

/// Returns the time from the beginning at which a request is due; `None` after the last one.
fn due(segments: &[Segment], request: u64) -> Option<Duration> {
    // The first request of a segment that begins with a rate of 0 is due a moment later.
    let (mut requests, mut begin) = (request as f64 + 0.5, 0.0);
    for segment in segments {
        if requests < segment.requests() {
            return Some(Duration::from_secs_f64(begin + segment.due(requests)));
        }
        requests -= segment.requests();
        begin += segment.seconds;
    }
    None
}

/// The requests and responses of an interval.
#[derive(Debug)]
pub struct Interval {
    /// Number of requests that were sent in it.
    pub sent: u64,
    /// Microseconds from the moment at which a request was due to its successful response, which arrived in this interval. They
    /// include the time during which the request waited for a connection.
    pub served: Histogram<u64>,
    /// The same for responses with 503.
    pub refused: Histogram<u64>,
    /// Number of other responses, of requests without any, and of those that were not sent because they had waited too long.
    pub others: u64,
}

struct State {
    address: SocketAddr,
    segments: Vec<Segment>,
    requests: RequestSource,
    begin: Instant,
    next_request: AtomicU64,
    interval: Duration,
    intervals: Mutex<Vec<Interval>>,
    /// The sum of [`Interval::others`], and those after the last interval.
    others: AtomicU64,
}

impl State {
    /// Changes the interval of a moment, if it is not after the last one.
    fn record(&self, moment: Instant, change: impl FnOnce(&mut Interval)) {
        let number = ((moment - self.begin).as_secs_f64() / self.interval.as_secs_f64()) as usize;
        let mut intervals = self.intervals.lock();
        intervals.get_mut(number).map(change);
    }

    fn record_other(&self, moment: Instant) {
        self.others.fetch_add(1, Ordering::Relaxed);
        self.record(moment, |interval| interval.others += 1);
    }
}

/// Sends requests by a schedule. `at_end` is called at the end of each interval with its number and its counts. Returns the number of
/// all [`Interval::others`], also of those after the last interval.
///
/// # Errors
/// Returns an error if the client can't connect, or the requests run out.
pub async fn run(
    address: SocketAddr,
    connections: usize,
    segments: &[Segment],
    requests: &RequestSource,
    interval: Duration,
    mut at_end: impl FnMut(usize, &Interval) -> anyhow::Result<()>,
) -> anyhow::Result<u64> {
    let seconds: f64 = segments.iter().map(|segment| segment.seconds).sum();
    let count = (seconds / interval.as_secs_f64()).ceil() as usize;
    let empty = || anyhow::Ok(Interval { sent: 0, served: histogram()?, refused: histogram()?, others: 0 });
    let opening = (0..connections).map(|_| ClientConnection::open(address));
    let opened: Vec<ClientConnection> = try_join_all(opening).await?;
    let state = Arc::new(State {
        address,
        segments: segments.to_vec(),
        requests: Arc::clone(requests),
        begin: Instant::now(),
        next_request: AtomicU64::new(0),
        interval,
        intervals: Mutex::new((0..count).map(|_| empty()).collect::<anyhow::Result<_>>()?),
        others: AtomicU64::new(0),
    });
    let sending = try_join_all(opened.into_iter().map(async |connection| {
        let sent = tokio::spawn(send_all(Arc::clone(&state), connection)).await;
        sent.context("a connection's task has panicked")?
    }));
    let reporting = async {
        for number in 0..count {
            sleep_until(state.begin + interval * (number as u32 + 1)).await;
            let intervals = state.intervals.lock();
            at_end(number, &intervals[number])?;
        }
        Ok(())
    };
    // Ends at the first error.
    try_join(sending, reporting).await?;
    Ok(state.others.load(Ordering::Relaxed))
}

async fn send_all(state: Arc<State>, mut connection: ClientConnection) -> anyhow::Result<()> {
    loop {
        let number = state.next_request.fetch_add(1, Ordering::Relaxed);
        let Some(due) = due(&state.segments, number) else { return Ok(()) };
        let due = state.begin + due;
        sleep_until(due).await;
        // Otherwise the load would not end if the server stalls for good.
        if due.elapsed() >= REQUEST_TIMEOUT {
            state.record_other(Instant::now());
            continue;
        }
        let Some(request) = (state.requests)(number) else {
            bail!("the requests ran out after {} s", state.begin.elapsed().as_secs());
        };
        state.record(Instant::now(), |interval| interval.sent += 1);
        let (status, received) = connection.attempt(state.address, &request).await?;
        let microseconds = (received - due).as_micros() as u64;
        match status {
            200..300 => state.record(received, |interval| interval.served.saturating_record(microseconds)),
            503 => state.record(received, |interval| interval.refused.saturating_record(microseconds)),
            _ => state.record_other(received),
        }
    }
}
