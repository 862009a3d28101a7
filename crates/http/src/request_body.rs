//! Body of a request: size limit, timeouts and memory.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use boxoffice_openapi::Operation;
use bytes::Bytes;
use dropshot::Body;
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Version, header};
use http_body_util::BodyExt;
use hyper::body::{Body as _, Frame};
use tokio::time::error::Elapsed;
use tokio::time::{Instant, timeout_at};

use super::ApiError;
use crate::body_memory::{BodyMemory, BodyMemoryLimits, BodyOwner, BodyReservation};
use crate::error::Code;
use crate::rate_limit;

/// The error of a body.
type BodyError = <Body as hyper::body::Body>::Error;

/// Maximum number of bytes that are received and discarded of a body that is not used.
const MAX_DISCARDED_BYTES: usize = 16 * 1024 * 1024;

/// Minimum upload rate: the total timeout grows by a second for each of these bytes that have arrived.
const BYTES_PER_SECOND: usize = 16 * 1024;

/// Size above which a body is large: access to the resource in the path is checked before it is read.
pub const LARGE_BODY_BYTES: usize = 64 * 1024;
/// Bytes that a body counts for at least until it is received, and its request is handled: the request itself is in memory, too.
const PENDING_BODY_BYTES: usize = 16 * 1024;

/// Timeouts of a body. They bound how long a slow client holds a connection and its memory.
#[derive(Debug, Clone, Copy)]
pub struct BodyTimeouts {
    /// For the whole body, plus a second for each 16 KiB that have arrived.
    pub total: Duration,
    /// Between two parts of the body.
    pub idle: Duration,
}

impl Default for BodyTimeouts {
    fn default() -> Self {
        Self { total: Duration::from_secs(30), idle: Duration::from_secs(10) }
    }
}

impl BodyTimeouts {
    /// The total timeout of a body of which this many bytes have arrived.
    fn total_for(self, received: usize) -> Duration {
        self.total + Duration::from_secs((received / BYTES_PER_SECOND) as u64)
    }

    /// The time until which the next part must arrive of a body that began at `start` and of which this many bytes have arrived.
    fn deadline(self, start: Instant, received: usize) -> Instant {
        (start + self.total_for(received)).min(Instant::now() + self.idle)
    }
}

/// Reads the bodies of requests into memory.
#[derive(Debug)]
pub struct BodyReader {
    timeouts: BodyTimeouts,
    memory: Arc<BodyMemory>,
}

/// A body in memory.
#[derive(Debug)]
pub struct ReadBody {
    /// Its content.
    pub bytes: Vec<u8>,
    /// Its memory, which counts until this is dropped.
    pub reservation: Option<BodyReservation>,
}

/// The body of a request, or what was not read of it.
#[derive(Debug)]
pub struct UnreadBody {
    body: Body,
    is_http_2: bool,
    /// True while the client waits for `100 Continue`, which is sent when the body is read.
    expects_continue: bool,
}

impl UnreadBody {
    /// Creates the body of a request with this head.
    pub fn new(head: &Parts, body: Body) -> Self {
        let expects_continue = head.version == Version::HTTP_11
            && head.headers.get(header::EXPECT).is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"100-continue"));
        Self { body, is_http_2: head.version == Version::HTTP_2, expects_continue }
    }

    /// Returns whether it is larger than [`LARGE_BODY_BYTES`], or its size is unknown and it may be. A body over the limit is
    /// not: it is rejected in any case.
    pub fn may_be_large(&self, operation: &Operation) -> bool {
        let size = self.body.size_hint();
        let limit = operation.body_limit().unwrap_or(0);
        let is_within_limit = limit > LARGE_BODY_BYTES && size.lower() <= limit as u64;
        is_within_limit && size.upper().is_none_or(|upper| upper > LARGE_BODY_BYTES as u64)
    }

    /// Returns whether the client sends the rest of it in any case, and it is not too large to be received. Over HTTP/2, a client stops
    /// when nobody reads.
    fn has_rest(&self) -> bool {
        let is_sent = !self.is_http_2 && !self.expects_continue && !self.body.is_end_stream();
        is_sent && self.body.size_hint().lower() <= MAX_DISCARDED_BYTES as u64
    }

    /// Receives and drops [the rest](Self::has_rest) of it, because most clients read the response only after they have sent it. Leaves
    /// one that is too large or too slow.
    async fn receive_rest(&mut self, timeouts: BodyTimeouts) {
        if !self.has_rest() {
            return;
        }
        let mut body = std::mem::take(&mut self.body);
        let (start, mut discarded) = (Instant::now(), 0);
        while discarded <= MAX_DISCARDED_BYTES {
            let Ok(Some(Ok(frame))) = timeout_at(timeouts.deadline(start, discarded), body.frame()).await else { return };
            discarded += frame.data_ref().map_or(0, |data| data.len());
        }
    }
}

