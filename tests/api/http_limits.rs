//! What stands between strangers and the front door: sizes, times, limits, headers, TLS, and what no client sends.

mod head;
mod headers;
mod limits;
mod raw;
mod slow;
mod strange;
mod tls;
