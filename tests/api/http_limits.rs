//! Limits for untrusted clients: sizes, timeouts, rate limits, headers, TLS, and malformed HTTP.

pub mod attempts;
mod bodies;
mod connections;
mod head;
mod headers;
mod limits;
mod pages;
pub mod raw;
mod requests;
mod slow;
pub mod tls;
mod unusual_requests;
