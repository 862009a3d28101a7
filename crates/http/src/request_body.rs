//! The body of a request: how large it may be, and how long it may take to arrive.

use std::time::Duration;

use dropshot::Body;
use http_body_util::BodyExt;
use hyper::body::Body as _;
use tokio::time::{Instant, timeout_at};

use super::ApiError;
use boxoffice_openapi::Operation;
use crate::error::Code;

/// What is read at the most of a body that is too large, so that its sender gets to read why it was refused.
const DISCARDED: usize = 16 * 1024 * 1024;

/// How many bytes of what an operation may be sent give its sender a second more.
const BYTES_A_SECOND: usize = 32 * 1024;

/// How long a body may take to arrive. Whoever sends slowly holds a connection, and memory with it.
#[derive(Debug, Clone, Copy)]
pub struct BodyTimeouts {
    /// All of it, beside a second for each 32 KiB that the operation may be sent.
    pub total: Duration,
    /// Until more of it comes.
    pub idle: Duration,
}

impl Default for BodyTimeouts {
    fn default() -> Self {
        Self { total: Duration::from_secs(60), idle: Duration::from_secs(10) }
    }
}

impl BodyTimeouts {
    /// How long the body may take of an operation that takes so many bytes.
    fn whole_of(self, limit: usize) -> Duration {
        self.total + Duration::from_secs((limit / BYTES_A_SECOND) as u64)
    }

    /// The whole body, unless it is too large or too slow. What an operation without a body is sent is not read.
    ///
    /// # Errors
    /// 413 and 408; 400 where the body ends before it is whole.
    pub async fn read(self, operation: &Operation, body: &mut Body) -> Result<Vec<u8>, ApiError> {
        let Some(limit) = operation.body_limit() else { return Ok(Vec::new()) };
        let too_large = || Code::BodyTooLarge.with_message(format!("The request's body is larger than {limit} bytes.")).into();
        // Who asks first (`Expect: 100-continue`) need not send it.
        if body.size_hint().lower() > DISCARDED as u64 {
            return Err(too_large());
        }
        let (mut bytes, mut seen) = (Vec::new(), 0);
        let end = Instant::now() + self.whole_of(limit);
        loop {
            let frame = timeout_at(end.min(Instant::now() + self.idle), body.frame()).await;
            let frame = match frame {
                Ok(Some(frame)) => frame,
                Ok(None) => break,
                Err(_) if seen > limit => break,
                Err(_) => return Err(Code::BodyTooSlow.into()),
            };
            let frame = frame.map_err(|_| Code::BodyMalformed.with_message("The request's body ended before it was whole."))?;
            let Ok(data) = frame.into_data() else { continue };
            seen += data.len();
            if seen <= limit {
                bytes.extend_from_slice(&data);
            } else if seen > DISCARDED {
                break;
            }
        }
        if seen > limit { Err(too_large()) } else { Ok(bytes) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_larger_body_has_more_time() {
        let most = |limit| BodyTimeouts::default().whole_of(limit).as_secs();

        assert_eq!((most(64 * 1024), most(8 * 1024 * 1024)), (62, 316));
    }
}