impl BodyReader {
    /// Creates a reader with these timeouts and limits.
    pub fn new(timeouts: BodyTimeouts, limits: BodyMemoryLimits) -> Self {
        Self { timeouts, memory: BodyMemory::new(limits) }
    }

    /// Reads the whole body of a request with this API key. Returns an empty one without reading if the operation takes no body.
    ///
    /// # Errors
    /// 413 if it is too large, 408 if it is too slow, 400 if it ends early, 429 or 503 if there is no memory for it.
    pub async fn read(
        &self,
        operation: &Operation,
        owner: Option<BodyOwner>,
        unread: &mut UnreadBody,
    ) -> Result<ReadBody, ApiError> {
        let Some(limit) = operation.body_limit() else { return Ok(ReadBody { bytes: Vec::new(), reservation: None }) };
        let too_large = || Code::BODY_TOO_LARGE.with_message(format!("The request's body is larger than {limit} bytes.")).into();
        let Some(announced) = usize::try_from(unread.body.size_hint().lower()).ok().filter(|announced| *announced <= limit)
        else {
            unread.receive_rest(self.timeouts).await;
            return Err(too_large());
        };
        let mut reservation = self.memory.reserve(owner);
        let pending = if unread.body.is_end_stream() { 0 } else { PENDING_BODY_BYTES };
        reservation.extend_to(announced.max(pending))?;
        unread.expects_continue = false;
        // Without the capacity, the buffer would grow to twice the size.
        let mut bytes = Vec::with_capacity(announced);
        let start = Instant::now();
        loop {
            let frame = match next_frame(&mut unread.body, self.timeouts.deadline(start, bytes.len())).await {
                Ok(Some(frame)) => frame,
                Ok(None) => {
                    unread.body = Body::empty();
                    return Ok(ReadBody { bytes, reservation: Some(reservation) });
                }
                Err(_) => {
                    // The server no longer waits for this client, so the rest is not received.
                    unread.body = Body::empty();
                    return Err(Code::BODY_TOO_SLOW.into());
                }
            };
            let frame = frame.map_err(|_| Code::BODY_MALFORMED.with_message("The request's body ended before it was whole."))?;
            let Ok(data) = frame.into_data() else { continue };
            if bytes.len() + data.len() > limit {
                drop((bytes, reservation));
                unread.receive_rest(self.timeouts).await;
                return Err(too_large());
            }
            reservation.extend_to(bytes.len() + data.len())?;
            bytes.extend_from_slice(&data);
        }
    }

    /// Writes the headers of a response to a request for whose body its key has no memory.
    pub fn write_limit_headers(&self, headers: &mut HeaderMap) {
        let policy = format!("\"bodies\";q={};qu=\"content-bytes\"", self.memory.limits().per_key);
        let values = [HeaderValue::try_from(policy).ok(), Some(HeaderValue::from_static("\"bodies\";r=0;t=1")), Some(1.into())];
        for (name, value) in rate_limit::HEADERS.into_iter().zip(values) {
            if let Some(value) = value {
                headers.insert(name, value);
            }
        }
    }

    /// Discards what was not read of a body in a task of its own, so that the response doesn't wait for it. Meanwhile the connection is
    /// idle: it may be closed, for example for others.
    pub fn discard(&self, mut unread: UnreadBody) {
        if unread.has_rest() {
            let timeouts = self.timeouts;
            tokio::spawn(async move { unread.receive_rest(timeouts).await });
        }
    }
}

/// Waits for the next part of a body, until a deadline at most.
///
/// Most bodies arrive with their head: the connection has them when it is polled again. So the timer is set only after that, because
/// setting one often wakes the thread that waits for the sockets, which costs more than the rest of a small request.
async fn next_frame(body: &mut Body, deadline: Instant) -> Result<Option<Result<Frame<Bytes>, BodyError>>, Elapsed> {
    let mut is_first_poll = true;
    let early = poll_fn(|context| match Pin::new(&mut *body).poll_frame(context) {
        Poll::Ready(frame) => Poll::Ready(Some(frame)),
        Poll::Pending if is_first_poll => {
            is_first_poll = false;
            context.waker().wake_by_ref();
            Poll::Pending
        }
        Poll::Pending => Poll::Ready(None),
    });
    match early.await {
        Some(frame) => Ok(frame),
        None => timeout_at(deadline, body.frame()).await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn total_timeout_grows_with_received_bytes() {
        let seconds = |received| BodyTimeouts::default().total_for(received).as_secs();

        assert_eq!((seconds(0), seconds(64 * 1024), seconds(8 * 1024 * 1024)), (30, 34, 542));
    }
}
