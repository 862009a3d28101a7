//! Limits for untrusted clients: sizes, timeouts, rate limits, headers, TLS, and malformed HTTP.

mod attempts;
mod head;
mod headers;
mod limits;
pub mod raw;
mod slow;
mod strange;
mod tls;
