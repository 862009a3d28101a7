//! One line in the log for each request.

use std::net::IpAddr;
use std::num::NonZeroU64;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use http::{Method, StatusCode};
use slog::{KV, Logger, Record, Serializer, debug, info};

use crate::error::Code;

/// Writes the lines.
#[derive(Debug)]
pub struct AccessLog {
    /// One in this many successful requests has a line at level `info`, as has each rejected or failed one. `None`: all at level
    /// `debug`, which is also the level of successful requests without an operation, such as health checks.
    sample: Option<NonZeroU64>,
    successful: AtomicU64,
}

/// The facts in a line. The path is not among them, because it may contain an admission token's code.
pub struct AccessLogLine<'a> {
    /// The method.
    pub method: &'a Method,
    /// The operation of the contract, if the request has one.
    pub operation: Option<&'a str>,
    /// The status of the response.
    pub status: StatusCode,
    /// The error code of the response.
    pub code: Option<Code>,
    /// Time from the head of the request until its response is ready.
    pub duration: Duration,
    /// The identifier of the caller's key.
    pub key: Option<i64>,
    /// The number of the caller's account.
    pub account: Option<&'a str>,
    /// The address of the client, which a trusted proxy may have forwarded.
    pub client_address: IpAddr,
    /// The identifier of the request.
    pub request_id: &'a str,
}

impl AccessLog {
    /// Creates an access log with a line for one in `sample` successful requests; `None`: at level `debug` only.
    pub fn new(sample: Option<NonZeroU64>) -> Self {
        Self { sample, successful: AtomicU64::new(0) }
    }

    /// Writes a line.
    pub fn write(&self, log: &Logger, line: &AccessLogLine<'_>) {
        let is_sampled = |sample: NonZeroU64| self.successful.fetch_add(1, Ordering::Relaxed).is_multiple_of(sample.get());
        let is_logged =
            self.sample.is_some_and(|sample| line.status.as_u16() >= 400 || line.operation.is_some() && is_sampled(sample));
        if is_logged {
            info!(log, "request"; line);
        } else {
            debug!(log, "request"; line);
        }
    }
}

impl KV for AccessLogLine<'_> {
    fn serialize(&self, _: &Record<'_>, serializer: &mut dyn Serializer) -> slog::Result {
        serializer.emit_str("method".into(), self.method.as_str())?;
        if let Some(operation) = self.operation {
            serializer.emit_str("operation".into(), operation)?;
        }
        serializer.emit_u16("status".into(), self.status.as_u16())?;
        if let Some(code) = self.code {
            serializer.emit_str("code".into(), code.as_str())?;
        }
        // In milliseconds with three decimals.
        serializer.emit_f64("duration_ms".into(), self.duration.as_micros() as f64 / 1000.0)?;
        if let Some(key) = self.key {
            serializer.emit_i64("key".into(), key)?;
        }
        if let Some(account) = self.account {
            serializer.emit_str("account".into(), account)?;
        }
        serializer.emit_arguments("client".into(), &format_args!("{}", self.client_address))?;
        serializer.emit_str("request".into(), self.request_id)
    }
}
