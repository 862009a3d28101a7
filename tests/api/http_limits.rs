//! Limits for untrusted clients: sizes, timeouts, rate limits, headers, TLS, and malformed HTTP.

mod attempts;
mod head;
mod headers;
mod limits;
mod raw;
mod slow;
mod strange;
mod tls;
