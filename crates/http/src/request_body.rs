//! Body of a request: size limit and timeouts.

use std::time::Duration;

use boxoffice_openapi::Operation;
use dropshot::Body;
use http_body_util::BodyExt;
use hyper::body::Body as _;
use tokio::time::{Instant, timeout_at};

use super::ApiError;
use crate::error::Code;

/// Maximum number of bytes read and discarded of a body that is too large, so that the client can read the error response.
const MAX_DISCARDED_BYTES: usize = 16 * 1024 * 1024;

/// Minimum upload rate: the total timeout grows by a second for each of these bytes of the operation's limit.
const BYTES_PER_SECOND: usize = 32 * 1024;

/// Timeouts of a body. They bound how long a slow client holds a connection and its memory.
#[derive(Debug, Clone, Copy)]
pub struct BodyTimeouts {
    /// For the whole body, plus a second per 32 KiB of the operation's size limit.
    pub total: Duration,
    /// Between two parts of the body.
    pub idle: Duration,
}

impl Default for BodyTimeouts {
    fn default() -> Self {
        Self { total: Duration::from_secs(60), idle: Duration::from_secs(10) }
    }
}

impl BodyTimeouts {
    /// The total timeout for an operation with this size limit.
    fn total_for(self, limit: usize) -> Duration {
        self.total + Duration::from_secs((limit / BYTES_PER_SECOND) as u64)
    }

    /// Reads the whole body. Returns an empty one without reading if the operation takes no body.
    ///
    /// # Errors
    /// 413 if it is too large, 408 if it is too slow, 400 if it ends early.
    pub async fn read(self, operation: &Operation, body: &mut Body) -> Result<Vec<u8>, ApiError> {
        let Some(limit) = operation.body_limit() else { return Ok(Vec::new()) };
        let too_large = || Code::BodyTooLarge.with_message(format!("The request's body is larger than {limit} bytes.")).into();
        // A client that sends `Expect: 100-continue` then doesn't send the body.
        if body.size_hint().lower() > MAX_DISCARDED_BYTES as u64 {
            return Err(too_large());
        }
        let (mut bytes, mut received) = (Vec::new(), 0);
        let deadline = Instant::now() + self.total_for(limit);
        loop {
            let frame = timeout_at(deadline.min(Instant::now() + self.idle), body.frame()).await;
            let frame = match frame {
                Ok(Some(frame)) => frame,
                Ok(None) => break,
                Err(_) if received > limit => break,
                Err(_) => return Err(Code::BodyTooSlow.into()),
            };
            let frame = frame.map_err(|_| Code::BodyMalformed.with_message("The request's body ended before it was whole."))?;
            let Ok(data) = frame.into_data() else { continue };
            received += data.len();
            if received <= limit {
                bytes.extend_from_slice(&data);
            } else if received > MAX_DISCARDED_BYTES {
                break;
            }
        }
        if received > limit { Err(too_large()) } else { Ok(bytes) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn total_timeout_grows_with_size_limit() {
        let seconds = |limit| BodyTimeouts::default().total_for(limit).as_secs();

        assert_eq!((seconds(64 * 1024), seconds(8 * 1024 * 1024)), (62, 316));
    }
}
